// A session on a server of the Tinker API: what the server says about itself, and what it accepts.
import { EngineError } from "../../../errors.ts";
import type { TinkerClient } from "./client.ts";
import { record } from "./convert.ts";

export interface RemoteSession {
  readonly session_id: string;
  readonly base_model: string;
  /** Data and bytes of one training request, at most. */
  readonly maxData: number;
  readonly maxBytes: number;
  readonly maxSamples: number;
  /** Whether this is SQLEnv's server, which takes our keys of random numbers and can leave out log-probs. */
  readonly isOurs: boolean;
}

/** The version of the stock client whose requests these are. */
const sdk_version = "0.38.0";

/** Opens a session; `baseModel` is the model's name on the server, or the first that it lists. */
export async function openSession(client: TinkerClient, baseModel: string | undefined): Promise<RemoteSession> {
  const config = record(await client.json("client/config", { sdk_version }));
  const base_model = baseModel ?? (await firstModel(client));
  const made = record(
    await client.json("create_session", { tags: ["sqlenv"], user_metadata: {}, sdk_version, type: "create_session" }),
  );
  const { session_id, error_message } = made;
  if (typeof error_message === "string" && error_message)
    throw new EngineError("engine_refused", { what: `${client.url} did not open a session`, value: error_message });
  if (typeof session_id !== "string") throw client.wrongReply("create_session", "no session_id");
  const limit = (name: string, usual: number) => (Number(config[name]) > 0 ? Number(config[name]) : usual);
  return {
    session_id,
    base_model,
    maxData: limit("fwdbwd_max_chunk_len", 1_024),
    maxBytes: limit("fwdbwd_max_chunk_bytes_count", 5_000_000),
    maxSamples: limit("sample_max_concurrent_requests", 2_000),
    isOurs: config.sqlenv === true,
  };
}

async function firstModel(client: TinkerClient): Promise<string> {
  const { supported_models } = record(await client.json("get_server_capabilities", null));
  const [first] = Array.isArray(supported_models) ? (supported_models as { model_name?: unknown }[]) : [];
  if (typeof first?.model_name === "string") return first.model_name;
  throw new EngineError("engine_refused", {
    what: `${client.url} does not say which models it has`,
    remedy: "name one with --base-model",
  });
}
