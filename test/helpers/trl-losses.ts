// What TRL's own loss computed on small inputs (test/reference/trl-losses.jsonl), and these inputs as the losses here take them.
import { readFileSync } from "node:fs";
import type { TokenSequence } from "../../src/lm/engine/learning/loss.ts";
import type { PolicyOptions, PolicySpec } from "../../src/rl/loss-options.ts";

export interface Inputs {
  readonly temperature: number;
  readonly logits: number[][][];
  readonly completion_ids: number[][];
  readonly completion_mask: number[][];
  readonly tool_mask: number[][];
  readonly old_logps: number[][];
  readonly ref_logps: number[][];
  readonly advantages: number[];
}
export interface Case extends Partial<PolicyOptions> {
  readonly old?: boolean;
  readonly masked_out?: number;
}
export interface Fixture {
  readonly name: string;
  readonly case: Case;
  readonly loss: number;
  readonly dLogp: number[][];
  readonly dEntropy: number[][];
  readonly metrics: Record<string, number>;
}

const file = readFileSync(new URL("../reference/trl-losses.jsonl", import.meta.url), "utf8");
const [head, ...cases] = file
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line)) as [{ base: PolicyOptions; inputs: Inputs }, ...Fixture[]];

export const { inputs } = head;
export const fixtures: readonly Fixture[] = cases;

/** What the device would give: log-softmax at the token and entropy, of logits / temperature, in double precision. */
export function sequencesOf(inputs: Inputs, { old = true, masked_out = -1 }: Case = {}): TokenSequence[] {
  return inputs.logits.map((rows, i) => {
    const logps = rows.map((row) => {
      const scaled = row.map((x) => x / inputs.temperature);
      const top = Math.max(...scaled);
      const logSum = top + Math.log(scaled.reduce((total, x) => total + Math.exp(x - top), 0));
      return scaled.map((x) => x - logSum);
    });
    return {
      logp: logps.map((row, t) => row[inputs.completion_ids[i]![t]!]!),
      entropy: logps.map((row) => -row.reduce((total, lp) => total + Math.exp(lp) * lp, 0)),
      weights: inputs.completion_mask[i]!.map((m, t) => (i === masked_out ? 0 : m * inputs.tool_mask[i]![t]!)),
      advantage: inputs.advantages[i]!,
      old_logp: old ? inputs.old_logps[i]! : null,
      ref_logp: inputs.ref_logps[i]!,
    };
  });
}

export function specOf(options: Case): PolicySpec {
  const { old, masked_out, ...rest } = options;
  return { type: "policy", ...head.base, ...rest };
}
