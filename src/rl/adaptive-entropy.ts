// Adaptive entropy control (Skywork-OR1; TRL's use_adaptive_entropy): an entropy bonus that acts only while the entropy is
// at or below a target. With H the mean entropy per token of an optimizer step, the next step has
//
//     coefficient   c ← min(c + delta, max) if H ≤ target, else max(c − delta, min)
//     bonus         c · entropy              if H ≤ target, else none
//
// The first step has no bonus, since nothing has been measured before it.
import type { GRPOConfig } from "./config.ts";
import type { TrainerState } from "./run/store.ts";

type EntropyControl = NonNullable<TrainerState["entropy_control"]>;
type EntropySettings = Pick<
  GRPOConfig,
  | "use_adaptive_entropy"
  | "entropy_coef"
  | "entropy_coef_min"
  | "entropy_coef_max"
  | "entropy_coef_delta"
  | "entropy_target"
>;

/** The coefficient of the entropy bonus in the next step. */
export function bonusCoefficient(settings: EntropySettings, control: EntropyControl | undefined): number {
  const { use_adaptive_entropy, entropy_coef, entropy_target } = settings;
  if (!use_adaptive_entropy) return entropy_coef;
  return control && control.entropy <= entropy_target ? control.coef : 0;
}

/** The control after a step whose tokens had this mean entropy; unchanged if it could not be measured. */
export function controlEntropy(
  settings: EntropySettings,
  control: EntropyControl | undefined,
  entropy: number,
): EntropyControl | undefined {
  if (!Number.isFinite(entropy)) return control;
  const { entropy_coef, entropy_coef_min, entropy_coef_max, entropy_coef_delta, entropy_target } = settings;
  const coef = control?.coef ?? entropy_coef;
  return {
    coef:
      entropy <= entropy_target
        ? Math.min(coef + entropy_coef_delta, entropy_coef_max)
        : Math.max(coef - entropy_coef_delta, entropy_coef_min),
    entropy,
  };
}
