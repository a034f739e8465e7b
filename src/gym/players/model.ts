// A language model as a player: formats observations for a TextPolicy and parses the action from its reply.

import type { SQLObservation } from "../env/index.ts";
import type { Decision, EpisodeContext, Player } from "./player.ts";
import { type Prompt, type PromptChoice, promptFor, promptId } from "./prompts/prompt.ts";
import { TextPolicy, type TextPolicyOptions } from "./text-policy.ts";

export interface ModelPlayerOptions extends Omit<TextPolicyOptions, "prompt"> {
  /** @default compact, without examples */
  readonly prompt?: PromptChoice | undefined;
  /** @default "model" */
  readonly name?: string;
}

/**
 * Creates a player from a model; concurrent episodes are sampled in one batch.
 *
 * @example
 * const { engine, tokenizer, turns } = await loadModelAndTokenizer("starter");
 * const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
 * const player = modelPlayer({ engine, turns, decode });
 * const report = await evaluate(data, player, { concurrency: 32 });
 */
export function modelPlayer(options: ModelPlayerOptions): Player {
  return {
    name: options.name ?? "model",
    prompt_id: promptId(options.prompt),
    start(episode) {
      const policy = new ModelPolicy(options, episode);
      return (observation) => policy.decide(observation);
    },
  };
}

/** A model's policy for one episode. */
export class ModelPolicy extends TextPolicy {
  readonly #prompt: Prompt;

  constructor(options: ModelPlayerOptions, episode: Pick<EpisodeContext, "seed" | "signal" | "rules">) {
    const prompt = promptFor(options.prompt, episode.rules);
    super({ ...options, prompt }, episode);
    this.#prompt = prompt;
  }

  /** The model's decision on an observation; null if its tokens are used up or the context is full. */
  async decide(observation: SQLObservation): Promise<Decision | null> {
    const reply = await this.reply(this.#prompt.format(observation));
    if (!reply) return null;
    const { action, error } = this.#prompt.parse(reply.text);
    return { action, parse_error: error, ...reply };
  }
}

/** @deprecated use `ModelPolicy` */
export { ModelPolicy as ModelGame };
