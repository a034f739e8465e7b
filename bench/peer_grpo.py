"""The peer of `sqlenv bench grpo`: TRL's GRPOTrainer plays the same episodes in the same environment, step by step.

Started by the command, which talks to it in JSON lines over stdin and stdout:

    command                                          this
    {"model": FOLDER, "script": [...], ...}      →   (the settings; SETTINGS below lists them)
                                                 ←   {"ready": {versions, parameters}}
    {"go": true}                                 →
                                                 ←   {"reset": [question_id, ...]}        every episode of the step
    [{"text", "done", "reward"}, ...]            →
                                                 ←   {"step": [[episode, action], ...]}   every live one, turn by turn
    [{"text", "done", "reward"}, ...]            →
                                                 ←   {"stepped": {seconds, played}}       and so on, for each optimizer step

The environments run in the command's process, one message per turn, which is the fastest way across a process boundary.
Turns come from a `rollout_func` that calls transformers' `generate` on all live episodes together, each from the whole
conversation so far, as TRL's own tool loop does. The top of src/apps/bench/grpo.ts describes what both sides share: the model
samples as many tokens as the script's action has, and then the action's tokens replace them.
`generate` runs for the longest action of a turn, as it would until the last row has ended. Float32 on the CPU, without
compilation; gradient checkpointing, which TRL switches on, is off.
"""

import json
import os
import platform
import sys
import tempfile
import time
import warnings

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
import transformers
import trl
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

SETTINGS = ("model", "threads", "batch", "num_generations", "learning_rate", "loss_type", "system_prompt", "script")
PARTS = ("sampling", "environment", "forward", "backward", "optimizer")

OUT, sys.stdout = sys.stdout, sys.stderr  # the trainer prints its logs


def say(message):
    print(json.dumps(message), file=OUT, flush=True)


def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit("the command has gone")
    return json.loads(line)


def main():
    given = hear()
    settings = {name: given[name] for name in SETTINGS}
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(0)
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(settings["model"], dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(settings["model"], padding_side="left")
    tokenizer.pad_token = "<|endoftext|>"
    with tempfile.TemporaryDirectory() as folder:
        trainer = make_trainer(model, tokenizer, settings, folder)
        versions = {"python": platform.python_version()}
        versions |= {library.__name__: library.__version__ for library in (torch, transformers, trl)}
        say({"ready": {"versions": versions, "parameters": sum(p.numel() for p in model.parameters())}})
        trainer.train()


class Clock:
    """Seconds of the current step, by part."""

    def __init__(self):
        self.spent = {}

    def reset(self):
        self.spent = dict.fromkeys(PARTS, 0.0)
        self.start = time.perf_counter()

    def timed(self, part, work, *args, **kwargs):
        start = time.perf_counter()
        try:
            return work(*args, **kwargs)
        finally:
            self.spent[part] += time.perf_counter() - start

    def inside(self, target, name, part):
        """Times every call of a method."""
        method = getattr(target, name)
        setattr(target, name, lambda *args, **kwargs: self.timed(part, method, *args, **kwargs))


class Steps(TrainerCallback):
    """Waits for a message before each optimizer step, and reports its seconds."""

    def __init__(self, clock, rollout):
        self.clock = clock
        self.rollout = rollout

    def on_step_begin(self, args, state, control, **kwargs):
        hear()
        self.cpu = time.process_time()
        self.clock.reset()

    def on_step_end(self, args, state, control, **kwargs):
        step = time.perf_counter() - self.clock.start
        spent = self.clock.spent
        training = spent["forward"] + spent["backward"] + spent["optimizer"]
        rest = step - training - spent["sampling"] - spent["environment"]
        seconds = {"step": step, **spent, "training": training, "rest": rest}
        cpu = time.process_time() - self.cpu
        self.stepped = {"seconds": seconds, "played": self.rollout.played(), "cpu_s": cpu}

    def on_log(self, args, state, control, logs, **kwargs):
        if "grad_norm" in logs:
            self.stepped["played"]["grad_norm"] = logs["grad_norm"]
            say({"stepped": self.stepped})


class Rollout:
    """Plays the script's next step with the model, all episodes together."""

    def __init__(self, model, tokenizer, settings, clock):
        self.model = model
        self.tokenizer = tokenizer
        self.settings = settings
        self.clock = clock
        self.steps = iter(settings["script"])

    def __call__(self, prompts, trainer):
        environment = self.clock.spent["environment"]
        output = self.clock.timed("sampling", self.play, prompts)
        self.clock.spent["sampling"] -= self.clock.spent["environment"] - environment
        return output

    def play(self, prompts):
        step = next(self.steps)
        assert prompts == [episode["question_id"] for episode in step]
        self.ids = [self.first_turn(told["text"]) for told in self.ask({"reset": prompts})]
        self.prompt_lengths = [len(ids) for ids in self.ids]
        self.masks = [[] for _ in step]
        self.rewards = [0.0] * len(step)
        live = list(range(len(step)))
        turn = 0
        while live:
            actions = [step[episode]["turns"][turn] for episode in live]
            self.speak(live, actions)
            told = ("action_type", "argument")
            observations = self.ask({"step": [[e, {key: a[key] for key in told}] for e, a in zip(live, actions)]})
            still = []
            for episode, told in zip(live, observations):
                self.rewards[episode] += told["reward"]
                if told["done"]:
                    continue
                still.append(episode)
                shown = self.next_turn(told["text"])
                self.ids[episode] += shown
                self.masks[episode] += [0] * len(shown)
            live = still
            turn += 1
        group = self.settings["num_generations"]
        self.rewards = [reward + 0.01 * (i % group) for i, reward in enumerate(self.rewards)]
        return {
            "prompt_ids": [ids[:n] for ids, n in zip(self.ids, self.prompt_lengths)],
            "completion_ids": [ids[n:] for ids, n in zip(self.ids, self.prompt_lengths)],
            "logprobs": None,
            "env_mask": self.masks,
            "scripted": self.rewards,
        }

    def speak(self, live, actions):
        """Samples a turn of every live episode, from left-padded contexts; then replaces it with the actions."""
        contexts = [self.ids[episode] for episode in live]
        longest = max(len(action["tokens"]) for action in actions)
        batch = self.tokenizer.pad({"input_ids": contexts}, return_tensors="pt")
        config = GenerationConfig(
            max_new_tokens=longest, do_sample=True, temperature=1.0, top_k=0, top_p=1.0, use_cache=True,
            eos_token_id=None, pad_token_id=self.tokenizer.pad_token_id,
        )  # fmt: skip
        with torch.no_grad():
            output = self.model.generate(**batch, generation_config=config)
        assert output.shape[1] == batch["input_ids"].shape[1] + longest
        for episode, action in zip(live, actions):
            self.ids[episode] += action["tokens"]
            self.masks[episode] += [1] * len(action["tokens"])

    def ask(self, message):
        def exchange():
            say(message)
            return hear()

        return self.clock.timed("environment", exchange)

    def first_turn(self, text):
        chat = [{"role": "system", "content": self.settings["system_prompt"]}, {"role": "user", "content": text}]
        rendered = self.tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        return self.tokenizer.encode(rendered, add_special_tokens=False)

    def next_turn(self, text):
        rendered = f"\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
        return self.tokenizer.encode(rendered, add_special_tokens=False)

    def played(self):
        checksum = 0
        for token in (token for ids in self.ids for token in ids):
            checksum = (checksum * 31 + token + 1) % 1_000_000_007
        return {
            "episodes": len(self.ids),
            "sampled_tokens": sum(map(sum, self.masks)),
            "tokens": sum(map(len, self.ids)),
            "checksum": checksum,
            "mean_reward": sum(self.rewards) / len(self.rewards),
        }


def reward_scripted(completions, scripted, **kwargs):
    return scripted


def make_trainer(model, tokenizer, settings, folder):
    script = settings["script"]
    group = settings["num_generations"]
    episodes = len(script[0])
    clock = Clock()
    rollout = Rollout(model, tokenizer, settings, clock)
    config = GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=settings["batch"],
        gradient_accumulation_steps=episodes // settings["batch"],
        num_generations=group,
        max_completion_length=4096,
        loss_type=settings["loss_type"],
        beta=0.0,
        learning_rate=settings["learning_rate"],
        gradient_checkpointing=False,
        shuffle_dataset=False,
        max_steps=len(script),
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_steps=1,
    )
    trainer = GRPOTrainer(
        model=model,
        args=config,
        reward_funcs=reward_scripted,
        rollout_func=rollout,
        processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": [e["question_id"] for step in script for e in step[::group]]}),
        callbacks=[Steps(clock, rollout)],
    )
    clock.inside(trainer, "compute_loss", "forward")
    clock.inside(trainer.accelerator, "backward", "backward")
    clock.inside(trainer.accelerator, "clip_grad_norm_", "optimizer")
    create = trainer.create_optimizer

    def create_timed(*args, **kwargs):
        optimizer = create(*args, **kwargs)
        clock.inside(trainer.optimizer, "step", "optimizer")
        return optimizer

    trainer.create_optimizer = create_timed
    return trainer


main()
