// The requests of the Tinker API, as far as they are served here; tensors are in lm/engine/remote/messages.ts.
import { z } from "zod";
import { modelInputSchema } from "../../lm/engine/remote/messages.ts";

/** A checkpoint's name, which becomes a folder's. */
const name = z.string().regex(/^(?!\.)[\w.-]{1,128}$/, "letters, digits, _ . and - only");
const count = z.int().min(0);

export const createSessionSchema = z.looseObject({});
export const sessionSchema = z.looseObject({ session_id: z.string() });
export const modelSchema = z.looseObject({ model_id: z.string() });
export const futureSchema = z.looseObject({ request_id: z.string() });

export const loraConfigSchema = z.looseObject({
  rank: z.int().min(1).max(512),
  seed: z.int().nullish(),
  train_attn: z.boolean().default(true),
  train_mlp: z.boolean().default(true),
});

export const createModelSchema = z.looseObject({
  session_id: z.string(),
  model_seq_id: count.default(0),
  base_model: z.string(),
  lora_config: loraConfigSchema,
});

export const optimStepSchema = z.looseObject({
  model_id: z.string(),
  seq_id: count.nullish(),
  adam_params: z.looseObject({
    learning_rate: z.number().min(0).default(1e-4),
    beta1: z.number().min(0).max(1).default(0.9),
    beta2: z.number().min(0).max(1).default(0.95),
    eps: z.number().min(0).default(1e-12),
    weight_decay: z.number().min(0).default(0),
    grad_clip_norm: z.number().min(0).default(0),
  }),
});

export const saveWeightsSchema = z.looseObject({ model_id: z.string(), seq_id: count.nullish(), path: name });

export const saveForSamplerSchema = z.looseObject({
  model_id: z.string(),
  seq_id: count.nullish(),
  path: name.nullish(),
  sampling_session_seq_id: count.nullish(),
});

/** Loads weights into a model, as its first request; with a session, into a new model. */
export const loadWeightsSchema = z.looseObject({
  model_id: z.string().nullish(),
  seq_id: count.nullish(),
  session_id: z.string().nullish(),
  model_seq_id: count.nullish(),
  path: z.string(),
  optimizer: z.boolean().default(true),
});
export const weightsInfoSchema = z.looseObject({ tinker_path: z.string() });

export const samplingSessionSchema = z.looseObject({
  session_id: z.string(),
  sampling_session_seq_id: count.default(0),
  base_model: z.string().nullish(),
  model_path: z.string().nullish(),
});

export const sampleSchema = z.looseObject({
  sampling_session_id: z.string().nullish(),
  seq_id: count.nullish(),
  base_model: z.string().nullish(),
  model_path: z.string().nullish(),
  num_samples: z.int().min(1).max(1_024).default(1),
  prompt: modelInputSchema,
  sampling_params: z.looseObject({
    max_tokens: z.int().min(1).nullish(),
    seed: z.int().nullish(),
    /** Strings or token ids that end a sample; null: the model's end tokens. */
    stop: z.union([z.string(), z.array(z.string()), z.array(z.int())]).nullish(),
    temperature: z.number().min(0).default(1),
    top_k: z.int().default(-1),
    top_p: z.number().min(0).max(1).default(1),
  }),
  prompt_logprobs: z.boolean().nullish(),
  topk_prompt_logprobs: z.literal(0, "top-k log-probs of the prompt are not served here").nullish(),
  topk_sample_logprobs: z.literal(0, "top-k log-probs of samples are not served here").nullish(),
  prompt_alt_tokens_k: z.literal(0, "alternative tokens of the prompt are not served here").nullish(),
  target_prompt_logprobs: z.null("log-probs of given tokens are not served here").optional(),
  /** Extension of SQLEnv: the key of its random numbers, which has more bits than a seed. */
  sample_key: z.array(z.union([z.string(), z.number()])).optional(),
});

export type SampleBody = z.output<typeof sampleSchema>;
export type LoraConfig = z.output<typeof loraConfigSchema>;
export type CreateModelBody = z.output<typeof createModelSchema>;
export type AdamBody = z.output<typeof optimStepSchema>["adam_params"];
