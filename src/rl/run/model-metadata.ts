// The prompt, the rules and the step budget that a model was trained with, as sqlenv.json in its folder holds them.
import { z } from "zod";
import { ModelLoadError, messageOf } from "../../errors.ts";
import { DEFAULT_RULES, type EnvironmentRules, GUIDED_RULES, rulesFromId, rulesId } from "../../gym/env/index.ts";
import { PROMPT_NAMES, type PromptChoice, promptId, SHOT_COUNTS } from "../../gym/players/index.ts";

export const MODEL_METADATA_FILE = "sqlenv.json";

const modelMetadataSchema = z.looseObject({
  prompt: z.enum(PROMPT_NAMES),
  shots: z.literal(SHOT_COUNTS).default(0),
  prompt_id: z.string().optional(),
  rules: z
    .string()
    .refine((id) => rulesFromId(id) !== undefined, "rules this version does not know")
    .default(rulesId(DEFAULT_RULES)),
  step_budget: z.int().min(1).optional(),
});

export interface ModelMetadata {
  readonly prompt: PromptChoice;
  readonly rules: EnvironmentRules;
  /** Undefined if it is not recorded, as in folders of earlier versions. */
  readonly step_budget?: number | undefined;
}

/** How a pretrained model plays that was not trained here: it needs examples, hints, and answers by its last result. */
export const PRETRAINED_METADATA = {
  prompt: { prompt: "instruct", shots: 3 },
  rules: GUIDED_RULES,
} as const satisfies ModelMetadata;

/** Parses the file's text; errors name `file`. */
export function parseModelMetadata(text: string, file: string): ModelMetadata {
  try {
    const { prompt, shots, prompt_id, rules, step_budget } = modelMetadataSchema.parse(JSON.parse(text));
    const here = promptId({ prompt, shots });
    if (prompt_id !== undefined && prompt_id !== here)
      throw new Error(`prompt_id: ${prompt_id}, this version has ${here}`);
    return { prompt: { prompt, shots }, rules: rulesFromId(rules)!, step_budget };
  } catch (cause) {
    throw new ModelLoadError({
      what: `${MODEL_METADATA_FILE} cannot be read (${reasonOf(cause)})`,
      value: file,
      remedy: "correct or remove it",
      cause,
    });
  }
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof z.ZodError)) return messageOf(cause);
  const { path, message } = cause.issues[0]!;
  return `${path.join(".")}: ${message}`;
}
