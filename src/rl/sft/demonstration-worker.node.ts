// A thread that makes demonstrations: worlds, episodes on them, and their token ids.
import { parentPort, workerData } from "node:worker_threads";
import { loadSqlite } from "../../gym/sql/index.ts";
import { loadModelFolder } from "../../lm/model/formats/folder.node.ts";
import { createTurnEncoder } from "../../lm/model/index.ts";
import type { Batch, Order, ThreadSpec } from "./demonstration-threads.node.ts";
import { demonstrations } from "./demonstrations.ts";
import { encodeTranscript } from "./transcripts.ts";

const { folder, worldsPerBatch } = workerData as ThreadSpec;
const { tokenizer, chatTemplate, weights, generationConfig } = await loadModelFolder(folder);
await weights.close();
const turns = createTurnEncoder(tokenizer, chatTemplate, { eosIds: generationConfig.eos_token_ids });
await loadSqlite();

parentPort!.on("message", async ({ number, mixture }: Order) => {
  try {
    const data: Batch["data"][number][] = [];
    for await (const transcript of demonstrations(mixture, number * worldsPerBatch, worldsPerBatch)) {
      const { tokens, weights } = encodeTranscript(transcript, turns);
      data.push({ tokens: Uint32Array.from(tokens), weights: Float32Array.from(weights) });
    }
    parentPort!.postMessage({ number, data } satisfies Batch);
  } catch (error) {
    parentPort!.postMessage({ number, error: error instanceof Error ? error.message : String(error) });
  }
});
