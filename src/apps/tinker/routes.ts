// The HTTP routes of the Tinker API. Host, origin, key and rate are checked before a body is read.
import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import type { z } from "zod";
import { messageOf } from "../../errors.ts";
import { LlmError } from "../../lm/chat/openai/error.ts";
import {
  decodeForwardBackward,
  type ForwardBackwardRequest,
  forwardBackwardSchema,
  forwardSchema,
  PROTOBUF,
} from "../../lm/engine/remote/messages.ts";
import type { Access, Caller, Refusal } from "../openenv/access.ts";
import type { Proxies } from "../openenv/client-address.ts";
import type { HeldBytes } from "../openenv/held-bytes.ts";
import type { Log } from "../openenv/log.ts";
import type { RateLimit } from "../openenv/rate-limit.ts";
import { withBytes } from "../openenv/request-body.ts";
import type { Result } from "./futures.ts";
import { Problem } from "./problem.ts";
import {
  createModelSchema,
  createSessionSchema,
  futureSchema,
  loadWeightsSchema,
  modelSchema,
  optimStepSchema,
  sampleSchema,
  samplingSessionSchema,
  saveForSamplerSchema,
  saveWeightsSchema,
  sessionSchema,
  weightsInfoSchema,
} from "./schemas.ts";
import type { BaseModel, Service } from "./service.ts";

export interface RouteOptions {
  readonly service: Service;
  readonly model: BaseModel;
  readonly access: Access;
  readonly proxies: Proxies;
  readonly held: HeldBytes;
  readonly rate: RateLimit;
  /** Limits how often refusals are logged. */
  readonly logged: RateLimit;
  readonly log: Log;
  readonly maxBodyBytes: number;
  /** Milliseconds that a poll waits for a result. */
  readonly pollMs: number;
}

interface Env {
  Bindings: HttpBindings;
  Variables: { client: string };
}

type Answer = (body: Uint8Array, c: Context<Env>) => object | Promise<object>;

const decoder = new TextDecoder();

export function routes(options: RouteOptions): Hono<Env>["fetch"] {
  const { service, model, access, proxies, held, rate, logged, log, maxBodyBytes, pollMs } = options;
  const app = new Hono<Env>().basePath("/api/v1");

  const post = (path: string, answer: Answer) =>
    app.post(path, (c) =>
      withBytes(c.env.incoming, { client: c.get("client"), held, maxBytes: maxBodyBytes }, async (bytes) => {
        const reply = await answer(bytes, c);
        return reply instanceof Response ? reply : c.json(reply);
      }),
    );
  const posted = <S extends z.ZodType>(
    path: string,
    schema: S,
    answer: (body: z.output<S>, c: Context<Env>) => object | Promise<object>,
  ) => post(path, (bytes, c) => answer(read(schema, jsonOf(bytes)), c));

  app.use(async (c, next) => refused(access.refuseOrigin(callerOf(c)), c) ?? next());
  app.use(async (c, next) => {
    if (c.req.path === "/api/v1/healthz") return next();
    const admitted = access.admit(callerOf(c));
    if (!("client" in admitted)) {
      const { address } = callerOf(c);
      if (logged.tryTake(address)) log("warning", "refused", { client: address, status: admitted.status });
      return refused(admitted, c);
    }
    const { client } = admitted;
    if (!rate.tryTake(client)) return refused({ status: 429, detail: "Too Many Requests", retryAfter: 1 }, c);
    c.set("client", client);
    return next();
  });
  app.onError((error, c) => {
    if (error instanceof HTTPException) return error.getResponse();
    if (error instanceof Problem) return c.json({ detail: error.message }, error.status);
    if (error instanceof LlmError) return c.json({ detail: error.message }, error.status as 429);
    log("error", "request_failed", { path: c.req.path, message: messageOf(error) });
    return c.json({ detail: "the request failed; the server's log says why" }, 500);
  });
  app.notFound((c) => c.json({ detail: "Not Found" }, 404));

  // ---- The server and its sessions ----
  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/get_server_capabilities", (c) =>
    c.json({ supported_models: [{ model_name: model.names[0], max_context_length: model.window }] }),
  );
  post("/client/config", () => ({ sqlenv: true }));
  posted("/create_session", createSessionSchema, (_, c) => ({
    type: "create_session",
    session_id: service.createSession(c.get("client")),
  }));
  posted("/session_heartbeat", sessionSchema, ({ session_id }, c) => {
    service.session(session_id, c.get("client"));
    return { type: "session_heartbeat" };
  });
  post("/sessions/:id/finish", async (_, c) => {
    await service.endSession(service.session(c.req.param("id")!, c.get("client")));
    return {};
  });
  post("/telemetry", () => ({ status: "accepted" }));

  // ---- Training ----
  posted("/create_model", createModelSchema, (body, c) => service.createModel(body, c.get("client")));
  posted("/get_info", modelSchema, ({ model_id }, c) => {
    const { rank } = service.model(model_id, c.get("client")).model.lora;
    const [name] = model.names;
    return {
      type: "get_info",
      model_id,
      model_data: { arch: "decoder", model_name: name, tokenizer_id: name },
      is_lora: true,
      lora_rank: rank,
      model_name: name,
    };
  });
  /** Runs a request once, in the order of sequence numbers. */
  const ordered = (
    { model_id, seq_id }: { readonly model_id: string; readonly seq_id?: number | null | undefined },
    c: Context<Env>,
    run: (at: ReturnType<Service["model"]>) => Promise<Result>,
  ) => {
    const at = service.model(model_id, c.get("client"));
    const key = seq_id === null || seq_id === undefined ? null : `${model_id} ${seq_id}`;
    return { request_id: at.session.futures.start(key, () => at.model.submit(seq_id, () => run(at))) };
  };
  const pass = (body: ForwardBackwardRequest, c: Context<Env>) => {
    const trainedOnly = c.req.header("x-sqlenv-logprobs") === "trained";
    return ordered(body, c, (at) => at.model.forwardBackward(body, trainedOnly));
  };
  post("/forward_backward", (bytes, c) => {
    const isProto = c.req.header("content-type")?.includes(PROTOBUF) ?? false;
    return pass(isProto ? decodedPass(bytes) : read(forwardBackwardSchema, jsonOf(bytes)), c);
  });
  posted("/forward", forwardSchema, ({ forward_input, ...body }, c) =>
    pass({ ...body, forward_backward_input: forward_input, forward_only: true }, c),
  );
  posted("/optim_step", optimStepSchema, (body, c) => ordered(body, c, (at) => at.model.optimStep(body.adam_params)));
  posted("/save_weights", saveWeightsSchema, (body, c) => ordered(body, c, (at) => at.model.saveWeights(body.path)));
  posted("/load_weights", loadWeightsSchema, ({ model_id, seq_id, session_id, model_seq_id, path, optimizer }, c) => {
    if (session_id) {
      const session = service.session(session_id, c.get("client"));
      return service.createFromCheckpoint(session, model_seq_id ?? 0, path, optimizer);
    }
    if (!model_id) throw new Problem(422, "give a model_id, or a session_id for a new model");
    const dir = service.folderOf(path, "weights");
    return ordered({ model_id, seq_id }, c, (at) => at.model.loadWeights(dir, optimizer));
  });
  posted("/weights_info", weightsInfoSchema, ({ tinker_path }) => {
    const { rank, train_attn, train_mlp } = service.loraOf(tinker_path);
    const [base_model] = model.names;
    return { base_model, is_lora: true, lora_rank: rank, train_attn, train_mlp, train_unembed: false };
  });
  posted("/save_weights_for_sampler", saveForSamplerSchema, (body, c) => {
    const { path, sampling_session_seq_id } = body;
    if (!path && typeof sampling_session_seq_id !== "number")
      throw new Problem(422, "give a path, or sampling_session_seq_id for a sampling session");
    const type = "save_weights_for_sampler";
    return ordered(body, c, async ({ session, model: trained }) =>
      path
        ? { json: { type, path: await trained.saveAdapter(path) } }
        : {
            json: {
              type,
              path: null,
              sampling_session_id: service.openSampler(session, trained, sampling_session_seq_id!),
            },
          },
    );
  });
  posted("/unload_model", modelSchema, ({ model_id }, c) => {
    const client = c.get("client");
    const { session } = service.model(model_id, client);
    return { request_id: session.futures.start(null, () => service.unloadModel(model_id, client)), model_id };
  });
  app.get("/training_runs/:model/checkpoints/:name/archive", async (c) => {
    const archive = await service.archiveOf(c.req.param("model"), c.req.param("name"));
    return c.body(archive as Uint8Array<ArrayBuffer>, 200, { "content-type": "application/gzip" });
  });

  // ---- Sampling ----
  posted("/create_sampling_session", samplingSessionSchema, (body, c) => {
    const session = service.session(body.session_id, c.get("client"));
    if (!body.model_path && !model.names.includes(body.base_model ?? ""))
      throw new Problem(404, `this server has ${model.names[0]}, not ${body.base_model}`);
    const path = body.model_path ?? null;
    const sampling_session_id = service.openSavedSampler(session, path, body.sampling_session_seq_id);
    return { type: "create_sampling_session", sampling_session_id };
  });
  app.get("/samplers/:id", (c) => {
    const sampler_id = c.req.param("id");
    return c.json({
      sampler_id,
      base_model: model.names[0],
      model_path: service.samplerPath(sampler_id, c.get("client")),
    });
  });
  posted("/asample", sampleSchema, (body, c) => service.sample(body, c.get("client")));

  // ---- Results ----
  posted("/retrieve_future", futureSchema, async ({ request_id }, c) => {
    const { futures } = service.sessionOf(request_id, c.get("client"));
    const gone = new AbortController();
    c.env.outgoing.once("close", () => gone.abort());
    const outcome = await futures.wait(request_id, pollMs, gone.signal);
    if (!outcome) return { type: "try_again", request_id, queue_state: "active" };
    if ("error" in outcome) return outcome;
    const wantsProto = c.req.header("accept")?.includes(PROTOBUF) ?? false;
    if (!wantsProto || !outcome.proto) return outcome.json;
    return c.body(outcome.proto() as Uint8Array<ArrayBuffer>, 200, { "content-type": PROTOBUF });
  });
  posted("/cancel_future", futureSchema, ({ request_id }, c) => {
    service.sessionOf(request_id, c.get("client")).futures.cancel(request_id);
    return {};
  });

  return app.fetch;

  function callerOf(c: Context<Env>): Caller {
    const address = proxies.addressOf(c.env.incoming);
    return { address, url: new URL(c.req.url), header: (name) => c.req.header(name), isUpgrade: false };
  }
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return bytes.length === 0 ? {} : JSON.parse(decoder.decode(bytes));
  } catch (error) {
    throw new Problem(422, `the body is not JSON: ${messageOf(error)}`);
  }
}

function read<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  throw new Problem(422, `${path.join(".") || "the body"}: ${message}`);
}

function decodedPass(bytes: Uint8Array): ForwardBackwardRequest {
  try {
    return decodeForwardBackward(bytes);
  } catch (error) {
    throw new Problem(422, `the body is not a ForwardBackwardRequest: ${messageOf(error)}`);
  }
}

function refused(refusal: Refusal | undefined, c: Context<Env>): Response | undefined {
  if (!refusal) return undefined;
  const { status, detail, retryAfter } = refusal;
  const headers = {
    ...(c.req.method === "POST" && { connection: "close" }), // its body is not read
    ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
  };
  return Response.json({ detail }, { status, headers });
}
