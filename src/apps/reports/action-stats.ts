// Action statistics of the training episodes, per optimizer step: actions by type, shares that failed, and shares of
// behaviours.
import type { ActionType } from "../../gym/env/index.ts";
import type { EpisodeLine } from "../../rl/run/records.ts";

// Listed again, checked by the type: importing the schema would bundle zod into the dashboard's page.
const ACTION_TYPES = Object.keys({ DESCRIBE: 0, SAMPLE: 0, QUERY: 0, ANSWER: 0 } satisfies Record<ActionType, 0>);

/** Behaviours: classes of episodes, by their sequence of actions. */
export const BEHAVIOURS = ["explore_query_answer", "explore_query_again", "other", "answer_at_once"] as const;
export type EpisodeBehaviour = (typeof BEHAVIOURS)[number];

/** Means over the episodes of one optimizer step; a behaviour's number is its share of the episodes. */
export interface ActionStats extends Readonly<Record<ActionType | EpisodeBehaviour, number>> {
  readonly step: number;
  readonly episodes: number;
  /** These three are shares of all actions. */
  readonly failed: number;
  readonly repeated: number;
  readonly not_understood: number;
}

/** The fields of an episode that are counted. */
export type CountedEpisode = Pick<EpisodeLine, "step" | "invalid" | "repeats" | "parse_failures"> & {
  readonly steps: readonly { readonly action: { readonly action_type: string } }[];
};

/** Counts episodes incrementally; only sums are stored. */
export class ActionStatsCounter {
  readonly #sums = new Map<number, Record<string, number>>();

  add({ step, steps, invalid, repeats, parse_failures }: CountedEpisode): void {
    const sum = this.#sums.get(step) ?? { episodes: 0, actions: 0, invalid: 0, repeats: 0, parse_failures: 0 };
    this.#sums.set(step, sum);
    const add = (key: string, value: number) => {
      sum[key] = (sum[key] ?? 0) + value;
    };
    add("episodes", 1);
    add("actions", steps.length);
    add("invalid", invalid);
    add("repeats", repeats);
    add("parse_failures", parse_failures);
    for (const { action } of steps) add(action.action_type, 1);
    add(behaviourOf(actionLetters(steps)), 1);
  }

  /** The means per step, in order. */
  list(): ActionStats[] {
    return [...this.#sums.entries()].sort(([a], [b]) => a - b).map(([step, sum]) => meansOf(step, sum));
  }
}

/** The first letters of an episode's actions, such as "DQA". */
export function actionLetters(steps: CountedEpisode["steps"]): string {
  return steps.map(({ action }) => action.action_type[0] ?? "?").join("");
}

/** Classifies an episode by the first letters of its actions, such as "DQA". */
export function behaviourOf(letters: string): EpisodeBehaviour {
  if (letters === "A") return "answer_at_once";
  if (/^[DS]+QA$/.test(letters)) return "explore_query_answer";
  return /^[DS].*Q.*A$/.test(letters) ? "explore_query_again" : "other";
}

/** Counts the actions of a run's episodes. */
export async function countActions(
  episodes: AsyncIterable<CountedEpisode> | Iterable<CountedEpisode>,
): Promise<ActionStats[]> {
  const sums = new ActionStatsCounter();
  for await (const episode of episodes) sums.add(episode);
  return sums.list();
}

function meansOf(step: number, sum: Readonly<Record<string, number>>): ActionStats {
  const share = (key: string) => (sum[key] ?? 0) / Math.max(1, sum.actions!);
  const means = Object.fromEntries(
    [...ACTION_TYPES, ...BEHAVIOURS].map((key) => [key, (sum[key] ?? 0) / sum.episodes!]),
  );
  return {
    step,
    episodes: sum.episodes!,
    failed: share("invalid"),
    repeated: share("repeats"),
    not_understood: share("parse_failures"),
    ...(means as Record<ActionType | EpisodeBehaviour, number>),
  };
}
