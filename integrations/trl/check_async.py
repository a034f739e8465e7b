"""The rollout loop of TRL's AsyncGRPOTrainer with turns from scripts in place of vLLM: prints the rewards it computed.

Run by test/public/trl-bridge.slow.test.ts, which plays the same scripts in its own process and compares.
    python check_async.py URL SCRIPTS.json
"""

import asyncio
import functools
import json
import pickle
import queue
import sys
import threading
import types

from accelerate.state import PartialState
from datasets import Dataset
from trl.experimental.async_grpo.async_rollout_worker import _AsyncRolloutLoop

from scripted import Scripts
from sqlenv_trl import RewardedSQLEnv
from train_tiny import tiny_tokenizer

GROUPS = 4

url, path = sys.argv[1:]
tokenizer = tiny_tokenizer()
scripts = Scripts(path, tokenizer)


class Loop(_AsyncRolloutLoop):
    """TRL's own loop, but for the requests to vLLM; it stops after some groups."""

    scored = 0

    async def _run_loops(self, stop_event):
        await asyncio.gather(self._generate_loop(stop_event), self._score_loop(stop_event))

    async def _generate_one_turn(self, prompt_ids):
        ids = scripts.next_ids(prompt_ids)
        return ids, [0.0] * len(ids)

    async def _score_group(self, group):
        self.scored += 1
        if self.scored == GROUPS:
            self._stop_event.set()
        for question_id, completion, (_, reward) in zip(group.reward_kwargs["question_id"], group.completions, group.env_rewards):
            record = {"question_id": question_id, "variant": scripts.variant_of(question_id, completion), "value": reward}
            records.append(record)
        return await super()._score_group(group)


records = []
rows = [{"prompt": [{"role": "user", "content": "Answer.\n\n"}], "question_id": script["question_id"]} for script in scripts.all]
# TRL pickles these for the process in which its loop runs.
given = {"environment_factory": functools.partial(RewardedSQLEnv, url), "dataset": Dataset.from_list(rows), "reward_funcs": []}
PartialState()
samples = queue.Queue()
Loop(
    **pickle.loads(pickle.dumps(given)),
    model_name="scripted",
    processing_class=tokenizer,
    eos_token_ids=[tokenizer.eos_token_id],
    rollout_buffer=samples,
    model_version_value=types.SimpleNamespace(value=0),
    heartbeat_value=types.SimpleNamespace(value=0.0),
    failed_event=threading.Event(),
    exception_info_queue=queue.Queue(),
    metrics_queue=queue.Queue(),
    num_generations=4,
    max_inflight_tasks=8,
    chat_template_kwargs={"enable_thinking": False},
).run()
metrics = [samples.get_nowait().metrics for _ in range(samples.qsize())]
print(json.dumps({"records": records, "metrics": metrics}))
