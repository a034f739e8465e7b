// Arguments, by name, of the device operations that take many. Letters as in device.ts: T rows (tokens), V tokens in the
// vocabulary.
import type { Buffer, HeadShape, Scale, Weight } from "./device.ts";
import type { TokenLayout } from "./layout.ts";

/** Scales of the norms of each head's query and key. */
export interface HeadNorms {
  readonly q: Scale;
  readonly k: Scale;
}

export interface LinearNormedArgs {
  readonly weight: Weight;
  /** The residual stream. */
  readonly x: Buffer;
  readonly scale: Scale;
  readonly eps: number;
  readonly out: Buffer;
  readonly rows: number;
  /** Whether W holds gate and up, whose SwiGLU is the output. @default false */
  readonly isGated?: boolean | undefined;
}

export interface LinearBackwardArgs {
  readonly weight: Weight;
  readonly x: Buffer;
  readonly dy: Buffer;
  /** Null if the input needs no gradient. */
  readonly dx: Buffer | null;
  readonly rows: number;
  /** Whether to add to dx instead of overwriting it. @default false */
  readonly add?: boolean;
}

export interface RmsNormArgs {
  readonly x: Buffer;
  /** Added to x first. */
  readonly residual: Buffer | null;
  readonly scale: Scale;
  readonly out: Buffer;
  /** Receives 1/rms of each row, for backward. */
  readonly rstd: Buffer;
  readonly rows: number;
  readonly eps: number;
  /** Receives x + residual. @default x */
  readonly into?: Buffer;
}

export interface RmsNormBackwardArgs {
  readonly x: Buffer;
  readonly scale: Scale;
  readonly rstd: Buffer;
  readonly dOut: Buffer;
  readonly dx: Buffer;
  readonly rows: number;
}

export interface RotateArgs {
  readonly qkv: Buffer;
  readonly norms: HeadNorms | null;
  readonly q: Buffer;
  /** Receives 1/rms of each normed head, for backward. */
  readonly rstd: Buffer;
  readonly kvCache: Buffer;
  readonly layout: TokenLayout;
  /** cos and sin of every position. */
  readonly rotary: Buffer;
  readonly shape: HeadShape;
  /** @default null */
  readonly bias?: Scale | null | undefined;
}

export interface RotateAttendArgs extends Omit<RotateArgs, "q" | "rstd"> {
  readonly out: Buffer;
}

export interface RotateBackwardArgs extends Omit<RotateArgs, "q" | "kvCache"> {
  readonly dqkv: Buffer;
}

export interface AttentionArgs {
  readonly q: Buffer;
  readonly kvCache: Buffer;
  readonly out: Buffer;
  /** Receives the log-sum-exp per row and head, which backward needs; null for inference. */
  readonly lse: Buffer | null;
  readonly layout: TokenLayout;
  readonly shape: HeadShape;
}

export interface AttentionBackwardArgs extends AttentionArgs {
  readonly dOut: Buffer;
  readonly lse: Buffer;
  readonly dqkv: Buffer;
}

export interface LogProbsArgs {
  readonly head: Weight;
  readonly x: Buffer;
  readonly targets: Buffer;
  readonly temperature: number;
  readonly rows: number;
  readonly out: { readonly logp: Buffer; readonly entropy: Buffer; readonly lse: Buffer };
}

export interface LogProbsBackwardArgs extends Omit<LogProbsArgs, "out"> {
  /** Outputs of `logProbs` for the same rows. */
  readonly saved: { readonly entropy: Buffer; readonly lse: Buffer };
  readonly dLogp: Buffer;
  readonly dEntropy: Buffer;
  readonly dx: Buffer;
}

export interface SampleArgs {
  /** [T, V], `stride` elements between rows. */
  readonly logits: Buffer;
  readonly vocabulary: number;
  readonly stride: number;
  readonly rows: number;
  /** One temperature and one uniform random number per row. */
  readonly draw: { readonly temperatures: Buffer; readonly uniforms: Buffer };
  readonly out: { readonly tokens: Buffer; readonly logp: Buffer };
}
