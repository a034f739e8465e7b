// Sentences the page says about a run.

import type { Manner, Place, Standing } from "../../../rl/run/records.ts";
import { verdictOf } from "../../reports/evaluation-summary.ts";
import { count, duration, percent, percentRange } from "../../reports/format.ts";
import type { Manners, RunListing, RunSummary } from "../server/schemas.ts";

const ACTIONS: Readonly<Record<string, string>> = { D: "DESCRIBE", S: "SAMPLE", Q: "QUERY", A: "ANSWER" };

/** "DQA" as its words. */
export function actionWords(letters: string): string[] {
  return [...letters].map((letter) => ACTIONS[letter] ?? letter);
}

/** Evaluations whose numbers stand for a run: unseen databases, the likeliest action. */
export function placeOf({ before, now, random }: RunListing): Place {
  const scored = (place: Place) => [before, now, random].some((standing) => (standing?.[place].greedy.scored ?? 0) > 0);
  return scored("unseen") || !scored("seen") ? "unseen" : "seen";
}

export interface Answer {
  readonly tone: "good" | "bad" | "none";
  readonly word: string;
  /** The sentence in parts; numbers are set apart. */
  readonly sentence: readonly (string | { readonly strong: string })[];
  readonly footnote: string;
}

/** Did it learn, on unseen databases, and by how much? */
export function answerOf(run: RunSummary): Answer {
  const place = placeOf(run);
  const where =
    place === "unseen" ? "On databases it never saw" : "On databases of the training, asked other questions";
  const greedy = (standing: Standing | null) => standing?.[place].greedy ?? null;
  const [random, before, now] = [greedy(run.random), greedy(run.before), greedy(run.now)];
  const live = run.state !== "finished";
  const floor = random?.success_rate === null || !random ? "" : `playing at random: ${percent(random.success_rate)}`;
  if (!before || before.success_rate === null)
    return {
      tone: "none",
      word: WAITING[run.state],
      sentence: ["The first evaluation is still to come."],
      footnote: floor,
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
      footnote: [`95 % interval ${percentRange(before.success_ci)}`, floor].filter(Boolean).join(" · "),
    };
  const verdict = verdictOf(before, now);
  const [word, moved] = {
    better: [live ? "It is learning." : "It learned.", "rose"],
    worse: [live ? "It is getting worse." : "It got worse.", "fell"],
    "not told apart": ["No clear change.", "went"],
  }[verdict];
  const overlap = verdict === "not told apart" ? "; the intervals overlap, so this may be chance" : "";
  return {
    tone: verdict === "better" ? "good" : verdict === "worse" ? "bad" : "none",
    word: word!,
    sentence: [
      `${where}, right answers ${moved} from `,
      { strong: percent(before.success_rate) },
      " to ",
      { strong: percent(now.success_rate) },
      `${live && run.now_step !== null ? ` by step ${run.now_step}` : ""}${overlap}.`,
    ],
    footnote: [
      `95 % intervals: ${percentRange(before.success_ci)} before, ${percentRange(now.success_ci)} ${live ? "now" : "after"}`,
      floor,
      `${count(now.scored, "held-out question")}, likeliest action each time`,
    ]
      .filter(Boolean)
      .join(" · "),
  };
}

const WAITING: Readonly<Record<RunSummary["state"], string>> = {
  evaluating: "Playing before training.",
  training: "Training.",
  finished: "Nothing was evaluated.",
  stopped: "Stopped before it began.",
};

function nextEvaluation({ config, step, state }: RunSummary): string {
  const every = config?.eval_steps;
  if (state === "stopped") return "";
  if (typeof every !== "number" || every <= 0) return "; it is played again at the end";
  return `; it is played again at step ${every * (Math.floor(step / every) + 1)}`;
}

/** What it does differently, in one sentence; empty before that can be said. */
export function changeOf(early: Manners | null, late: Manners | null, now: string): string {
  const [was, is] = [early?.sequences[0], late?.sequences[0]];
  if (!was || !is || !early || !late) return "";
  const words = (actions: string) => actionWords(actions).join(" → ") || "nothing";
  const whole = (share: number) => `${Math.round(100 * share)} %`;
  if (was.actions === is.actions)
    return `It plays ${words(is.actions)} as before, ${now} in ${whole(is.share)} of the episodes instead of ${whole(was.share)}.`;
  return `At first mostly ${words(was.actions)} (${whole(was.share)}); ${now} ${words(is.actions)} (${whole(is.share)}).`;
}

export const STATE_WORDS: Readonly<Record<RunSummary["state"], string>> = {
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

export const PLACE_WORDS: Readonly<Record<Place, string>> = {
  unseen: "unseen databases",
  seen: "seen databases, other questions",
};
export const MANNER_WORDS: Readonly<Record<Manner, string>> = { greedy: "greedy", sampled: "sampled" };
