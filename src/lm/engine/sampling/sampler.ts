// Continuous batching: all requests alive take one step together; new ones join with their prompts, done ones leave.
import type { Buffer } from "../../devices/index.ts";
import { infer, skipsRows } from "../../model/decoder.ts";
import { layoutOf, type NewTokens } from "../../model/layout.ts";
import { type Model, windowOf } from "../../model/parameters.ts";
import type { Sample, SampleRequest } from "../engine.ts";
import { seedsOf, type Uniform, uniformOf } from "./counter-rng.ts";
import { type DecodeRow, Decoder, MAX_DECODE_ROWS } from "./graph-decoder.ts";
import { type CacheRun, type CacheShape, type Match, PrefixCache } from "./prefix-cache.ts";
import { TokenStop } from "./token-stop.ts";
import { chooseFiltered, hasFilter } from "./top-p.ts";

/** A request on its way. */
interface Live {
  readonly request: SampleRequest;
  readonly uniform: Uniform;
  readonly stop: TokenStop | undefined;
  readonly run: CacheRun;
  /** Where the runs before it lie, from the first on, and how many of their tokens it goes on from. */
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

/** Prompt tokens computed in one step at most; more wait a step, so that memory stays bounded. */
const MAX_STEP_TOKENS = 8_192;

/**
 * While a batch decodes by recordings, new requests wait for each other: they join when as many wait as this share of the
 * batch, or after so many steps. Each joining leaves the recordings for one step, which takes as long as four recorded ones.
 */
const JOIN_SHARE = 0.5;
const JOIN_STEPS = 16;

const SHARED_LEAST = 64; // tokens that others may want, too
const LEAST_ROOM = 128; // tokens a sample's own run has room for, so that turns to come may go on in it

export interface SamplerOptions extends Pick<CacheShape, "maxTokens"> {
  /** Prompt tokens computed in one step, but for the last prompt's. @default MAX_STEP_TOKENS */
  readonly maxStepTokens?: number;
}

/** Samples from a model, one step at a time. */
export class Sampler {
  readonly cache: PrefixCache;
  readonly #model: Model;
  readonly #maxStepTokens: number;
  #waiting: Waiting[] = [];
  #live: Live[] = [];
  /** On devices that can decode by themselves; and whose row is which there, undefined where its sample is done. */
  readonly #decoder: Decoder | undefined;
  #rows: (Live | undefined)[] = [];
  /** Steps decoded since the first of the waiting requests came. */
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

  /** Refuses what is under way and gives the memory back. */
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
      await nextTask(); // requests made together, or by those that just finished, join the same step
      try {
        this.#step();
      } catch (error) {
        this.#fail(error);
      }
    }
    this.#running = false; // nothing may come between this and the look at `idle`
  }

  /** Gives up on all requests; what they computed is forgotten, since nobody knows how far it got. */
  #fail(error: unknown): void {
    this.#decoder?.drop();
    this.#rows = [];
    for (const { run } of this.#live) this.cache.release(run);
    this.cache.clear();
    const lost = [...this.#waiting, ...this.#live];
    this.#waiting = [];
    this.#live = [];
    for (const { reject } of lost) reject(error);
  }

  #step(): void {
    if (this.#decoder && this.#mayDecode() && this.#decode(this.#decoder)) return;
    if (this.#decoder) this.#catchUp(this.#decoder);
    this.#held = 0;
    const news: NewTokens[] = [];
    const rows: { live: Live; row: number }[] = [];
    const ids: number[] = [];
    let row = 0;
    const push = (run: CacheRun, count: number) => {
      news.push({ own: run, start: run.computed, count, ancestors: ancestorsOf(run) });
      ids.push(...run.tokens.slice(run.computed, run.computed + count));
      run.computed += count;
      row += count;
    };
    for (const live of this.#live) {
      push(live.run, 1);
      rows.push({ live, row: row - 1 });
    }
    while (this.#waiting.length > 0 && row < this.#maxStepTokens) {
      const { signal } = this.#waiting[0]!.request;
      if (signal?.aborted) {
        this.#waiting.shift()!.resolve({ tokens: [], logprobs: [], finish_reason: "aborted", cached_tokens: 0 });
        continue;
      }
      const live = this.#admit(this.#waiting[0]!, push);
      this.#waiting.shift(); // only now: should it not fit, it is still there to be told
      push(live.run, live.run.tokens.length - live.run.computed);
      rows.push({ live, row: row - 1 });
      this.#live.push(live);
    }
    if (rows.length === 0) return;
    const hadNew = rows.some(({ live }) => live.tokens.length === 0);
    const drawn = this.#draw(news, ids, rows);
    this.#live = rows.flatMap(({ live }, i) => (this.#take(live, drawn.tokens[i]!, drawn.logp[i]!) ? [live] : []));
    if (hadNew) this.#live.sort(inTreeOrder); // those that begin alike side by side, for the device to read that once
  }

  /** Whether the batch decodes on: nobody waits, or too few to join already. */
  #mayDecode(): boolean {
    const { length: waiting } = this.#waiting;
    if (waiting === 0) return true;
    return waiting < JOIN_SHARE * this.#live.length && this.#held++ < JOIN_STEPS;
  }

  /** A step of all samples on the device alone; false when they are not of that kind. */
  #decode(decoder: Decoder): boolean {
    const live = this.#live;
    if (live.length === 0 || live.length > MAX_DECODE_ROWS || live.some(({ request }) => hasFilter(request)))
      return false;
    const isSetUp = this.#rows.some((row) => row !== undefined);
    if (!isSetUp || live.length <= decoder.size / 4) {
      this.#catchUp(decoder);
      if (this.#live.length === 0) return true;
      const rows = this.#live.map(rowOf);
      if (!decoder.fits(rows)) return false;
      decoder.start(rows, this.cache.stores);
      this.#rows = [...this.#live];
    }
    const left = Math.max(...this.#live.map(({ request, tokens }) => request.max_new_tokens - tokens.length));
    decoder.queue(left);
    this.#takeStep(decoder);
    return true;
  }

  /** Takes what is on its way, and leaves the device's own tables behind. */
  #catchUp(decoder: Decoder): void {
    while (decoder.ahead > 0) this.#takeStep(decoder);
    this.#rows = [];
  }

  #takeStep(decoder: Decoder): void {
    const { tokens, logp } = decoder.take();
    for (const [i, live] of this.#rows.entries()) {
      if (!live) continue;
      live.run.computed++;
      if (!this.#take(live, tokens[i]!, logp[i]!)) this.#rows[i] = undefined;
    }
    const there = new Set(this.#rows);
    this.#live = this.#live.filter((live) => there.has(live));
  }

  /**
   * Finds what is known of a prompt and makes room for the rest. Of a new prompt, all but the last token is computed as a run for
   * everyone to share. What follows upon a sample's own run is an episode's next turn and goes on in that, and a few tokens of any
   * kind go into the sample's own: every run is one more piece of context to read with each token.
   */
  #admit({ request, resolve, reject }: Waiting, push: (run: CacheRun, count: number) => void): Live {
    const { prompt, max_new_tokens, key } = request;
    let match: Match = this.cache.match(prompt, prompt.length - 1);
    const cached = match.tokens;
    const missing = prompt.length - 1 - match.tokens;
    const isTurn = match.run?.isOwn && match.runTokens === match.run.tokens.length;
    if (missing > 0 && !isTurn && (!match.run || missing >= SHARED_LEAST)) {
      const shared = this.cache.add(match, missing);
      shared.tokens.push(...prompt.slice(match.tokens, -1));
      push(shared, missing);
      this.cache.release(shared);
      match = { run: shared, runTokens: missing, tokens: prompt.length - 1 };
    }
    const rest = prompt.slice(match.tokens);
    const room = rest.length + max_new_tokens;
    const isMovable = this.#model.device.moveBlock !== undefined; // where not, pieces are as good
    const run = this.cache.add(match, room, isMovable ? Math.max(2 * room, LEAST_ROOM) : undefined);
    run.tokens.push(...rest);
    const path = ancestorsOf(run).flatMap(({ block, tokens }) => [block, tokens]);
    const stop = request.stop && new TokenStop(request.stop);
    return { request, uniform: uniformOf(key), stop, run, path, tokens: [], logprobs: [], cached, resolve, reject };
  }

  /** Computes the new tokens and draws one for each row. */
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
      const isAll = n === ids.length; // one new token each, in order
      const numbers = isAll ? null : put(Int32Array.from(rows, ({ row }) => row));
      const wanted = numbers && skipsRows(device) ? { numbers, count: n } : null;
      const hidden = infer(this.#model, put(Int32Array.from(ids)), layout, this.cache.stores, wanted);
      const last = isAll || wanted ? hidden : device.alloc(device.activations, n * config.hidden_size);
      if (last !== hidden) device.gather(hidden, numbers!, last, n, config.hidden_size);
      const stride = device.outStride(head);
      const logits = device.alloc("f32", n * stride);
      device.linear(head, last, logits, n);
      const out = { tokens: device.alloc("i32", n), logp: device.alloc("f32", n) };
      const draw = {
        temperatures: put(Float32Array.from(rows, ({ live }) => live.request.temperature ?? 1)),
        uniforms: put(Float32Array.from(rows, ({ live }) => live.uniform(positionOf(live)))),
      };
      device.sample(logits, config.vocab_size, stride, n, draw, out);
      const tokens = device.read(out.tokens);
      const logp = device.read(out.logp);
      for (const [i, { live }] of rows.entries()) {
        if (!hasFilter(live.request)) continue;
        const row = device.read(device.part(logits, i * stride, config.vocab_size)) as Float32Array;
        tokens[i] = chooseFiltered(row, live.request, live.uniform(positionOf(live)));
        // Its log-prob as training computes it, to the bit.
        const again = { logp: device.alloc("f32", 1), entropy: device.alloc("f32", 1), lse: device.alloc("f32", 1) };
        const x = device.part(last, i * config.hidden_size, config.hidden_size);
        device.logProbs(head, x, put(Int32Array.of(tokens[i]!)), live.request.temperature ?? 1, 1, again);
        logp[i] = device.read(again.logp)[0]!;
      }
      return { tokens, logp };
    });
  }

  /** Adds a token to its sample; false when that is done. */
  #take(live: Live, token: number, logp: number): boolean {
    const { request, run } = live;
    if (this.#closed) return false;
    live.tokens.push(token);
    live.logprobs.push(logp);
    try {
      request.onToken?.(token);
    } catch (error) {
      this.cache.release(run);
      live.reject(error); // the listener's fault is its own sample's alone
      return false;
    }
    if (this.#closed) return false; // by the listener
    const isEnd = request.stop_ids.includes(token);
    const kept = isEnd ? -1 : (live.stop?.add(token) ?? -1);
    const stopped = isEnd || kept >= 0;
    if (!stopped && live.tokens.length < request.max_new_tokens && !request.signal?.aborted) {
      run.tokens.push(token);
      return true;
    }
    if (kept >= 0) dropFrom(live, kept);
    this.cache.release(run);
    const finish_reason = stopped ? "stop" : request.signal?.aborted ? "aborted" : "length";
    live.resolve({ tokens: live.tokens, logprobs: live.logprobs, finish_reason, cached_tokens: live.cached });
    return false;
  }
}

/** Leaves out the tokens from the kept ones on. Its run ends with them too, so that the next turn can continue in it. */
function dropFrom({ tokens, logprobs, run }: Live, kept: number): void {
  const dropped = tokens.length - kept;
  tokens.length = kept;
  logprobs.length = kept;
  if (dropped < 2 || run.children.size > 0) return; // the newest token is not in the run
  run.tokens.length -= dropped - 1;
  run.computed = Math.min(run.computed, run.tokens.length);
}

/** By what samples go on from, so that those with a beginning in common are neighbours. */
function inTreeOrder({ path: a }: Live, { path: b }: Live): number {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/** Where a sample stands, for the device to go on from. */
function rowOf({ request, run }: Live): DecodeRow {
  return {
    token: run.tokens[run.computed]!,
    place: { own: run, start: run.computed, count: 1, ancestors: ancestorsOf(run) },
    temperature: request.temperature ?? 1,
    seeds: seedsOf(request.key),
  };
}

/** Absolute position of the token about to be drawn. */
function positionOf({ request, tokens }: Live): number {
  return request.prompt.length + tokens.length;
}

function ancestorsOf(run: CacheRun): { block: number; capacity: number; tokens: number; row: number }[] {
  const { parent, parentTokens } = run;
  if (!parent) return [];
  return [...ancestorsOf(parent), { block: parent.block, capacity: parent.capacity, tokens: parentTokens, row: 0 }];
}

/** Lets messages and timers in; a promise alone would not. Browsers hold timers back by 4 ms, a port's messages not. */
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
