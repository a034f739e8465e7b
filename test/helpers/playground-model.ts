// A tiny model after a few SFT steps, for tests of pages that play and train it.

import { evaluate } from "../../src/gym/evaluation/index.ts";
import { oraclePlayer, randomPlayer } from "../../src/gym/players/index.ts";
import { loadSqlite } from "../../src/gym/sql/index.ts";
import { practiceSet, STARTER_FORMS } from "../../src/gym/worlds/index.ts";
import { createCpu } from "../../src/lm/devices/cpu/start.node.ts";
import { LocalEngine } from "../../src/lm/engine/index.ts";
import { saveModelFolder } from "../../src/lm/model/formats/folder.node.ts";
import { tensorsOf } from "../../src/lm/model/formats/load.ts";
import { createTurnEncoder, Tokenizer } from "../../src/lm/model/index.ts";
import { createModel, parametersChanged } from "../../src/lm/model/parameters.ts";
import { encodeTranscript, freshModel, type Transcript, trainSft, transcriptOf } from "../../src/rl/index.ts";

const SIZES = { hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, head_dim: 16, intermediate_size: 64 };

/** Writes the folder: fresh weights, a few SFT steps on small worlds, half of the episodes by the random player. */
export async function writePlaygroundModel(dir: string): Promise<void> {
  await loadSqlite();
  const data = practiceSet({ seed: 0, seen: 4, unseen: 1, forms: STARTER_FORMS });
  const transcripts: Transcript[] = [];
  for (const player of [oraclePlayer(), randomPlayer()])
    await evaluate(data, player, {
      ...{ split: "train", episodes: 16, step_budget: 4, seed: 1 },
      onEpisode: (record) => transcripts.push(transcriptOf(record)),
    });
  const fresh = freshModel(transcripts, { ...SIZES, vocab_size: 600, max_position_embeddings: 512 });
  const { config, tokenizerFiles, chatTemplate, tensors } = fresh;
  const model = createModel(createCpu({ threads: 1 }), config, { trains: true });
  const byName = new Map(tensors.map(({ name, data: values }) => [name, values]));
  for (const { name, value } of model.tensors) model.device.write(value, byName.get(name)!);
  parametersChanged(model);
  const tokenizer = new Tokenizer(tokenizerFiles);
  const turns = createTurnEncoder(tokenizer, chatTemplate);
  const encoded = transcripts.map((transcript) => encodeTranscript(transcript, turns));
  function* again() {
    for (;;) yield* encoded;
  }
  const engine = new LocalEngine(model);
  await trainSft(engine, again(), { steps: 60, batch_tokens: 1500, learning_rate: 1e-2, max_context_tokens: 512 });
  await saveModelFolder(dir, { config, tokenizerFiles, chatTemplate, tensors: tensorsOf(model), dtype: "BF16" });
  await engine.close();
}
