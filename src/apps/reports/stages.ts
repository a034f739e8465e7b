// Accuracy by training stage (untrained, before GRPO, after) and paired tests between stages, as table rows.
import type { EvaluationSplit, ScoringRule, SelfTaughtReport, TrainingResult } from "../../rl/run/records.ts";
import { count, duration, pValue } from "./format.ts";
import { splitLabel } from "./split-label.ts";

const NAMES: Readonly<Record<ScoringRule, string>> = {
  answer: "answers",
  spider: "Spider's rule",
  bird: "BIRD's rule",
};

const STAGES = ["base", "before", "after"] as const;
const SPLITS: readonly EvaluationSplit[] = ["unseen", "seen"];

/** A table's head and rows. */
export interface StageTable {
  readonly head: string[];
  readonly rows: string[][];
}

/**
 * Greedy accuracy by stage: one row per split and metric, narrow enough for a terminal. Null if the result has no
 * accuracy.
 */
export function accuracyTable(result: TrainingResult): StageTable | null {
  const { accuracy = {}, self_taught = [] } = result;
  const stages = STAGES.filter((stage) => accuracy[stage]);
  const before = accuracy.base && self_taught.length === 0 ? "after SFT" : "before GRPO";
  const names = { base: "untrained", before, after: "after GRPO" };
  const percents = (rate: number) => (100 * rate).toFixed(1);
  const rows = SPLITS.flatMap((split) =>
    (["answer", "spider", "bird"] as const).flatMap((rule) => {
      const scores = stages.map((stage) => accuracy[stage]![split][rule]);
      if (scores.every((score) => score === null)) return [];
      const cells = scores.map((score) =>
        score ? `${percents(score.rate)} (${score.ci.map(percents).join("–")})` : "–",
      );
      return [[`${NAMES[rule]}, ${split}`, ...cells]];
    }),
  );
  return rows.length === 0 ? null : { head: ["right, greedy (%)", ...stages.map((stage) => names[stage])], rows };
}

/** The table's caption: number of questions, and how answers are judged. */
export function accuracyNote({ accuracy = {} }: TrainingResult): string {
  const counts = SPLITS.flatMap((split) => {
    const questions = accuracy.after?.[split].questions ?? 0;
    return questions === 0 ? [] : [`${count(questions, "question")} on ${split} databases`];
  });
  return `${counts.join(", ")}; 95 % intervals. Answers are judged by the environment; Spider's and BIRD's rules judge the last query that ran, as their evaluators do.`;
}

/** The change by each stage with paired tests: one row per metric. Null if the result has no tests. */
export function pairedTable(result: TrainingResult, isShort = false): StageTable | null {
  const { paired = [], environment } = result;
  const hardest = paired.some(({ place }) => place === "unseen") ? "unseen" : "seen";
  const shown = isShort ? paired.filter(({ place, mark }) => place === hardest && mark !== "bird") : paired;
  if (shown.length === 0) return null;
  const points = (value: number) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(1)}`;
  const rows = shown.map(({ to, place, mark, difference, difference_ci: ci, mcnemar_p, permutation_p, databases }) => [
    `${to === "after" ? "GRPO" : stagesBefore(result)}: ${NAMES[mark]}${isShort ? "" : `, ${environment ? splitLabel(place, environment) : place}`}`,
    `${points(difference)}${ci ? ` (${points(ci[0])} to ${points(ci[1])})` : ""}`,
    pValue(mcnemar_p),
    databases > 1 ? pValue(permutation_p) : "–",
  ]);
  const change = isShort ? `change, ${splitLabel(hardest, environment)}` : "change";
  return { head: [change, "points", "McNemar p", environment ? "p by group" : "p by db"], rows };
}

/** The caption of the paired tests in SQL. */
export const PAIRED_NOTE =
  "Paired by question. McNemar's test takes questions as independent; p by db flips whole databases and does not: trust it.";

/** The caption of a result's paired tests. */
export function pairedNote({ environment }: TrainingResult): string {
  return environment
    ? "Paired by task. McNemar's test takes tasks as independent; p by group flips whole groups and does not: trust it where there are groups."
    : PAIRED_NOTE;
}

function stagesBefore({ sft, self_taught = [] }: TrainingResult): string {
  return [...(sft ? ["SFT"] : []), ...(self_taught.length > 0 ? ["self-taught"] : [])].join(" + ") || "SFT";
}

/** What SFT was trained on, and the databases of each part. */
export function recipeLines({ sft, self_taught = [], split }: TrainingResult): string[] {
  return [
    ...(sft
      ? [
          `SFT: ${count(sft.steps, "step")}, ${count(sft.transcripts, "episode")}, ${count(sft.tokens, "token")}, loss ${sft.last_loss.toFixed(3)}, ${duration(sft.seconds)}`,
        ]
      : []),
    ...self_taught.map((report, i) => `self-taught round ${i + 1}: ${selfTaughtText(report)}`),
    ...(split && sft
      ? [
          `split by ${split.unit ?? "database"}, seed ${split.seed}: SFT ${part(split.sft)}, GRPO ${part(split.grpo)}, evaluation ${part(split.eval)}${split.overlap ? "; GRPO also used SFT questions" : ""}`,
        ]
      : []),
  ];
}

/** "1,204 of 8,192 episodes right, on 530 of 1,024 questions; fine-tuned on 812 of them, loss 0.213, 1:02 min" */
export function selfTaughtText(report: SelfTaughtReport): string {
  const { episodes, right, kept, solved, questions, last_loss, seconds } = report;
  const shown = (value: number) => value.toLocaleString("en-US");
  return `${shown(right)} of ${count(episodes, "episode")} right, on ${shown(solved)} of ${count(questions, "question")}; fine-tuned on ${shown(kept)} of them, loss ${last_loss.toFixed(3)}, ${duration(seconds)}`;
}

function part({ databases, questions }: { readonly databases: readonly string[]; readonly questions: number }): string {
  return `${count(questions, "question")} on ${count(databases.length, "database")}`;
}
