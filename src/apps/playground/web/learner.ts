// The worker's side of the model: loaded on demand, asked for moves, and trained while one watches.

import { UsageError } from "../../../errors.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import { SQLEnvironment } from "../../../gym/env/index.ts";
import { evaluate, playEpisode } from "../../../gym/evaluation/index.ts";
import { modelPlayer, type Player } from "../../../gym/players/index.ts";
import { loadWebModel, type WebModel } from "../../../lm/engine/web.ts";
import { parameterShapes } from "../../../lm/model/config.ts";
import { tensorsOf } from "../../../lm/model/formats/load.ts";
import { encodeHeader } from "../../../lm/model/formats/safetensors.ts";
import { type GRPOConfig, resolveConfig } from "../../../rl/config.ts";
import { presetNamed } from "../../../rl/presets.ts";
import { MemoryStore } from "../../../rl/run/store.ts";
import { playerOf } from "../../../rl/standing.ts";
import { GRPOTrainer } from "../../../rl/trainer.ts";
import type { Calls, ModelFacts, News, PlayerChoice, Standing, TrainingChoice } from "./protocol.ts";

/** Other questions a training is judged by, before and after. */
const JUDGED_BY = 16;

/** A model in this worker. */
export class Learner {
  readonly #model: WebModel;
  readonly facts: ModelFacts;
  readonly #tell: (news: News) => void;
  #training: AbortController | undefined;

  private constructor(model: WebModel, name: string, tell: (news: News) => void) {
    this.#model = model;
    this.#tell = tell;
    this.facts = { name, ...model.facts };
  }

  /** From the folder at an address, or from files of a folder. */
  static async load(from: string | readonly File[], tell: (news: News) => void): Promise<Learner> {
    const onProgress = (received: number, total: number) => tell({ news: "loading", received, total });
    if (typeof from === "string") return new Learner(await loadWebModel(from, { onProgress }), "model/", tell);
    const byName = new Map(from.map((file) => [file.name, file]));
    const read = async (name: string) => {
      const file = byName.get(name);
      return file ? new Uint8Array(await file.arrayBuffer()) : null;
    };
    const name = from[0]?.webkitRelativePath.split("/")[0] || "your files";
    return new Learner(await loadWebModel(read, { name }), name, tell);
  }

  /** The model as a player that is heard while it writes. */
  player({ temperature }: PlayerChoice): Player {
    if (this.#training) throw new UsageError({ what: "the model is being trained", remedy: "wait, or stop it" });
    const { engine, tokenizer, turns } = this.#model;
    const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
    const sample: typeof engine.sample = (request) => {
      const said: number[] = [];
      const onToken = (token: number) => {
        said.push(token);
        this.#tell({ news: "said", text: decode(said) });
      };
      return engine.sample({ ...request, onToken });
    };
    return modelPlayer({ engine: { sample }, turns, decode, temperature, ...this.#lengths });
  }

  stop(): void {
    this.#training?.abort(new Error("stopped"));
  }

  async close(): Promise<void> {
    this.stop();
    await this.#model.engine.close();
  }

  /** A few steps of GRPO on the data's training questions. */
  async train(data: DataSet, choice: TrainingChoice): Promise<Calls["train"]["give"]> {
    if (this.#training) throw new UsageError({ what: "a training is going on" });
    const abort = new AbortController();
    this.#training = abort;
    try {
      const config = this.#config(choice);
      const standing = async (phase: "before" | "after") => {
        this.#tell({ news: "phase", phase, standing: null });
        const found = await this.#standing(data, config, choice.watched);
        this.#tell({ news: "phase", phase, standing: found });
        return found;
      };
      const trainer = new GRPOTrainer({ ...this.#trainerParts(data, config) });
      const before = await standing("before");
      this.#tell({ news: "phase", phase: "training", standing: null });
      const { steps } = await trainer.train({ signal: abort.signal });
      return { before, after: await standing("after"), steps };
    } finally {
      this.#training = undefined;
    }
  }

  /** The weights as they are, for a file. */
  weights(): Blob {
    const { model } = this.#model.engine;
    const shapes = parameterShapes(model.config);
    const { bytes } = encodeHeader(shapes, "F32", { format: "pt" });
    const tensors = new Map([...tensorsOf(model)].map(({ name, data }) => [name, Float32Array.from(data)]));
    return new Blob([bytes, ...[...shapes.keys()].map((name) => tensors.get(name)!)]);
  }

  get #lengths() {
    const max_context_tokens = Math.min(2048, this.#model.config.max_position_embeddings);
    return { max_context_tokens, max_new_tokens: Math.min(160, Math.floor(max_context_tokens / 4)) };
  }

  #config({ steps, questions, episodes, learning_rate, step_budget, seed }: TrainingChoice): GRPOConfig {
    const { max_context_tokens, max_new_tokens } = this.#lengths;
    const { reward_weights, scale_rewards } = presetNamed("starter");
    return resolveConfig({
      ...{ model_name: "playground", max_steps: steps, learning_rate, step_budget, seed },
      ...{ num_generations: episodes, per_device_train_batch_size: questions * episodes },
      ...{ gradient_accumulation_steps: 1, num_train_epochs: 1000, lr_scheduler_type: "constant" },
      ...{ max_context_tokens, max_new_tokens, max_completion_length: Math.max(400, max_new_tokens) },
      ...{ reward_weights, scale_rewards, logging_steps: 1, eval_steps: 0 },
    });
  }

  #trainerParts(data: DataSet, config: GRPOConfig) {
    const { engine, tokenizer, turns } = this.#model;
    // Nothing is resumed in a page: an engine without saveState is never asked for a checkpoint.
    const model = { engine, tokenizer, turns };
    let metrics: Extract<News, { news: "step" }>["metrics"] | undefined;
    const tell = this.#tell;
    return {
      ...{ model, data, config, store: new MemoryStore() },
      callbacks: [
        {
          on_log: (_: unknown, line: NonNullable<typeof metrics>) => {
            metrics = line;
          },
          on_step_end: (_: unknown, { timing, episodes }: Omit<Extract<News, { news: "step" }>, "news" | "metrics">) =>
            tell({ news: "step", metrics: metrics!, timing, episodes }),
          on_warning: (_: unknown, warning: Extract<News, { news: "warning" }>["warning"]) =>
            tell({ news: "warning", warning }),
        },
      ],
    };
  }

  /** The watched question and some others, greedily. */
  async #standing(data: DataSet, config: GRPOConfig, watched: string): Promise<Standing> {
    const { step_budget, difficulty_filter: difficulty, seed } = config;
    const player = playerOf(this.#model, "greedy", config);
    const question = data.questions.find(({ question_id }) => question_id === watched) ?? data.questions[0]!;
    const trained = data.questions.some(
      ({ split, database_name }) => split === "train" && database_name === question.database_name,
    );
    const env = new SQLEnvironment(data, { step_budget });
    const episode = await playEpisode(env, player, { question, seen: trained });
    if (episode.error !== null) throw new Error(episode.error);
    const split = data.questions.some((q) => q.split === "eval") ? "eval" : "train";
    const options = { split, episodes: JUDGED_BY, difficulty, seed, step_budget, concurrency: JUDGED_BY } as const;
    let [right, of] = [0, 0];
    await evaluate(data, player, {
      ...options,
      onEpisode: ({ correctness }) => {
        of++;
        right += correctness ?? 0;
      },
    });
    return { episode, right, of };
  }
}
