// sqlenv.json in a model's folder: the prompt and the rules the model was trained with, which `eval`, `play` and `ask`
// then use, and its step budget, for `ask`.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type EnvironmentRules, GUIDED_RULES, rulesId } from "../../gym/env/index.ts";
import { type PromptChoice, promptId } from "../../gym/players/index.ts";
import { writeFileWhole } from "../../io/atomic-write.node.ts";
import { MODEL_METADATA_FILE, type ModelMetadata, parseModelMetadata } from "./model-metadata.ts";

export type { ModelMetadata } from "./model-metadata.ts";

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
  return parseModelMetadata(readFileSync(file, "utf8"), file);
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
