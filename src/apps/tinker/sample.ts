// A sampling request: translates the API's parameters into the engine's, and runs it.
import { Detokenizer } from "../../lm/chat/detokenizer.ts";
import { StopStrings } from "../../lm/chat/stop-strings.ts";
import type { Engine, Sample } from "../../lm/engine/index.ts";
import { encodeSampleOutput, type SampleOutput } from "../../lm/engine/remote/messages.ts";
import type { Tokenizer } from "../../lm/model/index.ts";
import type { Result } from "./futures.ts";
import { Problem } from "./problem.ts";
import type { SampleBody } from "./schemas.ts";

export interface SampleOptions {
  readonly engine: Pick<Engine, "sample" | "logprobs">;
  readonly tokenizer: Tokenizer;
  /** The model's end tokens, for requests without `stop`. */
  readonly stopIds: readonly number[];
  readonly window: number;
  /** Key of the random numbers, if the request has no seed. */
  readonly key: readonly (string | number)[];
  readonly signal: AbortSignal;
  /** Runs one sample when there is room for it. */
  readonly run: <T>(tokens: number, work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
}

export async function sampleAll(body: SampleBody, options: SampleOptions): Promise<Result> {
  const { engine, tokenizer, window } = options;
  const { num_samples, sampling_params: params, sample_key, prompt_logprobs } = body;
  const prompt = body.prompt.chunks.flatMap(({ tokens }) => tokens);
  if (prompt.length === 0) throw new Problem(400, "the prompt is empty");
  const room = window - prompt.length;
  const max_new_tokens = params.max_tokens ?? room;
  if (max_new_tokens > room || room < 1)
    throw new Problem(
      400,
      `the prompt has ${prompt.length} tokens and max_tokens is ${max_new_tokens}, but the model's context is ${window}`,
    );
  const { stop } = params;
  const texts = typeof stop === "string" ? [stop] : (stop ?? []).filter((one) => typeof one === "string");
  const ids = Array.isArray(stop) ? stop.filter((one) => typeof one === "number") : [];
  const isOwnEnd = stop === null || stop === undefined;
  const seeds = params.seed === null || params.seed === undefined ? options.key : ["tinker", params.seed];
  const one = (index: number): Promise<Sample> =>
    options.run(prompt.length + max_new_tokens, async (signal) => {
      const over = new AbortController();
      const watch = texts.length > 0 ? watcher(tokenizer, texts, over) : undefined;
      const sample = await engine.sample({
        prompt,
        max_new_tokens,
        stop_ids: isOwnEnd ? options.stopIds : ids,
        temperature: params.temperature,
        top_k: Math.max(0, params.top_k),
        top_p: params.top_p,
        key: sample_key ?? [...seeds, index],
        signal: AbortSignal.any([signal, over.signal]),
        ...(watch && { onToken: watch.add }),
      });
      if (sample.finish_reason === "aborted" && !over.signal.aborted) signal.throwIfAborted();
      return watch && over.signal.aborted ? watch.cut(sample) : sample;
    });
  const [samples, ofPrompt] = await Promise.all([
    Promise.all(Array.from({ length: num_samples }, (_, i) => one(i))),
    prompt_logprobs ? engine.logprobs([{ tokens: prompt, weights: prompt.map(() => 1) }]) : null,
  ]);
  const output: SampleOutput = {
    sequences: samples.map(({ tokens, logprobs, finish_reason }) => ({
      stop_reason: finish_reason === "length" ? "length" : "stop",
      tokens: [...tokens],
      logprobs: [...logprobs],
    })),
    prompt_logprobs: ofPrompt && [null, ...ofPrompt[0]!.subarray(1)],
  };
  return { json: { type: "sample", ...output }, proto: () => encodeSampleOutput(output) };
}

/** Ends a sample with the token that completes a stop string. */
function watcher(tokenizer: Tokenizer, texts: readonly string[], over: AbortController) {
  const [detokenizer, stops] = [new Detokenizer(tokenizer), new StopStrings(texts)];
  let kept = 0;
  return {
    add: (token: number) => {
      if (stops.isOver) return; // the engine may be a few tokens ahead
      kept++;
      stops.add(detokenizer.add(token));
      if (stops.isOver) over.abort();
    },
    cut: (sample: Sample): Sample => ({
      ...sample,
      tokens: sample.tokens.slice(0, kept),
      logprobs: sample.logprobs.slice(0, kept),
      finish_reason: "stop",
    }),
  };
}
