"""Trains a tiny random Qwen3 on a SQLEnv server for a few steps on the CPU: shows that everything fits together.

    npx sqlenv serve &
    python train_tiny.py --url http://localhost:8000 --way environment_factory
"""

import argparse
import json
import os

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

from datasets import Dataset
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

import sqlenv_trl
from sqlenv_rollout import rollout_func


def tiny_tokenizer():
    """One token a byte, with Qwen3's special tokens and chat template: nothing to download."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({character: i for i, character in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=qwen3_chat_template,
    )


def tiny_model(tokenizer, kind=Qwen3ForCausalLM):
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return kind(config)


def build_trainer(url, way, model, tokenizer, config, questions=None, reward_funcs=None, max_new_tokens=24):
    """A GRPOTrainer on the server, by either way TRL knows."""
    rows = questions or sqlenv_trl.load_questions(url, difficulty="easy")
    if way == "rollout_func":
        rows = [{"prompt": row["question_id"]} for row in rows]
        player = {"rollout_func": rollout_func(url, max_new_tokens=max_new_tokens)}
    else:
        player = {"environment_factory": sqlenv_trl.environment_factory(url)}
    return GRPOTrainer(
        model=model,
        args=config,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        reward_funcs=reward_funcs or sqlenv_trl.REWARDS,
        **player,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://localhost:8000")
    parser.add_argument("--way", choices=["environment_factory", "rollout_func"], default="environment_factory")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--out", default="trl-tiny")
    flags = parser.parse_args()
    tokenizer = tiny_tokenizer()
    config = GRPOConfig(
        output_dir=flags.out,
        max_steps=flags.steps,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=64,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    trainer = build_trainer(flags.url, flags.way, tiny_model(tokenizer), tokenizer, config)
    trainer.train()
    print(json.dumps(trainer.state.log_history))


if __name__ == "__main__":
    main()
