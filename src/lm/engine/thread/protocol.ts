// Messages between the caller's thread and the engine's thread.

import type { StopRule } from "../../../stop-rule.ts";
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
  /** Recompute activations in backward instead of saving them. */
  readonly recompute: boolean;
  /** Keep a copy of the loaded weights for log-probs of the reference model. */
  readonly reference: boolean;
  /** Device to run on. */
  readonly device: "auto" | "cpu" | "cuda" | "webgpu";
  /** Type of activations on a GPU; undefined: bf16 if supported. */
  readonly precision: "bf16" | "fp32" | undefined;
  /** Maximum bytes of GPU memory to use; undefined: all. */
  readonly maxGpuMemory: number | undefined;
  /** Train LoRA adapters instead of the weights. */
  readonly lora: EngineLora | undefined;
  /** A PEFT folder: the adapter to start from or, if no adapter is trained, to merge into the weights. */
  readonly adapter: string | undefined;
}

/** Adapters to train, and the seed of their initial values. */
export interface EngineLora extends LoraSpec {
  readonly seed?: number | string;
}

/** Facts about the engine, sent when it is ready. */
export interface EngineFacts {
  readonly device: string;
  readonly variant: string;
  readonly threads: number;
  readonly parameters: number;
  /** Number of trained parameters: all, none, or the adapters'. */
  readonly trained: number;
  /** Tokens that the prefix cache may hold; contexts sampled at once should not exceed it. */
  readonly cacheTokens: number;
}

/** Bytes in use, the peak and, on a GPU, bytes reserved from its driver. */
export interface EngineMemory {
  readonly used: number;
  readonly peak: number;
  readonly reserved?: number;
}

export interface LoadStateOptions {
  /** Accept a checkpoint of other arithmetic, whose results differ in the last bits. @default false */
  readonly anyVariant?: boolean | undefined;
  /** Restore the optimizer's state too; else it begins anew. @default true */
  readonly optimizer?: boolean | undefined;
}

/** The calls with their arguments (`take`) and results (`give`). */
export interface Verbs {
  sample: {
    /** `stream`: whether to send each token as it is sampled. */
    readonly take: Omit<SampleRequest, "signal" | "onToken" | "stop"> & {
      readonly stream: boolean;
      /** Applies to the token texts sent last. */
      readonly stop?: StopRule | undefined;
    };
    readonly give: Sample;
  };
  /** The text of every token id; sent once, because it is as large as the vocabulary. */
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
  mixReference: { readonly take: number; readonly give: null };
  saveState: { readonly take: string; readonly give: null };
  loadState: { readonly take: { readonly dir: string } & LoadStateOptions; readonly give: null };
  memory: { readonly take: null; readonly give: EngineMemory };
  close: { readonly take: null; readonly give: null };
}

export type Verb = keyof Verbs;

export type Call = {
  readonly [V in Verb]: { readonly id: number; readonly verb: V; readonly take: Verbs[V]["take"] };
}[Verb];

export type ToEngine = Call | { readonly abort: number };

/** An error's class and fields, because structured cloning keeps only the message. */
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
  | { readonly id: number; readonly token: number; readonly logprob: number };
