// Resolves given settings to a full config: old names, defaults, validation, errors with a remedy.
import type { z } from "zod";
import { nearest, UsageError } from "../../errors.ts";
import { rewardSchema } from "../../gym/env/index.ts";
import { batchingOf, usesQueue } from "./derived.ts";
import { checkRemote } from "./remote.ts";
import { renameSettings } from "./renamed.ts";
import { CONFIG_KEYS, configSchema, type GRPOConfig } from "./schema.ts";

/**
 * Fills in the defaults and checks; throws UsageError naming the key, its value and a remedy. Old names are mapped to
 * current settings, and `onDeprecated` gets one line about it.
 *
 * @example
 * const config = resolveConfig({ max_steps: 100, learning_rate: 1e-5, loss_type: "dapo" });
 */
export function resolveConfig(
  settings: Readonly<Record<string, unknown>> = {},
  // By default on the console: a program that uses an old name should be told.
  { onDeprecated = (line: string) => console.warn(line) } = {},
): GRPOConfig {
  const { settings: given, note } = renameSettings(settings);
  if (note) onDeprecated(note);
  const parsed = configSchema.safeParse(withAdapters(given));
  if (parsed.success) {
    checkTogether(parsed.data);
    return parsed.data;
  }
  const issue = parsed.error.issues[0]!;
  if (issue.code === "unrecognized_keys") throw unknownKey([...issue.path.map(String), issue.keys[0]!].join("."));
  const key = issue.path.join(".");
  const value = issue.path.reduce<unknown>((at, part) => (at as Record<PropertyKey, unknown>)?.[part], given);
  throw new UsageError({
    what: `${key} ${expectation(issue)}`,
    value: typeof value === "string" ? value : JSON.stringify(value),
    ...(issue.code === "invalid_type" && exampleOf(key)),
  });
}

/** A remote engine trains adapters. */
function withAdapters(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return typeof given.engine === "string" ? { use_peft: true, ...given } : given;
}

/** What values a setting accepts, as the predicate of an error message whose subject is the setting. */
function expectation(issue: z.core.$ZodIssue): string {
  const types: Readonly<Record<string, string>> = {
    number: "a number",
    int: "a whole number",
    boolean: "true or false",
    string: "a text",
    array: "a list",
    object: "`key: value` pairs",
  };
  switch (issue.code) {
    case "invalid_type":
      return `takes ${types[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `takes ${issue.values
        .map(String)
        .join(", ")
        .replace(/, ([^,]*)$/, " or $1")}`;
    case "too_small":
      if (issue.origin === "array" || issue.origin === "string") return "must not be empty";
      return `must be ${issue.inclusive ? "at least" : "above"} ${issue.minimum}`;
    case "too_big":
      return `must be ${issue.inclusive ? "at most" : "below"} ${issue.maximum}`;
    case "custom":
      return `is out of range (${issue.message})`;
    default:
      return `is not usable (${issue.message.replace(/^Invalid input: ?/, "") || "invalid"})`;
  }
}

/** A value of the right type as a remedy: the default. */
function exampleOf(key: string): { readonly remedy?: string } {
  const shape = configSchema.unwrap().shape as Record<string, z.ZodType>;
  const fallback = shape[key]?.safeParse(undefined).data;
  return typeof fallback === "number" || Array.isArray(fallback) ? { remedy: `for example ${show(fallback)}` } : {};
}

function show(value: unknown): string {
  if (Array.isArray(value)) return value.join(",");
  return typeof value === "number" && value !== 0 && Math.abs(value) < 0.001 ? value.toExponential() : String(value);
}

/** The error for an unknown key. */
export function unknownKey(key: string): UsageError {
  if (key.startsWith("imitation_"))
    return new UsageError({
      what: "no such setting any more",
      value: key,
      remedy: "supervised fine-tuning before GRPO has sft_steps, sft_learning_rate and the other sft_ settings",
    });
  const guess = nearest(key, [...CONFIG_KEYS, ...Object.keys(rewardSchema.unwrap().shape).map((k) => `reward.${k}`)]);
  return new UsageError({
    what: "no such setting",
    value: key,
    remedy: guess ? `did you mean ${guess}?` : "see `sqlenv train --help`",
  });
}

function checkTogether(config: GRPOConfig): void {
  batchingOf(config);
  checkRemote(config);
  const { max_new_tokens, max_context_tokens, max_completion_length, num_iterations } = config;
  if (max_new_tokens >= max_context_tokens)
    throw new UsageError({
      what: `max_new_tokens must be below max_context_tokens (${max_context_tokens})`,
      value: max_new_tokens,
      remedy: "a turn must leave room for what it answers to",
    });
  if (max_completion_length < max_new_tokens)
    throw new UsageError({
      what: `max_completion_length (a whole episode) must be at least max_new_tokens (a turn, ${max_new_tokens})`,
      value: max_completion_length,
      remedy: "raise it, or lower max_new_tokens",
    });
  if (usesQueue(config) && config.max_steps < 0)
    throw new UsageError({
      what: "dynamic_sampling and skip_solved need max_steps, which is",
      value: config.max_steps,
      remedy: "give the number of steps: how many questions each will ask is not known beforehand",
    });
  if (config.turn_credit > 0 && config.reward.progress === 0)
    throw new UsageError({
      what: "turn_credit needs reward.progress above 0; it is",
      value: config.reward.progress,
      remedy: "turns are credited for progress: give it a reward, or leave turn_credit out",
    });
  if (config.turn_credit > 0 && config.importance_sampling_level === "sequence")
    throw new UsageError({
      what: "turn_credit does not go with importance_sampling_level",
      value: "sequence",
      remedy: "one ratio for a whole episode gives all its turns the same credit; use token",
    });
  if (config.self_distillation > 0 && config.importance_sampling_level === "sequence")
    throw new UsageError({
      what: "self_distillation does not go with importance_sampling_level",
      value: "sequence",
      remedy: "it gives each token an advantage of its own; use token",
    });
  if (config.self_distillation > 0 && config.dynamic_sampling > 0)
    throw new UsageError({
      what: "self_distillation learns from groups that dynamic_sampling replaces; its weight is",
      value: config.self_distillation,
      remedy: "set one of them to 0",
    });
  if (config.sync_ref_model && config.beta === 0)
    throw new UsageError({
      what: "sync_ref_model has no reference to move: beta is",
      value: config.beta,
      remedy: "give the KL term a weight (beta), or leave sync_ref_model out",
    });
  if (config.sync_ref_model && config.use_peft)
    throw new UsageError({
      what: "sync_ref_model does not go with use_peft",
      value: "true",
      remedy: "with LoRA the reference is the frozen weights; train all weights, or leave sync_ref_model out",
    });
  if (config.use_adaptive_entropy && config.top_entropy_quantile < 1)
    throw new UsageError({
      what: "use_adaptive_entropy measures the entropy of all tokens; top_entropy_quantile is",
      value: config.top_entropy_quantile,
      remedy: "set top_entropy_quantile to 1, or use_adaptive_entropy to false",
    });
  if (config.entropy_coef_min > config.entropy_coef_max)
    throw new UsageError({
      what: `entropy_coef_min must be at most entropy_coef_max (${config.entropy_coef_max})`,
      value: config.entropy_coef_min,
    });
  if (config.off_policy_mask_threshold !== null && num_iterations === 1 && batchingOf(config).slices === 1)
    throw new UsageError({
      what: "off_policy_mask_threshold has nothing to mask: every step learns from fresh episodes",
      value: config.off_policy_mask_threshold,
      remedy: "raise num_iterations or steps_per_generation, or leave it out",
    });
}
