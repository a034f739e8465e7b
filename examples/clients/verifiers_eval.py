"""Evaluates a chat model on SQLEnv's questions with verifiers.

    pip install -r test/clients/verifiers.txt
    npx sqlenv serve --text-actions &
    python examples/clients/verifiers_eval.py --model-url http://localhost:11434/v1 --model qwen3:8b --episodes 20

The key of the endpoint is read from OPENAI_API_KEY. verifiers runs its chat program by `uv`, which is in the requirements.
Prints one JSON object per episode; the traces are in --out.
"""

import argparse
import asyncio
import json

from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig


def main() -> None:
    parser = argparse.ArgumentParser(description="evaluate a chat model on SQLEnv with verifiers")
    parser.add_argument("--url", default="http://localhost:8000", help="a `sqlenv serve --text-actions`")
    parser.add_argument("--model-url", required=True, help="an OpenAI-compatible endpoint, ending in /v1")
    parser.add_argument("--model", required=True, help="the model's name there")
    parser.add_argument("--split", default="eval", help="train or eval")
    parser.add_argument("--episodes", type=int, default=10, help="how many questions, from the split's first")
    parser.add_argument("--out", default="runs/verifiers", help="folder for the traces")
    args = parser.parse_args()
    config = EvalConfig.model_validate(
        {
            "env": {
                "taskset": {
                    "id": "openenv",
                    "base_url": args.url,
                    "resets": [{"split": args.split, "index": index} for index in range(args.episodes)],
                },
                # A plain chat loop on this machine: the model's only tool is its reply.
                "player": {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}},
            },
            "model": args.model,
            "client": {"base_url": args.model_url, "api_key_var": "OPENAI_API_KEY"},
            "max_concurrent": 8,
            "output_dir": args.out,
            "push": False,  # verifiers uploads results unless told otherwise
            "rich": None,
        }
    )
    episodes = asyncio.run(run_eval(config))
    for trace in (trace for episode in episodes for trace in episode.traces):
        errors = [error.message for error in trace.errors]
        print(json.dumps({"reset": trace.task.data.reset, "reward": trace.reward, "turns": trace.num_turns, "errors": errors}))


main()
