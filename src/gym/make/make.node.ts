// Makes a data set from a source and writes it to a folder, whole or not at all.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { QuestionLoadError } from "../../errors.ts";
import { writeFolderWhole } from "../../io/atomic-write.node.ts";
import { exportDataSet } from "../data/index.node.ts";
import type { Writer } from "../players/index.ts";
import { DatabasePool, loadSqlite } from "../sql/index.ts";
import { type Made, type MakeOptions, type MakeReport, makeQuestions } from "./make.ts";
import { rephraseQuestions } from "./rephrase.ts";
import { reportMarkdown } from "./report.ts";
import { readSources, type SourceOptions } from "./source.node.ts";

export interface MakeDataSetOptions extends MakeOptions, Partial<Omit<SourceOptions, "seed">> {
  /** Asks this model for natural wordings. */
  readonly rephraser?: Writer;
  readonly onRephrased?: (done: number, total: number) => void;
}

/**
 * Makes a data set of one or more sources in a new or empty folder, which `openDataSet` opens: databases, question
 * files, report.json and report.md.
 *
 * @example
 * const report = await makeDataSet(["shop.sqlite"], "shop-questions");
 * console.log(report.questions.train, report.questions.eval);
 */
export async function makeDataSet(
  sources: readonly string[],
  dir: string,
  options: MakeDataSetOptions = {},
): Promise<MakeReport> {
  const target = resolve(dir);
  if (existsSync(target) && readdirSync(target).length > 0) {
    throw new QuestionLoadError({ what: "folder is not empty", value: dir, remedy: "choose a new one" });
  }
  await loadSqlite();
  const { seed = 42 } = options;
  const databases = await readSources(sources, { ...options, seed });
  const made = makeQuestions(databases, { ...options, seed });
  const read = (name: string) => databases.find((one) => one.name === name)!.bytes;
  const pool = new DatabasePool({ names: databases.map(({ name }) => name), read });
  const { questions, report } = await rephrased(made, pool, options, seed);
  mkdirSync(dirname(target), { recursive: true });
  await writeFolderWhole(target, (aside) => {
    exportDataSet({ name: basename(target), questions, databases: pool, rejected: [], file: read }, aside);
    writeFileSync(join(aside, "report.json"), `${JSON.stringify(report, null, 2)}\n`);
    writeFileSync(join(aside, "report.md"), reportMarkdown(report));
  });
  pool.close();
  return report;
}

async function rephrased(
  made: Made,
  pool: DatabasePool,
  { rephraser, onRephrased }: MakeDataSetOptions,
  seed: number,
): Promise<Made> {
  if (!rephraser) return made;
  const { questions, report } = await rephraseQuestions(made.questions, (name) => pool.get(name), rephraser, {
    seed,
    ...(onRephrased && { onProgress: onRephrased }),
  });
  return { questions, report: { ...made.report, rephrased: report } };
}
