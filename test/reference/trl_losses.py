"""Drives TRL's own GRPOTrainer._compute_loss on small fixed inputs and writes losses, gradients and metrics.

    python test/reference/trl_losses.py      # needs torch and trl; writes test/reference/trl-losses.jsonl: inputs, then a case a line

The trainer is never constructed: `_compute_loss` is called on a stand-in that has the attributes it reads and gives it
our log-probs and entropies as leaves, so that autograd's gradients by them can be stored. Arithmetic is in float64.
"""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import torch
import trl
from trl import GRPOTrainer

torch.set_default_dtype(torch.float64)

TEMPERATURE = 0.8
# Four sequences of at most four tokens over three words, with ratios on every side of the clip.
LOGITS = [
    [[-1.1, -1.2, -0.3], [-0.4, 0.8, 0.7], [-0.3, -2.1, 0.3], [-1.3, 0.3, 0.3]],
    [[0.1, 1.2, 1.1], [-0.2, -1.4, -1.7], [0.6, 0.8, 0.6], [-1.6, -0.3, 1.9]],
    [[0.8, -0.6, -0.2], [0.2, 1.4, 1.6], [0.9, -0.8, -0.6], [0.0, -0.5, 0.2]],
    [[0.4, 0.1, 0.6], [0.4, -0.1, 0.8], [-0.3, 0.1, 0.5], [2.3, -1.5, -1.6]],
]
COMPLETION_IDS = [[0, 1, 2, 0], [2, 2, 1, 0], [1, 0, 0, 2], [0, 2, 1, 1]]
COMPLETION_MASK = [[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]]
TOOL_MASK = [[1, 0, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 0, 1]]
OLD_LOGPS = [
    [-1.5262, -0.6446, -0.7201, -2.3586],
    [-1.3836, -2.1445, -0.7391, -4.4487],
    [-1.8286, -2.4391, -0.2412, -0.7865],
    [-0.839, -0.7581, -0.5803, -5.0462],
]
REF_LOGPS = [
    [-1.4262, -0.7446, -0.6201, -2.7086],
    [-0.5836, -2.5945, -0.9391, -4.4487],
    [-2.2286, -2.2191, -0.2412, -0.7865],
    [-1.089, -0.5081, -1.4303, -4.2662],
]
ADVANTAGES = [1.2, -0.7, 0.0, -0.5]

BASE = {
    "loss_type": "dapo",
    "epsilon": 0.2,
    "epsilon_high": 0.28,
    "delta": None,
    "beta": 0.0,
    "use_bias_correction_kl": False,
    "importance_sampling_level": "token",
    "entropy_coef": 0.0,
    "top_entropy_quantile": 1.0,
    "off_policy_mask_threshold": None,
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "vespo_k_pos": 2.0,
    "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0,
    "vespo_lambda_neg": 2.0,
    "max_completion_length": 8,
    "gradient_accumulation_steps": 2,
    "steps_per_generation": 2,
    "num_items_in_batch": 10,
}

TYPES = ["grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo"]
KL = {"beta": 0.04}
CORRECTED = {"beta": 0.04, "use_bias_correction_kl": True}
SEQUENCE = {"importance_sampling_level": "sequence"}
CASES = {
    **{t: {"loss_type": t} for t in TYPES},
    **{f"{t} beta": {"loss_type": t, **KL} for t in TYPES},
    **{f"{t} beta corrected": {"loss_type": t, **CORRECTED} for t in TYPES},
    **{f"{t} sequence": {"loss_type": t, **SEQUENCE} for t in TYPES if t != "vespo"},
    "grpo sequence beta corrected": {"loss_type": "grpo", **SEQUENCE, **CORRECTED},
    "dapo sequence narrow": {**SEQUENCE, "epsilon": 0.01, "epsilon_high": 0.01},
    "dapo delta": {"delta": 1.3},
    "dapo delta inside the clip": {"delta": 1.1},
    "dapo N 26": {"num_items_in_batch": 26},
    "dapo N 26, GA 2, spg 4": {"num_items_in_batch": 26, "steps_per_generation": 4},
    "dapo N 26, GA 4, spg 4": {"num_items_in_batch": 26, "gradient_accumulation_steps": 4, "steps_per_generation": 4},
    "dapo entropy": {"entropy_coef": 0.01},
    "grpo entropy": {"loss_type": "grpo", "entropy_coef": 0.01},
    "dapo top entropy .5": {"top_entropy_quantile": 0.5},
    "dapo top entropy .2": {"top_entropy_quantile": 0.2},
    "grpo top entropy .5, entropy, beta": {"loss_type": "grpo", "top_entropy_quantile": 0.5, "entropy_coef": 0.01, **KL},
    "dapo on policy": {"old": False},
    "grpo on policy beta corrected": {"loss_type": "grpo", "old": False, **CORRECTED},
    "grpo sequence on policy": {"loss_type": "grpo", "old": False, **SEQUENCE},
    "dapo off-policy mask": {"off_policy_mask_threshold": 0.05},
    "cispo cap 1.2": {"loss_type": "cispo", "epsilon_high": 1.2},
    "one sequence masked out": {"loss_type": "grpo", "masked_out": 1},
    "one sequence masked out, sequence level": {"loss_type": "grpo", "masked_out": 1, **SEQUENCE, **KL},
}


class Accelerator:
    """One process: gathering and reducing return what they were given."""

    num_processes = 1
    sync_gradients = True

    def gather(self, x):
        return x

    gather_for_metrics = gather

    def reduce(self, x, reduction):
        return x

    def pad_across_processes(self, x, dim, pad_index):
        return x


def leaves(temperature):
    """Log-probs of the sampled tokens and entropies, as autograd's leaves."""
    all_logps = (torch.tensor(LOGITS) / temperature).log_softmax(-1)
    logps = all_logps.gather(-1, torch.tensor(COMPLETION_IDS).unsqueeze(-1)).squeeze(-1).requires_grad_()
    entropies = (-(all_logps.exp() * all_logps).sum(-1)).requires_grad_()
    return logps, entropies


def inputs_of(options, mask):
    return {
        "prompt_ids": torch.zeros(4, 1, dtype=torch.long),
        "prompt_mask": torch.ones(4, 1, dtype=torch.long),
        "completion_ids": torch.tensor(COMPLETION_IDS),
        "completion_mask": mask,
        "tool_mask": torch.tensor(TOOL_MASK),
        "advantages": torch.tensor(ADVANTAGES),
        "num_items_in_batch": torch.tensor(float(options["num_items_in_batch"])),
        "ref_per_token_logps": torch.tensor(REF_LOGPS),
    }


def stand_in(options, metrics):
    """What `_compute_loss` reads of a trainer; `metrics` receives what it logs."""

    class Metrics(dict):
        def __missing__(self, name):
            metrics[name] = self[name] = []
            return self[name]

    trainer = SimpleNamespace(
        args=SimpleNamespace(**options),
        **{k: options[k] for k in ("loss_type", "beta", "importance_sampling_level", "entropy_coef")},
        **{k: options[k] for k in ("top_entropy_quantile", "off_policy_mask_threshold", "max_completion_length")},
        epsilon_low=options["epsilon"],
        epsilon_high=options["epsilon_high"],
        current_gradient_accumulation_steps=options["gradient_accumulation_steps"],
        model=SimpleNamespace(training=True),
        accelerator=Accelerator(),
        aux_loss_enabled=False,
        use_vllm=False,
        use_adaptive_entropy=False,
        _entropy_bonus_enabled=options["entropy_coef"] != 0,
        _metrics={"train": Metrics()},
        get_off_policy_mask=GRPOTrainer.get_off_policy_mask,
        get_gamma_weights=GRPOTrainer.get_gamma_weights,
    )
    trainer.get_high_entropy_mask = lambda *a: GRPOTrainer.get_high_entropy_mask(trainer, *a)
    return trainer


def run(case):
    options = {**BASE, **{k: v for k, v in case.items() if k in BASE}}
    logps, entropies = leaves(TEMPERATURE)
    mask = torch.tensor(COMPLETION_MASK)
    if "masked_out" in case:
        mask[case["masked_out"]] = 0
    inputs = inputs_of(options, mask)
    if case.get("old", True):
        inputs["old_per_token_logps"] = torch.tensor(OLD_LOGPS)
    metrics = {}
    trainer = stand_in(options, metrics)
    trainer._get_per_token_logps_and_entropies = lambda *a, **k: (logps, entropies, None)
    loss = GRPOTrainer._compute_loss(trainer, None, inputs)
    loss.backward()
    return {
        "case": {k: v for k, v in case.items()},
        "loss": number(loss.item()),
        "dLogp": numbers(logps.grad),
        "dEntropy": numbers(entropies.grad if entropies.grad is not None else torch.zeros_like(entropies)),
        "metrics": {k: number(v[0]) for k, v in metrics.items()},
    }


def number(x):
    assert math.isfinite(x)
    return float(f"{x:.9g}") + 0.0


def numbers(x):
    return [[number(v) for v in row] for row in x.tolist()]


def main():
    inputs = {
        "temperature": TEMPERATURE,
        "logits": LOGITS,
        "completion_ids": COMPLETION_IDS,
        "completion_mask": COMPLETION_MASK,
        "tool_mask": TOOL_MASK,
        "old_logps": OLD_LOGPS,
        "ref_logps": REF_LOGPS,
        "advantages": ADVANTAGES,
    }
    note = f"TRL {trl.__version__}, GRPOTrainer._compute_loss in float64; made by trl_losses.py"
    lines = [{"note": note, "base": BASE, "inputs": inputs}, *({"name": name, **run(case)} for name, case in CASES.items())]
    path = Path(__file__).with_name("trl-losses.jsonl")
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    print(f"{path.name}: {len(CASES)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
