"""Tokens and greedy continuations of a GGUF file by tokenizers and transformers, for scripts/gguf-truth.mjs to compare with ours.

Run: python test/reference/gguf_truth.py FILE.gguf SPIDER_FOLDER OUT.json [--layers N]
Weights are those of the gguf package in float32 on the CPU. 1,000 texts: questions and queries of Spider, code, Unicode,
white space, numbers, emoji and special tokens. 20 prompts of 64 new tokens, the end of text ignored; --layers keeps the first N
layers only, so that a large model fits our CPU engine.
"""

import argparse
import json
import random

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("gguf")
parser.add_argument("spider")
parser.add_argument("out")
parser.add_argument("--layers", type=int)
args = parser.parse_args()

reader = GGUFReader(args.gguf)
facts = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
arch = facts["general.architecture"]
tokens, types = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]


def words(digits: str) -> str:
    return (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


def tokenizer() -> Tokenizer:
    pre = facts["tokenizer.ggml.pre"]
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    made = Tokenizer(BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges, ignore_merges=pre == "llama-bpe"))
    level = pre_tokenizers.ByteLevel
    made.pre_tokenizer = {
        "smollm": lambda: pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level(add_prefix_space=False)]),
        "qwen2": lambda: pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(words(r"\p{N}")), "isolated"), level(add_prefix_space=False, use_regex=False)]
        ),
        "llama-bpe": lambda: pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(words(r"\p{N}{1,3}")), "isolated"), level(add_prefix_space=False, use_regex=False)]
        ),
    }[pre]()
    if pre == "qwen2":
        made.normalizer = normalizers.NFC()
    made.decoder = decoders.ByteLevel()
    named = [i for i in range(len(tokens)) if types[i] in (3, 4) and tokens[i] != f"[PAD{i}]"]
    for special in (True, False):
        chosen = [AddedToken(tokens[i], normalized=False, special=special) for i in named if (types[i] == 3) == special]
        made.add_special_tokens(chosen) if special else made.add_tokens(chosen)
    assert all(made.token_to_id(tokens[i]) == i for i in named)
    return made


def texts(specials: list[str]) -> list[str]:
    rng = random.Random(7)
    spider = [row for part in ("dev", "train_spider") for row in json.load(open(f"{args.spider}/{part}.json"))]
    rows = rng.sample(spider, 500)
    found = [row["question"] for row in rows] + [row["query"] for row in rows[:150]]
    unicode = "Zürich naïve façade Ωmega 中文字符 日本語テキスト 한국어 русский العربية עברית हिन्दी ไทย 😀 👩‍👩‍👧‍👦 🇨🇭 ½ ² Ⅷ ٣٤ １２ e\u0301 ﬁ \u200b \ufeff \u00a0 \u3000 — “quoted” €5 ß İ ŉ".split(" ")
    code = [
        "def f(x):\n    return x ** 2  # square\n",
        "for (let i = 0; i < n; i++) {\n\tout[i] = a[i] ?? 0;\n}",
        "SELECT\n  T1.name,\n  COUNT(*)\nFROM t AS T1\nWHERE x_1 >= 10.5 AND y LIKE '%a''b%'\nGROUP BY 1;",
        '{"a": [1, 2.5e-3, null], "b": {"c": "\\u00e9"}}',
        "<div class=\"x\">&nbsp;</div>\r\n\r\n<!-- c -->",
        "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", 1 << 31); }",
        "I'm she'll THEY'RE we've I'D it's 'S 'Ll don't",
        "x=1;y = x+2 ;z= 0xFFu64_000_000",
    ]
    spaces = ["", " ", "  ", "   a", "a   ", "\t", "\n\n\n", "a\r\nb", " \n \n ", "a\u00a0b", "\u2003x", "a  b   c    d", "\n  x", "x \t\n y"]
    numbers = ["0", "7", "42", "1234567890", "3.14159", "-1e-9", "1,234,567.89", "2024-02-29", "12:30:45", "0x1F", "1/2", "٣٤٥", "①②", "x1y22z333"]
    found += code + spaces + numbers + unicode + specials[:20]
    pieces = code + spaces + numbers + unicode + specials + [row["question"] for row in rows]
    while len(found) < 1000:
        found.append("".join(rng.choice(pieces) + rng.choice(["", " ", "\n", "  "]) for _ in range(rng.randint(2, 6))))
    return found[:1000]


def weights() -> dict[str, torch.Tensor]:
    heads = {"attn_q": facts[f"{arch}.attention.head_count"], "attn_k": facts[f"{arch}.attention.head_count_kv"]}
    names = {
        **{"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj"},
        **{"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"},
        **{"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"},
    }
    present = {tensor.name for tensor in reader.tensors}
    result = {}
    for tensor in reader.tensors:
        if tensor.name == "token_embd.weight" and "output.weight" in present:
            continue  # the model is tied; the output's copy is the finer one
        parts = tensor.name.split(".")
        if parts[0] == "blk" and args.layers is not None and int(parts[1]) >= args.layers:
            continue
        data = np.array(dequantize(tensor.data, tensor.tensor_type), np.float32)
        if parts[0] == "blk":
            if arch == "llama" and parts[2] in heads:
                data = data.reshape(heads[parts[2]], -1, 2, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
            name = f"model.layers.{parts[1]}.{names[parts[2]]}.{parts[3]}"
        else:
            name = {"output_norm.weight": "model.norm.weight"}.get(tensor.name, "model.embed_tokens.weight")
        result[name] = torch.from_numpy(np.ascontiguousarray(data))
    result["lm_head.weight"] = result["model.embed_tokens.weight"]
    return result


def model() -> torch.nn.Module:
    kind, cls = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM)}[arch]
    config = kind(
        vocab_size=len(tokens),
        hidden_size=facts[f"{arch}.embedding_length"],
        intermediate_size=facts[f"{arch}.feed_forward_length"],
        num_hidden_layers=args.layers or facts[f"{arch}.block_count"],
        num_attention_heads=facts[f"{arch}.attention.head_count"],
        num_key_value_heads=facts[f"{arch}.attention.head_count_kv"],
        rms_norm_eps=float(np.float32(facts[f"{arch}.attention.layer_norm_rms_epsilon"])),
        rope_parameters={"rope_type": "default", "rope_theta": float(facts[f"{arch}.rope.freq_base"])},
        max_position_embeddings=facts[f"{arch}.context_length"],
        tie_word_embeddings=True,
        attn_implementation="eager",
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    with torch.device("meta"):
        made = cls(config)
    made.load_state_dict(weights(), assign=True, strict=False)
    made.tie_weights()
    made.model.rotary_emb = type(made.model.rotary_emb)(config)  # its buffers are not among the weights
    assert not any(value.is_meta for value in [*made.parameters(), *made.buffers()])
    return made.eval()


made = tokenizer()
specials = [tokens[i] for i in range(len(tokens)) if types[i] == 3]
checked = texts(specials)
fast = PreTrainedTokenizerFast(tokenizer_object=made, chat_template=facts["tokenizer.chat_template"])
fast.bos_token = tokens[facts["tokenizer.ggml.bos_token_id"]]
fast.eos_token = tokens[facts["tokenizer.ggml.eos_token_id"]]
asked = json.load(open(f"{args.spider}/dev.json"))[::50][:20]
system = "You write one SQLite query that answers the question."
prompts = []
for row in asked:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": row["question"]}]
    prompts.append(made.encode(fast.apply_chat_template(messages, tokenize=False, add_generation_prompt=True), add_special_tokens=False).ids)
net = model()
longest = max(map(len, prompts))
ids = torch.zeros((len(prompts), longest), dtype=torch.long)
mask = torch.zeros_like(ids)
for i, prompt in enumerate(prompts):
    ids[i, longest - len(prompt) :] = torch.tensor(prompt)
    mask[i, longest - len(prompt) :] = 1
with torch.inference_mode():
    out = net.generate(
        input_ids=ids, attention_mask=mask, do_sample=False, max_new_tokens=64, return_dict_in_generate=True, output_logits=True
    )
margins = torch.stack([logits.topk(2).values for logits in out.logits], dim=1)  # [prompts, 64, 2]
result = {
    "file": args.gguf.split("/")[-1],
    "layers": args.layers,
    "texts": [{"text": text, "ids": made.encode(text, add_special_tokens=False).ids} for text in checked],
    "system": system,
    "prompts": [
        {
            "question": row["question"],
            "ids": prompt,
            "tokens": out.sequences[i, longest:].tolist(),
            "margins": [round(float(a - b), 6) for a, b in margins[i]],
        }
        for i, (row, prompt) in enumerate(zip(asked, prompts))
    ],
}
json.dump(result, open(args.out, "w"), ensure_ascii=False)
for entry in result["prompts"][:3]:
    print(repr(made.decode(entry["tokens"])))
print(len(result["texts"]), "texts,", len(prompts), "prompts, smallest margin", min(min(entry["margins"]) for entry in result["prompts"]))
