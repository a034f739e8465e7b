"""Two GRPO steps by each way with a model that follows scripts: prints the rewards TRL was given.

Run by test/public/trl-bridge.slow.test.ts, which plays the same scripts in its own process and compares.
    python check_bridge.py URL SCRIPTS.json WAY
"""

import json
import os
import sys
import tempfile

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

import torch
from transformers import Qwen3ForCausalLM
from trl import GRPOConfig

import sqlenv_trl
from scripted import Scripts
from train_tiny import build_trainer, tiny_model, tiny_tokenizer

url, path, way = sys.argv[1:]
tokenizer = tiny_tokenizer()
scripts = Scripts(path, tokenizer, as_text=way == "rollout_func")
records = {}


class Scripted(Qwen3ForCausalLM):
    """Samples what the scripts say next; everything else is a real model."""

    def generate(self, input_ids=None, **_):
        rows = [scripts.next_ids(ids) for ids in input_ids]
        width = max(map(len, rows))
        new = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows])
        return torch.cat([input_ids, new], dim=1)


def recording(reward):
    """The reward function, with what it gave kept beside what it was given."""

    def recorded(prompts, completions, **columns):
        values = reward(completions=completions, **columns)
        questions = prompts if way == "rollout_func" else columns["question_id"]
        for question_id, completion, value in zip(questions, completions, values):
            record = {"question_id": question_id, "variant": scripts.variant_of(question_id, completion), "value": value}
            records.setdefault(reward.__name__, []).append(record)
        return values

    recorded.__name__ = reward.__name__
    return recorded


with tempfile.TemporaryDirectory() as out:
    config = GRPOConfig(
        output_dir=out,
        max_steps=2,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=4096,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    rows = [{"prompt": [{"role": "user", "content": "Answer.\n\n"}], "question_id": script["question_id"]} for script in scripts.all]
    funcs = [recording(reward) for reward in sqlenv_trl.REWARDS]
    trainer = build_trainer(url, way, tiny_model(tokenizer, Scripted), tokenizer, config, rows, funcs, max_new_tokens=4096)
    trainer.train()
    print(json.dumps({"records": records, "log": trainer.state.log_history}))
