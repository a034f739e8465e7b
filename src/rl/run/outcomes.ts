// Outcomes of the evaluation questions at each stage of a training: success rates, and paired tests between stages.

import { yieldToEventLoop } from "../../gym/data/formats/build-questions.ts";
import { type DataSet, idsSha256 } from "../../gym/data/index.ts";
import {
  type Cluster,
  clusterInterval,
  comparePaired,
  type EpisodeRecord,
  judgeEpisode,
  wilson,
} from "../../gym/evaluation/index.ts";
import type { Accuracy, Mark, Outcomes, QuestionMarks, Score, SplitAccuracy, StagePair } from "./records.ts";

export const MARKS: readonly Mark[] = ["answer", "spider", "bird"];

/** Questions judged before yielding to the event loop: SQLite is synchronous, and signals have to be handled. */
const QUESTIONS_PER_YIELD = 16;

/** Judges episodes: the answer as the environment did, the last query by Spider's and BIRD's rules. Aborted episodes are left out, as in evaluations. */
export async function marksOf(records: readonly EpisodeRecord[], data: DataSet): Promise<QuestionMarks[]> {
  const questions = new Map(data.questions.map((question) => [question.question_id, question]));
  const marks: QuestionMarks[] = [];
  for (const record of records.filter(({ error }) => error === null)) {
    const { question_id, database_name: database, seen, correctness } = record;
    const judged = judgeEpisode(record, questions.get(question_id)!, data.databases.get(database));
    marks.push({ question_id, database, seen, answer: correctness === 1, ...judged });
    if (marks.length % QUESTIONS_PER_YIELD === 0) await yieldToEventLoop();
  }
  return marks;
}

/** Success on seen and on unseen databases. */
export function accuracyOf(marks: readonly QuestionMarks[]): Accuracy {
  const place = (seen: boolean): SplitAccuracy => {
    const some = marks.filter((one) => one.seen === seen);
    const score = (mark: Mark) => scoreOf(some, mark, seen);
    return { questions: some.length, answer: score("answer"), spider: score("spider"), bird: score("bird") };
  };
  return { seen: place(true), unseen: place(false) };
}

/** The interval is over databases if those are the sampling units, as in evaluations. */
function scoreOf(marks: readonly QuestionMarks[], mark: Mark, seen: boolean): Score | null {
  if (marks.length === 0) return null;
  const right = marks.filter((one) => one[mark]).length;
  const clusters = new Map<string, Cluster>();
  for (const { database, [mark]: isRight } of marks) {
    const { successes, trials } = clusters.get(database) ?? { successes: 0, trials: 0 };
    clusters.set(database, { successes: successes + Number(isRight), trials: trials + 1 });
  }
  const ci = (seen ? null : clusterInterval([...clusters.values()])) ?? wilson(right, marks.length)!;
  return { right, rate: right / marks.length, ci };
}

/** The outcomes of one stage. */
export interface StageMarks {
  readonly stage: string;
  readonly marks: readonly QuestionMarks[];
}

/** Compares each stage with the previous one, on the questions that both played. */
export function pairsOf(stages: readonly StageMarks[], seed: number): StagePair[] {
  return stages.slice(1).flatMap((to, i) => {
    const from = stages[i]!;
    const earlier = new Map(from.marks.map((marks) => [marks.question_id, marks]));
    return (["unseen", "seen"] as const).flatMap((place) =>
      MARKS.flatMap((mark): StagePair[] => {
        const pairs = to.marks.flatMap(({ question_id, database, seen, [mark]: b }) => {
          const was = earlier.get(question_id);
          return was && seen === (place === "seen") ? [{ database, a: was[mark], b }] : [];
        });
        if (pairs.length === 0) return [];
        return [{ from: from.stage, to: to.stage, place, mark, ...comparePaired(pairs, seed) }];
      }),
    );
  });
}

/** The questions and the setting of the outcomes. */
export type OutcomesAbout = Omit<Outcomes, "format" | "ids_sha256" | "stages" | "bits" | "questions">;

/** outcomes.json: small enough to keep with a result, and without any text of the data set. */
export async function outcomesOf(stages: readonly StageMarks[], about: OutcomesAbout): Promise<Outcomes> {
  const bits = ({ answer, spider, bird }: QuestionMarks) => Number(answer) + 2 * Number(spider) + 4 * Number(bird);
  const byStage = stages.map(({ marks }) => new Map(marks.map((one) => [one.question_id, bits(one)])));
  const databaseOf = new Map(stages.flatMap(({ marks }) => marks.map((one) => [one.question_id, one.database])));
  const ids = [...databaseOf.keys()].sort();
  const asked = (database: string) =>
    ids
      .filter((id) => databaseOf.get(id) === database)
      .map((id) => [id, byStage.map((stage) => stage.get(id) ?? null)] as const);
  const databases = [...new Set(databaseOf.values())].sort();
  return {
    format: "sqlenv-outcomes-1",
    ...about,
    ...(globalThis.crypto?.subtle && { ids_sha256: await idsSha256(ids) }),
    stages: stages.map(({ stage }) => stage),
    bits: MARKS,
    questions: Object.fromEntries(databases.map((database) => [database, Object.fromEntries(asked(database))])),
  };
}
