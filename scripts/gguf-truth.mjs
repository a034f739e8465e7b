// Compares our reading of a GGUF file with transformers': tokens of 1,000 texts, greedy continuations of 20 prompts. The
// expected values come from test/reference/gguf_truth.py.
//
//   npm run build && node scripts/gguf-truth.mjs FILE.gguf TRUTH.json [--device cpu|cuda] [--tokens-only]
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { loadModelAndTokenizer } from "../dist/lm/engine/index.node.js";
import { loadModelFolder } from "../dist/lm/model/formats/folder.node.js";
import { createTurnEncoder } from "../dist/lm/model/index.js";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { device: { type: "string", default: "cpu" }, "tokens-only": { type: "boolean", default: false } },
});
const [file, truthFile] = positionals;
const truth = JSON.parse(readFileSync(truthFile, "utf8"));

const { tokenizer, chatTemplate, generationConfig, weights } = await loadModelFolder(file);
await weights.close();
const different = truth.texts.filter(({ text, ids }) => String(tokenizer.encode(text)) !== String(ids));
for (const { text, ids } of different.slice(0, 5)) {
  console.log(`other tokens for ${JSON.stringify(text)}: ${tokenizer.encode(text)} instead of ${ids}`);
}
const broken = truth.texts.filter(({ text, ids }) => tokenizer.decode(ids).normalize() !== text.normalize());
console.log(`tokens: ${truth.texts.length - different.length} of ${truth.texts.length} texts are the same`);
console.log(`decoded: ${truth.texts.length - broken.length} of ${truth.texts.length} texts come back`);

const turns = createTurnEncoder(tokenizer, chatTemplate, { eosIds: generationConfig.eos_token_ids });
const asked = truth.prompts.filter(({ question, ids }) => String(turns.start(truth.system, question)) === String(ids));
console.log(`prompts: ${asked.length} of ${truth.prompts.length} have the same ids`);
console.log(`sampling stops at ${turns.stopIds.map((id) => tokenizer.tokenOf(id)).join(" ")}`);

let same = truth.prompts.length;
if (!values["tokens-only"]) {
  const options = { trains: false, device: values.device, precision: values.device === "cuda" ? "fp32" : undefined };
  const start = performance.now();
  const { engine } = await loadModelAndTokenizer(file, options);
  console.log(`loaded in ${((performance.now() - start) / 1000).toFixed(1)} s: ${engine.facts.variant}`);
  const samples = await Promise.all(
    truth.prompts.map(({ ids, tokens }, i) =>
      engine.sample({ prompt: ids, max_new_tokens: tokens.length, stop_ids: [], temperature: 0, key: ["truth", i] }),
    ),
  );
  await engine.close();
  same = 0;
  for (const [i, { tokens, margins, question }] of truth.prompts.entries()) {
    const at = tokens.findIndex((token, place) => token !== samples[i].tokens[place]);
    if (at < 0) same++;
    else console.log(`"${question}" differs from token ${at} on; there the two likeliest were ${margins[at]} apart`);
  }
  console.log(`greedy: ${same} of ${truth.prompts.length} continuations are the same`);
}
const failed = different.length > 0 || asked.length < truth.prompts.length || same < truth.prompts.length;
process.exitCode = failed ? 1 : 0;
