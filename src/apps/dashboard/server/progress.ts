// A run's progress, derived from its logs: log pages, total steps, ETA, the latest evaluation.
import type { Summary } from "../../../gym/evaluation/index.ts";
import type { Decoding, Evaluation, EvaluationSplit, MetricLine, TimingLine } from "../../../rl/run/records.ts";
import type { LogPage } from "./schemas.ts";

/** Recent steps that the ETA is based on. */
const RECENT = 10;

/** Rows of a log by column; numbers rounded to six digits, more than a chart can show. */
export function logPage(lines: readonly object[], from: number, limit: number): LogPage {
  const rows = lines.slice(from, from + limit) as Readonly<Record<string, unknown>>[];
  const columns: Record<string, (number | null)[]> = {};
  rows.forEach((row, i) => {
    for (const [key, value] of Object.entries(row)) {
      if (typeof value !== "number") continue;
      if (!Object.hasOwn(columns, key)) columns[key] = new Array<number | null>(rows.length).fill(null);
      columns[key]![i] = Number.isInteger(value) ? value : Number(value.toPrecision(6));
    }
  });
  return { from, total: lines.length, columns };
}

/** Total steps: max_steps, or estimated from the epochs so far. */
export function totalSteps(
  config: Readonly<Record<string, unknown>> | null,
  metrics: readonly MetricLine[],
): number | null {
  const { max_steps, num_train_epochs } = config ?? {};
  if (typeof max_steps === "number" && max_steps > 0) return max_steps;
  const last = metrics.findLast(({ epoch }) => epoch !== undefined && epoch > 0);
  if (typeof num_train_epochs !== "number" || !last) return null;
  return Math.max(last.step, Math.round((num_train_epochs / last.epoch!) * last.step));
}

/** Seconds left at the pace of the recent steps. */
export function etaOf(step: number, total: number | null, timings: readonly TimingLine[]): number | null {
  const recent = timings.slice(-RECENT);
  if (total === null || recent.length === 0) return null;
  return ((total - step) * recent.reduce((sum, { step_time }) => sum + step_time, 0)) / recent.length;
}

/** The latest evaluation during training; null if there was none after step 0. */
export function latestEvaluation(
  metrics: readonly MetricLine[],
): { readonly step: number; readonly evaluation: Evaluation } | null {
  const line = metrics.findLast((metric) =>
    ["unseen", "seen"].some((split) => metric[`eval_${split}/greedy/success_rate`] !== undefined),
  );
  if (!line || line.step === 0) return null;
  const summary = (split: EvaluationSplit, decoding: Decoding): Summary => {
    const value = (name: string) => line[`eval_${split}/${decoding}/${name}`] ?? null;
    const [low, high, episodes] = [value("success_ci_low"), value("success_ci_high"), value("episodes") ?? 0];
    return {
      episodes,
      scored: episodes,
      success_rate: value("success_rate"),
      success_ci: low === null || high === null ? null : [low, high],
      ci_method: split === "unseen" ? "cluster_t_by_database" : "wilson",
      mean_reward: value("reward"),
      mean_steps: value("steps"),
      // metrics.jsonl does not have this.
      tries: 1,
      solved_in_tries: null,
      behaviour: { described_first: null, answers_seen: null, steps_to_solve: null, repeats: null },
    };
  };
  const both = (split: EvaluationSplit) => ({ greedy: summary(split, "greedy"), sampled: summary(split, "sampled") });
  return { step: line.step, evaluation: { seen: both("seen"), unseen: both("unseen") } };
}
