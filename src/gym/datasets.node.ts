// Opens a data set by the name a user types: "bundled", "practice", "starter", "spider10[:path]", a folder, or an
// imported data set.
import { existsSync } from "node:fs";
import { QuestionLoadError } from "../errors.ts";
import { findDataSet, findLayout, importedDataSets, openDataSet, spider10 } from "./data/index.node.ts";
import type { DataSet } from "./data/index.ts";

export const DEFAULT_SEED = 42; // as in datasets.ts, which is loaded on demand

export interface ResolveOptions {
  /** Seed of the bundled and practice sets and of spider10's split. @default 42 */
  readonly seed?: number | undefined;
  /** Folder with the databases of a question file. */
  readonly dbDir?: string | undefined;
  /** Whether to append the evidence to BIRD's questions. @default true */
  readonly evidence?: boolean | undefined;
}

/** Opens a data set by name. */
export async function resolveDataSet(
  name = "bundled",
  { seed = DEFAULT_SEED, dbDir, evidence }: ResolveOptions = {},
): Promise<DataSet> {
  if (name === "bundled" || name === "practice" || name === "starter") {
    const { generateDataSet } = await import("./datasets.ts"); // imported only when needed: its vocabulary is large
    return generateDataSet(name, { seed });
  }
  if (name === "spider10" || name.startsWith("spider10:"))
    return spider10(spiderFolder(name.slice("spider10:".length)), seed);
  if (name === "spider" && !importedDataSets().includes(name) && !existsSync(name))
    throw new QuestionLoadError({ what: "Spider is not imported", remedy: GET_SPIDER }, "unknown_dataset");
  return openDataSet(name, { dbDir, evidence });
}

const GET_SPIDER =
  "get Spider from https://yale-lily.github.io/spider, then: sqlenv data import spider.zip --name spider";

/** The folder of spider10: the given one, or an imported data set named spider10 or spider. */
function spiderFolder(given: string): string {
  if (given !== "") return findLayout(findDataSet(given)).root;
  const imported = importedDataSets();
  const name = ["spider10", "spider", ...imported.filter((other) => other.startsWith("spider"))].find((known) =>
    imported.includes(known),
  );
  if (name) return findLayout(findDataSet(name)).root;
  throw new QuestionLoadError(
    {
      what: "spider10 needs the Spider databases, and none are imported",
      remedy: GET_SPIDER,
    },
    "unknown_dataset",
  );
}
