// Measures a whole GRPO step on the CPU against TRL's on the same model (the other side is bench/peer_grpo.py).
//
// Equal on both sides: the model's folder and tokenizer, the questions and their order, questions × generations, every
// token of every episode, rewards, loss, optimizer, float32, threads. An untrained model writes nonsense, so episodes
// follow a script: in each turn the model samples exactly as many tokens as the scripted action has, without stopping,
// and then the action's tokens replace them. The environment responds to the action, and the context continues with the
// action, which is also what the model is trained on. `checksum` and the gradient norm prove that both sides did the
// same.
//
// What differs, and is measured, is how the work is done. The engine batches requests as they come, computes common
// prefixes once, in sampling and in learning, and learns from a step as one batch. The peer generates turn by turn for
// all live episodes from padded contexts, as TRL's tool loop does. Replaced tokens are not in the engine's cache: it
// computes them again with the next observation, which real episodes do not need.
//
// How much is shared depends on how similar the episodes of a group are, so there are two scripts. Early in a training
// all episodes differ: 19 different prefixes in 24 turns. Late, five of eight are equal, and the others share their
// beginning.
import { UsageError } from "../../errors.ts";
import type { DataSet, QuestionRecord } from "../../gym/data/index.ts";
import { type SQLAction, SQLEnvironment } from "../../gym/env/index.ts";
import { formatObservation } from "../../gym/players/index.ts";
import type { SampleRequest } from "../../lm/engine/index.ts";
import { parameterShapes } from "../../lm/model/config.ts";
import { CHATML_TEMPLATE, type ModelConfig, Tokenizer } from "../../lm/model/index.ts";
import { random } from "../../random.ts";
import {
  demonstrations,
  type Episode,
  type FreshModel,
  freshModel,
  type GRPOConfig,
  GRPOTrainer,
  loadQuestionPrompts,
  mixtureSchema,
  resolveConfig,
  type TrainableEngine,
  type TrainableModel,
  type Transcript,
} from "../../rl/index.ts";
import { batchAt } from "../../rl/task-order.ts";
import { ENGINE_MODELS } from "./engine.ts";

/** The shape of a step. */
export interface GRPOShape {
  readonly questions: number;
  readonly generations: number;
  /** Stage of training, which determines how similar the episodes of a group are. */
  readonly script: "early" | "late";
  /** The peer's batch size in learning: its fastest. */
  readonly peer_batch: number;
  /** Number of tokens to which text before the action pads every turn. @default the action's own length */
  readonly turn_tokens?: number;
}

/** Shapes of the starter preset and of the default preset. */
export const GRPO_SHAPES: Readonly<Record<string, GRPOShape>> = {
  "16x8": { questions: 16, generations: 8, script: "early", peer_batch: 32 },
  "16x8-late": { questions: 16, generations: 8, script: "late", peer_batch: 32 },
  "2x4": { questions: 2, generations: 4, script: "early", peer_batch: 8 },
};

const STEP_BUDGET = 6;

/** An action and its tokens, including the end-of-turn token. */
export interface ScriptedTurn extends SQLAction {
  readonly tokens: readonly number[];
}

/** An optimizer step: one script per episode, grouped by question. */
export type ScriptedStep = readonly { readonly question_id: string; readonly turns: readonly ScriptedTurn[] }[];

/** Durations of one optimizer step, in seconds. */
export interface StepSeconds {
  readonly step: number;
  readonly sampling: number;
  readonly environment: number;
  /** Forward, backward and optimizer. */
  readonly training: number;
  /** Rewards, advantages, records, metrics. */
  readonly rest: number;
}

/** Facts about the episodes of a step, which must be equal on both sides. */
export interface Played {
  readonly episodes: number;
  readonly sampled_tokens: number;
  /** Total tokens of all contexts trained on. */
  readonly tokens: number;
  /** Checksum of all tokens, in order. */
  readonly checksum: number;
  readonly mean_reward: number;
  readonly grad_norm: number;
}

export interface StepRecord {
  readonly seconds: StepSeconds;
  readonly played: Played;
  /** Number of tokens computed in learning; equals `played.tokens` if nothing is shared. */
  readonly computed_tokens?: number;
  /** The episodes trained on, for a peer without an environment to replay. */
  readonly episodes?: readonly EpisodeTokens[];
}

/** An episode's context, with a mask of the model's tokens. */
export interface EpisodeTokens {
  readonly tokens: readonly number[];
  readonly sampled: readonly (readonly [from: number, to: number])[];
}

/** Creates an untrained model of the starter's size, with a tokenizer trained on practice worlds. */
export async function grpoModel(sizes: Partial<ModelConfig> = {}): Promise<FreshModel> {
  const wanted = { ...ENGINE_MODELS.starter!, ...sizes };
  const { tokenizerFiles } = freshModel(await someTranscripts(), { vocab_size: wanted.vocab_size });
  const { vocabSize: vocab_size } = new Tokenizer(tokenizerFiles);
  const config = { ...wanted, vocab_size, eos_token_ids: [2], pad_token_id: 0 };
  const tensors = [...parameterShapes(config)].map(([name, shape]) => {
    const length = shape.reduce((product, size) => product * size, 1);
    const r = random("bench grpo", name);
    return { name, data: Float32Array.from({ length }, () => (shape.length === 1 ? 1 : r.normal(0, 0.02))) };
  });
  return { config, tokenizerFiles, chatTemplate: CHATML_TEMPLATE, tensors };
}

/** Plays enough text to train a tokenizer for practice worlds. */
export async function someTranscripts(): Promise<Transcript[]> {
  const taken: Transcript[] = [];
  const mixture = mixtureSchema.parse({ seed: "bench", players: [{ player: "oracle", share: 1 }] });
  for await (const transcript of demonstrations(mixture)) if (taken.push(transcript) === 600) break;
  return taken;
}

/** The training config for a shape. */
export function grpoConfig({ questions, generations }: GRPOShape, steps: number): GRPOConfig {
  return resolveConfig({
    questions_path: "practice",
    step_budget: STEP_BUDGET,
    max_steps: steps,
    num_generations: generations,
    per_device_train_batch_size: questions * generations,
    gradient_accumulation_steps: 1,
    max_new_tokens: 256,
    max_completion_length: 1024,
    max_context_tokens: 2048,
    logging_steps: 1,
    eval_steps: 0,
  });
}

/** The scripts of all episodes, step by step, in the trainer's order of questions. */
export function scriptedSteps(
  data: DataSet,
  model: TrainableModel,
  config: GRPOConfig,
  { script, turn_tokens }: Pick<GRPOShape, "script" | "turn_tokens">,
): ScriptedStep[] {
  const prompts = loadQuestionPrompts(data, config);
  const byId = new Map(data.questions.map((question) => [question.question_id, question]));
  const { num_generations, per_device_train_batch_size, seed, shuffle_dataset: shuffle } = config;
  const chunk = per_device_train_batch_size / num_generations;
  return Array.from({ length: config.max_steps }, (_, step) =>
    batchAt(step, prompts.length, { chunk, shuffle, seed }).flatMap((number) => {
      const question = byId.get(prompts[number]!.question_id)!;
      const scripts = scriptsOf(question)[script].map((actions) =>
        actions.map((action) => withTokens(action, model, turn_tokens)),
      );
      return Array.from({ length: num_generations }, (_, generation) => ({
        question_id: question.question_id,
        turns: scripts[generation % scripts.length]!,
      }));
    }),
  );
}

/** Eight scripts of one to four turns, some right and some wrong. */
function scriptsOf({ tables_involved, gold_sql, gold_answer }: QuestionRecord) {
  const table = tables_involved[0]!;
  const describe: SQLAction = { action_type: "DESCRIBE", argument: table };
  const sample: SQLAction = { action_type: "SAMPLE", argument: table };
  const query: SQLAction = { action_type: "QUERY", argument: gold_sql };
  const count: SQLAction = { action_type: "QUERY", argument: `SELECT COUNT(*) FROM "${table}"` };
  const right: SQLAction = { action_type: "ANSWER", argument: gold_answer };
  const wrong: SQLAction = { action_type: "ANSWER", argument: "unknown" };
  const good = [describe, query, right];
  const early = [
    good,
    [describe, sample, wrong],
    [describe, sample, query, right],
    [describe, count, wrong],
    [wrong],
    [sample, query, right],
    [describe, describe, query, right],
    [count, sample, wrong],
  ];
  const late = [good, [describe, query, wrong], good, [describe, sample, query, right], good, [describe, count, wrong]];
  return { early, late: [...late, good, good] };
}

function withTokens(
  { action_type, argument }: SQLAction,
  { tokenizer, turns }: TrainableModel,
  length = 0,
): ScriptedTurn {
  const spoken = `${action_type}: ${argument}`;
  const plain = [...tokenizer.encodePlain(spoken), turns.stopIds[0]!];
  const action = [...tokenizer.encodePlain(`\n${spoken}`), turns.stopIds[0]!];
  const missing = length - action.length;
  if (missing <= 0) return { action_type, argument, tokens: plain };
  const words = tokenizer.encodePlain("first the table and its columns, then what they hold ");
  const before = Array.from({ length: missing }, (_, i) => words[i % words.length]!);
  return { action_type, argument, tokens: [...before, ...action] };
}

/** Trains for as many steps as the script has. `onStep` is awaited between steps and not measured. */
export async function benchGRPO(
  model: TrainableModel,
  data: DataSet,
  config: GRPOConfig,
  script: readonly ScriptedStep[],
  onStep: (record: StepRecord) => void | Promise<void>,
): Promise<void> {
  const follower = new Follower(model, script);
  let rewards: readonly number[] = [];
  // Adds a little more reward for each later episode of a group, so that none has advantage 0.
  const rewardScripted = (_: unknown, { episodes }: { readonly episodes: readonly Episode[] }) => {
    rewards = episodes.map(({ reward }, i) => (reward ?? 0) + 0.01 * (i % config.num_generations));
    return rewards;
  };
  let [start, grad_norm] = [0, Number.NaN];
  const trainer = new GRPOTrainer({
    model: follower.model,
    data,
    config,
    rewardFuncs: [rewardScripted],
    callbacks: [
      {
        on_train_begin() {
          start = performance.now();
        },
        on_log(_, metrics) {
          grad_norm = metrics.grad_norm ?? Number.NaN;
        },
        async on_step_end(_, { timing, episodes }) {
          const step = (performance.now() - start) / 1000;
          const { sampling, environment, training } = timing;
          const seconds = { step, sampling, environment, training, rest: step - sampling - environment - training };
          const wrong = episodes.find(({ parse_failures, error, segments }) => parse_failures || error || segments > 1);
          if (wrong) throw new UsageError({ what: "an episode left the script", value: wrong.question_id });
          const mean_reward = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
          const { played, ...learned } = follower.learned();
          await onStep({ seconds, played: { ...played, mean_reward, grad_norm }, ...learned });
          start = performance.now();
        },
      },
    ],
  });
  await trainer.train();
}

/** Samples as many tokens as the scripted action has, then replaces them with the action's tokens. */
class Follower {
  readonly model: TrainableModel;
  readonly #script: readonly ScriptedStep[];
  /** Number of turns taken, by step and episode. */
  readonly #turns = new Map<string, number>();
  #batch: Parameters<TrainableEngine["forwardBackward"]>[0] = [];
  #computed = 0;

  constructor({ engine, tokenizer, turns }: TrainableModel, script: readonly ScriptedStep[]) {
    this.#script = script;
    const following: TrainableEngine = {
      sample: (request) => this.#sample(engine, request),
      forwardBackward: async (batch, options) => {
        const output = await engine.forwardBackward(batch, options);
        this.#batch = batch;
        this.#computed = output.computed_tokens;
        return output;
      },
      optimStep: (adam) => engine.optimStep(adam),
      logprobs: (batch, options) => engine.logprobs(batch, options),
      close: () => engine.close(),
    };
    this.model = { engine: following, tokenizer, turns };
  }

  /** The episodes that the last step trained on. */
  learned(): Pick<StepRecord, "computed_tokens" | "episodes"> & { played: Omit<Played, "mean_reward" | "grad_norm"> } {
    let [tokens, sampled_tokens, checksum] = [0, 0, 0];
    for (const datum of this.#batch) {
      tokens += datum.tokens.length;
      datum.tokens.forEach((token, i) => {
        checksum = (checksum * 31 + token + 1) % 1_000_000_007;
        if (datum.weights[i] !== 0) sampled_tokens++;
      });
    }
    const played = { episodes: this.#batch.length, sampled_tokens, tokens, checksum };
    return { played, computed_tokens: this.#computed, episodes: this.#batch.map(episodeOf) };
  }

  async #sample(engine: TrainableEngine, request: SampleRequest) {
    const [step, episode] = request.key.slice(-2).map(Number) as [number, number]; // the trainer's sample keys end with step and episode
    const name = `${step}/${episode}`;
    const turn = this.#turns.get(name) ?? 0;
    this.#turns.set(name, turn + 1);
    const { tokens } = this.#script[step]![episode]!.turns[turn]!;
    const sample = await engine.sample({ ...request, stop_ids: [], max_new_tokens: tokens.length });
    return { ...sample, tokens };
  }
}

function episodeOf({ tokens, weights }: Parameters<TrainableEngine["forwardBackward"]>[0][number]): EpisodeTokens {
  const sampled: [number, number][] = [];
  tokens.forEach((_, i) => {
    if (weights[i] === 0) return;
    const last = sampled.at(-1);
    if (last?.[1] === i) last[1] = i + 1;
    else sampled.push([i, i + 1]);
  });
  return { tokens, sampled };
}

/** Reply to an environment step of the peer. */
export interface Told {
  /** Text of the user's turn. */
  readonly text: string;
  readonly done: boolean;
  readonly reward: number;
}

/** Environments for the peer's process: all episodes of its step, by number. */
export class PeerEnvironments {
  readonly #data: DataSet;
  #open: SQLEnvironment[] = [];

  constructor(data: DataSet) {
    this.#data = data;
  }

  reset(questions: readonly string[]): Told[] {
    for (const env of this.#open) env.close();
    this.#open = questions.map(() => new SQLEnvironment(this.#data, { step_budget: STEP_BUDGET }));
    return questions.map((question_id, i) => told(this.#open[i]!.reset({ question_id })));
  }

  step(moves: readonly (readonly [episode: number, action: SQLAction])[]): Told[] {
    return moves.map(([episode, { action_type, argument }]) =>
      told(this.#open[episode]!.step({ action_type, argument })),
    );
  }
}

function told(observation: ReturnType<SQLEnvironment["reset"]>): Told {
  return { text: formatObservation(observation), done: observation.done, reward: observation.reward ?? 0 };
}
