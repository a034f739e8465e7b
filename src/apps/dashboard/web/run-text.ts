// Texts about a run: the headline, the change in behaviour, the progress.

import type { Evaluation, EvaluationSplit } from "../../../rl/run/records.ts";
import { type EvaluationRow, evaluationRows, pText } from "../../reports/evaluation-summary.ts";
import { count, duration, percent, percentRange } from "../../reports/format.ts";
import type { ActionSequences, RunListing, RunSummary } from "../server/schemas.ts";

const ACTIONS: Readonly<Record<string, string>> = { D: "DESCRIBE", S: "SAMPLE", Q: "QUERY", A: "ANSWER" };

/** "DQA" as ["DESCRIBE", "QUERY", "ANSWER"]. */
export function actionWords(letters: string): string[] {
  return [...letters].map((letter) => ACTIONS[letter] ?? letter);
}

/** The split of a run's headline: unseen databases if evaluated. */
export function headlineSplit({ before, now, random }: RunListing): EvaluationSplit {
  const scored = (split: EvaluationSplit) =>
    [before, now, random].some((evaluation) => (evaluation?.[split].greedy.scored ?? 0) > 0);
  return scored("unseen") || !scored("seen") ? "unseen" : "seen";
}

export interface Answer {
  readonly tone: "good" | "bad" | "none";
  readonly word: string;
  /** The sentence in parts; numbers are emphasized. */
  readonly sentence: readonly (string | { readonly strong: string })[];
  readonly footnote: string;
}

/** Before and now with greedy decoding, compared by the paired test once the run has one. */
function comparedEvaluations({ before, now, result }: RunListing, split: EvaluationSplit): EvaluationRow {
  const rows = evaluationRows({ random: before!, before: before!, after: now!, paired: result?.paired ?? [] });
  return rows.find((row) => row.split === split && row.decoding === "greedy")!;
}

/** Did it learn, on unseen databases, and by how much? */
export function headlineAnswer(run: RunSummary): Answer {
  const split = headlineSplit(run);
  const where = split === "unseen" ? "On unseen databases" : "On other questions about the training databases";
  const greedy = (evaluation: Evaluation | null) => evaluation?.[split].greedy ?? null;
  const [random, before, now] = [greedy(run.random), greedy(run.before), greedy(run.now)];
  const live = run.state !== "finished";
  const baseline = random?.success_rate === null || !random ? "" : `random baseline: ${percent(random.success_rate)}`;
  if (!before || before.success_rate === null)
    return {
      tone: "none",
      word: WAITING[run.state],
      sentence: ["The first evaluation has not finished."],
      footnote: baseline,
    };
  if (!now || now.success_rate === null)
    return {
      tone: "none",
      word: run.state === "stopped" ? "Stopped before the first evaluation." : "Not known yet.",
      sentence: [
        `${where}, `,
        { strong: percent(before.success_rate) },
        ` of the answers were right before training${nextEvaluation(run)}.`,
      ],
      footnote: [`95 % interval ${percentRange(before.success_ci)}`, baseline].filter(Boolean).join(" · "),
    };
  const { verdict, p } = comparedEvaluations(run, split);
  const [word, moved] = {
    better: [live ? "It is learning." : "It learned.", "rose"],
    worse: [live ? "It is getting worse." : "It got worse.", "fell"],
    "not significant": ["No clear change.", "went"],
  }[verdict];
  const why = p === null ? "the intervals overlap" : pText(p);
  const chance = verdict === "not significant" ? `; ${why}, so this may be chance` : "";
  return {
    tone: verdict === "better" ? "good" : verdict === "worse" ? "bad" : "none",
    word: word!,
    sentence: [
      `${where}, right answers ${moved} from `,
      { strong: percent(before.success_rate) },
      " to ",
      { strong: percent(now.success_rate) },
      `${live && run.now_step !== null ? ` by step ${run.now_step}` : ""}${chance}.`,
    ],
    footnote: [
      `95 % intervals: ${percentRange(before.success_ci)} before, ${percentRange(now.success_ci)} ${live ? "now" : "after"}`,
      ...(p !== null && verdict !== "not significant" ? [pText(p)] : []),
      baseline,
      `${count(now.scored, "held-out question")}, greedy decoding`,
    ]
      .filter(Boolean)
      .join(" · "),
  };
}

const WAITING: Readonly<Record<RunSummary["state"], string>> = {
  evaluating: "Evaluating before training.",
  training: "Training.",
  finished: "Nothing was evaluated.",
  stopped: "Stopped before training started.",
};

function nextEvaluation({ config, step, state }: RunSummary): string {
  const { eval_steps: every, eval_at: at } = config ?? {};
  if (state === "stopped") return "";
  if (typeof every !== "number" || every <= 0) return "; the next evaluation is at the end";
  const early = Array.isArray(at) ? at.filter((one): one is number => typeof one === "number" && one > step) : [];
  return `; the next evaluation is at step ${Math.min(every * (Math.floor(step / every) + 1), ...early)}`;
}

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

export const SPLIT_LABELS: Readonly<Record<EvaluationSplit, string>> = {
  unseen: "unseen databases",
  seen: "seen databases, other questions",
};
