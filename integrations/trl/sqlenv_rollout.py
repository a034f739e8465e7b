"""SQLEnv in TRL as text (rollout_func): the model writes `ACTION_TYPE: argument`, as in our own trainings."""

import functools
import math
import re

import torch

from sqlenv_trl import LostEpisode, SQLEnv


def rollout_func(url, api_key=None, max_new_tokens=256):
    """What GRPOTrainer(rollout_func=...) takes: episodes as text, `ACTION_TYPE: argument` a turn.

    TRL gives no dataset columns to a rollout, so the prompt itself names the question: a row's `prompt` is its question_id.
    All episodes are played side by side; token ids are kept and never encoded again; the server's words are masked.
    `max_new_tokens` limits a turn, `max_completion_length` what the model writes in an episode, as in our own trainer.
    """
    environments = []

    def rollout(prompts, trainer):
        while len(environments) < len(prompts):
            environments.append(SQLEnv(url, api_key))
        limits = _Limits(trainer, max_new_tokens)
        turns = _Turns(trainer.processing_class)
        episodes = [_Episode(environment, prompt, turns, limits) for environment, prompt in zip(environments, prompts)]
        while live := [episode for episode in episodes if not episode.is_over]:
            for episode, ids in zip(live, _generate(trainer, live)):
                episode.take(ids)
        names = ("correctness", "progress", "operational")
        return {
            "prompt_ids": [episode.prompt_ids for episode in episodes],
            "completion_ids": [episode.completion_ids for episode in episodes],
            "logprobs": None,
            "env_mask": [episode.mask for episode in episodes],
            **{name: [episode.outcome[name] for episode in episodes] for name in names},
        }

    return rollout


class _Limits:
    """How much the model may write: in a turn, in an episode, and in its context."""

    def __init__(self, trainer, max_new_tokens):
        self.turn = max_new_tokens
        self.episode = trainer.args.max_completion_length
        self.context = getattr(trainer.model.config.get_text_config(), "max_position_embeddings", math.inf)
        self.ends = trainer.eos_token_ids


class _Episode:
    """One episode's token ids: what the model wrote (mask 1), and between its turns what the server said (mask 0)."""

    def __init__(self, environment, question_id, turns, limits):
        self._environment = environment
        self._turns = turns
        self._limits = limits
        first = environment.reset(question_id=question_id)
        self.prompt_ids = turns.start(environment._system_prompt, first)
        self.completion_ids, self.mask = [], []
        self.is_over = False
        if self.room() <= 0:
            raise ValueError(f"the prompt of {question_id} takes {len(self.prompt_ids)} tokens, the model's context has {limits.context}")

    @property
    def outcome(self):
        return self._environment.outcome

    @property
    def context(self):
        return self.prompt_ids + self.completion_ids

    def room(self, more=0):
        """How many tokens the next turn may have, after `more` tokens from the server."""
        left = self._limits.episode - sum(self.mask)
        return min(self._limits.turn, left, self._limits.context - len(self.context) - more)

    def take(self, ids):
        """Adds the model's turn, plays it, and adds the server's reply. A turn that was cut off is played as it is."""
        self._add(ids, 1)
        try:
            said = self._environment._act(self._turns.decode(ids))
        except LostEpisode:
            self.is_over = True
            return
        self.is_over = self._environment._done
        if self.is_over:
            return
        reply = self._turns.next(said, ids)
        self.is_over = self.room(len(reply)) <= 0
        if not self.is_over:
            self._add(reply, 0)
        elif ids[-1] in self._limits.ends:
            # TRL calls an episode truncated if its last token ends no turn: after a complete turn it needs such a token.
            self._add([next(token for token in reply if token not in self._limits.ends)], 0)

    def _add(self, ids, mark):
        self.completion_ids += ids
        self.mask += [mark] * len(ids)


class _Turns:
    """A chat as token ids, turn by turn: the pieces of the template around texts, which may have no special tokens."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        system, user, model = ({"role": role, "content": f"Q{role}q"} for role in ("system", "user", "assistant"))
        again = {"role": "user", "content": "Qagainq"}
        render = functools.partial(tokenizer.apply_chat_template, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        self._head, self._between, self._ask = re.split("Qsystemq|Quserq", render([system, user]))
        close = re.split("Qassistantq|Qagainq", render([system, user, model, again]))[1]
        added = sorted((str(token) for token in tokenizer.added_tokens_decoder.values()), key=len, reverse=True)
        self._added = re.compile(f"({'|'.join(map(re.escape, added))})")
        before, *closed = self._added.split(close, maxsplit=1)
        if before or not closed:
            raise ValueError(f"the chat template closes a turn by {close!r}, which does not begin with a special token")
        self._closing = tokenizer.convert_tokens_to_ids(closed[0])
        self._close = closed[1]

    def start(self, system, user):
        """The ids of the first prompt."""
        return self._encode(self._head, system, self._between, user, self._ask)

    def next(self, user, ids):
        """The ids between the model's turn `ids` and its next; one that was not closed is closed."""
        closing = [] if ids[-1] == self._closing else [self._closing]
        return closing + self._encode(self._close, user, self._ask)

    def decode(self, ids):
        return self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def _encode(self, *parts):
        """Encodes pieces of the template (even places) and texts (odd ones): a database must not speak as the system."""
        ids, run = [], ""
        for place, part in enumerate(parts):
            for at, section in enumerate(self._added.split(part) if place % 2 == 0 else [part]):
                if at % 2 == 0:
                    run += section
                else:
                    ids += [*self._plain(run), self._tokenizer.convert_tokens_to_ids(section)]
                    run = ""
        return ids + self._plain(run)

    def _plain(self, text):
        return self._tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids


def _generate(trainer, episodes):
    """The next turn of each episode, sampled together."""
    args, ends = trainer.args, trainer.eos_token_ids
    model = trainer.accelerator.unwrap_model(trainer.model)
    pad = trainer.processing_class.pad_token_id
    contexts = [episode.context for episode in episodes]
    rooms = [episode.room() for episode in episodes]
    length = max(map(len, contexts))
    ids = torch.tensor([[pad] * (length - len(context)) + context for context in contexts], device=model.device)
    seen = torch.tensor([[0] * (length - len(context)) + [1] * len(context) for context in contexts], device=model.device)
    sampling = {name: getattr(args, name) for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")}
    was_training = model.training
    model.eval()
    with torch.no_grad():
        output = model.generate(
            input_ids=ids,
            attention_mask=seen,
            do_sample=True,
            max_new_tokens=max(rooms),
            eos_token_id=ends,
            pad_token_id=pad,
            **{**sampling, **(args.generation_kwargs or {})},
        )
    model.train(was_training)
    return [_turn(row[:room], ends) for row, room in zip(output[:, length:].tolist(), rooms)]


def _turn(ids, ends):
    """The ids up to the first that ends a turn."""
    return ids[: next((i for i, token in enumerate(ids) if token in ends), len(ids)) + 1]
