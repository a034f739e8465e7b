"""Plays questions with OpenEnv's stock client: pip install openenv; npx sqlenv serve &; python openenv_loop.py"""

import json
import sys

from openenv.core.generic_client import GenericEnvClient


def choose(seen: dict) -> dict:
    """Your model goes here: an observation in, an action out. This one counts the rows of the first table."""
    table = seen["schema_info"].split(",")[0].split("\n")[0].strip()
    if seen["step_count"] == 0:
        return {"action_type": "QUERY", "argument": f'SELECT count(*) FROM "{table}"'}
    return {"action_type": "ANSWER", "argument": seen["result"].split("\n")[-1]}


url = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8000"
with GenericEnvClient(base_url=url).sync() as env:
    for index in range(5):
        result, rewards = env.reset(split="eval", index=index), []
        while not result.done:
            result = env.step(choose(result.observation))
            rewards.append(result.reward)
        print(json.dumps({"question_id": env.state()["question_id"], "rewards": rewards}))
