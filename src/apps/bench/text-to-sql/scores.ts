// Computes scores of a benchmark: each measure with its interval over databases, by difficulty, joins and database.

import { DIFFICULTIES } from "../../../gym/data/index.ts";
import { type Cluster, clusterInterval, type Interval, wilson } from "../../../gym/evaluation/index.ts";
import { MEASURES, type Measure, type QuestionOutcome, type Verdicts } from "./outcomes.ts";

/** One measure over a group of questions; the rate is 0–1. */
export interface Score {
  readonly right: number;
  readonly rate: number;
  /** 95 % interval over databases; over questions (Wilson) with only one database. */
  readonly ci: Interval;
}

/** Scores of a group of questions; null if a measure does not apply. */
export interface GroupScores extends Readonly<Record<Measure, Score | null>> {
  readonly questions: number;
}

export interface BenchScores {
  readonly all: GroupScores;
  /** With several attempts: scores if a question counts as right when any attempt is (pass@k). */
  readonly any: GroupScores | null;
  readonly by_difficulty: Readonly<Record<string, GroupScores>>;
  readonly by_joins: Readonly<Record<string, GroupScores>>;
  readonly by_database: Readonly<Record<string, GroupScores>>;
}

/** Queries with at least this many joins form one group. */
const MANY_JOINS = 3;

export function joinsGroup(joins: number): string {
  return joins >= MANY_JOINS ? `${MANY_JOINS}+` : String(joins);
}

/** Computes the scores. */
export function scoresOf(outcomes: readonly QuestionOutcome[]): BenchScores {
  const group = (keys: readonly string[], keyOf: (outcome: QuestionOutcome) => string) =>
    Object.fromEntries(
      keys
        .map((key) => [key, groupScores(outcomes.filter((outcome) => keyOf(outcome) === key))] as const)
        .filter(([, { questions }]) => questions > 0),
    );
  const anys = outcomes.flatMap((outcome) => (outcome.any ? [{ ...outcome, ...outcome.any }] : []));
  return {
    all: groupScores(outcomes),
    any: anys.length > 0 ? groupScores(anys) : null,
    by_difficulty: group(DIFFICULTIES, ({ difficulty }) => difficulty),
    by_joins: group(["0", "1", "2", `${MANY_JOINS}+`], ({ joins }) => joinsGroup(joins)),
    by_database: group([...new Set(outcomes.map(({ database }) => database))].sort(), ({ database }) => database),
  };
}

type Judged = Verdicts & Pick<QuestionOutcome, "database">;

function groupScores(outcomes: readonly Judged[]): GroupScores {
  const scores = MEASURES.map((measure) => [measure, scoreOf(outcomes, measure)] as const);
  return { questions: outcomes.length, ...(Object.fromEntries(scores) as Record<Measure, Score | null>) };
}

function scoreOf(outcomes: readonly Judged[], measure: Measure): Score | null {
  const marked = outcomes.filter((outcome) => outcome[measure] !== null);
  if (marked.length === 0) return null;
  const clusters = new Map<string, { successes: number; trials: number }>();
  for (const { database, [measure]: isRight } of marked) {
    const cluster = clusters.get(database) ?? { successes: 0, trials: 0 };
    clusters.set(database, { successes: cluster.successes + Number(isRight), trials: cluster.trials + 1 });
  }
  const counted: Cluster[] = [...clusters.values()];
  const right = counted.reduce((sum, { successes }) => sum + successes, 0);
  const ci = clusterInterval(counted) ?? wilson(right, marked.length)!;
  return { right, rate: right / marked.length, ci };
}
