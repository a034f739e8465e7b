// The starter preset's model, made on the spot: a fresh one, warmed up and saved.
import { loadModelAndTokenizer, type ThreadEngineOptions } from "../engine/index.node.ts";
import type { Datum } from "../engine/index.ts";
import { loadSqlite } from "../sql/index.ts";
import { saveFreshModel } from "./fresh.node.ts";
import { STARTER_MODEL, STARTER_WARMUP, starterDemonstrations, vocabularyTranscripts } from "./starter.ts";
import { encodeTranscript } from "./transcripts.ts";
import { type WarmupOptions, type WarmupReport, warmup } from "./warmup.ts";

export interface StarterModelOptions extends Pick<WarmupOptions, "onStep" | "signal"> {
  /** Of weights and demonstrations. @default 0 */
  readonly seed?: number | string;
  /** Where it is warmed up. */
  readonly engine?: ThreadEngineOptions;
  /** Other than `STARTER_WARMUP`. */
  readonly warmup?: Partial<WarmupOptions>;
}

/** Writes a model folder; the same seed gives the same weights, whatever the number of threads. Interrupted, it saves what there is. */
export async function makeStarterModel(
  dir: string,
  { seed = 0, engine: where = {}, warmup: other, onStep, signal }: StarterModelOptions = {},
): Promise<WarmupReport> {
  await loadSqlite();
  await saveFreshModel(dir, await vocabularyTranscripts(), { ...STARTER_MODEL, seed });
  const { engine, tokenizer, turns } = await loadModelAndTokenizer(dir, where);
  async function* encoded(): AsyncGenerator<Datum> {
    for await (const transcript of starterDemonstrations(seed)) {
      yield encodeTranscript(transcript, tokenizer, turns);
    }
  }
  try {
    const report = await warmup(engine, encoded(), {
      ...STARTER_WARMUP,
      ...other,
      ...(onStep && { onStep }),
      ...(signal && { signal }),
    });
    await engine.saveModel(dir);
    return report;
  } finally {
    await engine.close();
  }
}
