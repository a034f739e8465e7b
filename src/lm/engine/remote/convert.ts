// Our data and samples in the Tinker API's terms, and back.
import { EngineError } from "../../../errors.ts";
import type { Sample, SampleRequest } from "../engine.ts";
import { TokenStop } from "../sampling/token-stop.ts";
import type { Reply, TinkerClient } from "./client.ts";
import type { RemoteInputs } from "./losses.ts";
import { modelInput, type PassOutput, type SampleOutput, type WireDatum } from "./messages.ts";

/** Log-probs are at most 0, but for rounding. */
const LARGEST_LOGPROB = 0.01;

/** A context in the API's form: all tokens but the last as input, and the token after each as its target. */
export function wireDatum(tokens: readonly number[], { weights, logprobs, advantages }: RemoteInputs): WireDatum {
  const shape = [tokens.length - 1];
  const floats = (values: ArrayLike<number>) => ({
    data: Array.from(values).slice(1),
    dtype: "float32" as const,
    shape,
  });
  return {
    model_input: modelInput(tokens.slice(0, -1)),
    loss_fn_inputs: {
      target_tokens: { data: tokens.slice(1), dtype: "int64", shape },
      ...(weights && { weights: floats(weights) }),
      ...(logprobs && { logprobs: floats(logprobs) }),
      ...(advantages && { advantages: floats(advantages) }),
    },
  };
}

/** Why a server's sample cannot be used; null if it can. */
export function faultOf(
  { tokens, logprobs }: SampleOutput["sequences"][number],
  { max_new_tokens }: SampleRequest,
  vocabulary: number,
): string | null {
  if (logprobs?.length !== tokens.length) return `${tokens.length} tokens with ${logprobs?.length ?? 0} log-probs`;
  if (tokens.length > max_new_tokens) return `${tokens.length} tokens where at most ${max_new_tokens} were asked for`;
  const token = tokens.find((id) => id < 0 || id >= vocabulary);
  if (token !== undefined) return `token id ${token}, outside the model's vocabulary of ${vocabulary}`;
  const logprob = logprobs.find((value) => !(Number.isFinite(value) && value < LARGEST_LOGPROB));
  return logprob === undefined ? null : `a log-prob of ${logprob} for a sampled token`;
}

/** Log-probs by position of the tokens; 0 for those with weight 0. */
export function logprobsOf(
  output: PassOutput["loss_fn_outputs"][number] | undefined,
  length: number,
  weights: ArrayLike<number> | null,
  client: TinkerClient,
): Float32Array {
  const found = output?.logprobs?.data;
  if (found?.length !== length - 1)
    throw client.wrongReply("forward_backward", `${found?.length ?? 0} log-probs for ${length - 1} targets`);
  const logprobs = new Float32Array(length);
  for (let i = 1; i < length; i++) if (weights === null || weights[i] !== 0) logprobs[i] = found[i - 1]!;
  const at = logprobs.findIndex((value) => !Number.isFinite(value));
  if (at >= 0)
    throw new EngineError("engine_failed", {
      what: `${client.url} has computed a log-prob that is not a finite number`,
      value: String(logprobs[at]),
      remedy:
        "the server's weights or gradients are no longer finite: resume from a checkpoint, with a lower learning rate or in float32",
    });
  return logprobs;
}

/** Ends a server's sample where a local engine would: after the first stop token, or where the stop rule ends the text. */
export function finished(
  { stop_ids, stop, max_new_tokens, onToken }: SampleRequest,
  sequence: SampleOutput["sequences"][number],
): Sample {
  const rule = stop && new TokenStop(stop);
  let kept = sequence.tokens.length;
  let isStopped = sequence.stop_reason === "stop" && kept < max_new_tokens;
  for (const [i, token] of sequence.tokens.entries()) {
    const end = stop_ids.includes(token) ? i + 1 : (rule?.add(token) ?? -1);
    if (end < 0) continue;
    [kept, isStopped] = [end, true];
    break;
  }
  const tokens = sequence.tokens.slice(0, kept);
  const logprobs = sequence.logprobs!.slice(0, kept);
  if (onToken) for (const [i, token] of tokens.entries()) onToken(token, logprobs[i]!);
  return { tokens, logprobs, finish_reason: isStopped ? "stop" : "length", cached_tokens: 0 };
}

export function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

export function jsonOf(reply: Reply, path: string, client: TinkerClient): unknown {
  if ("json" in reply) return reply.json;
  throw client.wrongReply(path, "protobuf where JSON was expected");
}

export function decoded<T>(
  decode: (bytes: Uint8Array) => T,
  bytes: Uint8Array,
): { readonly success: true; readonly data: T } | { readonly success: false; readonly error: unknown } {
  try {
    return { success: true, data: decode(bytes) };
  } catch (error) {
    return { success: false, error };
  }
}

export function shapeOf(error: unknown): string {
  const { issues, message } = error as { issues?: { path: PropertyKey[]; message: string }[]; message: string };
  return issues?.[0] ? `${issues[0].path.join(".")}: ${issues[0].message}` : message;
}

/** Bytes of a number in a request, about the most it takes in JSON or protobuf. */
const NUMBER_BYTES = 12;

/** Cuts data into requests of at most the server's number and bytes. */
export function cutData(
  data: readonly WireDatum[],
  { maxData, maxBytes }: { readonly maxData: number; readonly maxBytes: number },
): WireDatum[][] {
  const parts: WireDatum[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const datum of data) {
    const inputs = 1 + Object.keys(datum.loss_fn_inputs).length;
    const size = NUMBER_BYTES * inputs * (datum.loss_fn_inputs.target_tokens?.data.length ?? 0);
    if (bytes + size > maxBytes || parts.at(-1)!.length >= maxData) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)!.push(datum);
    bytes += size;
  }
  return parts;
}
