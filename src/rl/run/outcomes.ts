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
import type { Accuracy, JudgedEpisode, Outcomes, Score, ScoringRule, SplitAccuracy, StagePair } from "./records.ts";

export const SCORING_RULES: readonly ScoringRule[] = ["answer", "spider", "bird"];

/** Questions judged before yielding to the event loop: SQLite is synchronous, and signals have to be handled. */
const QUESTIONS_PER_YIELD = 16;

/** Judges episodes: the answer as the environment did, the last query by Spider's and BIRD's rules. Aborted episodes are left out, as in evaluations. */
export async function judgeEpisodes(records: readonly EpisodeRecord[], data: DataSet): Promise<JudgedEpisode[]> {
  const questions = new Map(data.questions.map((question) => [question.question_id, question]));
  const judged: JudgedEpisode[] = [];
  for (const record of records.filter(({ error }) => error === null)) {
    const { question_id, database_name: database, seen, correctness } = record;
    const byQuery = judgeEpisode(record, questions.get(question_id)!, data.databases.get(database));
    judged.push({ question_id, database, seen, answer: correctness === 1, ...byQuery });
    if (judged.length % QUESTIONS_PER_YIELD === 0) await yieldToEventLoop();
  }
  return judged;
}

/** Success on seen and on unseen databases. */
export function accuracyOf(judged: readonly JudgedEpisode[]): Accuracy {
  const place = (seen: boolean): SplitAccuracy => {
    const some = judged.filter((one) => one.seen === seen);
    const score = (rule: ScoringRule) => scoreOf(some, rule, seen);
    return { questions: some.length, answer: score("answer"), spider: score("spider"), bird: score("bird") };
  };
  return { seen: place(true), unseen: place(false) };
}

/** The interval is over databases if those are the sampling units, as in evaluations. */
function scoreOf(judged: readonly JudgedEpisode[], rule: ScoringRule, seen: boolean): Score | null {
  if (judged.length === 0) return null;
  const right = judged.filter((one) => one[rule]).length;
  const clusters = new Map<string, Cluster>();
  for (const { database, [rule]: isRight } of judged) {
    const { successes, trials } = clusters.get(database) ?? { successes: 0, trials: 0 };
    clusters.set(database, { successes: successes + Number(isRight), trials: trials + 1 });
  }
  const ci = (seen ? null : clusterInterval([...clusters.values()])) ?? wilson(right, judged.length)!;
  return { right, rate: right / judged.length, ci };
}

/** The greedy evaluation episodes of one stage. */
export interface JudgedStage {
  readonly stage: string;
  readonly judged: readonly JudgedEpisode[];
}

/** Compares each stage with the previous one, on the questions that both played. */
export function pairsOf(stages: readonly JudgedStage[], seed: number, rules = SCORING_RULES): StagePair[] {
  return stages.slice(1).flatMap((to, i) => {
    const from = stages[i]!;
    const earlier = new Map(from.judged.map((one) => [one.question_id, one]));
    return (["unseen", "seen"] as const).flatMap((place) =>
      rules.flatMap((rule): StagePair[] => {
        const pairs = to.judged.flatMap(({ question_id, database, seen, [rule]: b }) => {
          const was = earlier.get(question_id);
          return was && seen === (place === "seen") ? [{ database, a: was[rule], b }] : [];
        });
        if (pairs.length === 0) return [];
        return [{ from: from.stage, to: to.stage, place, mark: rule, ...comparePaired(pairs, seed) }];
      }),
    );
  });
}

/** The questions and the setting of the outcomes. */
export type OutcomesAbout = Omit<Outcomes, "format" | "ids_sha256" | "stages" | "bits" | "questions">;

/** outcomes.json: small enough to keep with a result, and without any text of the data set. */
export async function outcomesOf(stages: readonly JudgedStage[], about: OutcomesAbout): Promise<Outcomes> {
  const bits = ({ answer, spider, bird }: JudgedEpisode) => Number(answer) + 2 * Number(spider) + 4 * Number(bird);
  const byStage = stages.map(({ judged }) => new Map(judged.map((one) => [one.question_id, bits(one)])));
  const databaseOf = new Map(stages.flatMap(({ judged }) => judged.map((one) => [one.question_id, one.database])));
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
    bits: SCORING_RULES,
    questions: Object.fromEntries(databases.map((database) => [database, Object.fromEntries(asked(database))])),
  };
}
