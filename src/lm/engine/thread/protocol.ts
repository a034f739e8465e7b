// What the caller's thread and the engine's thread say to each other.

import type { StopRule } from "../../../stop.ts";
import type { LoraSpec } from "../../model/lora.ts";
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

export interface EngineSpec {
  /** A folder in the Hugging Face layout, or a GGUF file. */
  readonly folder: string;
  readonly trains: boolean;
  readonly threads: number | undefined;
  readonly simd: "plain" | "relaxed" | undefined;
  /** Compute activations again instead of keeping them. */
  readonly recompute: boolean;
  /** Keep a copy of the weights as they were loaded, for log-probs of the model that training began with. */
  readonly reference: boolean;
  /** Where to compute. */
  readonly device: "auto" | "cpu" | "cuda";
  /** Of a GPU's activations; undefined leaves it to the card. */
  readonly precision: "bf16" | "fp32" | undefined;
  /** Bytes of a GPU's memory to use at most; undefined: as much as it has. */
  readonly maxGpuMemory: number | undefined;
  /** Learn adapters instead of the weights. */
  readonly lora: EngineLora | undefined;
  /** A folder with PEFT's files: an adapter to begin with, or to add to the weights where none are learned. */
  readonly adapter: string | undefined;
}

/** Adapters to learn, and the seed they are drawn from. */
export interface EngineLora extends LoraSpec {
  readonly seed?: number | string;
}

/** What the engine is, told when it is ready. */
export interface EngineFacts {
  readonly device: string;
  readonly variant: string;
  readonly threads: number;
  readonly parameters: number;
  /** Of them, or beside them, those that are learned. */
  readonly trained: number;
}

/** Bytes in use, the most so far, and, on a GPU, what was asked of its driver. */
export interface EngineMemory {
  readonly used: number;
  readonly peak: number;
  readonly reserved?: number;
}

/** The verbs, with what they take and give. */
export interface Verbs {
  sample: {
    /** `stream`: tell each token as it is drawn. */
    readonly take: Omit<SampleRequest, "signal" | "onToken" | "stop"> & {
      readonly stream: boolean;
      /** For the texts that came last. */
      readonly stop?: StopRule | undefined;
    };
    readonly give: Sample;
  };
  /** The text of every token id, once: it is as large as the vocabulary. */
  texts: { readonly take: readonly string[]; readonly give: null };
  forwardBackward: {
    readonly take: { readonly batch: readonly Datum[]; readonly options: ForwardBackwardOptions };
    readonly give: ForwardBackwardOutput;
  };
  optimStep: { readonly take: AdamParams; readonly give: OptimOutput };
  logprobs: {
    readonly take: { readonly batch: readonly Datum[]; readonly options: LogprobOptions | undefined };
    readonly give: Float32Array[];
  };
  saveModel: {
    readonly take: {
      readonly dir: string;
      readonly dtype: "F32" | "BF16" | undefined;
      readonly card?: string | undefined;
    };
    readonly give: null;
  };
  saveAdapter: {
    readonly take: { readonly dir: string; readonly base: string; readonly card?: string | undefined };
    readonly give: null;
  };
  saveState: { readonly take: string; readonly give: null };
  loadState: { readonly take: { readonly dir: string; readonly anyVariant: boolean }; readonly give: null };
  memory: { readonly take: null; readonly give: EngineMemory };
  close: { readonly take: null; readonly give: null };
}

export type Verb = keyof Verbs;

export type Call = {
  readonly [V in Verb]: { readonly id: number; readonly verb: V; readonly take: Verbs[V]["take"] };
}[Verb];

export type ToEngine = Call | { readonly abort: number };

/** An error as it crosses: class and fields, since structured cloning keeps only the message. */
export interface ErrorFields {
  readonly name: string;
  readonly code: string | undefined;
  readonly message: string;
  readonly what: string | undefined;
  readonly value: string | undefined;
  readonly remedy: string | undefined;
  readonly stack: string | undefined;
}

export type FromEngine =
  | { readonly ready: EngineFacts }
  | { readonly failed: ErrorFields }
  | { readonly id: number; readonly give: unknown }
  | { readonly id: number; readonly error: ErrorFields }
  | { readonly id: number; readonly token: number };
