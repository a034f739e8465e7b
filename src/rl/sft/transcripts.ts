// Conversations for SFT: messages in, token ids with weights out. Only the assistant's tokens have a loss.
import { z } from "zod";
import { UsageError } from "../../errors.ts";
import { rulesFromId } from "../../gym/env/index.ts";
import type { EpisodeRecord } from "../../gym/evaluation/index.ts";
import { type PromptChoice, promptFor } from "../../gym/players/index.ts";
import type { Datum } from "../../lm/engine/index.ts";
import type { Tool, TurnEncoder } from "../../lm/model/index.ts";

/** One line of a transcript file. */
export const transcriptSchema = z.object({
  messages: z
    .array(z.object({ role: z.enum(["system", "user", "assistant", "tool"]), content: z.string() }))
    .min(3)
    .describe("system, then user and assistant in turn"),
  weight: z.number().positive().default(1).describe("how much it counts"),
  examples: z.int().min(0).optional().describe("exchanges at the beginning that are only shown: they are not learned"),
  unlearned: z
    .array(z.int().min(0))
    .optional()
    .describe("replies after the examples, counted from 0, that are not learned: mistakes that later ones repair"),
  tools: z.array(z.custom<Tool>()).optional().describe("functions the model may call; role tool answers for them"),
  observed_weight: z.number().min(0).optional().describe("how much what the others say counts"),
});

export type Transcript = z.infer<typeof transcriptSchema>;

/** An episode as an evaluation writes it, accepted in place of a transcript. */
const episodeSchema = z.looseObject({
  start: z.looseObject({ question: z.string() }),
  steps: z.array(z.looseObject({ action: z.looseObject({}), observation: z.looseObject({}) })).min(1),
  correctness: z.number().nullable(),
});

/**
 * Parses a JSONL file of transcripts or episodes. Episodes with a right answer become transcripts with this prompt;
 * others are skipped. Errors name the line.
 */
export function parseTranscripts(text: string, file: string, prompt?: PromptChoice): Transcript[] {
  const transcripts = text.split("\n").flatMap((line, i) => {
    if (line.trim() === "") return [];
    const bad = (what: string) =>
      new UsageError({
        what: `${file}, line ${i + 1}: ${what}`,
        value: line,
        remedy: '{"messages": [{"role": "system", "content": "…"}, …]}',
      });
    let json: unknown;
    try {
      json = JSON.parse(line);
    } catch {
      throw bad("not JSON");
    }
    const episode = episodeSchema.safeParse(json);
    if (episode.success) return episode.data.correctness === 1 ? [transcriptOf(json as EpisodeRecord, prompt)] : [];
    const parsed = transcriptSchema.safeParse(json);
    if (!parsed.success) throw bad(parsed.error.issues[0]!.message);
    const roles = parsed.data.messages.map(({ role }) => role);
    const isInTurn = roles.every(
      (role, at) => role === (at === 0 ? "system" : at % 2 === 0 ? "assistant" : role === "tool" ? "tool" : "user"),
    );
    if (2 * (parsed.data.examples ?? 0) >= roles.length - 1) throw bad("nothing is left but examples");
    if (!isInTurn || roles.length % 2 === 0) throw bad("the roles must be system, then user and assistant in turn");
    return [parsed.data];
  });
  if (transcripts.length === 0)
    throw new UsageError({ what: "no transcripts", value: file, remedy: "give one JSON object a line" });
  return transcripts;
}

export interface TranscriptOptions {
  /** Whether actions that failed and queries that a later one replaced are learned like all others. @default true */
  readonly learnMistakes?: boolean;
}

/** Converts an episode to the conversation that a model would have had. */
export function transcriptOf(
  { start, steps, rules = "" }: Pick<EpisodeRecord, "start" | "steps" | "rules">,
  prompt?: PromptChoice,
  { learnMistakes = true }: TranscriptOptions = {},
): Transcript {
  const { system, examples, format, tools, write } = promptFor(prompt, rulesFromId(rules));
  const messages: Transcript["messages"] = [{ role: "system", content: system }];
  const exchange = (content: string, assistant: string, isFirst: boolean) =>
    messages.push({ role: tools && !isFirst ? "tool" : "user", content }, { role: "assistant", content: assistant });
  for (const { user, assistant, isFirst = false } of examples) exchange(user, assistant, isFirst);
  let observation = start!;
  for (const { action, text, observation: next } of steps) {
    exchange(format(observation), text ?? write(action), observation === start);
    observation = next;
  }
  const unlearned = learnMistakes ? [] : mistakesOf(steps);
  return {
    messages,
    weight: 1,
    examples: examples.length,
    ...(unlearned.length > 0 && { unlearned }),
    ...(tools && { tools: [...tools] }),
  };
}

/** Numbers of the steps that failed, and of the queries before the last one. */
function mistakesOf(steps: EpisodeRecord["steps"]): number[] {
  const isQuery = ({ action, observation }: EpisodeRecord["steps"][number]) =>
    action.action_type === "QUERY" && observation.error_class === null;
  const last = steps.findLastIndex(isQuery);
  return steps.flatMap((step, i) => (step.observation.error_class !== null || (isQuery(step) && i < last) ? [i] : []));
}

/** Token ids and loss weights: the transcript's weight on the assistant's tokens, closing token included, and observed_weight (usually 0) on the others. */
export function encodeTranscript(transcript: Transcript, plain: TurnEncoder): Datum {
  const turns = transcript.tools ? plain.withTools(transcript.tools) : plain;
  const { weight, observed_weight = 0, examples = 0, unlearned = [] } = transcript;
  const [system, ...rest] = transcript.messages;
  const tokens: number[] = [];
  const weights: number[] = [];
  const add = (ids: readonly number[], weight: number) => {
    tokens.push(...ids);
    weights.push(...ids.map(() => weight));
  };
  for (let i = 0; i < rest.length; i += 2) {
    const isExample = i / 2 < examples;
    const { role, content: user } = rest[i]!;
    const assistant = rest[i + 1]!.content;
    add(
      i === 0
        ? turns.start(system!.content, user)
        : turns.next(user, { closed: true, from: role === "tool" ? "tool" : "user" }),
      isExample ? 0 : observed_weight,
    );
    add(turns.say(assistant), isExample || unlearned.includes(i / 2 - examples) ? 0 : weight);
  }
  return { tokens, weights: Float32Array.from(weights) }; // float32, as demonstration threads send them, for bitwise equal training
}
