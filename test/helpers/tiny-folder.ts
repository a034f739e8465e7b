// A tiny model as a folder on disk, with a tokenizer that can spell everything.

import type { ModelConfig } from "../../src/lm/model/config.ts";
import { saveModelFolder } from "../../src/lm/model/formats/folder.node.ts";
import { tensorsOf } from "../../src/lm/model/formats/load.ts";
import { trainBpe } from "../../src/lm/model/text/bpe-trainer.ts";
import { CHATML_TEMPLATE } from "../../src/lm/model/text/chat-template.ts";
import { tinyModel } from "./tiny-model.ts";

const SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/** Writes the folder; `config` changes the model's sizes. */
export async function writeTinyFolder(dir: string, config: Partial<ModelConfig> = {}): Promise<void> {
  const tokenizer = trainBpe(["SELECT name FROM customers WHERE age > 30", "DESCRIBE: customers", "ANSWER: 42"], {
    vocabSize: 300,
    specialTokens: SPECIAL,
  });
  const model = tinyModel({
    config: { vocab_size: 304, max_position_embeddings: 1024, eos_token_ids: [2], ...config },
    deviation: 0.1,
  });
  await saveModelFolder(dir, {
    config: model.config,
    tokenizerFiles: { tokenizer, config: { tokenizer_class: "PreTrainedTokenizerFast", eos_token: "<|im_end|>" } },
    chatTemplate: CHATML_TEMPLATE,
    tensors: tensorsOf(model),
  });
  model.device.close();
}
