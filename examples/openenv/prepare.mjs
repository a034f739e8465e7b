// Tasks from a stock OpenEnv server (words to spell backward, of Reasoning Gym), and a model of 0.1M parameters that has
// seen the words' letters in random order. README.md says what then happens.
import { mkdirSync, writeFileSync } from "node:fs";
import { loadModelAndTokenizer, random } from "sqlenv";
import { OpenEnvSession } from "sqlenv/gym/client";
import { encodeTranscript, saveFreshModel, trainSft } from "sqlenv/rl/node";

const [url = "http://localhost:8000", folder = "runs/spell"] = process.argv.slice(2);
const WORDS = 500;
const HELD_OUT = 100;

/** What the server asks for each seed. The words differ, so that those held out are never trained on. */
async function askForWords() {
  const session = new OpenEnvSession(url);
  await session.connect();
  const asked = new Map();
  for (let seed = 0; asked.size < WORDS; seed++) {
    const reset = {
      dataset_name: "spell_backward",
      dataset_config: { min_word_len: 3, max_word_len: 3 },
      seed,
      size: 1,
    };
    const { question } = (await session.reset(reset)).observation;
    const word = question.split(" ").at(-1).toLowerCase();
    const split = asked.size < HELD_OUT ? "eval" : "train";
    if (!asked.has(word)) asked.set(word, { question, task: { id: word, split, reset } });
  }
  session.close();
  return [...asked.values()];
}

/** A word's letters in random order, as an answer. */
function guess({ question, task }, seed) {
  const letters = random("order", task.id, seed).shuffle([...task.id]);
  const messages = [
    { role: "system", content: "Reply with letters." }, // the system prompt of spell.yaml
    { role: "user", content: question },
    { role: "assistant", content: letters.join("") },
  ];
  return { messages, weight: 1 };
}

const words = await askForWords();
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/tasks.jsonl`, words.map(({ task }) => `${JSON.stringify(task)}\n`).join(""));
const seen = words.filter(({ task }) => task.split === "train");

/** Guesses for all words, again and again. */
function* guesses() {
  for (let round = 0; ; round++) for (const word of seen) yield guess(word, round);
}

const sizes = {
  vocab_size: 300,
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  intermediate_size: 128,
};
await saveFreshModel(
  `${folder}/fresh`,
  seen.map((word) => guess(word, 0)),
  sizes,
);
const model = await loadModelAndTokenizer(`${folder}/fresh`);
function* transcripts() {
  for (const one of guesses()) yield encodeTranscript(one, model.turns);
}
await trainSft(model.engine, transcripts(), {
  steps: Number(process.argv[4] ?? 250),
  learning_rate: 3e-3,
  batch_tokens: 8_192,
  onStep: ({ step, loss }) => step % 25 === 0 && console.log(`SFT step ${step}, loss ${loss.toFixed(3)}`),
});
await model.engine.saveModel(`${folder}/model`);
await model.engine.close();
console.log(`${words.length} tasks and a model are in ${folder}`);
