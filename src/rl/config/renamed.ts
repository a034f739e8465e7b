// Settings that have another name now: SFT before GRPO was once set by imitation_episodes, imitation_epochs and
// imitation_learning_rate.
import { z } from "zod";

/** The old names, with their defaults. */
const OLD = {
  imitation_episodes: z.int().min(0).default(0),
  imitation_epochs: z.int().min(1).default(2),
  imitation_learning_rate: z.number().positive().default(2e-5),
};

/** Old names that are still accepted. */
export const RENAMED_KEYS = Object.keys(OLD) as (keyof typeof OLD)[];

/** Episodes per optimizer step of the old settings, and about how many tokens they have: to convert episodes to SFT steps. */
const EPISODES_PER_STEP = 8;
const BATCH_TOKENS = 4_096;

export interface RenamedSettings {
  readonly settings: Readonly<Record<string, unknown>>;
  /** One line for people; null if no old name was used. */
  readonly note: string | null;
}

/**
 * Replaces old names by the settings that do the same: SFT on gold episodes of all training databases, which GRPO then
 * asks about too. Values of the wrong kind are left for `resolveConfig` to refuse.
 */
export function renameSettings(given: Readonly<Record<string, unknown>>): RenamedSettings {
  const old = RENAMED_KEYS.filter((key) => key in given);
  const parsed = z.object(OLD).safeParse(given);
  if (old.length === 0 || !parsed.success) return { settings: given, note: null };
  const others = Object.entries(given).filter(([key]) => !(key in OLD));
  const settings = inTermsOfSft(given, parsed.data);
  const read = Object.entries(settings).map(([key, value]) => `${key} ${value}`);
  return {
    settings: { ...Object.fromEntries(others), ...settings },
    note: `deprecated: ${old.join(", ")}; read as ${read.join(", ") || "nothing"}`,
  };
}

function inTermsOfSft(
  given: Readonly<Record<string, unknown>>,
  { imitation_episodes, imitation_epochs, imitation_learning_rate }: z.infer<z.ZodObject<typeof OLD>>,
): Readonly<Record<string, unknown>> {
  if (imitation_episodes > 0)
    return {
      sft_steps: Math.ceil((imitation_episodes * imitation_epochs) / EPISODES_PER_STEP),
      sft_learning_rate: imitation_learning_rate,
      sft_batch_tokens: BATCH_TOKENS,
      sft_max_context_tokens: given.max_context_tokens ?? 4_096,
      sft_database_share: 1,
      sft_data_share: 1,
      sft_overlap: true,
    };
  if ("imitation_episodes" in given) return { sft_steps: 0 };
  return "imitation_learning_rate" in given ? { sft_learning_rate: imitation_learning_rate } : {};
}
