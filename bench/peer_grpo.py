"""The peer of `sqlenv bench grpo`: where the time of one GRPO step goes in TRL, on the same model, machine and threads.

    python bench/peer_grpo.py MODEL_FOLDER [SPEC]

MODEL_FOLDER is in Hugging Face layout; without weights in it they are random. SPEC is a JSON object, or `-` to read one
from stdin; DEFAULTS below lists its keys. Prints one JSON object on stdout.

Episodes have the shape of ours: `turns` times, the model writes `action_tokens` and the environment answers with
`observation_tokens`, which are masked. They come from a `rollout_func` that calls transformers' `generate` on all episodes
of the step together, each turn from the whole conversation so far, as TRL's own tool loop does. All episodes have the same
length, so nothing is padded. Observations are random tokens and rewards random numbers, so that only TRL, transformers and
PyTorch are measured. Float32 on the CPU; gradient checkpointing, which TRL switches on, is off unless asked for.
"""

import json
import os
import platform
import random
import resource
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
import transformers
import trl
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedTokenizerFast,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer

DEFAULTS = {
    "threads": 2,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 4,
    "num_generations": 4,
    "prompt_tokens": 120,
    "turns": 4,
    "action_tokens": 16,
    "observation_tokens": 32,
    "loss_type": "dapo",
    "beta": 0.0,
    "gradient_checkpointing": False,
    "steps": 5,  # measured, after one that is not
    "seed": 0,
}
PAD, EOS, FIRST = 0, 1, 3  # ids below FIRST never occur in episodes


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} MODEL_FOLDER [SPEC]")
    given = {} if len(sys.argv) == 2 else json.loads(sys.stdin.read() if sys.argv[2] == "-" else sys.argv[2])
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        sys.exit(f"unknown in SPEC: {', '.join(unknown)}; known are {', '.join(DEFAULTS)}")
    spec = {**DEFAULTS, **given}
    torch.set_num_threads(spec["threads"])
    torch.manual_seed(spec["seed"])
    random.seed(spec["seed"])
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    model = load(sys.argv[1])
    parameters = sum(p.numel() for p in model.parameters())
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(model, spec, clock, folder)
        out, sys.stdout = sys.stdout, sys.stderr  # the trainer prints its logs
        trainer.train()
        sys.stdout = out
    steps = clock.steps[1:]
    median = {part: statistics.median(step[part] for step in steps) for part in steps[0]}
    episodes = spec["per_device_train_batch_size"] * spec["gradient_accumulation_steps"]
    sampled = episodes * spec["turns"] * spec["action_tokens"]
    trained = episodes * (spec["prompt_tokens"] + completion_length(spec))
    result = {
        "peer": "trl",
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "trl": trl.__version__,
        },
        "model": {"folder": sys.argv[1], "parameters": parameters},
        "spec": spec,
        "episodes_per_step": episodes,
        "median_s": median,
        "steps_s": steps,
        "sampled_tokens_per_s": sampled / median["sampling"],
        "trained_tokens_per_s": trained / median["training"],
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(result))


def load(folder):
    if any(Path(folder).glob("*.safetensors")):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    else:
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
    model.generation_config.eos_token_id = None  # every turn has its full length
    return model


def completion_length(spec):
    """The last observation ends the episode and is not written."""
    return spec["turns"] * (spec["action_tokens"] + spec["observation_tokens"]) - spec["observation_tokens"]


class Clock:
    """Seconds of each optimizer step by what they went into; `inside` times every call of a method."""

    def __init__(self):
        self.steps = []
        self.current = {}

    def inside(self, target, name, part):
        method = getattr(target, name)

        def timed(*args, **kwargs):
            start = time.perf_counter()
            try:
                return method(*args, **kwargs)
            finally:
                self.current[part] = self.current.get(part, 0.0) + time.perf_counter() - start

        setattr(target, name, timed)


class StepTimes(TrainerCallback):
    def __init__(self, clock):
        self.clock = clock

    def on_step_begin(self, args, state, control, **kwargs):
        self.clock.current = {}
        self.start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        parts = self.clock.current
        step = time.perf_counter() - self.start
        named = {part: parts[part] for part in ("sampling", "forward", "backward", "optimizer")}
        rest = step - sum(named.values())
        self.clock.steps.append({"step": step, **named, "training": named["forward"] + named["backward"], "rest": rest})
        print(f"step {len(self.clock.steps)}: {step:.2f} s", file=sys.stderr, flush=True)


def make_trainer(model, spec, clock, folder):
    vocabulary = model.config.vocab_size

    def rollout(prompts, trainer):
        start = time.perf_counter()
        groups = len(prompts) // spec["num_generations"]
        ids = torch.randint(FIRST, vocabulary, (groups, spec["prompt_tokens"]))
        ids = ids.repeat_interleave(spec["num_generations"], dim=0)  # a group shares its prompt
        config = GenerationConfig(
            max_new_tokens=spec["action_tokens"], do_sample=True, temperature=1.0, top_k=0, top_p=1.0, use_cache=True,
            eos_token_id=None, pad_token_id=PAD,
        )  # fmt: skip
        mask = []
        for turn in range(spec["turns"]):
            with torch.no_grad():
                ids = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
            mask += [1] * spec["action_tokens"]
            if turn + 1 < spec["turns"]:
                ids = torch.cat([ids, torch.randint(FIRST, vocabulary, (len(prompts), spec["observation_tokens"]))], dim=1)
                mask += [0] * spec["observation_tokens"]
        clock.current["sampling"] = clock.current.get("sampling", 0.0) + time.perf_counter() - start
        return {
            "prompt_ids": ids[:, : spec["prompt_tokens"]].tolist(),
            "completion_ids": ids[:, spec["prompt_tokens"] :].tolist(),
            "logprobs": None,
            "env_mask": [mask] * len(prompts),
        }

    def reward(completions, **kwargs):
        return [random.random() for _ in completions]

    config = GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=spec["per_device_train_batch_size"],
        gradient_accumulation_steps=spec["gradient_accumulation_steps"],
        num_generations=spec["num_generations"],
        max_completion_length=completion_length(spec),
        loss_type=spec["loss_type"],
        beta=spec["beta"],
        gradient_checkpointing=spec["gradient_checkpointing"],
        max_steps=spec["steps"] + 1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_steps=1,
        seed=spec["seed"],
    )
    trainer = GRPOTrainer(
        model=model,
        args=config,
        reward_funcs=reward,
        rollout_func=rollout,
        processing_class=make_tokenizer(vocabulary),
        train_dataset=Dataset.from_dict({"prompt": [f"t{FIRST + i}" for i in range(64)]}),
        callbacks=[StepTimes(clock)],
    )
    clock.inside(trainer, "compute_loss", "forward")
    clock.inside(trainer.accelerator, "backward", "backward")
    create = trainer.create_optimizer

    def create_timed(*args, **kwargs):
        optimizer = create(*args, **kwargs)
        clock.inside(trainer.optimizer, "step", "optimizer")
        return optimizer

    trainer.create_optimizer = create_timed
    return trainer


def make_tokenizer(vocabulary):
    """One word a token: TRL wants to decode what was sampled, whatever it means."""
    tokenizer = Tokenizer(models.WordLevel({f"t{i}": i for i in range(vocabulary)}, unk_token="t2"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=f"t{PAD}", eos_token=f"t{EOS}", unk_token="t2", padding_side="left"
    )


main()
