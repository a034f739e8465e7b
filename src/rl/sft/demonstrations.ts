// Demonstrations for SFT: episodes of a mixture of players on practice worlds, endless, the same for the same seed.
import { z } from "zod";
import { DIFFICULTIES, type QuestionRecord } from "../../gym/data/index.ts";
import { rulesOf, rulesSchema, SQLEnvironment } from "../../gym/env/index.ts";
import { playEpisode } from "../../gym/evaluation/index.ts";
import {
  oraclePlayer,
  PROMPT_NAMES,
  type PromptChoice,
  SCRIPTED_NAMES,
  SCRIPTED_PLAYERS,
  type ScriptedName,
  SHOT_COUNTS,
  type TeacherOptions,
} from "../../gym/players/index.ts";
import { DatabasePool } from "../../gym/sql/index.ts";
import { practiceWorlds, STARTER_FORMS } from "../../gym/worlds/index.ts";
import { random } from "../../random.ts";
import { type Transcript, type TranscriptOptions, transcriptOf } from "./transcripts.ts";

export const mixtureSchema = z
  .object({
    seed: z.union([z.int(), z.string()]).default(0).describe("of worlds, questions and players"),
    players: z
      .array(
        z.object({
          player: z.enum(SCRIPTED_NAMES).describe("who plays"),
          share: z.number().positive().describe("of the episodes"),
          weight: z.number().positive().default(1).describe("how much its words count"),
        }),
      )
      .min(1)
      .describe("the players that demonstrate, and their shares"),
    questions_per_world: z.int().min(1).max(64).default(4).describe("episodes on one practice world"),
    difficulties: z.array(z.enum(DIFFICULTIES)).min(1).default(["easy", "medium"]).describe("of the questions"),
    invented_share: z.number().min(0).max(1).default(0.35).describe("of names and values that are invented words"),
    forms: z
      .union([z.literal("starter"), z.array(z.string()).min(1)])
      .optional()
      .describe("names of the question forms, or starter for those of the default training; all when absent"),
    forms_share: z
      .number()
      .min(0)
      .max(1)
      .default(1)
      .describe("of the worlds that have these forms; the others have all"),
    observed_weight: z
      .number()
      .min(0)
      .default(0)
      .describe("of what the environment says; above 0 a fresh model reads as it learns to act"),
    step_budget: z.int().min(1).default(10).describe("actions an episode may take"),
    ...rulesSchema.unwrap().shape,
    prompt: z.enum(PROMPT_NAMES).default("compact").describe("in whose words the model is asked"),
    shots: z.literal(SHOT_COUNTS).default(0).describe("example episodes before each question; they are not learned"),
    stumbles: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .describe("of the teacher's episodes that have a failing query and its repair (default: 0.15)"),
    omissions: z
      .number()
      .min(0)
      .max(1)
      .default(0)
      .describe("of the teacher's episodes on several tables in which a query fails since one table was not described"),
    learn_mistakes: z
      .boolean()
      .default(true)
      .describe("learn failing actions and queries that a later one replaced, too"),
    only_right: z.boolean().default(false).describe("leave out episodes that end without the right answer"),
  })
  .strict();

export type Mixture = z.infer<typeof mixtureSchema>;

/** How a demonstration on a question of a data set is made. */
export interface DataDemonstrationOptions extends TranscriptOptions {
  /** Name of the player; if its answer is wrong, the oracle plays instead. @default the teacher */
  readonly player?: ScriptedName;
  readonly teacher?: TeacherOptions;
  /** Prompt of the episodes. @default compact, without examples */
  readonly prompt?: PromptChoice;
  readonly seed: number | string;
}

/** An episode that ends with the right answer; null if not even the oracle has one. */
export async function dataDemonstration(
  env: SQLEnvironment,
  question: QuestionRecord,
  { player = "teacher", teacher = {}, prompt, seed, ...options }: DataDemonstrationOptions,
): Promise<Transcript | null> {
  const key = `${seed}/${question.question_id}`;
  let record = await playEpisode(env, SCRIPTED_PLAYERS[player](teacher), { question, seed: key });
  if (record.correctness !== 1) record = await playEpisode(env, oraclePlayer(), { question, seed: key });
  return record.error !== null || record.correctness !== 1 ? null : transcriptOf(record, prompt, options);
}

/** The teacher's options in a mixture. */
export function teacherOf({ stumbles, omissions }: Mixture): TeacherOptions {
  return { omissions, ...(stumbles !== undefined && { stumbles }) };
}

/**
 * Transcripts of `worlds` practice worlds, from world `first` on; endless by default. `loadSqlite()` must have been
 * awaited.
 *
 * @example
 * const mixture = mixtureSchema.parse({ seed: 1, players: [{ player: "oracle", share: 1 }] });
 * for await (const transcript of demonstrations(mixture, 0, 10)) console.log(transcript.messages.length);
 */
export async function* demonstrations(
  mixture: Mixture,
  first = 0,
  worlds = Number.POSITIVE_INFINITY,
): AsyncGenerator<Transcript, void> {
  const { seed, questions_per_world: questionsPerWorld, invented_share: inventedShare } = mixture;
  const { difficulties, forms_share } = mixture;
  const forms = mixture.forms === "starter" ? STARTER_FORMS : mixture.forms;
  const shares = mixture.players.map((part) => [part, part.share] as const);
  const teacher = teacherOf(mixture);
  for (let index = first; index < first + worlds; index++) {
    const some = random("demonstration forms", `${seed}/${index}`).chance(forms_share) ? { forms } : {};
    const options = { seed, first: index, worlds: 1, questionsPerWorld, difficulties, inventedShare, ...some };
    const [world] = practiceWorlds(options);
    if (!world) continue;
    const { name } = world.spec;
    const databases = new DatabasePool({ names: [name], read: () => world.bytes });
    const questions = world.questions.map(({ record }) => record);
    const env = new SQLEnvironment(
      { name: "practice", questions, databases, rejected: [] },
      { step_budget: mixture.step_budget, ...rulesOf(mixture) },
    );
    try {
      for (const question of questions) {
        const key = `${seed}/${question.question_id}`;
        const { player, weight } = random("demonstration", key).pickWeighted(shares);
        const record = await playEpisode(env, SCRIPTED_PLAYERS[player](teacher), { question, seed: key });
        if (record.error !== null || record.steps.length === 0 || (mixture.only_right && record.correctness !== 1))
          continue;
        const transcript = transcriptOf(record, mixture, { learnMistakes: mixture.learn_mistakes });
        yield { ...transcript, weight, observed_weight: mixture.observed_weight };
      }
    } finally {
      databases.close();
    }
  }
}
