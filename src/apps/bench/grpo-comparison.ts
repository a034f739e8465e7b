// Compares two trainings that alternated step by step: checks that they did the same work, and computes ratios of their
// times.
import { SqlEnvError } from "../../errors.ts";
import type { Played, StepRecord, StepSeconds } from "./grpo.ts";
import { median } from "./median.ts";

export const STEP_PARTS = ["step", "sampling", "environment", "training", "rest"] as const;
export type StepPart = (typeof STEP_PARTS)[number];

/** A step and the machine's load during it. */
export interface MeasuredStep extends StepRecord {
  /** CPU seconds over all threads. */
  readonly cpu_s: number;
  /** Number of cores kept busy by other programs. */
  readonly other_cores: number;
}

/** Results of one side over the measured steps. */
export interface Side {
  readonly median_s: Readonly<Record<StepPart, number>>;
  readonly range_s: Readonly<Record<StepPart, readonly [number, number]>>;
  readonly sampled_tokens_per_s: number;
  readonly trained_tokens_per_s: number;
  /** CPU seconds per step: comparable even if other programs use the machine. */
  readonly cpu_s: number;
  /** Number of cores kept busy by other programs; 0 on a quiet machine. */
  readonly other_cores: number;
  readonly grad_norms: readonly number[];
  readonly steps_s: readonly (StepSeconds & Pick<MeasuredStep, "cpu_s" | "other_cores">)[];
}

/** Ratios of the peer's times to ours. */
export interface Ratios {
  readonly step: number;
  readonly sampling: number;
  readonly training: number;
  /** Ratio of CPU seconds. */
  readonly cpu: number;
}

/** @throws SqlEnvError if the peer did anything different */
export function checkSame(ours: Played, theirs: Played): void {
  // Rounding errors accumulate in the gradient norm and make the two models diverge.
  const allowed = (key: keyof Played) => (key === "grad_norm" ? 0.01 * ours.grad_norm : 1e-6);
  const differing = (Object.keys(ours) as (keyof Played)[]).filter(
    (key) => !(Math.abs(ours[key] - theirs[key]) <= allowed(key)),
  );
  if (differing.length === 0) return;
  const list = differing.map((key) => `${key} ${theirs[key]} instead of ${ours[key]}`).join(", ");
  throw new SqlEnvError("peer_differs", { what: `the peer played different episodes: ${list}` });
}

export function sideOf(records: readonly MeasuredStep[]): Side {
  const each = <T>(of: (values: readonly number[]) => T) =>
    Object.fromEntries(STEP_PARTS.map((part) => [part, of(records.map(({ seconds }) => seconds[part]))])) as Record<
      StepPart,
      T
    >;
  return {
    median_s: each(median),
    range_s: each(rangeOf),
    sampled_tokens_per_s: median(records.map(({ seconds, played }) => played.sampled_tokens / seconds.sampling)),
    trained_tokens_per_s: median(records.map(({ seconds, played }) => played.tokens / seconds.training)),
    cpu_s: median(records.map(({ cpu_s }) => cpu_s)),
    other_cores: median(records.map(({ other_cores }) => other_cores)),
    grad_norms: records.map(({ played }) => played.grad_norm),
    steps_s: records.map(({ seconds, cpu_s, other_cores }) => ({ ...seconds, cpu_s, other_cores })),
  };
}

/** Median and range of the ratios between corresponding steps. */
export function ratiosOf(
  ours: readonly MeasuredStep[],
  theirs: readonly MeasuredStep[],
): { readonly ratios: Ratios; readonly ratio_ranges: Readonly<Record<keyof Ratios, readonly [number, number]>> } {
  const each = <T>(of: (values: readonly number[]) => T) => {
    const over = (read: (step: MeasuredStep) => number) => of(theirs.map((their, i) => read(their) / read(ours[i]!)));
    return {
      step: over(({ seconds }) => seconds.step),
      sampling: over(({ seconds }) => seconds.sampling),
      training: over(({ seconds }) => seconds.training),
      cpu: over(({ cpu_s }) => cpu_s),
    };
  };
  return { ratios: each(median), ratio_ranges: each(rangeOf) };
}

function rangeOf(values: readonly number[]): readonly [number, number] {
  return [Math.min(...values), Math.max(...values)];
}
