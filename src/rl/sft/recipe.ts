// How a small model is made from scratch: its sizes, the stages of demonstrations it is trained on, and the optimizer.
import { z } from "zod";
import { demonstrations, type Mixture, mixtureSchema } from "./demonstrations.ts";
import type { Transcript } from "./transcripts.ts";

const size = (value: number) => z.int().min(1).default(value);

const recipe = z
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
    stages: z
      .array(
        mixtureSchema.omit({ seed: true }).extend({
          worlds: z.int().min(1).optional().describe("practice worlds of this stage; the last stage is endless"),
        }),
      )
      .min(1)
      .describe("who demonstrates, stage by stage"),
    sft: z
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

/** Former keys and their current names. */
const RENAMED = { lessons: "stages", warmup: "sft" } as const;

/** A recipe; the former keys `lessons` and `warmup` are read as `stages` and `sft`. */
export const recipeSchema = z.preprocess((value) => {
  if (typeof value !== "object" || value === null) return value;
  const keys = Object.entries(value).map(([key, of]) => [RENAMED[key as keyof typeof RENAMED] ?? key, of]);
  return Object.fromEntries(keys);
}, recipe);

export type Recipe = z.infer<typeof recipe>;

/** The mixture of this practice world. */
export function mixtureAt({ seed, stages }: Recipe, world: number): Mixture {
  let first = 0;
  for (const { worlds = Number.POSITIVE_INFINITY, ...mixture } of stages) {
    if (world < first + worlds) return { ...mixture, seed };
    first += worlds;
  }
  const { worlds: _, ...last } = stages.at(-1)!;
  return { ...last, seed };
}

/** The transcripts of all stages in order, endless. `loadSqlite()` must have been awaited. */
export async function* recipeDemonstrations(recipe: Recipe, worldsPerBatch: number): AsyncGenerator<Transcript, void> {
  for (let world = 0; ; world += worldsPerBatch) {
    yield* demonstrations(mixtureAt(recipe, world), world, worldsPerBatch);
  }
}

/** Text for training the tokenizer: episodes of the first stage, on practice worlds used for nothing else. */
export async function recipeVocabulary({ seed, stages }: Recipe, count = 1_200): Promise<Transcript[]> {
  const { worlds: _, ...mixture } = stages[0]!;
  const taken: Transcript[] = [];
  for await (const transcript of demonstrations({ ...mixture, seed: `${seed}_vocabulary` })) {
    if (taken.push(transcript) === count) break;
  }
  return taken;
}
