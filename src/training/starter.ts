// The starter preset's first part: a fresh model, and whom it imitates, so that it has the skill and not the habit.
import { STARTER_STEP_BUDGET, STARTER_WORLDS } from "../worlds/index.ts";
import { demonstrations, type Mixture, mixtureSchema } from "./demonstrations.ts";
import type { FreshOptions } from "./fresh.ts";
import type { Transcript } from "./transcripts.ts";
import type { WarmupOptions } from "./warmup.ts";

/** Sizes of the model: fewer than half a million parameters. */
export const STARTER_MODEL = {
  vocab_size: 1280,
  hidden_size: 128,
  intermediate_size: 256,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  head_dim: 32,
} as const satisfies FreshOptions;

/** Many small steps: at this size they teach more than few large ones on the same tokens. */
export const STARTER_WARMUP = {
  steps: 4200,
  batch_tokens: 1024,
  learning_rate: 4e-3,
  beta2: 0.95,
  max_context_tokens: 350,
} as const satisfies WarmupOptions;

type Shares = Readonly<Partial<Record<Mixture["players"][number]["player"], number>>>;

/** First most players are good: the skill is learned. Poor players are there from the start: what is new later would spoil it. */
const SKILL: Shares = { oracle: 85, guesser: 9, flailer: 6 };
const SKILL_TRANSCRIPTS = 16_000;

/** Then most are poor, and the habit with them: half of them answer at once, a quarter looks at random. */
const HABIT: Shares = { oracle: 25, guesser: 50, flailer: 25 };

/** Players on worlds of the starter's kind; the seed keeps them apart from the worlds of the training. */
export function starterMixture(seed: number | string, shares: Shares): Mixture {
  return mixtureSchema.parse({
    seed: `warm_up_${seed}`,
    players: Object.entries(shares).map(([player, share]) => ({ player, share })),
    ...STARTER_WORLDS,
    step_budget: STARTER_STEP_BUDGET,
    questions_per_world: 8,
  });
}

/** What the starter imitates, without end. `loadSqlite()` must have been awaited. */
export async function* starterDemonstrations(seed: number | string = 0): AsyncGenerator<Transcript, void> {
  let taken = 0;
  for await (const transcript of demonstrations(starterMixture(`${seed}_skill`, SKILL))) {
    yield transcript;
    if (++taken === SKILL_TRANSCRIPTS) break;
  }
  yield* demonstrations(starterMixture(`${seed}_habit`, HABIT));
}

/** What the vocabulary is made of: every word of these worlds. It does not depend on a seed, so that all starters share it. */
export async function vocabularyTranscripts(): Promise<Transcript[]> {
  const mixture = starterMixture("vocabulary", { oracle: 10, guesser: 1 });
  const taken: Transcript[] = [];
  for await (const transcript of demonstrations({ ...mixture, questions_per_world: 2 })) {
    if (taken.push(transcript) === VOCABULARY_TRANSCRIPTS) break;
  }
  return taken;
}

const VOCABULARY_TRANSCRIPTS = 1_000;
