// A tiny model with a tool template in the format of Qwen, fine-tuned to make the same calls in every chat.

import { listTools } from "../../src/apps/openenv/mcp/tools.ts";
import { DEFAULT_RULES } from "../../src/gym/env/index.ts";
import { LocalEngine } from "../../src/lm/engine/index.ts";
import { saveModelFolder } from "../../src/lm/model/formats/folder.node.ts";
import { tensorsOf } from "../../src/lm/model/formats/load.ts";
import { trainBpe } from "../../src/lm/model/text/bpe-trainer.ts";
import { createTurnEncoder, type Tool } from "../../src/lm/model/text/chat-template.ts";
import { Tokenizer } from "../../src/lm/model/text/tokenizer.ts";
import { trainSft } from "../../src/rl/index.ts";
import { tinyModel } from "./tiny-model.ts";

/** ChatML with tools: described in the system's turn, called by <tool_call>, answered in a user's turn. */
export const TOOL_TEMPLATE = `{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + message.role + '\\n' + message.content }}
{%- if loop.first and tools %}
{{- '\\n\\nTools, to be called by <tool_call>:' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;

/** The environment's actions as OpenAI's tools, made from the list that MCP clients get. */
export function environmentTools(): Tool[] {
  const listed = listTools(DEFAULT_RULES) as {
    name: string;
    description: string;
    inputSchema: Record<string, unknown>;
  }[];
  return listed
    .filter(({ name }) => name !== "start" && name !== "act")
    .map(({ name, description, inputSchema: parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    }));
}

export interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, string>>;
}

export interface ToolChat {
  readonly system: string;
  readonly user: string;
  readonly tools: readonly Tool[];
  /** The model's calls, each with the tool's answer to it. */
  readonly calls: readonly (readonly [call: Call, answer: string])[];
}

/** Fine-tunes a model on chats until it makes their calls, and writes its folder. */
export async function writeToolModel(dir: string, chats: readonly ToolChat[], steps = 120): Promise<void> {
  const texts = chats.flatMap(({ system, user, tools, calls }) => [
    ...[system, user, JSON.stringify(tools)],
    ...calls.flatMap(([call, answer]) => [callText(call), answer]),
  ]);
  const files = {
    tokenizer: trainBpe(texts, { vocabSize: 600, specialTokens: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] }),
    config: { tokenizer_class: "PreTrainedTokenizerFast", eos_token: "<|im_end|>" },
  };
  const tokenizer = new Tokenizer(files);
  const plain = createTurnEncoder(tokenizer, TOOL_TEMPLATE);
  const data = chats.map(({ system, user, tools, calls }) => {
    const turns = plain.withTools(tools);
    const tokens = turns.start(system, user);
    const weights = tokens.map(() => 0);
    for (const [call, answer] of calls) {
      const said = turns.say(callText(call));
      const heard = turns.next(answer, { closed: true, from: "tool" });
      tokens.push(...said, ...heard);
      weights.push(...said.map(() => 1), ...heard.map(() => 0));
    }
    return { tokens, weights };
  });
  const model = tinyModel({
    config: {
      ...{ hidden_size: 48, intermediate_size: 96, num_attention_heads: 6, num_key_value_heads: 6 },
      ...{ vocab_size: 600, max_position_embeddings: 2_048, eos_token_ids: [tokenizer.eosId!] },
    },
    deviation: 0.1,
  });
  const engine = new LocalEngine(model);
  function* again() {
    for (;;) yield* data;
  }
  await trainSft(engine, again(), { steps, batch_tokens: 1_500, learning_rate: 1e-2, max_context_tokens: 2_048 });
  await saveModelFolder(dir, {
    config: model.config,
    tokenizerFiles: files,
    chatTemplate: TOOL_TEMPLATE,
    tensors: tensorsOf(model),
  });
  await engine.close();
}

function callText({ name, arguments: args }: Call): string {
  const [[key, value]] = Object.entries(args) as [[string, string]];
  return `<tool_call>\n{"name": "${name}", "arguments": {"${key}": ${JSON.stringify(value)}}}\n</tool_call>`;
}
