// Attempts of a group for comparison: equal ones folded, the best beside the worst.
import type { EpisodeLine } from "../../../rl/run/records.ts";
import type { NumberedEpisode } from "../server/schemas.ts";

/** Attempts with the same actions and advantage, in order: the best, the worst, then the others from good to bad. */
export function foldAttempts(group: readonly NumberedEpisode[]): (readonly NumberedEpisode[])[] {
  const folded = new Map<string, NumberedEpisode[]>();
  for (const one of group) {
    const key = JSON.stringify([actionsOf(one.episode), one.episode.advantage]);
    folded.set(key, [...(folded.get(key) ?? []), one]);
  }
  const sorted = [...folded.values()].sort((a, b) => b[0]!.episode.advantage - a[0]!.episode.advantage);
  if (sorted.length < 3) return sorted;
  return [sorted[0]!, sorted.at(-1)!, ...sorted.slice(1, -1)];
}

/** Index of the first turn whose action differs from the other episode's; null if none does. */
export function firstDifference(a: Pick<EpisodeLine, "steps">, b: Pick<EpisodeLine, "steps">): number | null {
  const [ours, theirs] = [actionsOf(a), actionsOf(b)];
  const at = theirs.findIndex((action, i) => action !== ours[i]);
  return at < 0 ? null : at;
}

function actionsOf({ steps }: Pick<EpisodeLine, "steps">): string[] {
  return steps.map(({ action }) => `${action.action_type}: ${action.argument}`);
}
