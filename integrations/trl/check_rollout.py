"""A rollout as text with a model that follows scripts: prints the token ids, masks and rewards, and what TRL calls truncated.

Run by test/public/trl-bridge.slow.test.ts, which plays the same scripts in its own trainer's rollout and compares.
    python check_rollout.py URL CASES.json
"""

import json
import os
import sys
import tempfile

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM
from trl import GRPOConfig

from train_tiny import build_trainer, tiny_model

url, path = sys.argv[1:]
with open(path) as file:
    cases = json.load(file)  # {"tokenizer", "ends", "max_new_tokens", "max_completion_length", "episodes"}
episodes = cases["episodes"]  # [{"question_id", "question", "turns": [[text, the token that ends it], ...]}]
tokenizer = PreTrainedTokenizerFast.from_pretrained(cases["tokenizer"])
START = tokenizer.convert_tokens_to_ids("<|im_start|>")


class Scripted(Qwen3ForCausalLM):
    """Samples what the scripts say next, as long as there is room; everything else is a real model."""

    def generate(self, input_ids=None, max_new_tokens=None, **_):
        rows = [next_turn(ids.tolist())[:max_new_tokens] for ids in input_ids]
        width = max(map(len, rows))
        new = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows])
        return torch.cat([input_ids, new], dim=1)


def next_turn(context):
    text = tokenizer.decode(context)
    turns = next(episode for episode in episodes if f"Question: {episode['question']}\n" in text)["turns"]
    said, end = turns[(context.count(START) - 3) // 2]  # a system's, a user's and a model's turn have begun before the first
    return tokenizer(said, add_special_tokens=False, split_special_tokens=True).input_ids + [tokenizer.convert_tokens_to_ids(end)]


with tempfile.TemporaryDirectory() as out:
    model = tiny_model(tokenizer, Scripted)
    model.generation_config.eos_token_id = cases["ends"]
    config = GRPOConfig(
        output_dir=out,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=cases["max_completion_length"],
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    trainer = build_trainer(url, "rollout_func", model, tokenizer, config, episodes, max_new_tokens=cases["max_new_tokens"])
    played = []
    for episode in episodes:
        prompts, completions, masks, _, _, rewards, *_ = trainer._generate([episode["question_id"]])
        record = {"prompt": prompts[0], "completion": completions[0], "mask": masks[0]}
        truncated = trainer._metrics["train"]["completions/clipped_ratio"][-1]
        played.append({**record, **{name: values[0] for name, values in rewards.items()}, "truncated": truncated})
    together = trainer.rollout_func([episode["question_id"] for episode in episodes], trainer)
    print(json.dumps({"played": played, "together": together["completion_ids"]}))
