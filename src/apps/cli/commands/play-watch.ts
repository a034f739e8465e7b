// Shows a player's episode step by step.
import { SqlEnvError } from "../../../errors.ts";
import type { QuestionRecord } from "../../../gym/data/index.ts";
import type { SQLEnvironment } from "../../../gym/env/index.ts";
import { type EpisodeRecord, playEpisode } from "../../../gym/evaluation/index.ts";
import type { Player } from "../../../gym/players/index.ts";
import { type Output, printable, styled } from "../terminal/output.ts";
import { drawEnd, drawStart, drawStep } from "./play-screen.ts";

export interface WatchOptions {
  /** Pause before each step, to read along. */
  readonly delayMs: number;
  readonly seed: number;
  readonly signal: AbortSignal;
}

/** Shows an episode, then the gold answer; throws if the player fails. */
export async function watch(
  env: SQLEnvironment,
  player: Player,
  question: QuestionRecord,
  out: Output,
  { delayMs, seed, signal }: WatchOptions,
): Promise<EpisodeRecord> {
  let total = 0;
  let given: string | null = null;
  const record = await playEpisode(env, player, {
    question,
    seed,
    signal,
    onStart: (observation) => {
      out.line(`${styled("bold", printable(player.name))} plays\n\n${drawStart(question, observation)}\n`);
      return pause(delayMs, signal);
    },
    onStep: ({ action, text, parse_error, observation }) => {
      total += observation.reward ?? 0;
      if (action.action_type === "ANSWER") given = action.argument;
      const written = parse_error !== null ? ` ${styled("yellow", `(not understood: ${printable(text ?? "")})`)}` : "";
      out.line(`${styled("bold", `> ${action.action_type}: ${printable(action.argument)}`)}${written}`);
      out.line(`${drawStep(action, observation, total)}\n`);
      return observation.done ? undefined : pause(delayMs, signal);
    },
  });
  if (record.error !== null) throw new SqlEnvError("player_failed", { what: "the player failed", value: record.error });
  out.line(drawEnd(question, given, env.outcome, total, env.database, player.name));
  return record;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
