"""The stock client trains and samples on a Tinker server; prints what it saw as JSON.

    python check_tinker.py --url http://localhost:8000 --base-model starter
"""

import argparse
import json

import tinker
from tinker import types


def done(value):
    """A client's result: since 0.38 the calls that make clients return futures, before they returned the client."""
    return value.result() if hasattr(value, "result") else value


def datum(tokens, **inputs):
    fields = {"target_tokens": types.TensorData(data=tokens[1:], dtype="int64", shape=[len(tokens) - 1])}
    for name, values in inputs.items():
        fields[name] = types.TensorData(data=values, dtype="float32", shape=[len(values)])
    return types.Datum(model_input=types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=fields)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--base-model", required=True)
    flags = parser.parse_args()
    service = tinker.ServiceClient(base_url=flags.url, api_key="tml-local")
    listed = [model.model_name for model in service.get_server_capabilities().supported_models]
    client = done(service.create_lora_training_client(base_model=flags.base_model, rank=8, seed=7))
    adam = types.AdamParams(learning_rate=0.01)
    tokens = [5, 9, 2, 7, 7, 3, 11, 40]
    cross_entropy = [datum(tokens, weights=[0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0])]

    losses = []
    for _ in range(3):  # both requests are under way before the first has its result
        forward = client.forward_backward(cross_entropy, "cross_entropy")
        step = client.optim_step(adam)
        losses.append(forward.result().metrics["loss:sum"])
        norm = step.result().metrics["grad_norm"]

    sampler = done(client.save_weights_and_get_sampling_client())
    params = types.SamplingParams(max_tokens=12, temperature=1.0, stop=[])
    prompt = types.ModelInput.from_ints(tokens[:4])
    futures = [sampler.sample(prompt=prompt, sampling_params=params, num_samples=2) for _ in range(16)]
    samples = [sequence for future in futures for sequence in future.result().sequences]

    # On policy, each loss sums −A·r over the sampled tokens with r = 1 but for rounding.
    policy = {}
    for loss in ["importance_sampling", "ppo", "cispo"]:
        batch = []
        for i, sample in enumerate(samples[:4]):
            whole = tokens[:4] + list(sample.tokens)
            advantage = 1.0 if i % 2 == 0 else -0.5
            batch.append(
                datum(
                    whole,
                    logprobs=[0.0] * 3 + list(sample.logprobs),
                    advantages=[0.0] * 3 + [advantage] * len(sample.tokens),
                )
            )
        output = client.forward_backward(batch, loss).result()
        gap = max(
            abs(learned - sampled)
            for sample, row in zip(samples, output.loss_fn_outputs)
            for learned, sampled in zip(list(row["logprobs"].data)[3:], sample.logprobs)
        )
        policy[loss] = {"loss": output.metrics["loss:sum"], "gap": gap}
    client.optim_step(adam).result()

    saved = client.save_state("three").result().path
    again = done(service.create_training_client_from_state_with_optimizer(saved))
    here = client.forward(cross_entropy, "cross_entropy").result().loss_fn_outputs[0]["logprobs"].data
    there = again.forward(cross_entropy, "cross_entropy").result().loss_fn_outputs[0]["logprobs"].data
    path = client.save_weights_for_sampler("three").result().path
    named = done(service.create_sampling_client(model_path=path))
    greedy = types.SamplingParams(max_tokens=4, temperature=0.0)
    chosen = named.sample(prompt=prompt, sampling_params=greedy, num_samples=1).result().sequences[0]
    known = named.compute_logprobs(types.ModelInput.from_ints(tokens)).result()
    try:
        client.forward_backward(cross_entropy, "dro").result()
        refusal = None
    except Exception as error:
        refusal = str(error)
    print(
        json.dumps(
            {
                "version": tinker.__version__,
                "listed": listed,
                "losses": losses,
                "grad_norm": norm,
                "samples": [[len(sample.tokens), len(sample.logprobs)] for sample in samples],
                "policy": policy,
                "restored": max(abs(a - b) for a, b in zip(here, there)),
                "named": [list(chosen.tokens), path, len(known), known[0]],
                "refusal": refusal,
            }
        )
    )


if __name__ == "__main__":
    main()
