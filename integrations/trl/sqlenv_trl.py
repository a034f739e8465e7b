"""SQLEnv in TRL: a server's environments as tools (environment_factory), their rewards and their questions.

Needs TRL and Python's standard library, nothing else. The server parses, plays and scores; this file only carries
messages. See README.md beside it.
"""

import functools
import http.client
import json
import logging
import threading
import time
import urllib.error
import urllib.request
import weakref

REPLY_SECONDS = 60
END_SECONDS = 2
MCP_VERSION = "2025-11-25"
NO_REPLY = (OSError, http.client.HTTPException)

_log = logging.getLogger(__name__)


class LostEpisode(RuntimeError):
    """The server has failed, does not reply or has ended the session: the episode cannot be scored."""


class _Session:
    """A session on the server, with an environment of its own: MCP over plain HTTP, one connection per request.

    Nothing has to be kept alive while the model generates or learns, and any thread may send the next request.
    """

    _unreachable = set()

    def __init__(self, url, api_key=None):
        self._url = url.rstrip("/") + "/mcp"
        self._api_key = api_key
        self._id = None

    def start(self, arguments):
        """Starts an episode, in a new session if there is none, the server has ended it, or it does not reply."""
        for seconds in (0, 1, 2, 4, 8, None):
            try:
                if self._id is None:
                    self._initialize()
                return self.call("start", arguments)
            except LostEpisode as lost:
                if seconds is None:
                    raise
                if seconds:
                    _log.warning("%s; trying again in %s s", lost, seconds)
                time.sleep(seconds)

    def call(self, tool, arguments):
        """Calls a tool; returns its text and everything else about the episode."""
        if self._id is None:
            raise LostEpisode("the episode was lost with its connection")
        try:
            result, _ = self._ask("tools/call", {"name": tool, "arguments": arguments})
        except RuntimeError as error:
            self.end()
            raise LostEpisode(str(error)) from error
        text = result["content"][0]["text"]
        if result["isError"]:
            raise ValueError(text)
        return text, result["structuredContent"]

    def end(self):
        """Ends the session, if there is one. A server that does not reply ends it by itself, after an hour."""
        session_id, self._id = self._id, None
        if session_id is None or self._url in _Session._unreachable:
            return
        try:
            _request("DELETE", self._url, self._api_key, headers={"Mcp-Session-Id": session_id}, timeout=END_SECONDS)
        except urllib.error.HTTPError:
            pass  # it has ended already
        except NO_REPLY:
            _Session._unreachable.add(self._url)  # or a process with many sessions would take long to exit

    def _initialize(self):
        about = {"protocolVersion": MCP_VERSION, "capabilities": {}, "clientInfo": {"name": "sqlenv-trl", "version": "1"}}
        _, headers = self._ask("initialize", about)
        self._id = headers["mcp-session-id"]
        _Session._unreachable.discard(self._url)

    def _ask(self, method, params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Mcp-Session-Id": self._id} if self._id else {}
        try:
            reply, headers = _request("POST", self._url, self._api_key, message, headers)
        except urllib.error.HTTPError as error:
            if error.code == 404 and self._id:
                raise LostEpisode("the server has ended the session") from error
            kind = LostEpisode if error.code == 429 or error.code >= 500 else RuntimeError
            raise kind(f"{self._url} replied with HTTP {error.code}: {error.read(500).decode(errors='replace')}") from error
        except NO_REPLY as error:
            raise LostEpisode(f"no reply from {self._url} ({error})") from error
        if "error" in reply:
            raise RuntimeError(f"{reply['error']['message']} ({reply['error']['code']})")
        return reply["result"], headers


def _request(method, url, api_key, body=None, headers=None, timeout=REPLY_SECONDS):
    """Sends a request and returns the reply and its headers. A busy server (429, 503) has not begun it: sends it again."""
    everything = {"Content-Type": "application/json", "MCP-Protocol-Version": MCP_VERSION, **(headers or {})}
    if api_key:
        everything["X-API-Key"] = api_key
    data = None if body is None else json.dumps(body).encode()
    end = time.monotonic() + timeout
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, everything, method=method), timeout=timeout) as reply:
                text = reply.read()
                return json.loads(text) if text else None, reply.headers
        except urllib.error.HTTPError as error:
            after = error.headers.get("Retry-After", "")
            seconds = int(after) if after.isdigit() else 1
            if error.code not in (429, 503) or time.monotonic() + seconds > end:
                raise
            time.sleep(seconds)


def environment_factory(url, api_key=None):
    """What GRPOTrainer(environment_factory=...) takes: makes environments on the server at `url`. It can be pickled."""
    return functools.partial(SQLEnv, url, api_key)


class SQLEnv:
    """One environment: `reset` asks a question, the other public methods are the model's tools."""

    def __init__(self, url, api_key=None):
        self._session = _Session(url, api_key)
        self._lock = threading.Lock()
        self.outcome = None
        weakref.finalize(self, self._session.end)  # also when the process exits

    def reset(self, question_id=None, **columns):
        """Starts an episode; the text goes to the end of the prompt."""
        with self._lock:
            return self._show(*self._session.start({"question_id": question_id} if question_id else {}))

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
        with self._lock:
            try:
                return self._show(*self._session.call(tool, arguments))
            except LostEpisode:
                self.outcome = dict.fromkeys(self.outcome)
                raise

    def _show(self, text, more):
        self.outcome = more["outcome"]
        self._done = more["done"]
        self._system_prompt = more.get("system_prompt")
        return text


class RewardedSQLEnv(SQLEnv):
    """An environment with a reward of its own: the weighted sum. For AsyncGRPOTrainer, which shows reward functions none."""

    def __init__(self, url, api_key=None, weights=(1, 0.15, 1)):
        super().__init__(url, api_key)
        self._weights = weights

    def get_reward(self):
        """The episode's reward, None if it cannot be scored."""
        values = [self.outcome[name] for name in ("correctness", "progress", "operational")]
        return None if None in values else sum(weight * value for weight, value in zip(self._weights, values))


def reward_correctness(completions, environments=None, **columns):
    """1 if the answer is right, else 0."""
    return _outcomes("correctness", environments, columns)


def reward_progress(completions, environments=None, **columns):
    """How close the best result came to the gold result, 0 to 1."""
    return _outcomes("progress", environments, columns)


def reward_operational(completions, environments=None, **columns):
    """The small reward for exploring."""
    return _outcomes("operational", environments, columns)


REWARDS = [reward_correctness, reward_progress, reward_operational]


def _outcomes(name, environments, columns):
    """One value for each episode: from the environments, or from rollout_func's columns. TRL leaves out None."""
    if environments is None and name not in columns:
        raise ValueError(f"reward_{name} was given no environments; AsyncGRPOTrainer needs RewardedSQLEnv instead, see README.md")
    return columns[name] if environments is None else [environment.outcome[name] for environment in environments]


def load_questions(url, split="train", api_key=None, **wanted):
    """Rows for a dataset, one a question, such as load_questions(url, difficulty="easy")."""
    reply, _ = _request("POST", url.rstrip("/") + "/sqlenv/tasks", api_key, {"split": split})
    prompt = "Answer the question about a SQLite database. Look at the tables first, then query, then answer.\n\n"
    return [
        {"prompt": [{"role": "user", "content": prompt}], "question_id": task["question_id"]}
        for task in reply["tasks"]
        if all(task[key] == value for key, value in wanted.items())
    ]
