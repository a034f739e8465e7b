// A model of ours as a player: token ids to and from an engine, the action read from its words.
import { parseAction } from "../env/index.ts";
import { Conversation, type Turns } from "./conversation.ts";
import type { Player } from "./player.ts";

/** What the player needs of an engine. */
export interface TokenSampler {
  sample(request: {
    readonly prompt: readonly number[];
    readonly max_new_tokens: number;
    readonly stop_ids: readonly number[];
    readonly temperature: number;
    readonly key: readonly (string | number)[];
    readonly signal?: AbortSignal;
  }): Promise<{ readonly tokens: readonly number[] }>;
}

export interface ModelPlayerOptions {
  readonly engine: TokenSampler;
  readonly turns: Turns & { readonly stopIds: readonly number[] };
  /** Text of sampled ids, without special tokens. */
  readonly decode: (ids: readonly number[]) => string;
  /** @default "model" */
  readonly name?: string;
  /** 0 plays greedily. @default 0 */
  readonly temperature?: number;
  /** A turn. @default 256 */
  readonly max_new_tokens?: number;
  /** @default 2048 */
  readonly max_context_tokens?: number;
  /** Of the samples. @default 0 */
  readonly seed?: number;
}

/** Plays with a model; episodes played at the same time are sampled together. */
export function modelPlayer(options: ModelPlayerOptions): Player {
  const { engine, turns, decode, name = "model", temperature = 0, seed = 0 } = options;
  const { max_new_tokens = 256, max_context_tokens = 2048 } = options;
  return {
    name,
    start({ seed: episode, signal }) {
      const conversation = new Conversation(turns, { max_context_tokens, max_new_tokens });
      return async (observation) => {
        const { tokens } = await engine.sample({
          ...{ prompt: conversation.prompt(observation), max_new_tokens, stop_ids: turns.stopIds, temperature },
          key: [seed, "player", episode],
          ...(signal ? { signal } : {}),
        });
        conversation.said(tokens);
        const text = decode(tokens);
        const { action, error } = parseAction(text);
        return { action, text, parse_error: error };
      };
    },
  };
}
