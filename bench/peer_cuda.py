# The comparison for `sqlenv bench cuda`: transformers and PyTorch on the same GPU, the same architecture, random weights.
# Usage: python peer_cuda.py '<json: {config, spec, parts, seconds, limits, episodes}>'; prints one JSON object on stdout. Needs
# torch, transformers. `limits` are seconds a part may take, by name; `episodes` is a file with the episodes of a GRPO step.
import json
import signal
import statistics
import sys
import time

import torch
import transformers

ask = json.loads(sys.argv[1])
config, spec = ask["config"], ask["spec"]
parts = ask.get("parts", ["sampling", "grpo", "training", "training_compiled", "sampling_compiled"])
deadline = time.perf_counter() + ask.get("seconds", 900)
out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__}}


def note(text):
    print(text, file=sys.stderr, flush=True)


def make():
    keys = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
            "vocab_size", "rms_norm_eps", "max_position_embeddings", "tie_word_embeddings"}
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**{key: config[key] for key in keys}))
    return model.to(torch.bfloat16)


def give_up(*_):
    raise TimeoutError("no time left")


signal.signal(signal.SIGALRM, give_up)


def attempt(name, work):
    try:
        start = time.perf_counter()
        signal.alarm(max(1, int(min(deadline - start, ask.get("limits", {}).get(name, 1e9)))))
        out[name] = work()
        note(f"{name}: {json.dumps(out[name])} ({time.perf_counter() - start:.0f} s)")
    except Exception as error:  # a failure is a result too
        signal.alarm(0)
        out[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        note(f"{name}: {out[name]}")


def timed(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def sampling(model, sizes, new_tokens, warm, times):
    rates = []
    ids = torch.randint(1, config["vocab_size"], (sizes[0], spec["prompt"]), device="cuda")
    with torch.no_grad():  # one-time costs must not count against the first size
        model.generate(ids, max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=True, pad_token_id=0, eos_token_id=None)
    for size in sizes:
        ids = torch.randint(1, config["vocab_size"], (size, spec["prompt"]), device="cuda")
        options = dict(do_sample=True, temperature=1.0, top_k=0, top_p=1.0, pad_token_id=0, eos_token_id=None,
                       attention_mask=torch.ones_like(ids))

        def run(n):
            with torch.no_grad():
                model.generate(ids, max_new_tokens=n, min_new_tokens=n, **options)

        for _ in range(warm):
            run(new_tokens)
        whole = statistics.median(timed(lambda: run(new_tokens)) for _ in range(times))
        first = timed(lambda: run(1)) if warm < 2 else None
        first = timed(lambda: run(1)) if first is not None else None
        decode = (whole - first) / (new_tokens - 1) if first is not None else whole / new_tokens
        rates.append({"batch_size": size, "tokens_per_s": size * new_tokens / whole, "decode_tokens_per_s": size / decode,
                      "step_ms": 1000 * decode})
    return rates


def training(compiled):
    model = make().train()
    model.config.use_cache = False
    step_model = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    ids = torch.randint(1, config["vocab_size"], (spec["sequences"], spec["length"]), device="cuda")

    def step():
        step_model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        step()
    torch.cuda.reset_peak_memory_stats()
    seconds = statistics.median(timed(step) for _ in range(5))
    tokens = spec["sequences"] * spec["length"]
    return {"tokens_per_s": tokens / seconds, "seconds": seconds, "peak_bytes": torch.cuda.max_memory_allocated()}


def grpo(path, batch_size):
    """A GRPO step from episodes that were played: in each turn `generate` on all live ones together, each from its whole context,
    then what was said there takes the samples' place; forward, backward and AdamW over all contexts, `batch_size` at a time.
    Observations are given, so there is no environment; nothing is tokenized."""
    episodes = json.load(open(path))
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    advantages = torch.linspace(-1, 1, len(episodes), device="cuda")
    model.config.use_cache = True

    def padded(rows, left):
        longest = max(map(len, rows))
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for i, row in enumerate(rows):
            at = slice(longest - len(row), longest) if left else slice(0, len(row))
            ids[i, at], mask[i, at] = torch.tensor(row), 1
        return ids.cuda(), mask.cuda()

    def play():
        model.eval()
        turn, sampled = 0, 0
        while live := [e for e in episodes if len(e["sampled"]) > turn]:
            ids, mask = padded([e["tokens"][: e["sampled"][turn][0]] for e in live], True)
            longest = max(e["sampled"][turn][1] - e["sampled"][turn][0] for e in live)
            with torch.no_grad():
                model.generate(ids, attention_mask=mask, max_new_tokens=longest, min_new_tokens=longest, do_sample=True,
                               temperature=1.0, top_k=0, top_p=1.0, pad_token_id=0, eos_token_id=None)
            sampled += sum(e["sampled"][turn][1] - e["sampled"][turn][0] for e in live)
            turn += 1
        return sampled

    def learn():
        model.train()
        trained = 0
        for at in range(0, len(episodes), batch_size):
            part = episodes[at : at + batch_size]
            ids, mask = padded([e["tokens"] for e in part], False)
            first = min(e["sampled"][0][0] for e in part)  # logits only from the first completion token on, as in TRL
            spoken = torch.zeros(ids.shape, device="cuda")
            for i, e in enumerate(part):
                for start, end in e["sampled"]:
                    spoken[i, start:end] = 1
            keep = ids.shape[1] - first + 1
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False, logits_to_keep=keep).logits[:, :-1]
            targets, weights = ids[:, first:], spoken[:, first:]
            logp = -torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none").view(targets.shape)
            ratio = torch.exp(logp - logp.detach())
            loss = -(advantages[at : at + len(part), None] * ratio * weights).sum() / spoken.sum() * len(part) / len(episodes)
            loss.backward()
            trained += int(mask.sum())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return trained

    steps, tokens = [], {}
    for _ in range(3):
        def whole():
            tokens["sampled_tokens"] = play()

        def after():
            tokens["tokens"] = learn()

        steps.append((timed(whole), timed(after)))
        note(f"grpo step: {steps[-1]}")
    sampling_s, training_s = (statistics.median(step[i] for step in steps[1:]) for i in (0, 1))
    return {"episodes": len(episodes), **tokens, "peak_bytes": torch.cuda.max_memory_allocated(),
            "seconds": {"step": sampling_s + training_s, "sampling": sampling_s, "environment": 0.0, "training": training_s}}


if "sampling" in parts:
    model = make().eval()
    attempt("sampling", lambda: sampling(model, spec["batch_sizes"], 24, 1, 3))
    del model
if "grpo" in parts and ask.get("episodes"):
    attempt("grpo", lambda: grpo(ask["episodes"], ask.get("grpo_batch", 32)))
    torch.cuda.empty_cache()
if "training" in parts:
    attempt("training", lambda: training(False))
torch.cuda.empty_cache()
if "training_compiled" in parts:
    attempt("training_compiled", lambda: training(True))
torch.cuda.empty_cache()
torch._dynamo.reset()
if "sampling_compiled" in parts:
    model = make().eval()
    model.generation_config.cache_implementation = "static"
    for size in sorted({spec["batch_sizes"][0], spec["batch_sizes"][-1]}, reverse=True):
        attempt(f"sampling_compiled_{size}", lambda: sampling(model, [size], 64, 2, 2)[0])
signal.alarm(0)
print(json.dumps(out))
