// Which training questions SFT demonstrates and which GRPO asks: those of different databases, or, where a data set has a
// single training database, different questions about it. The draw depends only on the seed and on the databases' names
// or the gold queries, so that other settings of a run do not move anything from one side to the other.
import { UsageError } from "../../errors.ts";
import { type DataSet, filterQuestions, idsSha256, type QuestionRecord, splitByQuery } from "../../gym/data/index.ts";
import { random } from "../../random.ts";
import type { GRPOConfig } from "../config.ts";
import { readRunJson } from "./read-json.ts";
import { type SplitPart, type TrainingSplit, trainingSplitSchema, type Warning } from "./records.ts";
import type { RunStore } from "./store.ts";

/** The settings that decide a split. */
export type SplitConfig = Pick<
  GRPOConfig,
  "difficulty_filter" | "seed" | "sft_steps" | "sft_database_share" | "sft_data_share" | "sft_overlap" | "sft_split"
>;

/**
 * Whether SFT and GRPO have different databases, or different questions about the same: `sft_split`, else by database if
 * there are several.
 */
export function splitUnit(data: DataSet, { sft_split }: Pick<SplitConfig, "sft_split">): "database" | "question" {
  return sft_split ?? (trainingDatabases(data).length < 2 ? "question" : "database");
}

/** The training databases whose gold SQL is used by SFT; none without SFT on the data set. */
export function sftDatabases(data: DataSet, config: SplitConfig): string[] {
  const { sft_steps, sft_database_share: share, sft_data_share, sft_overlap, seed } = config;
  if (sft_steps === 0 || share === 0 || sft_data_share === 0) return [];
  const names = trainingDatabases(data);
  const byDatabase = splitUnit(data, config) === "database";
  if (names.length < 2 && byDatabase && !sft_overlap)
    throw new UsageError({
      what: `SFT and GRPO need a training database each; those of ${data.name} are`,
      value: names.length,
      remedy: "give --sft-split question, or --sft-database-share 0: SFT then uses practice worlds only",
    });
  if (!data.questions.some(hasGoldSql))
    throw new UsageError({
      what: `the questions of ${data.name} have answers but no gold SQL for SFT; sft_database_share is`,
      value: Number(share.toFixed(3)),
      remedy: "give --sft-database-share 0: SFT then uses practice worlds only, and rewards need only answers",
    });
  if (!byDatabase) return names;
  const count = Math.max(1, Math.round(share * names.length));
  if (count >= names.length && !sft_overlap)
    throw new UsageError({
      what: `sft_database_share takes all ${names.length} training databases of ${data.name} and leaves none to GRPO`,
      value: share,
      remedy: `give less than ${Math.floor(1000 * (1 - 0.5 / names.length)) / 1000}, or --sft-overlap to reward what SFT demonstrated`,
    });
  return random("sft databases", seed).sample(names, count).sort();
}

/** The questions that SFT demonstrates, in the order of the data set. */
export function sftQuestions(data: DataSet, config: SplitConfig): QuestionRecord[] {
  const database = sftDatabases(data, config);
  if (database.length === 0) return [];
  const isDrawn = drawnForSft(data, config);
  const { difficulty_filter: difficulty } = config;
  const questions = filterQuestions(data.questions, { split: "train", difficulty, database }).filter(
    (question) => isDrawn(question) && hasGoldSql(question),
  );
  if (questions.length > 0) return questions;
  throw new UsageError({
    what: `no training question with gold SQL on the databases drawn for SFT (${database.join(", ")}) is`,
    value: difficulty.join(" or "),
    remedy: "widen difficulty_filter, raise sft_database_share, or set it to 0",
  });
}

/**
 * Whether a training question is on SFT's side. By question, all phrasings of a query are on one side, and each database
 * has its share on each: GRPO would reward what SFT has shown otherwise.
 */
function drawnForSft(data: DataSet, config: SplitConfig): (question: QuestionRecord) => boolean {
  const databases = new Set(sftDatabases(data, config));
  if (splitUnit(data, config) === "database") return ({ database_name }) => databases.has(database_name);
  const { sft_database_share: share, seed } = config;
  const ids = [...databases].flatMap((name) => {
    const own = filterQuestions(data.questions, { split: "train", database: [name] });
    const rewarded = Math.round((1 - share) * own.length); // "eval" is GRPO's side here
    return splitByQuery(own, rewarded, seed).flatMap(({ split, question_id }) =>
      split === "train" ? [question_id] : [],
    );
  });
  const drawn = new Set(ids);
  return ({ question_id }) => drawn.has(question_id);
}

/** Whether the gold query reads any table; `SELECT 42` does not. */
export function hasGoldSql({ tables_involved }: QuestionRecord): boolean {
  return tables_involved.length > 0;
}

/** The questions that GRPO asks, in the order of the data set; may be none. */
export function rewardedQuestions(data: DataSet, config: SplitConfig): QuestionRecord[] {
  const { difficulty_filter: difficulty, sft_overlap } = config;
  const questions = filterQuestions(data.questions, { split: "train", difficulty });
  if (sft_overlap || sftDatabases(data, config).length === 0) return questions;
  const isDrawn = drawnForSft(data, config);
  return questions.filter((question) => !isDrawn(question));
}

/** The whole split, with its checks. */
export async function splitOf(data: DataSet, config: SplitConfig): Promise<TrainingSplit> {
  const { difficulty_filter: difficulty, seed, sft_overlap } = config;
  const shown = sftQuestions(data, config);
  const evaluated = filterQuestions(data.questions, { split: "eval", difficulty });
  checkApart(shown, evaluated);
  return {
    seed,
    ...(shown.length > 0 && { unit: splitUnit(data, config) }),
    shares:
      shown.length === 0
        ? { databases: 0, episodes: 0 }
        : { databases: config.sft_database_share, episodes: config.sft_data_share },
    sft: { ...(await partOf(shown)), databases: sftDatabases(data, config) },
    grpo: await partOf(rewardedQuestions(data, config)),
    eval: await partOf(evaluated),
    overlap: sft_overlap && shown.length > 0,
  };
}

/** Keeps the split with the run; refuses to continue a run that was begun with another. */
export function keepSplit(store: Pick<RunStore, "read" | "write" | "name">, split: TrainingSplit): void {
  const kept = readRunJson(store, SPLIT_FILE, trainingSplitSchema);
  const changed = kept === null ? [] : splitDifferences(kept, split);
  if (changed.length > 0)
    throw new UsageError({
      what: `the run was begun with another split of the data set (${SPLIT_FILE}); what differs is`,
      value: changed.join(", "),
      remedy: "restore the data set and the settings, or start a new run",
    });
  if (kept === null) store.write(SPLIT_FILE, `${JSON.stringify(split, null, 2)}\n`);
}

const SPLIT_FILE = "split.json";

/** What differs between two splits, by name. */
function splitDifferences(one: TrainingSplit, other: TrainingSplit): string[] {
  const parts = ["sft", "grpo", "eval"] as const;
  return [
    ...(one.seed === other.seed ? [] : ["the seed"]),
    ...(one.overlap === other.overlap ? [] : ["sft_overlap"]),
    ...parts.filter((part) => JSON.stringify(one[part]) !== JSON.stringify(other[part])).map((p) => `${p} questions`),
  ];
}

/** The warning if GRPO may ask questions that SFT demonstrated. */
export function overlapWarning({ overlap, sft }: TrainingSplit): Warning | null {
  if (!overlap) return null;
  return {
    step: 0,
    code: "imitated_and_rewarded",
    message: `GRPO may ask the ${sft.questions} questions that SFT demonstrated: after SFT such a group is mostly all right or all wrong, has no spread and teaches nothing`,
    remedy: "leave sft_overlap off, so that GRPO asks other questions",
  };
}

/** Refuses evaluation questions that SFT demonstrates word for word: they would measure memorization. */
function checkApart(shown: readonly QuestionRecord[], evaluated: readonly QuestionRecord[]): void {
  const keyOf = ({ database_name, question_text }: QuestionRecord) => `${database_name}\n${question_text}`;
  const known = new Map(shown.map((question) => [keyOf(question), question]));
  const same = evaluated.find((question) => known.has(keyOf(question)));
  if (!same) return;
  throw new UsageError({
    what: "a question would be used by SFT and by the evaluation",
    value: `${known.get(keyOf(same))!.question_id} and ${same.question_id}`,
    remedy: "remove one of them, or give --sft-database-share 0",
  });
}

function trainingDatabases({ questions }: DataSet): string[] {
  return namesOf(filterQuestions(questions, { split: "train" }));
}

async function partOf(questions: readonly QuestionRecord[]): Promise<SplitPart> {
  return {
    databases: namesOf(questions),
    questions: questions.length,
    ...(globalThis.crypto?.subtle && { ids_sha256: await idsSha256(questions.map(({ question_id }) => question_id)) }),
  };
}

function namesOf(questions: readonly QuestionRecord[]): string[] {
  return [...new Set(questions.map(({ database_name }) => database_name))].sort();
}
