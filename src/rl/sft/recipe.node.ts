// A model made by a recipe, as a folder: initialized, trained on its stages, saved.

import { loadSqlite } from "../../gym/sql/index.ts";
import { type LoadedModel, loadModelAndTokenizer, type ThreadEngineOptions } from "../../lm/engine/index.node.ts";
import type { Datum } from "../../lm/engine/index.ts";
import { threadedDemonstrations } from "./demonstration-threads.node.ts";
import { saveFreshModel } from "./init-model.node.ts";
import { mixtureAt, type Recipe, recipeDemonstrations, recipeVocabulary } from "./recipe.ts";
import { type SftReport, type SftStep, trainSft } from "./sft.ts";
import { encodeTranscript } from "./transcripts.ts";

export interface MakeModelOptions {
  /** Options of the engine that trains the model. */
  readonly engine?: ThreadEngineOptions;
  /** Threads that play the demonstrations besides this one; they change nothing but the time. @default 0 */
  readonly workers?: number;
  readonly onStep?: (step: SftStep, model: LoadedModel) => unknown;
  readonly signal?: AbortSignal;
  /** Text of the model's README.md. */
  readonly card?: string;
}

/** Worlds whose demonstrations are made in one go. */
const WORLDS_PER_BATCH = 16;

/**
 * Writes a model folder in bf16; the same recipe gives the same tokenizer, and on the same kind of device the same weights.
 *
 * @example
 * import { parse } from "yaml";
 * import { recipeSchema } from "sqlenv/rl";
 *
 * const recipe = recipeSchema.parse(parse(readFileSync("recipe.yaml", "utf8")));
 * await makeModel("models/mine", recipe);
 */
export async function makeModel(
  dir: string,
  recipe: Recipe,
  { engine: where = {}, workers = 0, onStep, signal, card: modelCard }: MakeModelOptions = {},
): Promise<SftReport> {
  await loadSqlite();
  await saveFreshModel(dir, await recipeVocabulary(recipe), { ...recipe.model, seed: recipe.seed });
  const model = await loadModelAndTokenizer(dir, where);
  const source =
    workers > 0
      ? threadedDemonstrations(dir, {
          threads: workers,
          worldsPerBatch: WORLDS_PER_BATCH,
          mixtureOf: (batch) => mixtureAt(recipe, batch * WORLDS_PER_BATCH),
        })
      : encoded(recipe, model);
  try {
    const report = await trainSft(model.engine, source, {
      ...recipe.sft,
      ...(onStep && { onStep: (step) => onStep(step, model) }),
      ...(signal && { signal }),
    });
    await model.engine.saveModel(dir, { dtype: "BF16", ...(modelCard !== undefined && { card: modelCard }) });
    return report;
  } finally {
    await model.engine.close();
  }
}

async function* encoded(recipe: Recipe, { turns }: LoadedModel): AsyncGenerator<Datum> {
  for await (const transcript of recipeDemonstrations(recipe, WORLDS_PER_BATCH)) {
    yield encodeTranscript(transcript, turns);
  }
}
