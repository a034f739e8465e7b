"""What transformers computes with a real pretrained model: logits of a fixed prompt and 64 greedy tokens.

    python test/reference/minimind.py FOLDER && npx biome check --write test/reference

FOLDER holds minimind2-small in Hugging Face layout (a Llama of 26M parameters). Float64, see truth.py; writes minimind.json.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from truth import double

MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "Tell me about the sea, the wind and the ships of old times."},
]
NEW_TOKENS = 64
TOP = 20

folder = sys.argv[1]
tokenizer = AutoTokenizer.from_pretrained(folder)
text = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
ids = tokenizer(text, add_special_tokens=False).input_ids
plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()


@torch.no_grad()
def greedy(model):
    """No cache and no stop: each token from a full forward; also the smallest lead a chosen token had over the next."""
    tokens, lead = list(ids), float("inf")
    for _ in range(NEW_TOKENS):
        best = model(torch.tensor([tokens])).logits[0, -1].topk(2)
        lead = min(lead, (best.values[0] - best.values[1]).item())
        tokens.append(best.indices[0].item())
    return tokens[len(ids) :], lead


with torch.no_grad():
    float32 = plain(torch.tensor([ids])).logits[0]
generated = plain.generate(
    torch.tensor([ids]), max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0
)[0, len(ids) :].tolist()
model = double(plain)
with torch.no_grad():
    logits = model(torch.tensor([ids])).logits[0]
tokens, lead = greedy(model)
top = logits.topk(TOP)
result = {
    "note": "minimind2-small through transformers in float64; made by minimind.py",
    "text": text,
    "ids": ids,
    "top_ids": top.indices.tolist(),
    "top_logits": [[round(x, 5) for x in row] for row in top.values.tolist()],
    "last_logits": [round(x, 5) for x in logits[-1].tolist()],
    "greedy": tokens,
    "greedy_text": tokenizer.decode(tokens),
    "greedy_least_lead": round(lead, 5),
}
path = Path(__file__).with_name("minimind.json")
path.write_text(json.dumps(result, ensure_ascii=False) + "\n")
print(
    f"{len(ids)} prompt tokens, float32 logits differ by {(float32 - logits).abs().max():.1e}, greedy tokens never lead by "
    f"less than {lead:.4f}, {sum(a == b for a, b in zip(generated, tokens))} of {NEW_TOKENS} as float32 `generate` gives them"
    f"\n{result['greedy_text']!r}"
)
