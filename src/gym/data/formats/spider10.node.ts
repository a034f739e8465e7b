// The ten Spider databases of the Python SQLEnv with their 676 questions, split 473/203.
import { DatabasePool } from "../../sql/index.ts";
import type { DataSet } from "../dataset.ts";
import { splitByQuery } from "../filter.ts";
import { assemble } from "./build-questions.ts";
import { readSpider } from "./spider.node.ts";

export const SPIDER10_DATABASES = [
  "student_assessment",
  "concert_singer",
  "world_1",
  "car_1",
  "employee_hire_evaluation",
  "pets_1",
  "cre_Doc_Template_Mgt",
  "dog_kennels",
  "flight_2",
  "poker_player",
] as const;

const [TRAIN, EVAL] = [473, 203];

/**
 * The ten databases, loaded from a Spider folder, from a folder that has only these questions, or from a loaded data
 * set. A folder's 676 questions are split 473/203 before they are checked, so that the split does not depend on which
 * are usable. The check then rejects 42: 40 with an empty answer and two whose answer is too long. Questions with the
 * same gold query stay on one side. A loaded data set has only usable questions, which are split in the same
 * proportion.
 */
export async function spider10(source: DataSet | string, seed = 42): Promise<DataSet> {
  const isOne = (name: string) => (SPIDER10_DATABASES as readonly string[]).includes(name);
  if (typeof source !== "string") {
    const questions = source.questions.filter(({ database_name }) => isOne(database_name));
    const evalCount = Math.round((questions.length * EVAL) / (TRAIN + EVAL));
    const rejected = source.rejected.filter(({ question_id }) =>
      SPIDER10_DATABASES.some((name) => question_id.startsWith(`${name}_`)),
    );
    return { ...source, name: "spider10", questions: splitByQuery(questions, evalCount, seed), rejected };
  }
  const { drafts, rejected, databases, file } = readSpider(source);
  const ours = drafts.filter(({ database_name }) => isOne(database_name));
  const evalCount = Math.round((ours.length * EVAL) / (TRAIN + EVAL));
  const names = SPIDER10_DATABASES.filter((name) => databases.names.includes(name));
  const pool = new DatabasePool({ names, read: file, doubleQuotedStrings: true });
  return assemble("spider10", splitByQuery(inOneOrder(ours), evalCount, seed), pool, {
    rejected,
    file,
    layout: "spider",
  });
}

/** Sorts by database, then by file order: every layout gives the same order and so the same ids. */
function inOneOrder<T extends { readonly database_name: string }>(drafts: readonly T[]): T[] {
  return SPIDER10_DATABASES.flatMap((name) => drafts.filter(({ database_name }) => database_name === name));
}
