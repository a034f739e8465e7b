// A player that answers at once with a plausible value.
import { type Random, random } from "../../../random.ts";
import type { Player } from "../player.ts";

const GUESSED_NAMES = ["Alex", "Maria", "Tom", "Sophie", "Max", "Julia"];
const GUESSED_WORDS = ["red", "large", "new", "active", "gold", "none"];

/**
 * A bad habit for training to unlearn: answers with a value of the right type, correct only by luck.
 *
 * @example
 * await evaluate(data, guesserPlayer(), { episodes: 50 });
 */
export function guesserPlayer(): Player {
  return {
    name: "guesser",
    start: ({ seed }) => {
      const rng = random("guesser player", seed);
      return ({ question }) => ({ action: { action_type: "ANSWER", argument: guess(question, rng) } });
    },
  };
}

function guess(question: string, rng: Random): string {
  if (/^(?:how many|count)\b|\bnumber of\b/i.test(question)) return String(rng.int(1, 20));
  if (/^(?:who|which|name|list|show)\b|\bnames? of\b/i.test(question)) return rng.pick(GUESSED_NAMES);
  if (/\b(?:highest|lowest|total|average|combined|sum|how (?:old|long|much|far))\b/i.test(question)) {
    return String(rng.int(10, 999));
  }
  return rng.chance(0.5) ? String(rng.int(10, 999)) : rng.pick(GUESSED_WORDS);
}
