// Computes the LM head's log-probs, forward and backward, in chunks of rows: all logits of a batch would take
// gigabytes.
import type { Buffer, Device, Weight } from "./device.ts";
import type { LogProbsArgs, LogProbsBackwardArgs } from "./device-args.ts";

/** Maximum logits (floats) that the CPU computes at once or saves for backward: 16 MB. */
export const CPU_CHUNK_LOGITS = 4_000_000;
/** A chunk of logits takes at most 1/64 of a GPU's memory. */
export const CUDA_CHUNK_SHARE = 64;
/** Logits saved for backward take at most 1/16 of a GPU's memory. */
export const CUDA_SAVED_SHARE = 16;

export interface HeadLimits {
  /** Maximum logits computed at once. */
  readonly chunk: number;
  /** Maximum logits saved for backward; more are recomputed. */
  readonly saved: number;
}

/**
 * Rows of logits, `stride` elements apart, of which the first `vocabulary` count; they are divided by the temperature.
 */
export interface LogitRows {
  readonly logits: Buffer;
  readonly rows: number;
  readonly stride: number;
  readonly vocabulary: number;
  readonly inverseTemperature: number;
}

type Outputs = Readonly<Record<"targets" | "logp" | "entropy" | "lse", Buffer>>;
type Gradients = Readonly<Record<"targets" | "entropy" | "lse" | "dLogp" | "dEntropy", Buffer>>;

/** Operations of a device on rows of logits. */
export interface HeadKernels {
  logProb(rows: LogitRows, buffers: Outputs): void;
  /** Returns the logits' gradient in the type of x: a buffer of the current scope, or the overwritten logits. */
  logProbBackward(rows: LogitRows, buffers: Gradients, x: Buffer): Buffer;
}

/** Implements `logProbs` and `logProbsBackward` for a device. */
export class LmHead {
  readonly #device: Pick<Device, "alloc" | "part" | "scope" | "linear" | "linearBackward" | "outStride">;
  readonly #kernels: HeadKernels;
  readonly #limits: HeadLimits;
  /** Logits of the last `logProbs`, identified by the address of their log-sum-exps. */
  #saved: { readonly logits: Buffer; readonly lse: number } | undefined;

  constructor(device: Device, kernels: HeadKernels, limits: HeadLimits) {
    this.#device = device;
    this.#kernels = kernels;
    this.#limits = limits;
  }

  /** With `saves`, all logits are kept in the caller's scope for backward, if there are few enough. */
  logProbs({ head, x, targets, temperature, rows, out }: LogProbsArgs, { saves }: { readonly saves: boolean }): void {
    const { logp, entropy, lse } = out;
    const device = this.#device;
    const length = rows * device.outStride(head);
    const whole = saves && length <= this.#limits.saved ? device.alloc("f32", length) : undefined;
    this.#inChunks(head, rows, whole, (logits, stride, from, n) => {
      device.linear(head, device.part(x, from * head.columns, n * head.columns), logits, n);
      const part = (buffer: Buffer) => device.part(buffer, from, n);
      const buffers = { targets: part(targets), logp: part(logp), entropy: part(entropy), lse: part(lse) };
      this.#kernels.logProb(logitRows(head, logits, stride, n, temperature), buffers);
    });
    this.#saved = whole && { logits: whole, lse: lse.address };
  }

  logProbsBackward(args: LogProbsBackwardArgs): void {
    const { head, x, targets, temperature, rows, dLogp, dEntropy, dx } = args;
    const { entropy, lse } = args.saved;
    const device = this.#device;
    const whole = this.#saved?.lse === lse.address ? this.#saved.logits : undefined;
    this.#saved = undefined; // the kernel may overwrite them with their gradient
    this.#inChunks(head, rows, whole, (logits, stride, from, n) => {
      const columns = (buffer: Buffer) => device.part(buffer, from * head.columns, n * head.columns);
      if (!whole) device.linear(head, columns(x), logits, n);
      device.scope(() => {
        const part = (buffer: Buffer) => device.part(buffer, from, n);
        const saved = { targets: part(targets), entropy: part(entropy), lse: part(lse) };
        const buffers = { ...saved, dLogp: part(dLogp), dEntropy: part(dEntropy) };
        const dLogits = this.#kernels.logProbBackward(logitRows(head, logits, stride, n, temperature), buffers, x);
        device.linearBackward({ weight: head, x: columns(x), dy: dLogits, dx: columns(dx), rows: n });
      });
    });
  }

  /** Called when a scope has freed these addresses: logits saved in it are gone. */
  forget(freed: readonly number[]): void {
    if (this.#saved && freed.includes(this.#saved.logits.address)) this.#saved = undefined;
  }

  /** Runs `work` over chunks of rows, on parts of `whole` or on a buffer for one chunk. */
  #inChunks(
    head: Weight,
    rows: number,
    whole: Buffer | undefined,
    work: (logits: Buffer, stride: number, from: number, n: number) => void,
  ): void {
    const device = this.#device;
    const stride = device.outStride(head);
    const chunk = Math.max(1, Math.min(rows, Math.floor(this.#limits.chunk / stride)));
    device.scope(() => {
      const room = whole ? undefined : device.alloc("f32", chunk * stride);
      for (let from = 0; from < rows; from += chunk) {
        const n = Math.min(chunk, rows - from);
        work(room ?? device.part(whole!, from * stride, n * stride), stride, from, n);
      }
    });
  }
}

function logitRows(head: Weight, logits: Buffer, stride: number, rows: number, temperature: number): LogitRows {
  // Computes 1/temperature like `sample`, which receives the temperature as a float.
  return { logits, rows, stride, vocabulary: head.rows, inverseTemperature: 1 / Math.fround(temperature) };
}
