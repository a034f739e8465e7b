// Generates data sets by name from a seed; also works in a browser.
import type { DataSet } from "./data/index.ts";
import { loadSqlite } from "./sql/index.ts";
import { bundledDataSet } from "./worlds/bundled.ts";
import { type PracticeSetOptions, practiceSet, STARTER_FORMS } from "./worlds/practice/practice-set.ts";

/** Seed of generated data sets. */
export const DEFAULT_SEED = 42;

/** Generates a data set. `seen` and `unseen` set the number of databases in the practice sets. */
export async function generateDataSet(
  name: "bundled" | "practice" | "starter",
  { seed, ...sizes }: { readonly seed: number } & Pick<PracticeSetOptions, "seen" | "unseen">,
): Promise<DataSet> {
  await loadSqlite();
  if (name === "bundled") return bundledDataSet({ seed });
  const data = practiceSet({ seed, ...sizes, ...(name === "starter" && { forms: STARTER_FORMS }) });
  return { ...data, name: seed === DEFAULT_SEED ? name : `${name}_${seed}` };
}
