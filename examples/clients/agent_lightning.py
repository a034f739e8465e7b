"""SQLEnv in agent-lightning: a rollout in which the trainer's model plays one question, and its reward.

    npm run -s sqlenv -- serve --model starter --data starter
    pip install agentlightning openenv
    python examples/clients/agent_lightning.py --model starter

`agl.Trainer` takes `play` as it is. Run as a program, this file plays some questions with agent-lightning's own runner, and
exits with 1 if a rollout fails or records no reward.
"""
import argparse
import asyncio
import json
import urllib.request

import agentlightning as agl
from openai import AsyncOpenAI
from openenv.core.generic_client import GenericEnvClient


@agl.rollout
async def play(task, llm, rollout):
    """Plays the question `task["question_id"]` on the server `task["url"]`; the reward is 1 for a correct answer."""
    url = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id)
    client = AsyncOpenAI(base_url=url, api_key=llm.api_key or "none")
    async with GenericEnvClient(base_url=task["url"]) as env:
        async def call(tool, **arguments):
            result = await env.step({"type": "call_tool", "tool_name": tool, "arguments": arguments})
            return result.observation["result"]["structured_content"]

        seen = await call("start", question_id=task["question_id"])
        messages = [{"role": "system", "content": seen["system_prompt"]}, {"role": "user", "content": seen["result"]}]
        while not seen["done"]:
            reply = await client.chat.completions.create(model=llm.model, messages=messages, **llm.sampling_parameters)
            said = reply.choices[0].message.content or ""
            seen = await call("act", text=said)
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": seen["result"]}]
        return float(seen["outcome"]["correctness"])


def load_tasks(url, split):
    body = json.dumps({"split": split}).encode()
    request = urllib.request.Request(f"{url}/sqlenv/tasks", body, {"Content-Type": "application/json"})
    return [{**task, "url": url} for task in json.load(urllib.request.urlopen(request))["tasks"]]


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="http://localhost:8000", help="the environment's server")
    parser.add_argument("--llm", help="the model's endpoint (default: /v1 of --env)")
    parser.add_argument("--model", required=True)
    parser.add_argument("--tasks", type=int, default=8)
    options = parser.parse_args()
    sampling = {"temperature": 1.0, "max_tokens": 256}
    llm = agl.LLM(endpoint=options.llm or f"{options.env}/v1", model=options.model, sampling_parameters=sampling)
    store = agl.InMemoryLightningStore()
    runner = agl.LitAgentRunner(agl.OtelTracer())
    failed = 0
    with runner.run_context(agent=play, store=store):
        for task in load_tasks(options.env, "train")[: options.tasks]:
            done = await runner.step(task, resources={"main_llm": llm})
            reward = agl.find_final_reward(await store.query_spans(done.rollout_id))
            failed += done.status != "succeeded" or reward not in (0.0, 1.0)
            print(json.dumps({"question_id": task["question_id"], "status": done.status, "reward": reward}))
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    asyncio.run(main())
