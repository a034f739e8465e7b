// Demonstrations on a data set's training questions, for SFT in the tab: the teacher plays each once.
import { UsageError } from "../../../errors.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import { evaluate } from "../../../gym/evaluation/index.ts";
import { type PromptChoice, SCRIPTED_PLAYERS } from "../../../gym/players/index.ts";
import type { Datum } from "../../../lm/engine/engine.ts";
import type { TurnEncoder } from "../../../lm/model/text/chat-template.ts";
import { random } from "../../../random.ts";
import { encodeTranscript, transcriptOf } from "../../../rl/sft/transcripts.ts";

const SEED = 1;

/** Right episodes on the training questions, in another order in each round, without an end. */
export async function demonstrations(
  data: DataSet,
  prompt: PromptChoice,
  turns: TurnEncoder,
): Promise<Generator<Datum, never>> {
  const shown: Datum[] = [];
  await evaluate(data, SCRIPTED_PLAYERS.teacher(), {
    split: "train",
    seed: SEED,
    onEpisode: (record) => {
      if (record.correctness === 1) shown.push(encodeTranscript(transcriptOf(record, prompt), turns));
    },
  });
  if (shown.length === 0) throw new UsageError({ what: "no question could be demonstrated" });
  return rounds(shown);
}

function* rounds(shown: readonly Datum[]): Generator<Datum, never> {
  for (let round = 0; ; round++) yield* random("demonstrations", SEED, round).shuffle(shown);
}
