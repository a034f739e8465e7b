// The worker's model: loaded on demand, and loaded again on the CPU when its GPU fails.
import { messageOf, SqlEnvError, UsageError } from "../../../errors.ts";
import type { LoadedModel } from "./loaded-model.ts";
import type { ModelChoice, ModelFacts, WorkerEvent } from "./worker-protocol.ts";

export class ModelSlot {
  readonly #emit: (event: WorkerEvent) => void;
  readonly #onLoad: () => void;
  #model: LoadedModel | undefined;
  #choice: ModelChoice | undefined;

  /** `onLoad` is called before a model is replaced. */
  constructor(emit: (event: WorkerEvent) => void, onLoad: () => void) {
    this.#emit = emit;
    this.#onLoad = onLoad;
  }

  /** The loaded model. */
  get model(): LoadedModel {
    if (!this.#model) throw new UsageError({ what: "no model is loaded" });
    return this.#model;
  }

  async load(choice: ModelChoice): Promise<ModelFacts> {
    const { LoadedModel } = await import("./loaded-model.ts"); // loaded on demand: playing does not need it
    this.#onLoad();
    await this.#model?.close().catch(() => {}); // a lost GPU may fail once more
    this.#model = undefined;
    this.#model = await LoadedModel.load(choice, this.#emit);
    this.#choice = choice;
    return this.#model.facts;
  }

  stop(): void {
    this.#model?.stop();
  }

  /**
   * Does something with the model. If the GPU fails, the model is loaded again on the CPU and does it there; what a
   * training had taught it is lost, and then the error says so.
   */
  async use<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const failed = this.#model;
      const why = failed?.gpuFailure(error);
      if (!failed || why === undefined) throw error;
      const repeats = !failed.isTrained;
      try {
        const facts = await this.load({ ...this.#choice!, device: "cpu" });
        this.#emit({ event: "moved", facts: { ...facts, noGpu: why }, why, repeats });
      } catch (again) {
        throw new SqlEnvError("device_lost", { what: `${why}; and the CPU cannot take over`, value: messageOf(again) });
      }
      if (repeats) return work();
      throw new SqlEnvError("device_lost", {
        what: `the GPU failed (${why})`,
        remedy: "the model was loaded again on the CPU; what it had learned is lost, and it can be trained there",
      });
    }
  }
}
