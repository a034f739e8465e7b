"""Plays SQLEnv episodes with the `openai` package: a model at any OpenAI-compatible endpoint calls the environment's tools.

    npm run -s sqlenv -- serve --model Qwen/Qwen3-0.6B
    pip install openai mcp
    python examples/clients/play_with_openai.py --model Qwen/Qwen3-0.6B

With --text the model writes actions as text: for models without tools, such as the bundled starter. Prints one JSON object
per episode; exits with 1 if one was not played to its end. OPENAI_API_KEY holds the endpoint's key.
"""
import argparse
import asyncio
import json
import os

from mcp import Client
from openai import AsyncOpenAI

SYSTEM = "You answer a question about a SQLite database. Explore it with the tools, one call per reply; end with answer."
MAX_TURNS = 40
async def play(index, options, llm):
    async with Client(f"{options.env}/mcp") as env:
        listed = [tool for tool in (await env.list_tools()).tools if tool.name not in ("start", "act")]
        functions = [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in listed]
        tools = {} if options.text else {"tools": [{"type": "function", "function": f} for f in functions]}
        seen = (await env.call_tool("start", {"split": options.split, "index": index})).structured_content
        system = seen["system_prompt"] if options.text else SYSTEM
        messages = [{"role": "system", "content": system}, {"role": "user", "content": seen["result"]}]
        actions = []
        for _ in range(MAX_TURNS):
            reply = await llm.chat.completions.create(
                model=options.model, messages=messages, temperature=options.temperature, max_tokens=256, **tools)
            said = reply.choices[0].message
            messages.append(said.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            calls = [(call.function.name, json.loads(call.function.arguments), call.id) for call in said.tool_calls or []]
            for name, arguments, call_id in calls or [("act", {"text": said.content or ""}, None)]:  # text is an action too
                result = await env.call_tool(name, arguments)
                actions.append([name, arguments])
                sender = {"role": "tool", "tool_call_id": call_id} if call_id else {"role": "user"}
                messages.append({**sender, "content": result.content[0].text})
                seen = result.structured_content or seen  # a failed call has only its text
                if seen["done"]:
                    return {"index": index, "actions": actions, **seen["outcome"]}
    return {"index": index, "actions": actions, "correctness": None}

async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="http://localhost:8000", help="the environment's server")
    parser.add_argument("--llm", default="http://localhost:8000/v1", help="the model's endpoint")
    parser.add_argument("--model", required=True)
    parser.add_argument("--split", default="eval")
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--text", action="store_true")
    options = parser.parse_args()
    llm = AsyncOpenAI(base_url=options.llm, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    for episode in (episodes := await asyncio.gather(*(play(i, options, llm) for i in range(options.episodes)))):
        print(json.dumps(episode))
    raise SystemExit(any(episode["correctness"] is None for episode in episodes))

asyncio.run(main())
