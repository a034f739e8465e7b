// What each stage of a training was worth: right answers and queries before SFT, before GRPO and after it, in words.
import type { Mark, Place, SelfTaughtReport, StagePair, TrainingResult } from "../../rl/run/records.ts";
import { count, duration, percent, percentRange } from "./words.ts";

const NAMES: Readonly<Record<Mark, string>> = {
  answer: "answers",
  spider: "queries by Spider's rule",
  bird: "queries by BIRD's rule",
};

const STAGES = ["base", "before", "after"] as const;

/** A table of greedy evaluations: its head, and a row for each kind of databases and of being right. Null for results without. */
export function accuracyTable({
  accuracy = {},
}: TrainingResult): { readonly head: string[]; readonly rows: string[][] } | null {
  const stages = STAGES.filter((stage) => accuracy[stage]);
  const rows = (["unseen", "seen"] as const).flatMap((place) =>
    (["answer", "spider", "bird"] as const).flatMap((mark) => {
      const scores = stages.map((stage) => accuracy[stage]![place][mark]);
      if (scores.every((score) => score === null)) return [];
      const cells = scores.map((score) => (score ? `${percent(score.rate)} (${percentRange(score.ci)})` : "–"));
      return [[`${NAMES[mark]} on ${place} databases`, ...cells]];
    }),
  );
  return rows.length === 0 ? null : { head: ["right, greedy", ...stages], rows };
}

/** "unseen databases, before to after: answers +14.3 points (10.1 – 18.5), p < 0.001 by questions, 0.002 by databases" */
export function pairedLines({ paired = [] }: TrainingResult): string[] {
  return paired.map((pair) => `${pair.place} databases, ${pairText(pair)}`);
}

/** The same for the harder claim only: unseen databases where there are any. */
export function pairedSummary({ paired = [] }: TrainingResult): string[] {
  const place: Place = paired.some((pair) => pair.place === "unseen") ? "unseen" : "seen";
  return paired.filter((pair) => pair.place === place && pair.mark !== "bird").map(pairText);
}

function pairText({ from, to, mark, difference, difference_ci, mcnemar_p, permutation_p, databases }: StagePair) {
  const points = (value: number) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(1)}`;
  const interval = difference_ci ? ` (${points(difference_ci[0])} to ${points(difference_ci[1])})` : "";
  const byDatabase = databases > 1 ? `, ${pText(permutation_p)} by databases` : "";
  return `${from} to ${to}: ${NAMES[mark]} ${points(difference)} points${interval}, ${pText(mcnemar_p)} by questions${byDatabase}`;
}

function pText(p: number): string {
  return p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(3)}`;
}

/** What SFT learned from, and which databases each part had. */
export function recipeLines({ sft, self_taught = [], split }: TrainingResult): string[] {
  return [
    ...(sft
      ? [
          `SFT: ${count(sft.steps, "step")}, ${count(sft.transcripts, "episode")}, ${count(sft.tokens, "token")}, loss ${sft.last_loss.toFixed(3)}, ${duration(sft.seconds)}`,
        ]
      : []),
    ...self_taught.map((report, i) => `self-taught-${i + 1}: ${selfTaughtText(report)}`),
    ...(split && sft
      ? [
          `split by database, seed ${split.seed}: SFT ${part(split.sft)}, GRPO ${part(split.grpo)}, evaluation ${part(split.eval)}${split.overlap ? "; GRPO asked imitated questions too" : ""}`,
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
