// Options of the policy losses: plain data, with TRL's names and defaults.

export type PolicyLossType = "grpo" | "bnpo" | "dr_grpo" | "dapo" | "luspo" | "cispo" | "sapo" | "vespo";

/** Options of the policy losses, with TRL's names and defaults (`POLICY_DEFAULTS`). */
export interface PolicyOptions {
  readonly loss_type: PolicyLossType;
  /** Ratios below 1 − epsilon are not pushed further down. */
  readonly epsilon: number;
  /** Ratios above 1 + epsilon_high are not pushed further up; null means epsilon. For cispo the cap itself, such as 5. */
  readonly epsilon_high: number | null;
  /** Caps the ratio where clipping does not (A < 0), so that one token cannot dominate; INTELLECT-2's two-sided clip. */
  readonly delta: number | null;
  /** Weight of the KL term; 0 needs no reference model. */
  readonly beta: number;
  /** Multiplies the KL by the importance weight, so that its mean is right off policy too (DeepSeek-V3.2). */
  readonly use_bias_correction_kl: boolean;
  /** One ratio per token (GRPO), or one per sequence (GSPO). */
  readonly importance_sampling_level: "token" | "sequence";
  /** Weight of the entropy bonus. */
  readonly entropy_coef: number;
  /** Whether that weight changes from step to step: policy_loss is then always logged, and the trainer logs the weight. */
  readonly use_adaptive_entropy: boolean;
  /** Learn only from this share of tokens, those with the highest entropy. */
  readonly top_entropy_quantile: number;
  /** Masks bad episodes whose mean log π_old − log π is above this. */
  readonly off_policy_mask_threshold: number | null;
  readonly sapo_temperature_pos: number;
  readonly sapo_temperature_neg: number;
  readonly vespo_k_pos: number;
  readonly vespo_lambda_pos: number;
  readonly vespo_k_neg: number;
  readonly vespo_lambda_neg: number;
  /** dr_grpo divides by it instead of by actual lengths. */
  readonly max_completion_length: number;
  /** Batches accumulated per optimizer step. */
  readonly gradient_accumulation_steps: number;
  /** Slices of one rollout batch; null means gradient_accumulation_steps. */
  readonly steps_per_generation: number | null;
  /** Weight of all tokens of the rollout batch; null only when it has one slice. */
  readonly num_items_in_batch: number | null;
}

export type PolicySpec = { readonly type: "policy" } & Partial<PolicyOptions>;

/** TRL 1.16's defaults. */
export const POLICY_DEFAULTS: PolicyOptions = {
  loss_type: "dapo",
  epsilon: 0.2,
  epsilon_high: null,
  delta: null,
  beta: 0,
  use_bias_correction_kl: true,
  importance_sampling_level: "token",
  entropy_coef: 0,
  use_adaptive_entropy: false,
  top_entropy_quantile: 1,
  off_policy_mask_threshold: null,
  sapo_temperature_pos: 1,
  sapo_temperature_neg: 1.05,
  vespo_k_pos: 2,
  vespo_lambda_pos: 3,
  vespo_k_neg: 3,
  vespo_lambda_neg: 2,
  max_completion_length: 512,
  gradient_accumulation_steps: 1,
  steps_per_generation: null,
  num_items_in_batch: null,
};
