// The OpenAPI document, generated from the schemas the server validates with, and a page that lists the routes.
import { z } from "zod";
import { resetRequestSchema, stepRequestSchema, type WireSchemas } from "./schemas.ts";

const TITLE = "OpenEnv Environment HTTP API";

interface ApiOptions {
  /** Whether the server has a model. */
  readonly llm: boolean;
  /** Whether agents play rollouts here. */
  readonly rollouts: boolean;
}

/** GET /openapi.json. */
export function openApi({ action, observation, state }: WireSchemas, { llm, rollouts }: ApiOptions): object {
  const envelope = {
    type: "object",
    required: ["observation", "reward", "done"],
    properties: {
      observation: { $ref: "#/components/schemas/Observation" },
      reward: { type: ["number", "null"] },
      done: { type: "boolean" },
      metadata: { type: ["object", "null"] },
    },
  };
  const json = (schema: object) => ({ "application/json": { schema } });
  const answers = (schema: object, more: object = {}) => ({
    responses: { 200: { description: "Answered", content: json(schema) }, ...more },
  });
  const invalid = { 422: { description: "The body has the wrong shape", content: json({ type: "object" }) } };
  const takes = (schema: object, required: boolean) => ({ requestBody: { required, content: json(schema) } });
  const object = { type: "object" };
  const bodyOf = (schema: z.ZodType) => {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" });
    return rest;
  };
  const taskParameter = [{ name: "env_name", in: "path", required: true, schema: { type: "string" } }];
  const taskPath = (summary: string) => ({
    post: { summary, parameters: taskParameter, ...takes(object, true), ...answers(object) },
  });
  return {
    openapi: "3.1.0",
    info: { title: TITLE, version: "1.0.0", description: "SQLEnv: questions about SQL databases, answered by looking" },
    paths: {
      "/reset": {
        post: {
          summary: "Start an episode of the session that plain HTTP requests of a client share",
          ...takes(bodyOf(resetRequestSchema), false),
          ...answers(envelope, invalid),
        },
      },
      "/step": {
        post: {
          summary: "Take one action of that episode",
          ...takes(bodyOf(stepRequestSchema), true),
          ...answers(envelope, {
            ...invalid,
            500: { description: "The environment failed, or no episode is running" },
          }),
        },
      },
      "/state": { get: { summary: "That episode's state", ...answers(state) } },
      "/metadata": { get: { summary: "What this environment is", ...answers(object) } },
      "/health": { get: { summary: "Whether the server is well", ...answers(object) } },
      "/schema": { get: { summary: "Schemas of action, observations and state", ...answers(object) } },
      "/mcp": {
        post: {
          summary: "MCP over HTTP (sessions by mcp-session-id); also a WebSocket",
          ...takes(object, true),
          ...answers(object),
        },
        delete: { summary: "End the session of mcp-session-id", responses: { 204: { description: "Ended" } } },
      },
      "/metrics": { get: { summary: "Counters in Prometheus' format", responses: { 200: { description: "Text" } } } },
      ...(llm && {
        "/v1/models": { get: { summary: "The served model", ...answers(object) } },
        "/v1/chat/completions": {
          post: { summary: "A completion, as in OpenAI's API", ...takes(object, true), ...answers(object) },
        },
      }),
      ...(rollouts && {
        "/rollouts/next": { post: { summary: "Wait for a task: its rollout_id and task", ...answers(object) } },
        "/rollouts/{id}/reward": {
          post: {
            summary: "End a rollout with its reward",
            parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
            ...takes(object, true),
            ...answers(object),
          },
        },
      }),
      "/list_environments": { get: { summary: "Names for the Task API", ...answers({ type: "array" }) } },
      "/{env_name}/splits": {
        get: { summary: "Its splits", parameters: taskParameter, ...answers({ type: "array" }) },
      },
      "/{env_name}/tasks": taskPath("All questions of a split"),
      "/{env_name}/num_tasks": taskPath("How many there are"),
      "/{env_name}/task": taskPath("One, by its index"),
      "/{env_name}/task_range": taskPath("Some, from start to stop"),
    },
    components: { schemas: { Action: action, Observation: observation, State: state } },
  };
}

/** GET /docs: the routes on a self-contained page. */
export function docsPage(api: object): string {
  const { paths } = api as { paths: Record<string, Record<string, { summary: string }>> };
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { summary }]) => `<tr><td><code>${method.toUpperCase()} ${path}</code></td><td>${summary}</td></tr>`,
    ),
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${TITLE}</title>
<style>body{font:16px/1.5 system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem;color-scheme:light dark}td{padding:.2rem 1rem .2rem 0;vertical-align:top}</style>
<h1>${TITLE}</h1><p>Stateful play is on the WebSocket <code>/ws</code>. <a href="openapi.json">openapi.json</a> describes the routes, <a href="schema">schema</a> the records.</p>
<table>${rows.join("\n")}</table></html>
`;
}
