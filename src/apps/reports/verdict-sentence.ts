// Did it learn? A run's answer in one sentence, the same in the dashboard, the report and the summary.
import type { Evaluation, EvaluationSplit, StagePair, TrainingResult } from "../../rl/run/records.ts";
import { type EvaluationRow, evaluationRows, pText } from "./evaluation-summary.ts";
import { count, isNumber, percent, percentRange } from "./format.ts";
import { type Described, splitLabel } from "./split-label.ts";

/** What the sentence is about; a dashboard's listing has these fields. */
export interface JudgedRun {
  readonly state: "evaluating" | "training" | "finished" | "stopped";
  readonly step: number;
  readonly config: Readonly<Record<string, unknown>> | null;
  readonly random: Evaluation | null;
  readonly before: Evaluation | null;
  /** The newest evaluation after `before`. */
  readonly now: Evaluation | null;
  readonly now_step: number | null;
  readonly result: { readonly paired?: readonly StagePair[] } | null;
  readonly environment?: Described;
}

/** Shares of right answers in training episodes, at first and lately. */
export interface TrainingSuccess {
  readonly first: number;
  readonly last: number;
}

export interface Verdict {
  readonly tone: "good" | "bad" | "none";
  /** "It learned." */
  readonly word: string;
  /** The sentence in parts; numbers are emphasized. */
  readonly sentence: readonly (string | { readonly strong: string })[];
  readonly footnote: string;
}

/** The verdict of a finished training. */
export function resultVerdict({ random, before, after, paired = [], steps, environment }: TrainingResult): Verdict {
  const run = { state: "finished", step: steps, config: null, random, before, now: after, now_step: steps } as const;
  return verdictSentence({ ...run, environment, result: { paired } });
}

/** "It learned. On unseen databases, right answers rose from 0.0 % to 89.6 %." */
export function verdictLine({ word, sentence }: Verdict): string {
  return `${word} ${sentence.map((part) => (typeof part === "string" ? part : part.strong)).join("")}`;
}

/** Did it learn, on unseen databases, and by how much? */
export function verdictSentence(run: JudgedRun, training: TrainingSuccess | null = null): Verdict {
  const split = headlineSplit(run);
  const where =
    split === "unseen" || run.environment
      ? `On ${splitLabel(split, run.environment)}`
      : "On other questions about the training databases";
  const item = run.environment ? "held-out task" : "held-out question";
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
  if (!now || now.success_rate === null) {
    const stopped = run.state === "stopped";
    const interval = `95 % interval ${percentRange(before.success_ci)}`;
    const tested = `${where}, before training: ${percent(before.success_rate)}`;
    if (training)
      return {
        tone: "none",
        word: stopped ? "Stopped before the first test." : "Not tested yet.",
        sentence: [
          `Right answers in training episodes: `,
          { strong: percent(training.first) },
          " at first, ",
          { strong: percent(training.last) },
          ` ${stopped ? "at the end" : "now"}${nextTest(run)}.`,
        ],
        footnote: [tested, interval, baseline].filter(Boolean).join(" · "),
      };
    return {
      tone: "none",
      word: stopped ? "Stopped before the first test." : "Not tested yet.",
      sentence: [
        `${where}, `,
        { strong: percent(before.success_rate) },
        ` of the answers were right before training${nextTest(run)}.`,
      ],
      footnote: [interval, baseline].filter(Boolean).join(" · "),
    };
  }
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
      `${count(now.scored, item)}, greedy decoding`,
    ]
      .filter(Boolean)
      .join(" · "),
  };
}

/** The split of a run's headline: unseen databases if evaluated. */
export function headlineSplit({ before, now, random }: Pick<JudgedRun, "before" | "now" | "random">): EvaluationSplit {
  const scored = (split: EvaluationSplit) =>
    [before, now, random].some((evaluation) => (evaluation?.[split].greedy.scored ?? 0) > 0);
  return scored("unseen") || !scored("seen") ? "unseen" : "seen";
}

/** Before and now with greedy decoding, compared by the paired test once the run has one. */
function comparedEvaluations({ before, now, result }: JudgedRun, split: EvaluationSplit): EvaluationRow {
  const rows = evaluationRows({ random: before!, before: before!, after: now!, paired: result?.paired ?? [] });
  return rows.find((row) => row.split === split && row.decoding === "greedy")!;
}

const WAITING: Readonly<Record<JudgedRun["state"], string>> = {
  evaluating: "Evaluating before training.",
  training: "Training.",
  finished: "Nothing was evaluated.",
  stopped: "Stopped before training started.",
};

function nextTest({ config, step, state }: JudgedRun): string {
  if (state === "stopped") return "";
  const { eval_steps: every, eval_at: listed } = config ?? {};
  const steps = [
    ...(isNumber(every) && every > 0 ? [every * (Math.floor(step / every) + 1)] : []),
    ...(Array.isArray(listed) ? listed.filter(isNumber).filter((at) => at > step) : []),
  ];
  return steps.length === 0 ? "; the next test is at the end" : `; the next test is at step ${Math.min(...steps)}`;
}
