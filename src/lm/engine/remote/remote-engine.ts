// An engine on another machine: sampling and training over the Tinker API.
//
//     sample            asample, on a sampling session of the current weights, which the first sample makes
//     forwardBackward   forward_backward, in requests of bounded size
//     optimStep         optim_step; the next sample makes a new sampling session
//     logprobs          forward
//
// Requests that train are sent in order by training-queue.ts.
import { EngineError, UsageError } from "../../../errors.ts";
import type {
  AdamParams,
  Datum,
  Engine,
  ForwardBackwardOptions,
  ForwardBackwardOutput,
  LogprobOptions,
  OptimOutput,
  Sample,
  SampleRequest,
} from "../engine.ts";
import { type ClientOptions, type Reply, TinkerClient } from "./client.ts";
import { cutData, decoded, faultOf, finished, jsonOf, logprobsOf, record, shapeOf, wireDatum } from "./convert.ts";
import { REMOTE_CROSS_ENTROPY, type RemoteLossTable, remoteLossNamed, totalsOfBatch } from "./losses.ts";
import {
  decodePassOutput,
  decodeSampleOutput,
  encodeForwardBackward,
  type ForwardBackwardRequest,
  modelInput,
  type PassOutput,
  passOutputSchema,
  type SampleOutput,
  sampleOutputSchema,
  type WireDatum,
} from "./messages.ts";
import { seedOf } from "./seed.ts";
import { openSession, type RemoteSession } from "./session.ts";
import { readTarGz } from "./tar.ts";
import { type Form, type Numbers, type Submitted, TrainingQueue } from "./training-queue.ts";

/** The adapters that the server trains. */
export interface RemoteLora {
  readonly rank: number;
  /** Seed of their initial values. */
  readonly seed?: number | undefined;
  readonly train_attn?: boolean;
  readonly train_mlp?: boolean;
}

export interface RemoteOptions extends ClientOptions {
  /** The model's name on the server. @default the first that the server lists */
  readonly baseModel?: string | undefined;
  /** Adapters to train; without them the engine only samples. */
  readonly lora?: RemoteLora | undefined;
  /** A checkpoint of the server, `tinker://…`: to sample from, or to continue training from. */
  readonly checkpoint?: string | undefined;
  /** Losses by name, besides cross_entropy. @default none */
  readonly losses?: RemoteLossTable;
  /** Size of the vocabulary: samples with other token ids are refused. @default not checked */
  readonly vocabulary?: number;
  /** Maximum samples in flight; others wait here. @default 256 */
  readonly maxSamples?: number;
  /** Called when a heartbeat is refused: the server may then end the session. */
  readonly onSilence?: (why: string) => void;
}

const HEARTBEAT_MS = 10_000;
const CLOSE_SECONDS = 10;
type PassInput = ForwardBackwardRequest["forward_backward_input"];

export class RemoteEngine implements Engine {
  /** The loss of data without `old_logp` uses the log-probs as sampled. */
  readonly usesSampledLogprobs = true;
  readonly url: string;
  readonly #client: TinkerClient;
  readonly #options: RemoteOptions;
  readonly #server: RemoteSession;
  readonly #losses: RemoteLossTable;
  readonly #queue: TrainingQueue;
  readonly #heartbeat: ReturnType<typeof setInterval>;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #checkpoint: string | undefined;
  #model: Promise<string> | undefined;
  /** The model's id, once the server has created it. */
  #made: string | undefined;
  #models = 0;
  #samplers = 0;
  #sampling: Promise<{ readonly id: string; next: number }> | undefined;
  #steps = 0;

  private constructor(client: TinkerClient, server: RemoteSession, options: RemoteOptions) {
    this.url = client.url;
    this.#client = client;
    this.#server = server;
    this.#options = options;
    this.#checkpoint = options.checkpoint;
    this.#queue = new TrainingQueue(client, () => this.#modelId(), server);
    this.#losses = { cross_entropy: REMOTE_CROSS_ENTROPY, ...options.losses };
    this.#heartbeat = setInterval(() => {
      client.json("session_heartbeat", { session_id: server.session_id, type: "session_heartbeat" }).catch((error) => {
        if (error instanceof EngineError) options.onSilence?.(error.message);
      });
    }, HEARTBEAT_MS);
    (this.#heartbeat as { unref?: () => void }).unref?.();
  }

  /** Opens a session on a server. */
  static async connect(options: RemoteOptions): Promise<RemoteEngine> {
    const client = new TinkerClient(options);
    const server = await openSession(client, options.baseModel);
    return new RemoteEngine(client, server, options);
  }

  /** The model's name on the server. */
  get baseModel(): string {
    return this.#server.base_model;
  }

  /** Number of samples in flight on the server. */
  get running(): number {
    return this.#running;
  }

  async sample(request: SampleRequest): Promise<Sample> {
    if (request.min_p)
      throw new UsageError({ what: "a remote engine has no min_p", value: request.min_p, remedy: "leave it out" });
    const aborted: Sample = { tokens: [], logprobs: [], finish_reason: "aborted", cached_tokens: 0 };
    await this.#turn();
    try {
      if (request.signal?.aborted) return aborted;
      const sequence = (await this.#sampled(request)).sequences[0]!;
      return finished(request, sequence);
    } catch (error) {
      if (request.signal?.aborted && error === request.signal.reason) return aborted;
      throw error;
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  async forwardBackward(batch: readonly Datum[], options: ForwardBackwardOptions): Promise<ForwardBackwardOutput> {
    const { loss: spec, temperature = 1, totals = totalsOfBatch(batch) } = options;
    if (temperature !== 1)
      throw new UsageError({
        what: "a remote engine learns at temperature 1 only, since the Tinker API's losses have none; it is",
        value: temperature,
        remedy: "set temperature to 1",
      });
    const loss = remoteLossNamed(spec.type, this.#losses);
    const { loss_fn, loss_fn_config, inputs } = loss.request(batch, spec, totals);
    const data = batch.map(({ tokens }, i) => wireDatum(tokens, inputs[i]!));
    try {
      const outputs = await this.#pass(data, loss_fn, loss_fn_config ?? null);
      const logprobs = batch.map(({ tokens, weights }, i) =>
        logprobsOf(outputs[i], tokens.length, weights, this.#client),
      );
      const tokens = batch.reduce((sum, datum) => sum + datum.tokens.length, 0);
      return { ...loss.result(batch, spec, totals, logprobs), logprobs, computed_tokens: tokens, tokens };
    } catch (error) {
      this.#queue.fail(error); // a step without this gradient would give other weights
      throw error;
    }
  }

  async optimStep(adam: AdamParams): Promise<OptimOutput> {
    const { learning_rate, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, max_grad_norm = 0 } = adam;
    const adam_params = {
      learning_rate,
      beta1,
      beta2,
      eps,
      weight_decay,
      grad_clip_norm: Number.isFinite(max_grad_norm) ? max_grad_norm : 0,
    };
    const { result } = await this.#train("optim_step", "OptimStep", (numbers) => ({
      ...numbers,
      adam_params,
      type: "optim_step",
    }));
    this.#sampling = undefined; // samples from here on are of the new weights
    const { metrics } = record(jsonOf(await result, "optim_step", this.#client));
    const found = Object.entries((metrics ?? {}) as Record<string, unknown>);
    const norm = found.find(([name]) => /(^|\/)grad_norm(:|$)/.test(name))?.[1];
    const skipped = found.some(([name, value]) => name === "skipped" && value === 1);
    if (!skipped) this.#steps++;
    return { grad_norm: typeof norm === "number" ? norm : Number.NaN, skipped, step: this.#steps };
  }

  async logprobs(
    batch: readonly Datum[],
    { temperature = 1, weights = "current" }: LogprobOptions = {},
  ): Promise<Float32Array[]> {
    if (weights === "reference" || temperature !== 1)
      throw new UsageError({
        what: "a remote engine computes log-probs of the current weights at temperature 1 only",
        value: weights === "reference" ? "the reference's" : temperature,
        remedy: "set beta to 0 and temperature to 1",
      });
    const data = batch.map(({ tokens }) => wireDatum(tokens, { weights: tokens.map(() => 0) }));
    const outputs = await this.#pass(data, "cross_entropy", null, true);
    return batch.map(({ tokens }, i) => logprobsOf(outputs[i], tokens.length, null, this.#client));
  }

  /** Saves weights and optimizer state on the server; returns the checkpoint's path, `tinker://…`. */
  async saveCheckpoint(name: string): Promise<string> {
    const { result } = await this.#train("save_weights", "SaveWeights", (numbers) => ({
      ...numbers,
      path: name,
      type: "save_weights",
    }));
    return this.#pathOf(await result, "save_weights");
  }

  /** Continues from a checkpoint of the server, in a new model of this session. */
  async loadCheckpoint(path: string, { steps = 0 }: { readonly steps?: number } = {}): Promise<void> {
    const old = this.#made;
    [this.#checkpoint, this.#model, this.#made, this.#sampling] = [path, undefined, undefined, undefined];
    this.#steps = steps;
    this.#queue.reset();
    if (old !== undefined) await this.#unload(old);
    await this.#modelId();
  }

  /** Downloads the current adapters as the files of a PEFT folder. */
  async downloadAdapter(name: string): Promise<Map<string, Uint8Array>> {
    const { result } = await this.#train("save_weights_for_sampler", "SaveWeightsForSampler", (numbers) => ({
      ...numbers,
      path: name,
      type: "save_weights_for_sampler",
    }));
    const path = await this.#pathOf(await result, "save_weights_for_sampler");
    const parts = /^tinker:\/\/([^/]+)\/(?:.*\/)?([^/]+)$/.exec(path);
    const route = parts && `training_runs/${parts[1]}/checkpoints/${parts[2]}/archive`;
    const reply = route ? await this.#client.request(route, null).catch((error: unknown) => error as Error) : null;
    if (reply === null || reply instanceof Error)
      throw new EngineError("engine_refused", {
        what: `${this.url} has saved the adapters but offers no download of them`,
        value: path,
        remedy: `copy them from the server's disk${reply ? ` (${reply.message})` : ""}`,
        cause: reply,
      });
    if (!("proto" in reply)) throw this.#client.wrongReply(route!, "no archive");
    return readTarGz(reply.proto).catch((error) => {
      throw this.#client.wrongReply(route!, `a damaged archive: ${error}`);
    });
  }

  async close(): Promise<void> {
    clearInterval(this.#heartbeat);
    if (this.#made !== undefined) await this.#unload(this.#made);
    const signal = AbortSignal.timeout(1000 * CLOSE_SECONDS);
    // Servers without this route end the session when its heartbeats stop.
    await this.#client.json(`sessions/${this.#server.session_id}/finish`, {}, { signal }).catch(() => {});
    this.#client.close();
  }

  /** Waits until fewer samples than the maximum are in flight. */
  async #turn(): Promise<void> {
    const most = Math.min(this.#options.maxSamples ?? 256, this.#server.maxSamples);
    this.#running++;
    if (this.#running > most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async #sampled(request: SampleRequest): Promise<SampleOutput> {
    const { prompt, max_new_tokens, stop_ids, temperature = 1, top_k = 0, top_p = 1, key, signal } = request;
    this.#sampling ??= this.#openSampling();
    const session = await this.#sampling;
    const body = {
      sampling_session_id: session.id,
      seq_id: session.next++,
      num_samples: 1,
      prompt: modelInput(prompt),
      sampling_params: {
        max_tokens: max_new_tokens,
        seed: seedOf(key),
        stop: [...stop_ids],
        temperature,
        top_k: top_k || -1,
        top_p,
      },
      prompt_logprobs: false,
      topk_prompt_logprobs: 0,
      type: "sample",
      ...(this.#server.isOurs && { sample_key: key }),
    };
    const headers = { "x-tinker-request-type": "Sample", "x-tinker-sampling-backpressure": "1" };
    let request_id: unknown;
    const submit = async () => {
      const submitted = await this.#client.json("asample", body, { signal, headers });
      request_id = record(submitted).request_id;
      return submitted;
    };
    try {
      const reply = await this.#client.result("asample", submit, { signal, headers });
      const output =
        "proto" in reply ? decoded(decodeSampleOutput, reply.proto) : sampleOutputSchema.safeParse(reply.json);
      if (!output.success || !output.data.sequences[0])
        throw this.#client.wrongReply("asample", output.success ? "no sequence" : shapeOf(output.error));
      const fault = faultOf(output.data.sequences[0], request, this.#options.vocabulary ?? Number.POSITIVE_INFINITY);
      if (fault !== null) throw this.#client.wrongReply("asample", fault);
      return output.data;
    } catch (error) {
      if (signal?.aborted && request_id !== undefined && this.#server.isOurs)
        this.#client.json("cancel_future", { request_id }).catch(() => {}); // what is sampled is no longer needed
      throw error;
    }
  }

  /** A sampling session of the current weights. */
  async #openSampling(): Promise<{ readonly id: string; next: number }> {
    const sampling_session_seq_id = this.#samplers++;
    const opened = async (): Promise<Record<string, unknown>> => {
      if (this.#options.lora) {
        const { result } = await this.#train("save_weights_for_sampler", "SaveWeightsForSampler", (numbers) => ({
          ...numbers,
          sampling_session_seq_id,
          type: "save_weights_for_sampler",
        }));
        return record(jsonOf(await result, "save_weights_for_sampler", this.#client));
      }
      const { session_id, base_model } = this.#server;
      const of = this.#checkpoint === undefined ? { base_model } : { model_path: this.#checkpoint };
      const body = { session_id, sampling_session_seq_id, ...of, type: "create_sampling_session" };
      return record(await this.#client.json("create_sampling_session", body));
    };
    const { sampling_session_id: id } = await opened();
    if (typeof id !== "string") throw this.#client.wrongReply("save_weights_for_sampler", "no sampling_session_id");
    return { id, next: 0 };
  }

  /** The model on the server, created when it is first needed. */
  #modelId(): Promise<string> {
    this.#model ??= this.#createModel();
    return this.#model;
  }

  async #createModel(): Promise<string> {
    const { lora } = this.#options;
    if (!lora)
      throw new UsageError({
        what: "this remote engine was opened for sampling only",
        remedy: "give it adapters (lora)",
      });
    const { rank, seed, train_attn = true, train_mlp = true } = lora;
    const { session_id, base_model } = this.#server;
    const body = {
      session_id,
      model_seq_id: this.#models++,
      base_model,
      user_metadata: {},
      lora_config: { rank, ...(seed !== undefined && { seed }), train_unembed: false, train_mlp, train_attn },
      type: "create_model",
    };
    let early: unknown; // some servers send the model's id in the first reply, others in the result
    const submit = async () => {
      const submitted = await this.#client.json("create_model", body);
      early = record(submitted).model_id;
      return submitted;
    };
    const headers = { "x-tinker-request-type": "CreateModel" };
    const made = record(
      jsonOf(await this.#client.result("create_model", submit, { headers }), "create_model", this.#client),
    );
    const model_id = made.model_id ?? early;
    if (typeof model_id !== "string") throw this.#client.wrongReply("create_model", "no model_id");
    this.#made = model_id;
    if (this.#checkpoint !== undefined) {
      const load = {
        model_id,
        path: this.#checkpoint,
        seq_id: this.#queue.next(),
        optimizer: true,
        type: "load_weights",
      };
      await this.#client.result("load_weights", () => this.#client.json("load_weights", load));
    }
    return model_id;
  }

  #train(path: string, type: string, body: (numbers: Numbers) => object): Promise<Submitted> {
    return this.#queue.send(type, () => [{ path, body }]);
  }

  /** Runs data through the model, in requests of bounded size that are all sent before the first has its result. */
  async #pass(
    data: readonly WireDatum[],
    loss_fn: string,
    loss_fn_config: Readonly<Record<string, number>> | null,
    forward_only = false,
  ): Promise<PassOutput["loss_fn_outputs"]> {
    const parts = await Promise.all(
      cutData(data, this.#server).map(async (part) => {
        const input = { data: [...part], loss_fn, ...(loss_fn_config && { loss_fn_config: { ...loss_fn_config } }) };
        const { result } = await this.#submitPass(input, forward_only);
        const reply = await result;
        const output =
          "proto" in reply ? decoded(decodePassOutput, reply.proto) : passOutputSchema.safeParse(reply.json);
        if (!output.success) throw this.#client.wrongReply("forward_backward", shapeOf(output.error));
        const { length } = output.data.loss_fn_outputs;
        if (length !== part.length)
          throw this.#client.wrongReply("forward_backward", `${length} outputs for ${part.length} data`);
        return output.data.loss_fn_outputs;
      }),
    );
    return parts.flat();
  }

  /** Sends data: as protobuf to servers that have sent some, else as JSON, and as protobuf if that is refused. */
  #submitPass(input: PassInput, forward_only: boolean): Promise<Submitted> {
    const pass = (numbers: Numbers) => ({ ...numbers, forward_backward_input: input });
    const proto: Form = {
      path: "forward_backward",
      body: (numbers) => encodeForwardBackward({ ...pass(numbers), forward_only }),
    };
    const forward: Form = { path: "forward", body: (numbers) => ({ ...numbers, forward_input: input }) };
    // Without /forward, cross-entropy with weights of 0 gives the log-probs and no gradient.
    const json: Form = { path: "forward_backward", body: pass };
    return this.#queue.send(forward_only ? "Forward" : "ForwardBackward", () => {
      if (this.#client.speaksProtobuf || this.#queue.unknown.has("json")) return [proto];
      if (!forward_only) return [json, proto];
      return this.#queue.unknown.has("forward") ? [json, proto] : [forward, json, proto];
    });
  }

  async #unload(model_id: string): Promise<void> {
    const signal = AbortSignal.timeout(1000 * CLOSE_SECONDS);
    const body = { model_id, type: "unload_model" };
    await this.#client.json("unload_model", body, { signal }).catch(() => {}); // else when the session ends
  }

  async #pathOf(reply: Reply, request: string): Promise<string> {
    const { path } = record(jsonOf(reply, request, this.#client));
    if (typeof path !== "string") throw this.#client.wrongReply(request, "no path");
    return path;
  }
}
