// Training requests of the Tinker API in the engine's terms, and its results in the API's.
import type { Datum, ForwardBackwardOptions } from "../../lm/engine/index.ts";
import type { PassOutput, WireDatum } from "../../lm/engine/remote/messages.ts";
import type { PolicySpec } from "../../rl/loss-options.ts";
import { Problem } from "./problem.ts";

export interface Pass {
  readonly batch: readonly Datum[];
  readonly options: ForwardBackwardOptions;
}

/** The losses that this server has. */
export const LOSSES = ["cross_entropy", "importance_sampling", "ppo", "cispo"] as const;

type Config = Readonly<Record<string, number | string>>;

/**
 * The engine's batch and loss. The API's losses are sums over tokens, so every denominator is 1. Clients expect the
 * log-prob of every token; with `trainedOnly` those without weight or advantage are left out, which takes less time.
 */
export function passOf(data: readonly WireDatum[], loss_fn: string, config: Config, trainedOnly: boolean): Pass {
  const totals = { sequences: 1, tokens: 1 };
  if (loss_fn === "cross_entropy") {
    noneOf(config, loss_fn, []);
    const batch = data.map((datum, i) => {
      const { tokens, isNext, input } = contextOf(datum, i, "weights");
      const weights = input("weights") ?? tokens.map((_, at) => (at === 0 ? 0 : 1));
      // The engine computes no log-probs of tokens with weight 0. So where all are wanted, every weight is 1 and the
      // client's weights w are the advantages of a loss without a ratio, −A · log π, which is then −w · log π.
      return trainedOnly
        ? { tokens, weights }
        : { tokens, weights: tokens.map((_, at) => (isNext(at) ? 1 : 0)), advantage: weights };
    });
    if (trainedOnly) return { batch, options: { loss: { type: "cross_entropy" }, totals } };
    return { batch, options: { loss: policy({ loss_type: "cispo", epsilon_high: 1 }), totals } };
  }
  const loss = lossOf(loss_fn, config);
  const batch = data.map((datum, i) => {
    const { tokens, isNext, input } = contextOf(datum, i, "advantages");
    const [advantage, old_logp, given] = [input("advantages"), input("logprobs"), input("weights")];
    if (!advantage || !old_logp) throw new Problem(400, `datum ${i}: ${loss_fn} needs advantages and logprobs`);
    const used = (at: number) => !trainedOnly || advantage[at] !== 0 || old_logp[at] !== 0;
    const weights = given ?? tokens.map((_, at) => (isNext(at) && used(at) ? 1 : 0));
    return { tokens, weights, advantage, old_logp };
  });
  return { batch, options: { loss, totals } };
}

/** The answer to forward_backward and forward. */
export function outputOf(logprobs: readonly Float32Array[], loss: number | null): PassOutput {
  return {
    loss_fn_outputs: logprobs.map((of) => ({
      logprobs: { data: Array.from(of.subarray(1)), dtype: "float32", shape: [of.length - 1] },
    })),
    metrics: loss === null ? {} : { "loss:sum": loss },
  };
}

function lossOf(loss_fn: string, config: Config): PolicySpec {
  const threshold = (name: string, usual: number) => Number(config[name] ?? usual);
  const [low, high] = ["clip_low_threshold", "clip_high_threshold"] as const;
  switch (loss_fn) {
    case "importance_sampling":
      noneOf(config, loss_fn, []);
      return policy({ loss_type: "dr_grpo", epsilon: Infinity });
    case "ppo":
      noneOf(config, loss_fn, [low, high]);
      return policy({ loss_type: "dr_grpo", epsilon: 1 - threshold(low, 0.8), epsilon_high: threshold(high, 1.2) - 1 });
    case "cispo":
      noneOf(config, loss_fn, [low, high]);
      if (threshold(low, 0) > 0)
        throw new Problem(400, "cispo is one-sided here: leave out clip_low_threshold, or set it to 0");
      return policy({ loss_type: "cispo", epsilon_high: threshold(high, 1.2) });
    default:
      throw new Problem(400, `this server has no loss ${loss_fn}; it has ${LOSSES.join(", ")}`);
  }
}

/** A policy loss as a sum over all tokens. */
function policy(options: PolicySpec | Omit<PolicySpec, "type">): PolicySpec {
  const sum = { max_completion_length: 1, num_items_in_batch: 1, gradient_accumulation_steps: 1 };
  return { ...options, ...sum, steps_per_generation: 1, type: "policy" };
}

function noneOf(config: Config, loss_fn: string, known: readonly string[]): void {
  const other = Object.keys(config).find((key) => !known.includes(key));
  if (other !== undefined)
    throw new Problem(
      400,
      `${loss_fn} has no option ${other}${known.length > 0 ? `; it has ${known.join(", ")}` : ""}`,
    );
}

interface Context {
  readonly tokens: number[];
  /** Whether the target for a position of `tokens` is the token there: some clients send 0 where they do not train. */
  readonly isNext: (at: number) => boolean;
  /** An input by position of `tokens`. */
  readonly input: (name: string) => number[] | undefined;
}

/** The tokens of a datum. A target other than the next input token is refused where its weight or advantage is not 0. */
function contextOf(
  { model_input, loss_fn_inputs }: WireDatum,
  index: number,
  counts: "weights" | "advantages",
): Context {
  const inputs = model_input.chunks.flatMap(({ tokens }) => tokens);
  const targets = loss_fn_inputs.target_tokens?.data;
  if (!targets) throw new Problem(400, `datum ${index}: target_tokens is missing`);
  if (targets.length !== inputs.length)
    throw new Problem(400, `datum ${index}: ${inputs.length} input tokens but ${targets.length} target_tokens`);
  if (inputs.length === 0) throw new Problem(400, `datum ${index}: no tokens`);
  const input = (name: string): number[] | undefined => {
    const values = loss_fn_inputs[name]?.data;
    if (values && values.length !== targets.length)
      throw new Problem(400, `datum ${index}: ${values.length} ${name} for ${targets.length} target_tokens`);
    return values && [0, ...values];
  };
  const tokens = [...inputs, targets.at(-1)!];
  const isNext = (at: number) => at === 0 || tokens[at] === targets[at - 1];
  const used = input(counts);
  const other = tokens.findIndex((_, at) => !isNext(at) && used?.[at] !== 0);
  if (other > 0)
    throw new Problem(
      400,
      `datum ${index}: target_tokens must be the next input token where ${counts} are not 0; token ${other - 1} is not`,
    );
  return { tokens, isNext, input };
}
