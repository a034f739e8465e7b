// A tiny model that half knows the small data set's answers: enough to show that rewards make it better.

import type { DataSet } from "../../src/gym/data/index.ts";
import { SQLEnvironment } from "../../src/gym/env/index.ts";
import { formatObservation, getSystemPrompt } from "../../src/gym/players/index.ts";
import { createCpu } from "../../src/lm/devices/cpu/start.node.ts";
import { LocalEngine } from "../../src/lm/engine/index.ts";
import { createTurnEncoder, Tokenizer, type TurnEncoder } from "../../src/lm/model/index.ts";
import { parametersChanged } from "../../src/lm/model/parameters.ts";
import { trainBpe } from "../../src/lm/model/text/bpe-trainer.ts";
import { encodeTranscript, type Transcript, trainSft } from "../../src/rl/index.ts";
import { POLICY_LOSSES } from "../../src/rl/loss.ts";
import { tinyModel } from "./tiny-model.ts";

export interface FineTuned {
  readonly tokenizer: Tokenizer;
  readonly turns: TurnEncoder;
  /** Weights after SFT. */
  readonly weights: Float32Array;
}

const SIZES = { hidden_size: 32, intermediate_size: 64, num_attention_heads: 4, num_key_value_heads: 4 };
const CONFIG = { ...SIZES, vocab_size: 504, max_position_embeddings: 512 };

/** Fine-tunes a model on one right and two wrong answers to every training question. */
export async function teach(data: DataSet, steps = 150): Promise<FineTuned> {
  const transcripts = data.questions
    .filter(({ split }) => split === "train")
    .flatMap(({ question_id, gold_sql }) => [
      transcript(data, question_id, [`QUERY: ${gold_sql}`]),
      transcript(data, question_id, null),
      transcript(data, question_id, null),
    ]);
  const texts = transcripts.flatMap(({ messages }) => messages.map(({ content }) => content));
  const tokenizer = new Tokenizer({
    tokenizer: trainBpe(texts, { vocabSize: 500, specialTokens: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] }),
    config: { eos_token: "<|im_end|>" },
  });
  const turns = createTurnEncoder(tokenizer);
  const engine = new LocalEngine(tinyModel({ config: CONFIG, deviation: 0.1 }));
  const encoded = transcripts.map((one) => encodeTranscript(one, turns));
  function* again() {
    for (;;) yield* encoded;
  }
  await trainSft(engine, again(), { steps, batch_tokens: 2000, learning_rate: 1e-2, max_context_tokens: 512 });
  const weights = engine.model.device.read(engine.model.values) as Float32Array;
  await engine.close();
  return { tokenizer, turns, weights };
}

/** A model with these weights. */
export function taughtModel({ tokenizer, turns, weights }: FineTuned, { threads = 1, reference = false } = {}) {
  const model = tinyModel({ config: CONFIG, device: createCpu({ threads }) });
  model.device.write(model.values, weights);
  parametersChanged(model);
  return { engine: new LocalEngine(model, { reference, losses: POLICY_LOSSES }), tokenizer, turns };
}

/** Asks the queries and answers what the last one showed; without queries, answers wrong. */
function transcript(data: DataSet, question_id: string, queries: readonly string[] | null): Transcript {
  const env = new SQLEnvironment(data);
  let observation = env.reset({ question_id });
  const messages: Transcript["messages"] = [{ role: "system", content: getSystemPrompt() }];
  for (const said of queries ?? []) {
    messages.push({ role: "user", content: formatObservation(observation) }, { role: "assistant", content: said });
    observation = env.step({ action_type: "QUERY", argument: said.slice("QUERY: ".length) });
  }
  const answer = queries ? String(env.reveal().gold_answer) : "nothing";
  messages.push({ role: "user", content: formatObservation(observation) });
  messages.push({ role: "assistant", content: `ANSWER: ${answer}` });
  return { messages, weight: 1 };
}
