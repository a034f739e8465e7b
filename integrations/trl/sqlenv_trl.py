"""SQLEnv in TRL's GRPOTrainer: a server's environments as tools (environment_factory) or as text (rollout_func).

Needs nothing that TRL does not bring (aiohttp comes with datasets). The server parses, plays and scores; this file only
carries messages. See README.md beside it.
"""

import asyncio
import json
import threading
import urllib.request

import aiohttp

REPLY_SECONDS = 60

_loop = asyncio.new_event_loop()
threading.Thread(target=_loop.run_forever, daemon=True).start()


class _Socket:
    """One session on the server. A thread of its own reads, so that pings are answered while the model thinks or learns."""

    def __init__(self, url, api_key=None):
        self._url = url.rstrip("/").replace("http", "ws", 1) + "/ws"
        self._headers = {"X-API-Key": api_key} if api_key else {}
        self._connection = None

    def call(self, tool, **arguments):
        """Calls a tool and gives what it shows as text, and everything else there is."""
        data = {"type": "call_tool", "tool_name": tool, "arguments": arguments}
        reply = self._ask({"type": "step", "data": data})["observation"]
        if reply["error"]:
            raise ValueError(reply["error"]["message"])
        return reply["result"]["data"], reply["result"]["structured_content"]

    @property
    def is_open(self):
        return self._connection is not None and not self._connection.closed

    def _ask(self, message):
        return asyncio.run_coroutine_threadsafe(self._exchange(message), _loop).result(REPLY_SECONDS + 15)

    async def _exchange(self, message):
        if self._connection is None:
            # The session lives as long as the loop, which ends with the process.
            self._http = aiohttp.ClientSession(headers=self._headers)
            self._connection = await self._http.ws_connect(self._url, max_msg_size=0)
            self._inbox = asyncio.Queue()
            self._reader = asyncio.ensure_future(self._read())
        await self._connection.send_json(message)
        text = await asyncio.wait_for(self._inbox.get(), REPLY_SECONDS)
        if text is None:
            raise ConnectionError(f"the server closed the connection ({self._connection.close_code}); reset to start again")
        reply = json.loads(text)
        if reply["type"] == "error":
            raise RuntimeError(f"{reply['data']['message']} ({reply['data']['code']})")
        return reply["data"]

    async def _read(self):
        async for message in self._connection:
            await self._inbox.put(message.data)
        await self._inbox.put(None)
        await self._http.close()


def environment_factory(url, api_key=None):
    """What GRPOTrainer(environment_factory=...) takes: makes environments on the server at `url`."""
    return lambda: SQLEnv(url, api_key)


class SQLEnv:
    """One environment: `reset` asks a question, the public methods are the model's tools."""

    def __init__(self, url, api_key=None):
        self._where = (url, api_key)
        self._socket = _Socket(url, api_key)
        self.outcome = None

    def reset(self, question_id=None, **columns):
        """Starts an episode; the text goes to the end of the prompt. Connects again if the connection was lost meanwhile."""
        if self.outcome is not None and not self._socket.is_open:
            self._socket = _Socket(*self._where)
        return self._call("start", **({"question_id": question_id} if question_id else {}))

    def describe(self, table: str) -> str:
        """See a table's columns, types, keys and number of rows.

        Args:
            table: the table's name

        Returns:
            The table's description.
        """
        return self._call("describe", table=table)

    def sample(self, table: str) -> str:
        """See the first rows of a table.

        Args:
            table: the table's name

        Returns:
            The rows.
        """
        return self._call("sample", table=table)

    def query(self, sql: str) -> str:
        """Run one SELECT statement.

        Args:
            sql: one SELECT statement in SQLite's dialect

        Returns:
            The result, or what is wrong with the statement.
        """
        return self._call("query", sql=sql)

    def answer(self, answer: str) -> str:
        """Give the answer and end the episode.

        Args:
            answer: nothing but the values: one value; a list a, b, c; or one row a line, cells between " | "

        Returns:
            That the episode is over.
        """
        return self._call("answer", answer=answer)

    def _act(self, text):
        return self._call("act", text=text)

    def _call(self, tool, **arguments):
        text, more = self._socket.call(tool, **arguments)
        self.outcome = more["outcome"]
        self._done = more["done"]
        self._system_prompt = more.get("system_prompt")
        return text


def _reward(name):
    def reward(completions, environments=None, **columns):
        if environments is not None:
            return [environment.outcome[name] for environment in environments]
        return columns[name]  # from rollout_func

    reward.__name__ = f"reward_{name}"
    return reward


# None where an episode cannot be scored; TRL leaves it out.
reward_correctness = _reward("correctness")
reward_progress = _reward("progress")
reward_operational = _reward("operational")
REWARDS = [reward_correctness, reward_progress, reward_operational]


def load_questions(url, split="train", api_key=None, **wanted):
    """Rows for a dataset, one a question, such as load_questions(url, difficulty="easy")."""
    request = urllib.request.Request(
        url.rstrip("/") + "/sqlenv/tasks",
        json.dumps({"split": split}).encode(),
        {"Content-Type": "application/json", **({"X-API-Key": api_key} if api_key else {})},
    )
    tasks = json.load(urllib.request.urlopen(request))["tasks"]
    prompt = "Answer the question about a SQLite database. Look at the tables first, then query, then answer.\n\n"
    return [
        {"prompt": [{"role": "user", "content": prompt}], "question_id": task["question_id"]}
        for task in tasks
        if all(task[key] == value for key, value in wanted.items())
    ]


def rollout_func(url, api_key=None, max_new_tokens=256):
    """What GRPOTrainer(rollout_func=...) takes: episodes as text, `ACTION_TYPE: argument` a turn.

    TRL gives no dataset columns to a rollout, so the prompt itself names the question: a row's `prompt` is its question_id.
    All episodes are played side by side; token ids are kept and never encoded again; the server's words are masked.
    """
    environments = []

    def rollout(prompts, trainer):
        while len(environments) < len(prompts):
            environments.append(SQLEnv(url, api_key))
        episodes = [_Episode(environment, prompt, trainer) for environment, prompt in zip(environments, prompts)]
        while live := [episode for episode in episodes if not episode.is_over]:
            turns = _generate(trainer, [episode.prompt_ids + episode.completion_ids for episode in live], max_new_tokens)
            for episode, ids in zip(live, turns):
                episode.take(ids)
        outcomes = {name: [episode.outcome[name] for episode in episodes] for name in episodes[0].outcome if name != "done_reason"}
        return {
            "prompt_ids": [episode.prompt_ids for episode in episodes],
            "completion_ids": [episode.completion_ids for episode in episodes],
            "logprobs": None,
            "env_mask": [episode.mask for episode in episodes],
            **outcomes,
        }

    return rollout


class _Episode:
    """One episode's token ids: what the model wrote (mask 1), and between its turns what the server said (mask 0)."""

    def __init__(self, environment, question_id, trainer):
        self._environment = environment
        self._tokenizer = trainer.processing_class
        self._limit = trainer.args.max_completion_length
        first = environment.reset(question_id=question_id)
        chat = [{"role": "system", "content": environment._system_prompt}, {"role": "user", "content": first}]
        text = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        self.prompt_ids = self._encode(text)
        self.completion_ids, self.mask = [], []
        self.is_over = False

    @property
    def outcome(self):
        return self._environment.outcome

    def take(self, ids):
        """Adds the model's turn, plays it, and adds the server's answer."""
        self.completion_ids += ids
        self.mask += [1] * len(ids)
        said = self._environment._act(self._tokenizer.decode(ids, skip_special_tokens=True))
        ended = bool(ids) and ids[-1] == self._tokenizer.eos_token_id
        answer = self._between(said, ended)
        self.is_over = self._environment._done or len(self.completion_ids) + len(answer) >= self._limit
        if not self.is_over:
            self.completion_ids += answer
            self.mask += [0] * len(answer)

    def _between(self, said, ended):
        """The ids from the end of the model's turn to the start of its next, as the chat template has them."""
        chat = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "<mine>"},
            {"role": "user", "content": "<said>"},
        ]
        text = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True, enable_thinking=False)
        before, after = text.split("<mine>")[1].split("<said>")
        head = self._encode(before)
        if ended and head[0] == self._tokenizer.eos_token_id:
            head = head[1:]
        # Special tokens in the server's words stay plain text: a database must not speak as the system.
        plain = self._tokenizer(said, add_special_tokens=False, split_special_tokens=True).input_ids
        return head + plain + self._encode(after)

    def _encode(self, text):
        return self._tokenizer(text, add_special_tokens=False).input_ids


def _generate(trainer, contexts, max_new_tokens):
    """The next turn of each context, sampled together."""
    import torch

    model = trainer.accelerator.unwrap_model(trainer.model)
    tokenizer = trainer.processing_class
    length = max(map(len, contexts))
    pad = tokenizer.pad_token_id
    ids = torch.tensor([[pad] * (length - len(context)) + context for context in contexts], device=model.device)
    seen = torch.tensor([[0] * (length - len(context)) + [1] * len(context) for context in contexts], device=model.device)
    was_training = model.training
    model.eval()
    with torch.no_grad():
        output = model.generate(
            input_ids=ids,
            attention_mask=seen,
            do_sample=True,
            temperature=trainer.args.temperature,
            top_p=trainer.args.top_p,
            top_k=trainer.args.top_k,
            max_new_tokens=max_new_tokens,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=pad,
        )
    model.train(was_training)
    return [_up_to_end(row, tokenizer.eos_token_id) for row in output[:, length:].tolist()]


def _up_to_end(ids, end):
    return ids[: ids.index(end) + 1] if end in ids else ids
