"""SQLEnv's questions as a taskset of verifiers 0.4, on a server that the taskset starts."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.tasksets.openenv import OpenEnvData, OpenEnvEnv, OpenEnvTask
from verifiers.v1.utils import loaders

from .server import Server


class SQLEnvConfig(vf.TasksetConfig):
    base_url: str | None = None
    """A running `sqlenv serve --text-actions`; without one, the taskset starts its own."""
    serve: list[str] = Field(default_factory=list)
    """Flags for the server it starts, such as `--data` and a path, or `--step-budget` and a number."""
    split: str = "eval"
    """Which questions: train or eval."""


class SQLEnvTaskset(vf.Taskset[OpenEnvTask, SQLEnvConfig]):
    """One task per question of a split."""

    server: Server | None = None

    def load(self) -> Iterator[OpenEnvTask]:
        config = self.config
        if config.base_url is None and self.server is None:
            self.server = Server("--text-actions", *config.serve)
        url = config.base_url or self.server.url
        for index in range(_count(url, config.split)):
            data = OpenEnvData(
                name=f"{config.split}#{index}",
                prompt=None,
                env=None,
                base_url=url,
                use_docker=False,
                provider_kwargs={},
                reset={"split": config.split, "index": index},
            )
            yield OpenEnvTask(data, config.task)


class SQLEnvEnvConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})
    """A plain chat loop on this machine: the model's only tool is its reply."""


class SQLEnvEnv(vf.Env[SQLEnvEnvConfig]):
    """Plays as verifiers' own OpenEnv environment does: a reply is an action, an observation the next user turn."""

    run = OpenEnvEnv.run


def load_environment(**taskset: Any) -> vf.Env:
    """The environment for programs: `load_environment(split="train", serve=["--data", "my.json"])`."""
    return loaders.load_environment(loaders.resolve_env_config({"taskset": {"id": "sqlenv", **taskset}}))


def _count(url: str, split: str) -> int:
    body = json.dumps({"split": split}).encode()
    request = Request(f"{url}/sqlenv/num_tasks", body, {"content-type": "application/json"})
    with urlopen(request, timeout=60) as response:
        return json.load(response)["num_tasks"]
