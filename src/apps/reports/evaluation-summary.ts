// A training's evaluations as rows: random baseline, before and after training, on databases seen and unseen in
// training.
import type { Behaviour, Summary } from "../../gym/evaluation/index.ts";
import type { Decoding, EvaluationSplit, PassAtK, StagePair, TrainingResult } from "../../rl/run/records.ts";
import { percent, percentRange, pValue } from "./format.ts";
import { splitLabel } from "./split-label.ts";

/** The evaluations of a training's result. */
export type TrainingEvaluations = Pick<
  TrainingResult,
  "random" | "before" | "after" | "base" | "paired" | "environment"
>;

export interface EvaluationRow {
  readonly split: EvaluationSplit;
  readonly decoding: Decoding;
  /** "unseen databases, greedy" */
  readonly name: string;
  readonly random: Summary;
  readonly before: Summary;
  readonly after: Summary;
  /** p of the paired test between before and after: by database on unseen databases, else McNemar's. Null if there is none. */
  readonly p: number | null;
  /** Whether before and after differ significantly (p < 0.05; without p, disjoint intervals), and in which direction. */
  readonly verdict: "better" | "worse" | "not significant";
}

const SIGNIFICANT = 0.05;

/** The four rows of a result; unseen databases first: the stronger claim. */
export function evaluationRows(result: TrainingEvaluations): EvaluationRow[] {
  const { random, before, after, paired = [], environment } = result;
  return (["unseen", "seen"] as const).flatMap((split) =>
    (["greedy", "sampled"] as const).map((decoding) => {
      const [was, is] = [before[split][decoding], after[split][decoding]];
      const pair = decoding === "greedy" ? paired.find((one) => isGrpoAnswers(one) && one.place === split) : undefined;
      const p = pair ? pairedP(pair) : null;
      return {
        split,
        decoding,
        name: `${splitLabel(split, environment)}, ${decoding}`,
        random: random[split][decoding],
        before: was,
        after: is,
        p,
        verdict: pair && p !== null ? pairedVerdict(pair.difference, p) : verdictOf(was, is),
      };
    }),
  );
}

function isGrpoAnswers({ from, to, mark }: StagePair): boolean {
  return from === "before" && to === "after" && mark === "answer";
}

/** Questions about one database are not independent, so on unseen databases whole databases are permuted. */
function pairedP({ place, databases, permutation_p, mcnemar_p }: StagePair): number {
  return place === "unseen" && databases > 1 ? permutation_p : mcnemar_p;
}

function pairedVerdict(difference: number, p: number): EvaluationRow["verdict"] {
  if (p >= SIGNIFICANT) return "not significant";
  return difference > 0 ? "better" : "worse";
}

/** The rows with scores, or all rows if none has any. */
export function evaluatedRows(result: TrainingEvaluations): EvaluationRow[] {
  const rows = evaluationRows(result);
  const evaluated = rows.filter(isScored);
  return evaluated.length > 0 ? evaluated : rows;
}

/** "better, p < 0.001" */
export function verdictText({ verdict, p }: EvaluationRow): string {
  return p === null ? verdict : `${verdict}, ${pText(p)}`;
}

/** "p < 0.001", "p = 0.020" */
export function pText(p: number): string {
  return p < 0.001 ? `p ${pValue(p)}` : `p = ${pValue(p)}`;
}

/** Whether anything was evaluated: a data set with one database has no unseen ones. */
export function isScored({ random, before, after }: EvaluationRow): boolean {
  return [random, before, after].some(({ scored }) => scored > 0);
}

/** Compares two intervals: disjoint ones differ significantly. */
export function verdictOf({ success_ci: was }: Summary, { success_ci: is }: Summary): EvaluationRow["verdict"] {
  if (!was || !is) return "not significant";
  if (is[0] > was[1]) return "better";
  return is[1] < was[0] ? "worse" : "not significant";
}

/** "12.3 % (5.0 – 22.1 %)" */
export function withInterval({ success_rate, success_ci }: Summary): string {
  return success_ci ? `${percent(success_rate)} (${percentRange(success_ci)})` : percent(success_rate);
}

/** One line: the training's effect on success on unseen databases. */
export function headline(result: TrainingEvaluations): string {
  const rows = evaluationRows(result);
  const row = rows.find(({ before, after }) => before.scored > 0 && after.scored > 0);
  if (!row) return nothingToCompare(rows, result);
  const overlap = row.verdict === "not significant" ? ", intervals overlap" : "";
  const note = row.p === null ? overlap : `, ${pText(row.p)}`;
  const base = result.base?.[row.split][row.decoding];
  const was = base
    ? `${percent(base.success_rate)} untrained, ${withInterval(row.before)} before GRPO`
    : `${withInterval(row.before)} before`;
  const random = row.random.success_rate === null ? "" : `; random ${percent(row.random.success_rate)}`;
  return `success on ${row.name}: ${was}, ${withInterval(row.after)} after${note}${random}`;
}

/** Why there is no success to compare. */
function nothingToCompare(rows: readonly EvaluationRow[], { environment }: TrainingEvaluations): string {
  for (const stage of ["before", "after"] as const)
    if (rows.some((row) => row[stage].episodes > 0) && rows.every((row) => row[stage].scored === 0))
      return `nothing to compare: no episode of the evaluation ${stage} training could be scored; evaluation-${stage}.jsonl has the errors`;
  return `nothing was evaluated: there are no ${environment ? "tasks" : "questions"} with "split": "eval"`;
}

const BEHAVIOUR: readonly (readonly [keyof Behaviour, string])[] = [
  ["described_first", "describes the table before querying it"],
  ["answers_seen", "answers with values it has seen"],
  ["steps_to_solve", "actions to a right answer"],
  ["repeats", "repeated actions per episode"],
];

/** The model's success before training, as a sentence. */
export function passAtKText({ questions, tries, greedy, solved_in_tries }: PassAtK): string {
  return `before training, on ${questions} training questions: right ${percent(greedy)}, right at least once in ${tries} tries ${percent(solved_in_tries)}: the questions reward can reach first`;
}

/** The evaluation whose behaviour is shown: the first that has scores. */
function behaviourRow(result: TrainingEvaluations) {
  const rows = evaluationRows(result);
  return rows.find(isScored) ?? rows[0]!;
}

/** Heading of the behaviour's table. */
export function behaviourTitle(result: TrainingEvaluations): string {
  return `behaviour on ${behaviourRow(result).split} databases`;
}

/** Behaviour with greedy decoding on the first evaluated split: name, random, before, after. Empty for older runs and for other environments than SQL. */
export function behaviourRows(result: TrainingEvaluations): string[][] {
  if (result.environment) return [];
  const row = behaviourRow(result);
  const summaries = [row.random, row.before, row.after].map(({ behaviour }) => behaviour as Behaviour | undefined);
  if (summaries.some((behaviour) => behaviour === undefined)) return [];
  return BEHAVIOUR.map(([key, name]) => [
    name,
    ...summaries.map((behaviour) => {
      const value = behaviour![key];
      if (key === "described_first" || key === "answers_seen") return percent(value);
      return value?.toFixed(1) ?? "–";
    }),
  ]);
}
