// OpenEnv's messages: schemas of requests, and the environment's records in their envelopes.
import { z } from "zod";
import { UsageError } from "../../errors.ts";
import { SPLITS, type Split } from "../../gym/data/index.ts";
import {
  type ActionType,
  actionSchema,
  DONE_REASONS,
  type Outcome,
  observationSchema,
  parseAction,
  type ResetOptions,
  type SQLAction,
  type SQLObservation,
} from "../../gym/env/index.ts";
import { integer } from "./validation-errors.ts";

/** The protocol's seven error codes on a socket. */
export const WIRE_ERRORS = [
  "INVALID_JSON", // the frame is not JSON
  "UNKNOWN_TYPE", // no such message
  "VALIDATION_ERROR", // envelope or action do not match their schema
  "EXECUTION_ERROR", // the environment refused or failed; the session continues
  "CAPACITY_REACHED", // no slot left; the socket is closed
  "FACTORY_ERROR", // no environment could be made; the socket is closed
  "SESSION_ERROR", // not a message at all; the socket is closed
] as const;

export type WireErrorCode = (typeof WIRE_ERRORS)[number];

/** An observation as sent: reward and done are next to it, not inside. */
export interface Envelope {
  readonly observation: Readonly<Record<string, unknown>>;
  readonly reward: number | null;
  readonly done: boolean;
}

/** The session's state. */
export interface WireState extends Outcome {
  readonly episode_id: string | null;
  readonly step_count: number;
  readonly question_id: string | null;
  readonly step_budget: number;
  readonly rules: string;
}

const metadata = z.record(z.string(), z.unknown()).optional().describe("accepted and ignored");

/** An action with exactly its fields; others are refused. */
export const wireActionSchema = z.strictObject({ ...actionSchema.unwrap().shape, metadata });

/** A step given as a model's text, `ACTION_TYPE: argument`, parsed as leniently as in training. */
export const textActionSchema = z.strictObject({
  text: z
    .string()
    .describe(
      "DESCRIBE: table, SAMPLE: table, QUERY: one SELECT statement, or ANSWER: the answer, which ends the episode",
    ),
  metadata,
});

const MAX_NAME = 255; // characters of episode and request ids, as in the protocol

/** The body of POST /reset. Other keys are ignored, as the protocol requires. */
export const resetRequestSchema = z.looseObject({
  seed: integer.min(0).nullish().describe("the same seed asks the same question; null or absent asks any"),
  episode_id: z.string().max(MAX_NAME).nullish().describe("shown again in the state"),
  question_id: z.string().nullish().describe("asks this question"),
  split: z.string().nullish().describe("train or eval (validation and test mean eval)"),
  index: integer.min(0).nullish().describe("asks the question at this place of the split"),
});

/** The body of POST /step. */
export const stepRequestSchema = z.looseObject({
  action: z.record(z.string(), z.unknown()).describe("see /schema"),
  timeout_s: z.number().gt(0).nullish().describe("accepted; a statement is stopped after a second at the latest"),
  request_id: z.string().max(MAX_NAME).nullish(),
});

const stateSchema = z.looseObject({
  episode_id: z.string().nullable().default(null),
  step_count: z.int().min(0).default(0),
  question_id: z.string().nullable(),
  step_budget: z.int().min(1),
  correctness: z.number().nullable().describe("1 after the right answer, else 0; null where it cannot be scored"),
  progress: z.number().nullable().describe("how near the best result came, 0 to 1"),
  operational: z.number().nullable().describe("exec_ok + new_info + repeat, summed over the episode"),
  done_reason: z
    .enum(DONE_REASONS)
    .nullable()
    .describe("stuck: the same action failed too often, where the rules say so"),
  rules: z.string().optional().describe("id of the environment's rules, such as env-1"),
});

/** Which form of an action the server describes. Both forms are accepted either way. */
export interface ActionForm {
  /** Describe a step as one field `text`, for clients that send a model's reply as it is. @default false */
  readonly textActions?: boolean | undefined;
}

export interface WireSchemas {
  readonly action: object;
  readonly observation: object;
  readonly reset_observation: object;
  readonly state: object;
}

/** The schemas of GET /schema. The observation's includes reward and done, although they are sent next to it. */
export function wireSchemas({ textActions = false }: ActionForm = {}): WireSchemas {
  const json = (schema: z.ZodType, title: string, io: "input" | "output") => {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io });
    return { title, ...rest };
  };
  const observation = z.strictObject({ ...observationSchema.unwrap().shape, metadata });
  return {
    action: textActions ? json(textActionSchema, "SQLText", "input") : json(wireActionSchema, "SQLAction", "input"),
    observation: json(observation, "SQLObservation", "output"),
    reset_observation: json(observation, "SQLObservation", "output"),
    state: json(stateSchema, "SQLState", "output"),
  };
}

/** Wraps an observation in its envelope. `metadata` is part of every OpenEnv observation; ours has none. A reward that is not a finite number becomes null, as in JSON. */
export function envelopeOf({ reward, done, ...observation }: SQLObservation): Envelope {
  return {
    observation: { ...observation, metadata: {} },
    reward: reward !== null && Number.isFinite(reward) ? reward : null,
    done,
  };
}

/** The action of a validated message. */
export function actionOf(data: { action_type: ActionType; argument: string } | { text: string }): SQLAction {
  return "text" in data ? parseAction(data.text).action : { action_type: data.action_type, argument: data.argument };
}

/** The question a reset requests. Sockets do not validate, so any seed is accepted; other wrong values throw UsageError. */
export function readReset(data: Readonly<Record<string, unknown>>): { options: ResetOptions; episode_id?: string } {
  const { question_id, split, index, seed, episode_id } = data;
  const options: { -readonly [K in keyof ResetOptions]: ResetOptions[K] } = {};
  if (isGiven(question_id)) options.question_id = text("question_id", question_id);
  if (isGiven(split)) options.split = splitOf(text("split", split));
  if (isGiven(index)) {
    if (!Number.isInteger(index)) throw new UsageError({ what: "index must be a whole number", value: shown(index) });
    options.index = index as number;
  }
  if (isGiven(seed)) options.seed = typeof seed === "number" ? seed : shown(seed);
  return { options, ...(isGiven(episode_id) && { episode_id: text("episode_id", episode_id) }) };
}

/** Our two splits, by common names. */
export function splitOf(name: string): Split {
  const known = name === "validation" || name === "test" ? "eval" : SPLITS.find((split) => split === name);
  if (known) return known;
  throw new UsageError({ what: "no such split", value: name, remedy: "use train or eval" });
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function text(name: string, value: unknown): string {
  if (typeof value === "string") return value.slice(0, MAX_NAME);
  throw new UsageError({ what: `${name} must be a text`, value: shown(value) });
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
