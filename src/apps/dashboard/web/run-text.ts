// Texts about a run: the headline, the change in behaviour, the progress.

import type { EvaluationSplit } from "../../../rl/run/records.ts";
import { count, duration } from "../../reports/format.ts";
import { splitLabel } from "../../reports/split-label.ts";
import type { TrainingSuccess } from "../../reports/verdict-sentence.ts";
import type { ActionSequences, RunSummary } from "../server/schemas.ts";
import type { RunModel } from "./run-model.ts";

const ACTIONS: Readonly<Record<string, string>> = { D: "DESCRIBE", S: "SAMPLE", Q: "QUERY", A: "ANSWER" };

/** "DQA" as ["DESCRIBE", "QUERY", "ANSWER"]. */
export function actionWords(letters: string): string[] {
  return [...letters].map((letter) => ACTIONS[letter] ?? letter);
}

/** The metric of right answers in training episodes. */
export function trainingSuccessMetric({ environment }: Pick<RunSummary, "environment">): string {
  return environment ? "environment/solved" : "rewards/reward_correctness/mean";
}

/** Right answers in training episodes, the mean of the first and of the latest steps; null before there are two steps. */
export function trainingSuccess(run: Pick<RunModel, "points" | "summary">): TrainingSuccess | null {
  const { y } = run.points("metrics", trainingSuccessMetric(run.summary), "step");
  if (y.length < 2) return null;
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const some = Math.min(MEAN_STEPS, Math.floor(y.length / 2));
  return { first: mean(y.slice(0, some)), last: mean(y.slice(-some)) };
}

/** Steps that are averaged: one alone is noisy. */
const MEAN_STEPS = 3;

/** The change in behaviour in one sentence; empty while unknown. */
export function describeChange(early: ActionSequences | null, late: ActionSequences | null, now: string): string {
  const [was, is] = [early?.sequences[0], late?.sequences[0]];
  if (!was || !is || !early || !late) return "";
  const named = (actions: string) => actionWords(actions).join(" → ") || "nothing";
  const whole = (share: number) => `${Math.round(100 * share)} %`;
  if (was.actions === is.actions)
    return `It still plays ${named(is.actions)} most often, ${now} in ${whole(is.share)} of the episodes, compared with ${whole(was.share)}.`;
  return `At the start mostly ${named(was.actions)} (${whole(was.share)}); ${now} ${named(is.actions)} (${whole(is.share)}).`;
}

export const STATE_LABELS: Readonly<Record<RunSummary["state"], string>> = {
  evaluating: "evaluating",
  training: "training",
  finished: "finished",
  stopped: "stopped",
};

/** "step 12 of 40", "8 s left". */
export function progressOf(run: RunSummary): string[] {
  const { step, total_steps, eta, result, elapsed, episodes } = run;
  const steps = result || total_steps === null ? count(step, "step") : `step ${step} of ${total_steps}`;
  const seconds = result?.seconds ?? elapsed;
  return [
    steps,
    ...(seconds === null ? [] : [duration(seconds)]),
    count(result?.episodes ?? episodes.count, "episode"),
    ...(eta === null ? [] : [`${duration(eta)} left`]),
  ];
}

/** The heading of a split's evaluation. */
export function splitHeading(split: EvaluationSplit, { environment }: Pick<RunSummary, "environment">): string {
  return split === "seen" && !environment ? "seen databases, other questions" : splitLabel(split, environment);
}
