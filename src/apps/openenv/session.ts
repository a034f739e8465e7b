// One client's environment: OpenEnv messages in, replies out. No sockets, threads or clocks.
import { z } from "zod";
import { messageOf } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import {
  type EnvironmentOptions,
  type EnvironmentRules,
  type Outcome,
  rulesId,
  SQLEnvironment,
} from "../../gym/env/index.ts";
import { parseJson } from "../../io/json.ts";
import { answerFrame } from "./mcp/frame.ts";
import { checkRpc, isObject, RPC, RpcFault, type RpcRequest, rpcFailure, rpcResult } from "./mcp/json-rpc.ts";
import { initializeResult } from "./mcp/lifecycle.ts";
import { callTool, INSTRUCTIONS, listTools, type ToolStyle, toolAction, toolFailure } from "./mcp/tools.ts";
import {
  type ActionForm,
  actionOf,
  type Envelope,
  envelopeOf,
  readReset,
  textActionSchema,
  type WireErrorCode,
  type WireState,
  wireActionSchema,
} from "./schemas.ts";
import { checked, InvalidMessage, rethrowCrash } from "./validation-errors.ts";

/** The reply to one frame. */
export interface Reply {
  /** The frame to send; null to only close. */
  readonly text: string | null;
  /** Close the socket with this code after sending. */
  readonly close?: number;
  /** A message type or an error code, for metrics. */
  readonly kind: string;
}

const dataSchema = z.record(z.string(), z.unknown());
const ENVELOPES = {
  reset: z.strictObject({ type: z.string(), data: dataSchema.optional() }),
  step: z.strictObject({ type: z.string(), data: dataSchema }),
  state: z.strictObject({ type: z.string() }),
  close: z.strictObject({ type: z.string() }),
  mcp: z.strictObject({ type: z.string(), data: dataSchema }),
} as const;

const NO_OUTCOME: Outcome = { correctness: null, progress: null, operational: null, done_reason: null };

/** An environment and the messages it accepts. */
export class Session {
  readonly id: string;
  readonly #env: SQLEnvironment;
  readonly #textActions: boolean;
  #episode: string | null = null;
  #resetting = false;

  constructor(id: string, env: SQLEnvironment, { textActions = false }: ActionForm = {}) {
    this.id = id;
    this.#env = env;
    this.#textActions = textActions;
  }

  /** Starts an episode; unknown keys are ignored. */
  reset(data: Readonly<Record<string, unknown>> = {}): Envelope {
    const { options, episode_id } = readReset(data);
    this.#resetting = true;
    try {
      const observation = this.#env.reset(options);
      this.#episode = episode_id ?? crypto.randomUUID();
      return envelopeOf(observation);
    } finally {
      this.#resetting = false;
    }
  }

  /** Takes a step, or calls a tool. Throws InvalidMessage if the data is not an action. */
  step(data: Readonly<Record<string, unknown>>): Envelope {
    if (data.type === "list_tools" || data.type === "call_tool") return toolAction(this, data);
    const isText = !("action_type" in data) && ("text" in data || this.#textActions);
    const action = isText ? checked(textActionSchema, data) : checked(wireActionSchema, data);
    return envelopeOf(this.#env.step(actionOf(action)));
  }

  get state(): WireState {
    const { step_count, question_id } = this.#env.state;
    const { step_budget } = this.#env;
    const rules = rulesId(this.rules);
    return { episode_id: this.#episode, step_count, question_id, step_budget, rules, ...this.outcome };
  }

  get rules(): EnvironmentRules {
    return this.#env.rules;
  }

  get outcome(): Outcome {
    return this.isPlaying ? this.#env.outcome : NO_OUTCOME;
  }

  /** Whether a reset is running, whose statements are the data set's gold queries. */
  get isResetting(): boolean {
    return this.#resetting;
  }

  /** Whether an episode was started (it may have ended). */
  get isPlaying(): boolean {
    return this.#episode !== null;
  }

  close(): void {
    this.#env.close();
  }

  /** The reply to a frame on /ws. Throws only if SQLite crashes. */
  frame(text: string): Reply {
    let message: unknown;
    try {
      message = parseJson(text);
    } catch (error) {
      return errorReply("INVALID_JSON", `Invalid JSON: ${messageOf(error)}`);
    }
    if (!isObject(message)) {
      return { ...errorReply("SESSION_ERROR", "a message must be a JSON object"), close: 1000 };
    }
    try {
      return this.#answer(message);
    } catch (error) {
      rethrowCrash(error);
      if (error instanceof InvalidMessage)
        return errorReply("VALIDATION_ERROR", "Invalid message", { errors: error.details });
      return errorReply("EXECUTION_ERROR", messageOf(error));
    }
  }

  /** The reply to a JSON-RPC message, none to a notification. Throws only if SQLite crashes. */
  rpcFrame(text: string, style: ToolStyle = "openenv"): Reply {
    return answerFrame(text, (request) => this.rpc(request, style));
  }

  /** The answer to a JSON-RPC request inside this session. Throws only if SQLite crashes. */
  rpc({ id, method, params }: RpcRequest, style: ToolStyle = "openenv") {
    try {
      switch (method) {
        case "initialize":
          return rpcResult(id, initializeResult(params, INSTRUCTIONS));
        case "ping":
          return rpcResult(id, {});
        case "tools/list":
          return rpcResult(id, { tools: listTools(this.rules) });
        case "tools/call":
          return rpcResult(id, callTool(this, params, style));
        case "openenv/session/create":
          return rpcResult(id, { session_id: this.id });
        case "openenv/session/close":
          throw params.session_id === this.id
            ? new RpcFault(RPC.request, "Cannot close active WebSocket-managed session via MCP method")
            : unknownSession(params.session_id);
        default:
          throw new RpcFault(RPC.method, `Method not found: ${method.slice(0, 100)}`);
      }
    } catch (error) {
      rethrowCrash(error);
      return rpcFailure(id, toolFailure(error));
    }
  }

  #answer(message: Record<string, unknown>): Reply {
    const { type = "" } = message;
    switch (type) {
      case "reset":
        return reply("observation", this.reset(checked(ENVELOPES.reset, message).data), type);
      case "step":
        return reply("observation", this.step(checked(ENVELOPES.step, message).data), type);
      case "state":
        checked(ENVELOPES.state, message);
        return reply("state", this.state, type);
      case "close":
        checked(ENVELOPES.close, message);
        return { text: null, close: 1000, kind: type };
      case "mcp": {
        const request = checkRpc(checked(ENVELOPES.mcp, message).data);
        return reply("mcp", "method" in request ? this.rpc(request) : request, type);
      }
      default:
        return errorReply("UNKNOWN_TYPE", `Unknown message type: ${shown(type).slice(0, 100)}`);
    }
  }
}

/** Opens a session; throws if its environment cannot be created. */
export function openSession(id: string, data: DataSet, options: EnvironmentOptions & ActionForm): Session {
  return new Session(id, new SQLEnvironment(data, options), options);
}

/** An error reply. */
export function errorReply(code: WireErrorCode, message: string, more: object = {}): Reply {
  return { text: JSON.stringify({ type: "error", data: { message, code, ...more } }), kind: code };
}

export function unknownSession(id: unknown): RpcFault {
  return id === undefined || id === ""
    ? new RpcFault(RPC.params, "Invalid params - 'session_id' is required")
    : new RpcFault(RPC.params, `Unknown session_id: ${String(id).slice(0, 100)}`);
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function reply(type: string, data: object, kind: string): Reply {
  return { text: JSON.stringify({ type, data }), kind };
}
