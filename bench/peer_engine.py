"""The peer of `sqlenv bench engine`: PyTorch and transformers on the same model, machine and threads.

    python bench/peer_engine.py MODEL_FOLDER [SPEC]

MODEL_FOLDER is in Hugging Face layout; without weights in it they are random. SPEC is a JSON object, or `-` to read one
from stdin; DEFAULTS below lists its keys. Prints one JSON object on stdout, progress on stderr. Float32 on the CPU, without
compilation: `generate` with its KV cache as users call it, forward and backward of cross-entropy as a trainer does them.
Every measurement is repeated after one untimed call; rates are those of the median time, `best_tokens_per_s` of the shortest.
"""

import json
import platform
import resource
import statistics
import sys
import time
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

DEFAULTS = {
    "threads": 2,
    "batch_sizes": [1, 8, 32],  # sequences sampled together
    "context": 300,  # tokens at the end, prompt included
    "new_tokens": 64,
    "sample": True,  # temperature 1, whole vocabulary; false is greedy
    "training": [{"sequences": 8, "length": 300}],  # batches for forward and backward
    "matmuls": [],  # weights as [outputs, inputs], each multiplied with `matmul_rows` rows
    "matmul_rows": 1024,
    "attention": "sdpa",
    "repeats": 5,
    "seed": 0,
}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} MODEL_FOLDER [SPEC]")
    given = {} if len(sys.argv) == 2 else json.loads(sys.stdin.read() if sys.argv[2] == "-" else sys.argv[2])
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        sys.exit(f"unknown in SPEC: {', '.join(unknown)}; known are {', '.join(DEFAULTS)}")
    spec = {**DEFAULTS, **given}
    if not 0 < spec["new_tokens"] < spec["context"]:
        sys.exit(f"new_tokens must be from 1 to context - 1, not {spec['new_tokens']}")

    torch.set_num_threads(spec["threads"])
    torch.manual_seed(spec["seed"])
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = load(sys.argv[1], spec["attention"])
    result = {
        "peer": "transformers",
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__},
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),  # as ATEN_CPU_CAPABILITY sets it
        "matmuls": [matmul(shape, spec) for shape in spec["matmuls"]],
        "model": {"folder": sys.argv[1], "parameters": sum(p.numel() for p in model.parameters())},
        "spec": spec,
        "sampling": [sampling(model, size, spec) for size in spec["batch_sizes"]],
        "training": [training(model, shape, spec) for shape in spec["training"]],
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(result))


def load(folder, attention):
    if any(Path(folder).glob("*.safetensors")):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention)
    else:
        config = AutoConfig.from_pretrained(folder)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation=attention)
    model.generation_config.eos_token_id = None  # every call makes exactly the requested number of tokens
    return model.eval()


def matmul(shape, spec):
    """GFLOP/s of a linear layer without bias, the best of seven measurements."""
    outputs, inputs = shape
    x, weight = torch.full((spec["matmul_rows"], inputs), 0.5), torch.full((outputs, inputs), 0.5)
    flops = 2 * spec["matmul_rows"] * outputs * inputs
    times = max(1, round(4e8 / flops))
    best = float("inf")
    with torch.no_grad():
        for _ in range(8):
            start = time.perf_counter()
            for _ in range(times):
                torch.nn.functional.linear(x, weight)
            best = min(best, time.perf_counter() - start)
    return {"rows": outputs, "columns": inputs, "gflops": flops * times / best / 1e9}


def sampling(model, size, spec):
    """Tokens per second of the whole call, prompt included, and of its two halves."""
    new = spec["new_tokens"]
    prompt = torch.randint(3, model.config.vocab_size, (size, spec["context"] - new))

    def call(tokens):
        settings = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0} if spec["sample"] else {"do_sample": False}
        config = GenerationConfig(max_new_tokens=tokens, use_cache=True, eos_token_id=None, pad_token_id=0, **settings)
        output = model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=config)
        assert output.shape == (size, prompt.shape[1] + tokens)

    def measure():
        with torch.no_grad():
            return timed(lambda: call(new), spec), timed(lambda: call(1), spec)

    (whole, first), peak = with_peak(measure)
    # The first new token comes out of the prompt's forward. Shortest times: a difference of medians is too noisy.
    decode = whole["min_s"] - first["min_s"]
    result = {
        "batch_size": size,
        "tokens_per_s": size * new / whole["median_s"],
        "best_tokens_per_s": size * new / whole["min_s"],
        "decode_tokens_per_s": size * (new - 1) / decode if new > 1 and decode > 0 else None,
        "prefill_tokens_per_s": prompt.numel() / first["min_s"],
        "seconds": whole,
        "first_token_seconds": first,
        "peak_bytes": peak,
    }
    say(f"sampling, batch {size}: {result['tokens_per_s']:.0f} tokens/s")
    return result


def training(model, shape, spec):
    """Tokens per second through forward and backward, gradients set to none before each; no optimizer."""
    ids = torch.randint(3, model.config.vocab_size, (shape["sequences"], shape["length"]))
    model.train()

    def step():
        model.zero_grad(set_to_none=True)
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()

    seconds, peak = with_peak(lambda: timed(step, spec))
    model.zero_grad(set_to_none=True)
    model.eval()
    result = {
        **shape,
        "tokens_per_s": ids.numel() / seconds["median_s"],
        "best_tokens_per_s": ids.numel() / seconds["min_s"],
        "seconds": seconds,
        "peak_bytes": peak,
    }
    say(f"training, {shape['sequences']} × {shape['length']}: {result['tokens_per_s']:.0f} tokens/s")
    return result


def timed(work, spec):
    work()
    times = []
    for _ in range(spec["repeats"]):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return {"median_s": statistics.median(times), "min_s": min(times), "max_s": max(times)}


def with_peak(work):
    """The result of `work` and the process's peak resident size during it; null if the kernel does not report it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        result = work()
        peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        return result, int(peak.split()[1]) * 1024
    except OSError:
        return work(), None


def say(text):
    print(text, file=sys.stderr, flush=True)


main()
