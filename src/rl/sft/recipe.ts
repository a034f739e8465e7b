// How a small model is made from nothing: its sizes, the lessons it imitates one after the other, and the steps it takes.
import { z } from "zod";
import { demonstrations, type Mixture, mixtureSchema } from "./demonstrations.ts";
import type { Transcript } from "./transcripts.ts";

const size = (value: number) => z.int().min(1).default(value);

export const recipeSchema = z
  .object({
    seed: z.union([z.int(), z.string()]).default(0).describe("of weights, worlds, questions and players"),
    model: z
      .object({
        vocab_size: z.int().min(300).default(640).describe("tokens, at most"),
        hidden_size: size(256),
        intermediate_size: size(640),
        num_hidden_layers: size(6),
        num_attention_heads: size(8),
        head_dim: size(32),
        max_position_embeddings: size(2048),
        spaces: z.enum(["attached", "apart"]).default("apart").describe("see trainBpe"),
      })
      .strict()
      .prefault({}),
    lessons: z
      .array(
        mixtureSchema.omit({ seed: true }).extend({
          worlds: z.int().min(1).optional().describe("practice worlds of this lesson; the last lesson has no end"),
        }),
      )
      .min(1)
      .describe("who is imitated, lesson by lesson"),
    warmup: z
      .object({
        steps: z.int().min(1),
        batch_tokens: z.int().min(1).default(16_384),
        learning_rate: z.number().positive().default(3e-3),
        beta2: z.number().min(0).max(1).default(0.98),
        weight_decay: z.number().min(0).default(0.01),
        max_context_tokens: z.int().min(1).default(1_280),
      })
      .strict(),
  })
  .strict();

export type Recipe = z.infer<typeof recipeSchema>;

/** What is played in the worlds from this one on. */
export function mixtureAt({ seed, lessons }: Recipe, world: number): Mixture {
  let first = 0;
  for (const { worlds = Number.POSITIVE_INFINITY, ...mixture } of lessons) {
    if (world < first + worlds) return { ...mixture, seed };
    first += worlds;
  }
  const { worlds: _, ...last } = lessons.at(-1)!;
  return { ...last, seed };
}

/** All lessons, one transcript after the other, without end. `loadSqlite()` must have been awaited. */
export async function* recipeDemonstrations(recipe: Recipe, worldsPerBatch: number): AsyncGenerator<Transcript, void> {
  for (let world = 0; ; world += worldsPerBatch) {
    yield* demonstrations(mixtureAt(recipe, world), world, worldsPerBatch);
  }
}

/** What the vocabulary is made of: episodes of the first lesson on worlds of their own. */
export async function recipeVocabulary({ seed, lessons }: Recipe, count = 1_200): Promise<Transcript[]> {
  const { worlds: _, ...mixture } = lessons[0]!;
  const taken: Transcript[] = [];
  for await (const transcript of demonstrations({ ...mixture, seed: `${seed}_vocabulary` })) {
    if (taken.push(transcript) === count) break;
  }
  return taken;
}
