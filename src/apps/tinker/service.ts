// The state behind the Tinker API: sessions, the models they train, sampling sessions and checkpoints.
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelEngine } from "../../lm/engine/index.node.ts";
import { writeTarGz } from "../../lm/engine/remote/tar.ts";
import type { Tokenizer } from "../../lm/model/index.ts";
import type { LoraModule, LoraSpec } from "../../lm/model/lora.ts";
import type { CompletionQueue } from "../openenv/llm/queue.ts";
import type { Log } from "../openenv/log.ts";
import { Futures, type Result } from "./futures.ts";
import { Problem } from "./problem.ts";
import { sampleAll } from "./sample.ts";
import { type CreateModelBody, type LoraConfig, loraConfigSchema, type SampleBody } from "./schemas.ts";
import { folderName, LORA_FILE, TrainingModel, unloaded } from "./training-model.ts";

/** LoRA alpha. The API has no field for it; this is the hosted service's value. */
export const LORA_ALPHA = 32;

/** The model that is served. */
export interface BaseModel {
  /** Its names in requests; the first is listed. */
  readonly names: readonly string[];
  /** The base model's name in the config of saved adapters. */
  readonly base: string;
  readonly tokenizer: Tokenizer;
  readonly stopIds: readonly number[];
  /** Maximum tokens of a context. */
  readonly window: number;
  /** Maximum tokens, in all, of contexts that are sampled at once. */
  readonly cacheTokens: number;
  /** Starts an engine: one that trains adapters, or one that only samples, with an adapter's folder merged. */
  start(options: {
    readonly lora?: LoraSpec & { readonly seed: number };
    readonly adapter?: string;
  }): Promise<ModelEngine>;
}

export interface ServiceOptions {
  readonly model: BaseModel;
  /** Folder for checkpoints. */
  readonly checkpoints: string;
  readonly maxSessions: number;
  readonly sessionsPerClient: number;
  /** Models in training at once. */
  readonly maxModels: number;
  /** Seconds without a heartbeat after which a session ends. */
  readonly idleSeconds: number;
  readonly queue: CompletionQueue;
  readonly log: Log;
}

interface Session {
  readonly id: string;
  readonly client: string;
  readonly futures: Futures;
  readonly models: Map<string, TrainingModel>;
  seen: number;
}

/** The weights that a sampling session samples from. */
type Source = { readonly model: TrainingModel; readonly version: number } | { readonly adapter: string | null };

interface SamplingSession {
  readonly session: Session;
  readonly source: Source;
  /** Path of the saved adapter that it samples from; null if it samples from the base model or a model in training. */
  readonly path: string | null;
  /** Key of the random numbers of requests without a seed. */
  readonly key: readonly (string | number)[];
}

const KINDS = ["weights", "sampler_weights"];
/** Engines that only sample, of the base model and of saved adapters. */
const SAMPLING_ENGINES = 2;

export class Service {
  readonly #options: ServiceOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #samplers = new Map<string, SamplingSession>();
  /** By adapter folder; null is the base model. The most recently used is last. */
  readonly #engines = new Map<string | null, { readonly engine: Promise<ModelEngine>; users: number }>();
  #models = 0;

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  createSession(client: string): string {
    const { maxSessions, sessionsPerClient } = this.#options;
    this.reap();
    if (this.#sessions.size >= maxSessions) throw new Problem(503, "all sessions are in use");
    const own = [...this.#sessions.values()].filter((session) => session.client === client).length;
    if (own >= sessionsPerClient) throw new Problem(429, `a client may have at most ${sessionsPerClient} sessions`);
    const id = `session-${randomUUID()}`;
    this.#sessions.set(id, { id, client, futures: new Futures(id), models: new Map(), seen: performance.now() });
    return id;
  }

  /** A client's session; any request keeps it alive. */
  session(id: string, client: string): Session {
    const session = this.#sessions.get(id);
    if (session?.client !== client)
      throw new Problem(404, `no session ${id}: it has ended, or the server was restarted`);
    session.seen = performance.now();
    return session;
  }

  /** The session that a request's id belongs to. */
  sessionOf(request_id: string, client: string): Session {
    return this.session(request_id.split(":")[0]!, client);
  }

  model(id: string, client: string): { readonly session: Session; readonly model: TrainingModel } {
    for (const session of this.#sessions.values()) {
      const model = session.models.get(id);
      if (model && session.client === client) {
        session.seen = performance.now();
        return { session, model };
      }
    }
    throw unloaded(id);
  }

  /** Creates a model; its engine takes some seconds to start. */
  createModel({ session_id, model_seq_id, base_model, lora_config }: CreateModelBody, client: string) {
    const session = this.session(session_id, client);
    this.#checkName(base_model);
    const request_id = session.futures.start(`create ${model_seq_id}`, async () => {
      const { id } = await this.#startModel(session, model_seq_id, lora_config);
      return { json: { model_id: id, type: "create_model" } };
    });
    return { request_id };
  }

  /** Creates a model with a checkpoint's adapters, weights and, if asked for, optimizer state. */
  createFromCheckpoint(session: Session, model_seq_id: number, path: string, optimizer: boolean) {
    const dir = this.folderOf(path, "weights");
    const request_id = session.futures.start(`create ${model_seq_id}`, async () => {
      const model = await this.#startModel(session, model_seq_id, this.loraOf(path));
      return { json: { ...(await model.loadWeights(dir, optimizer)).json, model_id: model.id, path } };
    });
    return { request_id };
  }

  /** The adapters of a checkpoint. */
  loraOf(path: string): LoraConfig {
    const dir = this.folderOf(path, "weights");
    return loraConfigSchema.parse(JSON.parse(readFileSync(join(dir, LORA_FILE), "utf8")));
  }

  async #startModel(session: Session, model_seq_id: number, lora: LoraConfig): Promise<TrainingModel> {
    const { rank, seed, train_attn, train_mlp } = lora;
    if (!train_attn && !train_mlp)
      throw new Problem(400, "train_attn or train_mlp must be true: only these are trained");
    const id = `${session.id}:train:${model_seq_id}`; // clients rely on this form
    const { model, maxModels, log, checkpoints } = this.#options;
    if (this.#models >= maxModels) throw new Problem(429, `${maxModels} models are in training: unload one first`);
    this.#models++;
    try {
      const targets = train_attn && train_mlp ? {} : { targets: train_attn ? ATTENTION : MLP };
      const engine = await model.start({ lora: { r: rank, alpha: LORA_ALPHA, seed: seed ?? 0, ...targets } });
      if (!this.#sessions.has(session.id)) {
        await engine.close();
        throw unloaded(id);
      }
      const made = new TrainingModel({ id, lora, engine, base: model.base, folder: checkpoints });
      session.models.set(id, made);
      log("info", "model_created", { model: id, rank });
      return made;
    } catch (error) {
      this.#models--;
      throw error;
    }
  }

  async unloadModel(id: string, client: string): Promise<Result> {
    const { session, model } = this.model(id, client);
    await this.#unload(session, model);
    return { json: { type: "unload_model", model_id: id } };
  }

  /** Opens a sampling session of a model's current weights; it ends when they change. */
  openSampler(session: Session, model: TrainingModel, sequence: number): string {
    const { version } = model;
    return this.#addSampler({ session, source: { model, version }, path: null, key: ["tinker", version, sequence] });
  }

  /** Opens a sampling session of the base model, or of a saved adapter. */
  openSavedSampler(session: Session, path: string | null, sequence: number): string {
    const adapter = path === null ? null : this.folderOf(path, "sampler_weights");
    return this.#addSampler({ session, source: { adapter }, path, key: ["tinker", path ?? "base", sequence] });
  }

  /** What a sampling session samples from: the path of a saved adapter, or null. */
  samplerPath(id: string, client: string): string | null {
    const sampler = this.#samplers.get(id);
    if (sampler?.session.client !== client) throw new Problem(404, `no sampling session ${id}: it has ended`);
    return sampler.path;
  }

  /** Samples; the reply comes at once, and the samples as a future. */
  sample(body: SampleBody, client: string) {
    const { model_path, base_model, sampling_session_id, seq_id = null, num_samples } = body;
    const sampler = sampling_session_id
      ? this.#samplers.get(sampling_session_id)
      : this.#withoutSession(model_path ?? null, base_model ?? null, client);
    if (sampler?.session.client !== client)
      throw new Problem(404, `no sampling session ${sampling_session_id}: it has ended, or the server was restarted`);
    sampler.session.seen = performance.now();
    const { queue, model } = this.#options;
    queue.check(client, num_samples);
    const key = sampling_session_id && seq_id !== null ? `sample ${sampling_session_id} ${seq_id}` : null;
    const request_id = sampler.session.futures.start(key, (signal) =>
      this.#withEngine(sampler.source, (engine) =>
        sampleAll(body, {
          ...model,
          engine,
          signal,
          key: [...sampler.key, seq_id ?? 0],
          run: (tokens, work) => queue.run({ client, tokens, signal }, work),
        }),
      ),
    );
    const sample_sequence_ids = Array.from({ length: num_samples }, (_, i) => `${request_id}:${i}`);
    return { request_id, sample_sequence_ids };
  }

  /** The folder of a checkpoint, `tinker://MODEL/KIND/NAME`. */
  folderOf(path: string, kind: string): string {
    const [, model, given, name] = /^tinker:\/\/([\w:-]+)\/(weights|sampler_weights)\/([\w-][\w.-]*)$/.exec(path) ?? [];
    if (!model || !name) throw new Problem(400, `not a checkpoint's path: ${path}`);
    const dir = join(this.#options.checkpoints, folderName(model), given!, name);
    if (given !== kind || !existsSync(dir)) throw new Problem(404, `no checkpoint ${path} to use as ${kind}`);
    return dir;
  }

  /** A saved adapter as an archive. */
  archiveOf(model: string, name: string): Promise<Uint8Array> {
    const dir = this.folderOf(`tinker://${model}/sampler_weights/${name}`, KINDS[1]!);
    return writeTarGz(readdirSync(dir).map((file) => [file, readFileSync(join(dir, file))] as const));
  }

  async endSession(session: Session): Promise<void> {
    this.#sessions.delete(session.id);
    session.futures.close();
    for (const [id, sampler] of this.#samplers) if (sampler.session === session) this.#samplers.delete(id);
    await Promise.all([...session.models.values()].map((model) => this.#unload(session, model)));
  }

  /** Ends sessions whose clients have sent nothing for `idleSeconds`. */
  reap(now = performance.now()): void {
    for (const session of this.#sessions.values())
      if (now - session.seen > 1000 * this.#options.idleSeconds) {
        this.#options.log("info", "session_expired", { session: session.id });
        void this.endSession(session);
      }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => this.endSession(session)));
    await Promise.all([...this.#engines.values()].map(async ({ engine }) => (await engine).close()));
  }

  #withoutSession(path: string | null, base: string | null, client: string): SamplingSession {
    if ((path === null) === (base === null))
      throw new Problem(400, "give sampling_session_id, or one of model_path and base_model");
    if (base !== null) this.#checkName(base);
    const session = [...this.#sessions.values()].find((one) => one.client === client);
    if (!session) throw new Problem(404, "create a session first");
    const adapter = path === null ? null : this.folderOf(path, "sampler_weights");
    return { session, source: { adapter }, path, key: ["tinker", path ?? "base"] };
  }

  #addSampler(sampler: SamplingSession): string {
    const id = `sampler-${randomUUID()}`;
    this.#samplers.set(id, sampler);
    return id;
  }

  #checkName(name: string): void {
    const { names } = this.#options.model;
    if (!names.includes(name)) throw new Problem(404, `this server has ${names[0]}, not ${name}`);
  }

  async #unload(session: Session, model: TrainingModel): Promise<void> {
    if (!session.models.delete(model.id)) return;
    this.#models--;
    await model.close();
  }

  /** Samples from the live model while it has the session's weights, else from an engine of a saved adapter. */
  async #withEngine(source: Source, use: (engine: ModelEngine) => Promise<Result>): Promise<Result> {
    if ("model" in source) {
      const { model, version } = source;
      if (model.version !== version)
        throw new Problem(
          400,
          "the model has been trained since this sampling session was opened: call save_weights_for_sampler for a new session, or save the weights under a name",
        );
      return model.sampling(() => use(model.engine));
    }
    const { adapter } = source;
    let entry = this.#engines.get(adapter);
    this.#engines.delete(adapter);
    if (!entry) {
      await this.#makeRoom();
      entry = { engine: this.#options.model.start(adapter === null ? {} : { adapter }), users: 0 };
      entry.engine.catch(() => this.#engines.delete(adapter));
    }
    this.#engines.set(adapter, entry);
    entry.users++;
    try {
      return await use(await entry.engine);
    } finally {
      entry.users--;
    }
  }

  async #makeRoom(): Promise<void> {
    for (const [key, { engine, users }] of this.#engines) {
      if (this.#engines.size < SAMPLING_ENGINES) return;
      if (users > 0) continue;
      this.#engines.delete(key);
      await (await engine).close();
    }
  }
}

const ATTENTION: readonly LoraModule[] = ["q_proj", "k_proj", "v_proj", "o_proj"];
const MLP: readonly LoraModule[] = ["gate_proj", "up_proj", "down_proj"];
