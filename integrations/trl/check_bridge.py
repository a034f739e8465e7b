"""Two GRPO steps by each way with a model that speaks from scripts: prints the rewards TRL was given.

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
from train_tiny import build_trainer, tiny_model, tiny_tokenizer

url, path, way = sys.argv[1:]
with open(path) as file:
    scripts = json.load(file)  # [{"question_id", "question", "variants": [[[action_type, argument], ...], ...]}]
ARGUMENTS = {"DESCRIBE": "table", "SAMPLE": "table", "QUERY": "sql", "ANSWER": "answer"}


def written(action):
    """An action as the model writes it."""
    action_type, argument = action
    if way == "rollout_func":
        return f"{action_type}: {argument}"
    call = {"name": action_type.lower(), "arguments": {ARGUMENTS[action_type]: argument}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def script_of(text):
    return next(script for script in scripts if f"Question: {script['question']}\n" in text)


def variant_of(text):
    """Which variant a conversation follows: the one whose first action comes first; None when it has none yet."""
    firsts = [text.find(written(variant[0])) for variant in script_of(text)["variants"]]
    return min((at, i) for i, at in enumerate(firsts) if at >= 0)[1] if max(firsts) >= 0 else None


def first_action(completion):
    """The first action of a completion as TRL hands it to reward functions: a text, or messages with tool calls."""
    if isinstance(completion, str):
        return completion
    call = completion[0]["tool_calls"][0]["function"]
    return written([call["name"].upper(), *call["arguments"].values()])


class Scripted(Qwen3ForCausalLM):
    """Samples what the scripts say next; everything else is a real model."""

    turns = 0

    def generate(self, input_ids=None, **_):
        rows = []
        for ids in input_ids:
            text = tokenizer.decode(ids)
            variants = script_of(text)["variants"]
            known = variant_of(text)
            variant = variants[Scripted.turns % len(variants) if known is None else known]
            Scripted.turns += known is None
            missing = [a for i, a in enumerate(variant) if text.count(written(a)) < variant[: i + 1].count(a)]
            rows.append(tokenizer(written(missing[0]) if missing else "done", add_special_tokens=False).input_ids + [tokenizer.eos_token_id])
        width = max(map(len, rows))
        new = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows])
        return torch.cat([input_ids, new], dim=1)


tokenizer = tiny_tokenizer()
records = {}


def recording(reward):
    """The reward function, with what it gave kept beside what it was given."""

    def recorded(prompts, completions, **columns):
        values = reward(completions=completions, **columns)
        questions = prompts if way == "rollout_func" else columns["question_id"]
        for question_id, completion, value in zip(questions, completions, values):
            variants = next(script for script in scripts if script["question_id"] == question_id)["variants"]
            first = first_action(completion)
            variant = next(i for i, actions in enumerate(variants) if first.startswith(written(actions[0])))
            record = {"question_id": question_id, "variant": variant, "value": value}
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
    rows = [{"prompt": [{"role": "user", "content": "Answer.\n\n"}], "question_id": script["question_id"]} for script in scripts]
    funcs = [recording(reward) for reward in sqlenv_trl.REWARDS]
    trainer = build_trainer(url, way, tiny_model(tokenizer, Scripted), tokenizer, config, rows, funcs)
    trainer.train()
    print(json.dumps({"records": records, "log": trainer.state.log_history}))
