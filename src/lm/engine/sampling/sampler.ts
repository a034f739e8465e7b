// Continuous batching: all live requests take one step together; new ones join with their prompts, finished ones leave.
//
//     a request    waiting ──#admit──▶ live ──stop, length, abort──▶ done
//                     └──── aborted, failed, closed ────────────────▶ done
//
//     the batch    ┌───────────────┐  nobody waits, no top-k/p   ┌────────────────┐
//                  │ prompt step   │ ──────────────────────────▶ │ graph decoding │
//                  │ (#step)       │ ◀────────────────────────── │ (#decode)      │
//                  └───────────────┘  enough wait to join        └────────────────┘
//
// A prompt step computes the prompts of new requests and one token of every live one; the host builds its tables. On
// devices that support it, graph decoding replays a captured step for the live requests alone. Tokens are then read one
// step late, so leaving it means reading what is still queued (#drain). Other devices take a host-built step for every
// token.
import type { Buffer } from "../../devices/index.ts";
import { infer, skipsRows } from "../../model/decoder.ts";
import { layoutOf, type NewTokens } from "../../model/layout.ts";
import { type Model, windowOf } from "../../model/parameters.ts";
import type { Sample, SampleRequest } from "../engine.ts";
import { seedsOf, type Uniform, uniformOf } from "./counter-rng.ts";
import { type DecodeRow, Decoder, MAX_DECODE_ROWS } from "./graph-decoder.ts";
import { type CacheShape, type KvBlock, type Match, PrefixCache } from "./prefix-cache.ts";
import { TokenStop } from "./token-stop.ts";
import { chooseFiltered, hasFilter } from "./top-p.ts";

/** A request that is being sampled. */
interface Live {
  readonly request: SampleRequest;
  readonly uniform: Uniform;
  readonly stop: TokenStop | undefined;
  /** The block that holds its keys and values. */
  readonly block: KvBlock;
  /** Address and token count of each block it continues, from the root. */
  readonly path: readonly number[];
  readonly tokens: number[];
  readonly logprobs: number[];
  readonly cached: number;
  readonly resolve: (sample: Sample) => void;
  readonly reject: (error: unknown) => void;
}

interface Waiting {
  readonly request: SampleRequest;
  readonly resolve: (sample: Sample) => void;
  readonly reject: (error: unknown) => void;
}

/** Maximum prompt tokens computed in one step; the rest waits a step, so that memory stays bounded. */
const MAX_STEP_TOKENS = 8_192;

/**
 * During graph decoding, new requests wait for each other: they join when this share of the batch is waiting, or after
 * JOIN_STEPS steps. Each join needs a prompt step, which takes as long as four captured steps.
 */
const JOIN_SHARE = 0.5;
const JOIN_STEPS = 16;

const MIN_SHARED = 64; // minimum new prompt tokens for a shared block
const MIN_PRIVATE = 128; // minimum capacity of a private block, so that later turns can continue in it

export interface SamplerOptions extends Pick<CacheShape, "maxTokens"> {
  /** Number of prompt tokens after which a step takes no further prompt. @default MAX_STEP_TOKENS */
  readonly maxStepTokens?: number;
}

/** Samples from a model, one step at a time. */
export class Sampler {
  readonly cache: PrefixCache;
  readonly #model: Model;
  readonly #maxStepTokens: number;
  #waiting: Waiting[] = [];
  #live: Live[] = [];
  /** Set only on devices with graphs. `#rows` holds the request of each row, undefined once it is done. */
  readonly #decoder: Decoder | undefined;
  #rows: (Live | undefined)[] = [];
  /** Number of steps decoded since the first waiting request arrived. */
  #held = 0;
  #running = false;
  #closed: unknown;

  constructor(model: Model, { maxTokens, maxStepTokens = MAX_STEP_TOKENS }: SamplerOptions = {}) {
    this.#model = model;
    this.#maxStepTokens = Math.min(maxStepTokens, MAX_STEP_TOKENS);
    const { num_hidden_layers: layers, num_key_value_heads: kvHeads, head_dim: headDim } = model.config;
    const shape = { layers, kvHeads, headDim, window: windowOf(model.config) };
    this.cache = new PrefixCache(model.device, maxTokens === undefined ? shape : { ...shape, maxTokens });
    const { decoding } = model.device;
    if (decoding) this.#decoder = new Decoder(model, decoding);
  }

  /** Queues a request; it joins the batch at the next step. */
  sample(request: SampleRequest): Promise<Sample> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw this.#closed;
      this.#waiting.push({ request, resolve, reject });
      if (this.#running) return;
      this.#running = true;
      void this.#run();
    });
  }

  /** Rejects all requests and frees the memory. */
  close(error: unknown): void {
    this.#closed = error;
    this.#fail(error);
    this.#decoder?.close();
    this.cache.close();
  }

  get idle(): boolean {
    return this.#live.length === 0 && this.#waiting.length === 0;
  }

  async #run(): Promise<void> {
    while (!this.idle) {
      await nextTask(); // requests made together, or by ones that just finished, join the same step
      try {
        this.#step();
      } catch (error) {
        this.#fail(error);
      }
    }
    this.#running = false; // no await since `idle` was checked, so no request can have come in between
  }

  /** Rejects all requests. Drops their cached keys and values, which may be incomplete. */
  #fail(error: unknown): void {
    this.#decoder?.drop();
    this.#rows = [];
    for (const { block } of this.#live) this.cache.release(block);
    this.cache.clear();
    const lost = [...this.#waiting, ...this.#live];
    this.#waiting = [];
    this.#live = [];
    for (const { reject } of lost) reject(error);
  }

  /** Computes one token of every live request, and the prompts of new ones. */
  #step(): void {
    if (this.#decoder && this.#mayDecode() && this.#decode(this.#decoder)) return;
    if (this.#decoder) this.#drain(this.#decoder);
    this.#held = 0;
    const news: NewTokens[] = [];
    const rows: { live: Live; row: number }[] = [];
    const ids: number[] = [];
    let row = 0;
    const push = (block: KvBlock, count: number) => {
      news.push({ own: block, start: block.computed, count, ancestors: ancestorsOf(block) });
      ids.push(...block.tokens.slice(block.computed, block.computed + count));
      block.computed += count;
      row += count;
    };
    for (const live of this.#live) {
      push(live.block, 1);
      rows.push({ live, row: row - 1 });
    }
    while (this.#waiting.length > 0 && row < this.#maxStepTokens) {
      const { signal } = this.#waiting[0]!.request;
      if (signal?.aborted) {
        this.#waiting.shift()!.resolve({ tokens: [], logprobs: [], finish_reason: "aborted", cached_tokens: 0 });
        continue;
      }
      const live = this.#admit(this.#waiting[0]!, push);
      this.#waiting.shift(); // only now: if #admit throws, #fail still rejects it with the others
      push(live.block, live.block.tokens.length - live.block.computed);
      rows.push({ live, row: row - 1 });
      this.#live.push(live);
    }
    if (rows.length === 0) return;
    const hadNew = rows.some(({ live }) => live.tokens.length === 0);
    const drawn = this.#draw(news, ids, rows);
    this.#live = rows.flatMap(({ live }, i) => (this.#append(live, drawn.tokens[i]!, drawn.logp[i]!) ? [live] : []));
    // Makes rows with a common prefix adjacent, so that the device reads it once.
    if (hadNew) this.#live.sort(inTreeOrder);
  }

  /** Whether graph decoding continues: no request waits, or too few to join yet. */
  #mayDecode(): boolean {
    const { length: waiting } = this.#waiting;
    if (waiting === 0) return true;
    return waiting < JOIN_SHARE * this.#live.length && this.#held++ < JOIN_STEPS;
  }

  /** Runs a captured step for all live requests; false if this batch cannot be decoded that way. */
  #decode(decoder: Decoder): boolean {
    const live = this.#live;
    if (live.length === 0 || live.length > MAX_DECODE_ROWS || live.some(({ request }) => hasFilter(request)))
      return false;
    const isStarted = this.#rows.some((row) => row !== undefined);
    if (!isStarted || live.length <= decoder.size / 4) {
      this.#drain(decoder);
      if (this.#live.length === 0) return true;
      const rows = this.#live.map(rowOf);
      if (!decoder.fits(rows)) return false;
      decoder.start(rows, this.cache.kvCaches);
      this.#rows = [...this.#live];
    }
    const left = Math.max(...this.#live.map(({ request, tokens }) => request.max_new_tokens - tokens.length));
    decoder.queue(left);
    this.#readStep(decoder);
    return true;
  }

  /** Reads the steps still queued and leaves graph decoding. */
  #drain(decoder: Decoder): void {
    while (decoder.ahead > 0) this.#readStep(decoder);
    this.#rows = [];
  }

  #readStep(decoder: Decoder): void {
    const { tokens, logp } = decoder.take();
    for (const [i, live] of this.#rows.entries()) {
      if (!live) continue;
      live.block.computed++;
      if (!this.#append(live, tokens[i]!, logp[i]!)) this.#rows[i] = undefined;
    }
    const left = new Set(this.#rows);
    this.#live = this.#live.filter((live) => left.has(live));
  }

  /**
   * Matches a prompt with the cache and reserves blocks for the rest. All but the last token of a new prompt become a
   * shared block. The next turn of an episode continues in its private block, and so do prompts with few new tokens:
   * every additional block is one more range that attention reads for each token.
   */
  #admit({ request, resolve, reject }: Waiting, push: (block: KvBlock, count: number) => void): Live {
    const { prompt, max_new_tokens, key } = request;
    let match: Match = this.cache.match(prompt, prompt.length - 1);
    const cached = match.tokens;
    const missing = prompt.length - 1 - match.tokens;
    const isNextTurn = match.block?.isPrivate && match.blockTokens === match.block.tokens.length;
    if (missing > 0 && !isNextTurn && (!match.block || missing >= MIN_SHARED)) {
      const shared = this.cache.add(match, missing);
      shared.tokens.push(...prompt.slice(match.tokens, -1));
      push(shared, missing);
      this.cache.release(shared);
      match = { block: shared, blockTokens: missing, tokens: prompt.length - 1 };
    }
    const rest = prompt.slice(match.tokens);
    const room = rest.length + max_new_tokens;
    const isMovable = this.#model.device.moveBlock !== undefined; // on other devices a chain of blocks is as fast
    const block = this.cache.add(match, room, isMovable ? Math.max(2 * room, MIN_PRIVATE) : undefined);
    block.tokens.push(...rest);
    const path = ancestorsOf(block).flatMap(({ block: address, tokens }) => [address, tokens]);
    const stop = request.stop && new TokenStop(request.stop);
    return { request, uniform: uniformOf(key), stop, block, path, tokens: [], logprobs: [], cached, resolve, reject };
  }

  /** Computes the new tokens and samples one token for each of `rows`. */
  #draw(news: readonly NewTokens[], ids: readonly number[], rows: readonly { live: Live; row: number }[]) {
    const { device, config, head } = this.#model;
    const n = rows.length;
    return device.scope(() => {
      const put = (data: Int32Array | Float32Array): Buffer => {
        const buffer = device.alloc(data instanceof Int32Array ? "i32" : "f32", data.length);
        device.write(buffer, data);
        return buffer;
      };
      const layout = layoutOf(device, news, [0]);
      const isAll = n === ids.length; // each request has one new token, in order
      const indices = isAll ? null : put(Int32Array.from(rows, ({ row }) => row));
      const wanted = indices && skipsRows(device) ? { indices, count: n } : null;
      const hidden = infer(this.#model, put(Int32Array.from(ids)), layout, this.cache.kvCaches, wanted);
      const last = isAll || wanted ? hidden : device.alloc(device.activations, n * config.hidden_size);
      if (last !== hidden) device.gather(hidden, indices!, last, n, config.hidden_size);
      const stride = device.outStride(head);
      const logits = device.alloc("f32", n * stride);
      device.linear(head, last, logits, n);
      const out = { tokens: device.alloc("i32", n), logp: device.alloc("f32", n) };
      const draw = {
        temperatures: put(Float32Array.from(rows, ({ live }) => live.request.temperature ?? 1)),
        uniforms: put(Float32Array.from(rows, ({ live }) => live.uniform(positionOf(live)))),
      };
      device.sample({ logits, vocabulary: config.vocab_size, stride, rows: n, draw, out });
      const tokens = device.read(out.tokens);
      const logp = device.read(out.logp);
      for (const [i, { live }] of rows.entries()) {
        if (!hasFilter(live.request)) continue;
        const row = device.read(device.part(logits, i * stride, config.vocab_size)) as Float32Array;
        tokens[i] = chooseFiltered(row, live.request, live.uniform(positionOf(live)));
        // Computes the log-prob with the same kernel as training, so that the bits are equal.
        const again = { logp: device.alloc("f32", 1), entropy: device.alloc("f32", 1), lse: device.alloc("f32", 1) };
        const x = device.part(last, i * config.hidden_size, config.hidden_size);
        device.logProbs({
          head,
          x,
          targets: put(Int32Array.of(tokens[i]!)),
          temperature: live.request.temperature ?? 1,
          rows: 1,
          out: again,
        });
        logp[i] = device.read(again.logp)[0]!;
      }
      return { tokens, logp };
    });
  }

  /** Appends a token to its sample; false if the sample is done. */
  #append(live: Live, token: number, logp: number): boolean {
    const { request, block } = live;
    if (this.#closed) return false;
    live.tokens.push(token);
    live.logprobs.push(logp);
    try {
      request.onToken?.(token, logp);
    } catch (error) {
      this.cache.release(block);
      live.reject(error); // a listener that throws fails only its own sample
      return false;
    }
    if (this.#closed) return false; // the listener may have closed the sampler
    const isEnd = request.stop_ids.includes(token);
    const kept = isEnd ? -1 : (live.stop?.add(token) ?? -1);
    const stopped = isEnd || kept >= 0;
    if (!stopped && live.tokens.length < request.max_new_tokens && !request.signal?.aborted) {
      block.tokens.push(token);
      return true;
    }
    if (kept >= 0) dropFrom(live, kept);
    this.cache.release(block);
    const finish_reason = stopped ? "stop" : request.signal?.aborted ? "aborted" : "length";
    live.resolve({ tokens: live.tokens, logprobs: live.logprobs, finish_reason, cached_tokens: live.cached });
    return false;
  }
}

/** Drops the tokens after the first `kept`, also from the block, so that the next turn can continue in it. */
function dropFrom({ tokens, logprobs, block }: Live, kept: number): void {
  const dropped = tokens.length - kept;
  tokens.length = kept;
  logprobs.length = kept;
  if (dropped < 2 || block.children.size > 0) return; // the newest token is not in the block yet
  block.tokens.length -= dropped - 1;
  block.computed = Math.min(block.computed, block.tokens.length);
}

/** Orders samples by the blocks they continue, so that samples with a common prefix are adjacent. */
function inTreeOrder({ path: a }: Live, { path: b }: Live): number {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/** Converts a sample to a row for graph decoding. */
function rowOf({ request, block }: Live): DecodeRow {
  return {
    token: block.tokens[block.computed]!,
    context: { own: block, start: block.computed, count: 1, ancestors: ancestorsOf(block) },
    temperature: request.temperature ?? 1,
    seeds: seedsOf(request.key),
  };
}

/** Absolute position of the token to be sampled. */
function positionOf({ request, tokens }: Live): number {
  return request.prompt.length + tokens.length;
}

/** The blocks that a block continues, from the root. */
function ancestorsOf(block: KvBlock): { block: number; capacity: number; tokens: number; row: number }[] {
  const { parent, parentTokens } = block;
  if (!parent) return [];
  return [...ancestorsOf(parent), { block: parent.block, capacity: parent.capacity, tokens: parentTokens, row: 0 }];
}

/**
 * Yields to the event loop, which a resolved promise would not. Uses a message port, since browsers delay timers by 4
 * ms.
 */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === "function") setImmediate(resolve);
    else {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    }
  });
}
