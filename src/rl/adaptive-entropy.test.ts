// Adaptive entropy control against TRL's own steps (../../test/reference/trl-adaptive.json).
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { inputs, sequencesOf, specOf } from "../../test/helpers/trl-losses.ts";
import { bonusCoefficient, controlEntropy } from "./adaptive-entropy.ts";
import { policyLoss } from "./loss.ts";
import type { PolicyLossType } from "./loss-options.ts";
import type { TrainerState } from "./run/store.ts";

interface Step {
  /** Of the batches of an optimizer step, which differ in temperature, and by the sequence that is masked out. */
  readonly temperatures: number[];
  readonly losses: number[];
  readonly policy_losses: number[];
  /** After the step. */
  readonly entropy: number;
  readonly coef: number;
}
const file = readFileSync(new URL("../../test/reference/trl-adaptive.json", import.meta.url), "utf8");
const { control: given, entropy: runs } = JSON.parse(file) as {
  control: Record<
    "entropy_coef" | "entropy_coef_min" | "entropy_coef_max" | "entropy_coef_delta" | "entropy_target",
    number
  >;
  entropy: Record<"dapo" | "grpo", Step[]>;
};
const settings = { ...given, use_adaptive_entropy: true };

describe("adaptive entropy", () => {
  test.each(Object.entries(runs))("%s has TRL's losses and coefficients in every step", (loss_type, steps) => {
    let control: TrainerState["entropy_control"];
    for (const { temperatures, losses, policy_losses, entropy, coef } of steps) {
      const entropy_coef = bonusCoefficient(settings, control);
      let [sum, tokens] = [0, 0];
      for (const [masked_out, temperature] of temperatures.entries()) {
        const options = {
          loss_type: loss_type as PolicyLossType,
          entropy_coef,
          use_adaptive_entropy: true,
          masked_out,
        };
        const output = policyLoss(sequencesOf({ ...inputs, temperature }, options), specOf(options));
        expect(output.loss).toBeCloseTo(losses[masked_out]!, 8);
        expect(output.metrics.policy_loss).toBeCloseTo(policy_losses[masked_out]!, 8);
        expect(output.metrics).not.toHaveProperty("entropy_coef");
        sum += output.metrics.entropy! * output.tokens;
        tokens += output.tokens;
      }
      control = controlEntropy(settings, control, sum / tokens)!;
      expect(control.entropy).toBeCloseTo(entropy, 8);
      expect(control.coef).toBeCloseTo(coef, 12);
    }
    const coefs = steps.map(({ coef }) => coef);
    expect([Math.min(...coefs), Math.max(...coefs)]).toEqual([given.entropy_coef_min, given.entropy_coef_max]);
  });

  test("there is no bonus before the first measurement and above the target, and entropy_coef alone is constant", () => {
    const at = (entropy: number) => bonusCoefficient(settings, { coef: 0.3, entropy });
    expect([bonusCoefficient(settings, undefined), at(0.5), at(0.51)]).toEqual([0, 0.3, 0]);
    expect(bonusCoefficient({ ...settings, use_adaptive_entropy: false }, undefined)).toBe(0.004);
  });

  test("a step without tokens, or with a broken loss, leaves it as it was", () => {
    expect(controlEntropy(settings, { coef: 0.3, entropy: 1 }, 0 / 0)).toEqual({ coef: 0.3, entropy: 1 });
    expect(controlEntropy(settings, undefined, Number.NaN)).toBeUndefined();
  });
});
