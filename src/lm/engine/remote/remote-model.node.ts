// A model on a server: the remote engine, with tokenizer, chat template and files of the local model folder.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EngineError, ModelLoadError, messageOf, SqlEnvError } from "../../../errors.ts";
import { writeFolderWhole } from "../../../io/atomic-write.node.ts";
import { type ModelConfig, parameterCount } from "../../model/config.ts";
import { loadModelFolder } from "../../model/formats/folder.node.ts";
import { type HubOptions, resolveModel } from "../../model/formats/hub.node.ts";
import { ADAPTER_CONFIG, ADAPTER_WEIGHTS } from "../../model/formats/peft.node.ts";
import { createTurnEncoder } from "../../model/text/chat-template.ts";
import type {
  AdamParams,
  Datum,
  ForwardBackwardOptions,
  ForwardBackwardOutput,
  LogprobOptions,
  OptimOutput,
  Sample,
  SampleRequest,
} from "../engine.ts";
import type { LoadedModel } from "../load.node.ts";
import type { ModelEngine } from "../model-engine.ts";
import { startEngine } from "../thread/client.node.ts";
import type { EngineFacts } from "../thread/protocol.ts";
import { RemoteEngine, type RemoteOptions } from "./remote-engine.ts";

export interface LoadRemoteOptions extends RemoteOptions {
  /** How to download the tokenizer's model from the Hub. */
  readonly hub?: HubOptions;
}

/** What a checkpoint of a remote engine holds: the weights stay on the server. */
const STATE_FILE = "remote.json";

/**
 * Connects to a server of the Tinker API. `nameOrPath` is a model folder or a name on the Hub, for the tokenizer and
 * the chat template, and for merging adapters; it should be the server's base model. The key is that of the environment
 * variable TINKER_API_KEY unless given.
 */
export async function connectRemoteModel(
  nameOrPath: string,
  { hub, ...options }: LoadRemoteOptions,
): Promise<LoadedModel<RemoteModelEngine>> {
  const folder = await resolveModel(nameOrPath, hub);
  const { config, tokenizer, chatTemplate, weights, generationConfig } = await loadModelFolder(folder);
  await weights.close();
  const turns = createTurnEncoder(tokenizer, chatTemplate, { eosIds: generationConfig.eos_token_ids });
  const apiKey = options.apiKey ?? (process.env.TINKER_API_KEY || undefined);
  const remote = await RemoteEngine.connect({ vocabulary: config.vocab_size, ...options, apiKey });
  const engine = new RemoteModelEngine(remote, folder, config, options.lora !== undefined);
  return { engine, tokenizer, turns, chatTemplate, config, folder };
}

/** A remote engine whose checkpoints and adapters can be saved. */
export class RemoteModelEngine implements ModelEngine {
  readonly facts: EngineFacts;
  readonly usesSampledLogprobs = true;
  readonly remote: RemoteEngine;
  readonly #folder: string;
  /** Optimizer steps. */
  #steps = 0;
  #saved = 0;
  #adapter: Promise<Map<string, Uint8Array>> | undefined;

  constructor(remote: RemoteEngine, folder: string, config: ModelConfig, trains: boolean) {
    this.remote = remote;
    this.#folder = folder;
    const parameters = parameterCount(config);
    const variant = `${remote.baseModel} at ${remote.url}`;
    // How many parameters the server trains is not known here; only whether it trains some of them.
    const trained = trains ? 1 : 0;
    this.facts = { device: "remote", variant, threads: 0, parameters, trained, cacheTokens: Number.MAX_SAFE_INTEGER };
  }

  sample(request: SampleRequest): Promise<Sample> {
    return this.remote.sample(request);
  }

  forwardBackward(batch: readonly Datum[], options: ForwardBackwardOptions): Promise<ForwardBackwardOutput> {
    return this.remote.forwardBackward(batch, options);
  }

  async optimStep(adam: AdamParams): Promise<OptimOutput> {
    this.#adapter = undefined;
    const output = await this.remote.optimStep(adam);
    this.#steps = output.step;
    return output;
  }

  logprobs(batch: readonly Datum[], options?: LogprobOptions): Promise<Float32Array[]> {
    return this.remote.logprobs(batch, options);
  }

  /** Saves a checkpoint on the server, and its path in a file in `dir`. */
  async saveState(dir: string): Promise<void> {
    const checkpoint = await this.remote.saveCheckpoint(`state-${++this.#saved}-step-${this.#steps}`);
    mkdirSync(dir, { recursive: true });
    const { url, baseModel: base_model } = this.remote;
    const state = { url, base_model, checkpoint, steps: this.#steps };
    writeFileSync(join(dir, STATE_FILE), `${JSON.stringify(state)}\n`);
  }

  /** Continues from a checkpoint whose path `saveState` has written, if the server still has it. */
  async loadState(dir: string): Promise<void> {
    const file = join(dir, STATE_FILE);
    let state: { checkpoint: string; steps: number };
    try {
      state = JSON.parse(readFileSync(file, "utf8")) as typeof state;
      if (typeof state.checkpoint !== "string") throw new Error("it names no checkpoint");
    } catch (cause) {
      throw new ModelLoadError({
        what: `${file} cannot be read (${messageOf(cause)})`,
        remedy: "a run of a local engine cannot be continued on a remote one, nor the other way round",
        cause,
      });
    }
    this.#adapter = undefined;
    this.#steps = state.steps;
    await this.remote.loadCheckpoint(state.checkpoint, { steps: state.steps });
  }

  /** Downloads the adapters as a PEFT folder, which appears when it is complete. */
  async saveAdapter(dir: string, base: string, { card: page }: { readonly card?: string } = {}): Promise<void> {
    this.#adapter ??= this.remote.downloadAdapter(`adapter-${++this.#saved}-step-${this.#steps}`);
    const files = await this.#adapter;
    const missing = [ADAPTER_CONFIG, ADAPTER_WEIGHTS].find((name) => !files.has(name));
    if (missing)
      throw new EngineError("engine_reply", { what: `${this.remote.url} sent an adapter without`, value: missing });
    await writeFolderWhole(dir, (aside) => {
      for (const name of [ADAPTER_CONFIG, ADAPTER_WEIGHTS]) writeFileSync(join(aside, name), files.get(name)!);
      const config = JSON.parse(readFileSync(join(aside, ADAPTER_CONFIG), "utf8")) as object;
      const named = { ...config, base_model_name_or_path: base };
      writeFileSync(join(aside, ADAPTER_CONFIG), `${JSON.stringify(named, null, 2)}\n`);
      if (page !== undefined) writeFileSync(join(aside, "README.md"), page);
    });
  }

  /** Downloads the adapters and merges them into the local base model. */
  async saveModel(
    dir: string,
    options: { readonly dtype?: "F32" | "BF16"; readonly card?: string } = {},
  ): Promise<void> {
    const aside = mkdtempSync(join(tmpdir(), "sqlenv-adapter-"));
    try {
      const adapter = join(aside, "adapter");
      await this.saveAdapter(adapter, this.#folder);
      const engine = await startEngine(this.#folder, { trains: false, adapter, device: "cpu" });
      try {
        await engine.saveModel(dir, options);
      } finally {
        await engine.close();
      }
    } finally {
      rmSync(aside, { recursive: true, force: true });
    }
  }

  async close(): Promise<void> {
    await this.remote.close().catch((error: unknown) => {
      if (!(error instanceof SqlEnvError)) throw error;
    });
  }
}
