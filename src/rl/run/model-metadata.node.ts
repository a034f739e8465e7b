// sqlenv.json in a model's folder: the prompt and the rules the model was trained with, which `eval`, `play` and `ask`
// then use, and its step budget, for `ask`.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ModelLoadError, messageOf } from "../../errors.ts";
import { DEFAULT_RULES, type EnvironmentRules, GUIDED_RULES, rulesFromId, rulesId } from "../../gym/env/index.ts";
import { PROMPT_NAMES, type PromptChoice, promptId, SHOT_COUNTS } from "../../gym/players/index.ts";
import { writeFileWhole } from "../../io/atomic-write.node.ts";

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

/** Records the prompt, the rules and the step budget next to a saved model. Without the file, `eval` and `play` use the compact prompt. */
export function writeModelMetadata(
  folder: string,
  { prompt = "compact", shots = 0 }: PromptChoice,
  rules: EnvironmentRules,
  step_budget?: number,
): void {
  const budget = step_budget === undefined ? {} : { step_budget };
  const use = { prompt, shots, prompt_id: promptId({ prompt, shots }), rules: rulesId(rules), ...budget };
  writeFileWhole(join(folder, MODEL_METADATA_FILE), `${JSON.stringify(use, null, 2)}\n`);
}

/** What is recorded of a model; undefined without a record. */
export function readModelMetadata(folder: string): ModelMetadata | undefined {
  const file = join(folder, MODEL_METADATA_FILE);
  if (!existsSync(file)) return undefined;
  try {
    const { prompt, shots, prompt_id, rules, step_budget } = modelMetadataSchema.parse(
      JSON.parse(readFileSync(file, "utf8")),
    );
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

/** The prompt and rules as flags of `eval`, for model files that cannot hold sqlenv.json. */
export function flagsFor({ prompt: { prompt, shots = 0 }, rules }: ModelMetadata): string {
  const { error_hints, end_after_failures, answer_last, describe_many } = rules;
  return [
    `--prompt ${prompt}`,
    ...(shots > 0 ? [`--shots ${shots}`] : []),
    ...(rulesId(rules) === rulesId(GUIDED_RULES)
      ? ["--guided"]
      : [
          ...(error_hints ? ["--error-hints"] : []),
          ...(end_after_failures === null ? [] : [`--end-after-failures ${end_after_failures}`]),
          ...(answer_last ? ["--answer-last"] : []),
          ...(describe_many ? ["--describe-many"] : []),
        ]),
  ].join(" ");
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof z.ZodError)) return messageOf(cause);
  const { path, message } = cause.issues[0]!;
  return `${path.join(".")}: ${message}`;
}
