"""Drives TRL's own code for what changes between optimizer steps: adaptive entropy control, and the mixing of the reference.

    python test/reference/trl_adaptive.py      # needs torch and trl; writes test/reference/trl-adaptive.json

Entropy: `GRPOTrainer._compute_loss` on the inputs of trl_losses.py, two batches for each step, whose temperatures make
the entropy cross the target in both directions; the coefficient reaches both of its bounds. Arithmetic is in float64.
Reference: `SyncRefModelCallback.on_step_end` on a small module, in float32, as it is trained.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import torch
import trl
from trl import GRPOTrainer
from trl.trainer.callbacks import SyncRefModelCallback

from trl_losses import BASE, COMPLETION_MASK, OLD_LOGPS, inputs_of, leaves, number, stand_in

CONTROL = {
    "entropy_coef": 0.004,
    "entropy_coef_min": 0.001,
    "entropy_coef_max": 0.012,
    "entropy_coef_delta": 0.005,
    "entropy_target": 0.5,
}
# The temperatures of both batches of each step.
STEPS = [(0.8, 0.8), (0.2, 0.2), (0.2, 0.8), (0.3, 0.2), (0.2, 0.2), (0.2, 0.2), (0.8, 0.2), (0.8, 1.5), (0.8, 0.8), (0.25, 0.25)]
MIXUP_ALPHA, SYNC_STEPS = 0.6, 2


def entropy_steps(loss_type):
    options = {**BASE, **CONTROL, "loss_type": loss_type}
    metrics = {}
    trainer = stand_in(options, metrics)
    trainer.use_adaptive_entropy = True
    trainer._entropy_bonus_enabled = True
    trainer._last_world_entropy = float("inf")
    trainer._entropy_window_stats = None
    for temperatures in STEPS:
        losses = []
        for batch, temperature in enumerate(temperatures):
            logps, entropies = leaves(temperature)
            inputs = inputs_of(options, torch.tensor(COMPLETION_MASK))
            # Batches of different sizes, so that a mean of means would differ.
            inputs["completion_mask"][batch] = 0
            inputs["old_per_token_logps"] = torch.tensor(OLD_LOGPS)
            trainer._get_per_token_logps_and_entropies = lambda *a, **k: (logps, entropies, None)
            trainer.accelerator.sync_gradients = batch == len(temperatures) - 1
            losses.append(number(GRPOTrainer._compute_loss(trainer, None, inputs).item()))
        yield {
            "temperatures": temperatures,
            "losses": losses,
            "policy_losses": [number(x) for x in metrics["policy_loss"][-2:]],
            "entropy": number(trainer._last_world_entropy),
            "coef": number(trainer.entropy_coef),
        }


def mixed_references():
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    model, reference = torch.nn.Linear(6, 1), torch.nn.Linear(6, 1)
    values = lambda module: [x for p in module.parameters() for x in p.detach().flatten().tolist()]
    callback = SyncRefModelCallback(ref_model=reference, accelerator=None)
    callback.sync_target_model = SyncRefModelCallback._sync_target_model  # without asking for DeepSpeed
    args = SimpleNamespace(ref_model_sync_steps=SYNC_STEPS, ref_model_mixup_alpha=MIXUP_ALPHA)
    first = values(reference)
    steps = []
    for step in range(1, 5):
        for p in model.parameters():
            p.data.add_(torch.randn_like(p))
        callback.on_step_end(args, SimpleNamespace(global_step=step), None, model=model)
        steps.append({"step": step, "model": values(model), "reference": values(reference)})
    return {"ref_model_mixup_alpha": MIXUP_ALPHA, "ref_model_sync_steps": SYNC_STEPS, "first": first, "steps": steps}


out = {
    "note": f"TRL {trl.__version__}: GRPOTrainer._compute_loss, SyncRefModelCallback; made by trl_adaptive.py",
    "control": CONTROL,
    "entropy": {loss_type: list(entropy_steps(loss_type)) for loss_type in ("dapo", "grpo")},
    "reference": mixed_references(),
}
path = Path(__file__).with_name("trl-adaptive.json")
path.write_text(json.dumps(out, indent=1) + "\n")
print(f"{path.name}: {path.stat().st_size} bytes")
