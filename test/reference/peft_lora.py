"""Makes the LoRA references: what peft computes with adapters on two of the tiny models, in float64.

    python test/reference/peft_lora.py && npx biome check --write test/reference

Needs torch, transformers, safetensors and peft, and make.py's folders; README.md here says what each file holds.
"""

import json
import shutil
from pathlib import Path

import torch
from make import ADAMW, ENTROPY_WEIGHT, MAX_GRAD_NORM, STEPS, forward, logps_and_entropies, targets
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from truth import double

HERE = Path(__file__).parent
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS = {
    # A rank that is no multiple of eight and a scale that is no power of two; and some modules of a fused weight only.
    "qwen3-tied": {"r": 6, "lora_alpha": 9, "target_modules": ALL},
    "llama-untied": {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj", "up_proj", "down_proj"]},
}


def load(name):
    model = AutoModelForCausalLM.from_pretrained(HERE / name, dtype=torch.float32, attn_implementation="sdpa")
    return double(model)


def train(model, sequences):
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learned, **ADAMW)
    rows, tokens = targets(sequences)
    losses, grad_norms = [], []
    for step in range(STEPS + 1):
        loss = torch.nn.functional.cross_entropy(forward(model, sequences)[rows], tokens)
        losses.append(loss.item())
        if step == STEPS:
            break
        optimizer.zero_grad()
        loss.backward()
        grad_norms.append(torch.nn.utils.clip_grad_norm_(learned, MAX_GRAD_NORM).item())
        optimizer.step()
    return torch.tensor(losses, dtype=torch.float64), torch.tensor(grad_norms, dtype=torch.float64)


def make(name, settings):
    folder = HERE / name / "lora"
    shutil.rmtree(folder, ignore_errors=True)
    expected = load_file(HERE / name / "expected.safetensors")
    sequences = list(expected["ids"].long().split(expected["lengths"].tolist()))
    generator = torch.Generator().manual_seed(7)
    plain = get_peft_model(load(name), LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **settings))
    with torch.no_grad():
        for key, parameter in plain.named_parameters():
            if "lora_" in key:  # B too: with zeros, A would have no gradient
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator) / parameter.shape[1] ** 0.5)
    plain.float().save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = name
    config["target_modules"] = sorted(config["target_modules"])
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")

    model = PeftModel.from_pretrained(load(name), folder, is_trainable=True).double().eval()
    logits = forward(model, sequences)
    logp, entropy = logps_and_entropies(logits, sequences)
    loss = (expected["weights"].double() * logp).sum() + ENTROPY_WEIGHT * entropy.sum()
    model.zero_grad()
    loss.backward()
    grads = {
        f"grad.{key.replace('.default', '')}": parameter.grad.float()
        for key, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    losses, grad_norms = train(model, sequences)
    tensors = {
        "logits": logits.detach().float(),
        "logp": logp.detach().float(),
        **grads,
        "adamw.losses": losses,
        "adamw.grad_norms": grad_norms,
    }
    save_file(tensors, folder / "expected.safetensors", metadata={"made_by": "peft_lora.py"})
    print(f"{name}: {len(grads)} tensors, losses {losses[0]:.4f} to {losses[-1]:.4f}, {sum(f.stat().st_size for f in folder.iterdir())} bytes")


if __name__ == "__main__":
    for model_name, model_settings in ADAPTERS.items():
        make(model_name, model_settings)
