// Supervised fine-tuning (SFT): cross-entropy on encoded transcripts.

import { UsageError } from "../../errors.ts";
import type { Datum, Engine } from "../../lm/engine/index.ts";
import type { StageReport } from "../run/records.ts";

export interface SftOptions {
  readonly steps: number;
  /** Tokens per step, context included: a step takes transcripts until it has this many. @default 4096 */
  readonly batch_tokens?: number;
  /** Peak learning rate. @default 1e-3 */
  readonly learning_rate?: number;
  /** LR warmup steps. @default a twentieth of all */
  readonly warmup_steps?: number;
  /** @default 0.01 */
  readonly weight_decay?: number;
  /** @default 1 */
  readonly max_grad_norm?: number;
  /** AdamW's decay of squared gradients; lower suits few steps. @default 0.999 */
  readonly beta2?: number;
  /** Longer transcripts are skipped and counted. @default 1024 */
  readonly max_context_tokens?: number;
  readonly onStep?: (step: SftStep) => unknown;
  readonly signal?: AbortSignal;
}

export interface SftStep {
  readonly step: number;
  readonly loss: number;
  readonly learning_rate: number;
  readonly grad_norm: number;
  /** Number of tokens in this step. */
  readonly tokens: number;
  readonly transcripts: number;
  readonly skipped: boolean;
}

/** The report of a stage, before its duration is known. */
export type SftReport = Omit<StageReport, "seconds"> & { readonly interrupted: boolean };

/** Trains on transcripts in the order of the source, which may be endless. */
export async function trainSft(
  engine: Pick<Engine, "forwardBackward" | "optimStep">,
  source: AsyncIterable<Datum> | Iterable<Datum>,
  options: SftOptions,
): Promise<SftReport> {
  const { steps, batch_tokens = 4096, weight_decay = 0.01, max_grad_norm = 1, max_context_tokens = 1024 } = options;
  const { beta2 = 0.999 } = options;
  if (!Number.isInteger(steps) || steps < 1)
    throw new UsageError({ what: "steps must be a whole number from 1 on", value: steps });
  const losses: number[] = [];
  let [tokens, transcripts, tooLong] = [0, 0, 0];
  let batch: Datum[] = [];
  let inBatch = 0;
  const step = async (data: readonly Datum[], count: number) => {
    const learning_rate = sftLearningRate(losses.length, options);
    const [{ loss }, { grad_norm, skipped }] = await Promise.all([
      engine.forwardBackward(data, { loss: { type: "cross_entropy" } }),
      engine.optimStep({ learning_rate, weight_decay, max_grad_norm, beta2 }),
    ]);
    losses.push(loss);
    tokens += count;
    transcripts += data.length;
    await options.onStep?.({
      step: losses.length,
      loss,
      learning_rate,
      grad_norm,
      tokens: count,
      transcripts: data.length,
      skipped,
    });
  };
  // While the engine computes one step, the transcripts of the next are gathered.
  let running: Promise<void> | undefined;
  const start = async () => {
    await running;
    if (losses.length >= steps || options.signal?.aborted) return;
    running = step(batch, inBatch);
    running.catch(() => {}); // thrown where it is awaited
    [batch, inBatch] = [[], 0];
  };
  for await (const datum of source) {
    if (losses.length >= steps || options.signal?.aborted) break;
    if (datum.tokens.length > max_context_tokens) {
      tooLong++;
      continue;
    }
    batch.push(datum);
    inBatch += datum.tokens.length;
    if (inBatch >= batch_tokens) await start();
  }
  await running;
  if (batch.length > 0 && losses.length < steps && !options.signal?.aborted) await start(); // the end of a finite source
  await running;
  if (losses.length === 0) options.signal?.throwIfAborted();
  if (losses.length === 0)
    throw new UsageError({ what: "there was nothing to learn from", value: `${tooLong} transcripts too long` });
  const last = losses.slice(-Math.max(1, Math.round(losses.length / 10)));
  return {
    steps: losses.length,
    tokens,
    transcripts,
    too_long: tooLong,
    first_loss: losses[0]!,
    last_loss: last.reduce((sum, loss) => sum + loss, 0) / last.length,
    interrupted: options.signal?.aborted ?? false,
  };
}

/** Linear LR warmup, then cosine decay to a tenth of the peak. */
export function sftLearningRate(
  step: number,
  { steps, learning_rate = 1e-3, warmup_steps = Math.ceil(steps / 20) }: SftOptions,
): number {
  if (step < warmup_steps) return (learning_rate * (step + 1)) / warmup_steps;
  const done = (step - warmup_steps) / Math.max(1, steps - warmup_steps);
  return learning_rate * (0.1 + 0.45 * (1 + Math.cos(Math.PI * Math.min(1, done))));
}
