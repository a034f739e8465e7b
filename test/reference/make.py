"""Makes the reference models: tiny random decoders and what transformers computes with them, in float64.

    python test/reference/make.py [NAME…] && npx biome check --write test/reference

Needs torch, transformers and safetensors; README.md here says what each file holds. The weights come from a seed, but
torch may draw other numbers on another version: the files are the reference, this script says how they were made.
"""

import copy
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config
from truth import double

HERE = Path(__file__).parent
LENGTHS = [17, 5, 29]
TEMPERATURE = 0.8
ENTROPY_WEIGHT = 0.01
STEPS = 10
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
MAX_GRAD_NORM = 1.0

SHARED = {"attention_bias": False, "max_position_embeddings": 64, "bos_token_id": None, "eos_token_id": 1}
MODELS = {
    # head_dim is not hidden_size / num_attention_heads, as in Qwen3-0.6B
    "qwen3-tied": Qwen3Config(
        hidden_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        intermediate_size=56, vocab_size=131, tie_word_embeddings=True, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0}, **SHARED,
    ),
    "qwen3-untied": Qwen3Config(
        hidden_size=40, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=16,
        intermediate_size=72, vocab_size=101, tie_word_embeddings=False, rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0}, **SHARED,
    ),
    "llama-tied": LlamaConfig(
        hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5, head_dim=8,
        intermediate_size=104, vocab_size=97, tie_word_embeddings=True, rms_norm_eps=1e-5, mlp_bias=False,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0}, **SHARED,
    ),
    "llama-untied": LlamaConfig(
        hidden_size=48, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, head_dim=8,
        intermediate_size=88, vocab_size=115, tie_word_embeddings=False, rms_norm_eps=1e-5, mlp_bias=False,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0}, **SHARED,
    ),
    # biases on q, k and v, which no key of the config says; keys for sliding windows that are off
    "qwen2-tied": Qwen2Config(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1,
        intermediate_size=72, vocab_size=109, tie_word_embeddings=True, rms_norm_eps=1e-6,
        use_sliding_window=False, sliding_window=16, max_window_layers=1,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        max_position_embeddings=64, bos_token_id=None, eos_token_id=1,
    ),
    # wavelengths of 6 (kept), 20 (interpolated) and 63 to 20,000 positions (slowed down)
    "llama3-untied": LlamaConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        intermediate_size=72, vocab_size=103, tie_word_embeddings=False, rms_norm_eps=1e-5, mlp_bias=False,
        rope_parameters={
            "rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 32,
        }, **SHARED,
    ),
}  # fmt: skip
OLD_STYLE = {"qwen3-untied", "llama-tied", "qwen2-tied"}  # their config.json is written as transformers 4 did: rope_theta on its own


def init(model, generator):
    """Weights large enough that attention is not uniform, and norms that are not all ones; float32 values."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith(".bias"):
                parameter.copy_(0.5 * noise)
            elif parameter.dim() == 1:
                parameter.copy_(1 + 0.2 * noise)
            elif parameter.shape[0] == model.config.vocab_size:
                parameter.copy_(0.4 * noise)
            else:
                parameter.copy_(noise * 1.2 / parameter.shape[1] ** 0.5)


def forward(model, sequences):
    """Logits of every position, sequence after sequence; each sequence is run alone, so nothing is padded."""
    return torch.cat([model(ids[None]).logits[0] for ids in sequences])


def targets(sequences):
    """Rows of the logits that predict a token of the same sequence, and that token."""
    rows, tokens, start = [], [], 0
    for ids in sequences:
        rows += range(start, start + len(ids) - 1)
        tokens += ids[1:].tolist()
        start += len(ids)
    return torch.tensor(rows), torch.tensor(tokens)


def logps_and_entropies(logits, sequences):
    rows, tokens = targets(sequences)
    logps = (logits[rows] / TEMPERATURE).log_softmax(-1)
    return logps.gather(-1, tokens[:, None])[:, 0], -(logps.exp() * logps).sum(-1)


def train(model, sequences, decay_norms):
    """Losses before each of the steps and after the last, and the gradients' norms before they are clipped."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    norms = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices}, {"params": norms, **({} if decay_norms else {"weight_decay": 0.0})}], **ADAMW
    )
    rows, tokens = targets(sequences)
    losses, grad_norms = [], []
    for step in range(STEPS + 1):
        loss = torch.nn.functional.cross_entropy(forward(model, sequences)[rows], tokens)
        losses.append(loss.item())
        if step == STEPS:
            break
        optimizer.zero_grad()
        loss.backward()
        grad_norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM).item())
        optimizer.step()
    return torch.tensor(losses, dtype=torch.float64), torch.tensor(grad_norms, dtype=torch.float64)


def write_config(config, folder, old_style):
    values = json.loads(config.to_json_string(use_diff=False))
    names = (
        "architectures model_type hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
        "intermediate_size vocab_size tie_word_embeddings rms_norm_eps hidden_act attention_bias mlp_bias "
        "max_position_embeddings rope_parameters bos_token_id eos_token_id "
        "use_sliding_window sliding_window max_window_layers layer_types"
    ).split()
    values = {name: values[name] for name in names if name in values}
    if old_style:
        values["rope_theta"] = values.pop("rope_parameters")["rope_theta"]
        values["torch_dtype"] = "float32"
    else:
        values["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(values, indent=2) + "\n")


def make(name, config):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    generator = torch.Generator().manual_seed(list(MODELS).index(name) + 1)
    plain = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").float().eval()
    config.architectures = [type(plain).__name__]
    init(plain, generator)
    save_file(
        {k: v.contiguous() for k, v in plain.state_dict().items() if not (config.tie_word_embeddings and k == "lm_head.weight")},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    write_config(config, folder, name in OLD_STYLE)

    sequences = [torch.randint(config.vocab_size, (n,), generator=generator) for n in LENGTHS]
    # A third of the tokens weigh nothing, the others up or down: what a policy gradient looks like.
    weights = torch.randn(sum(LENGTHS) - len(LENGTHS), generator=generator)
    weights[torch.rand(weights.shape, generator=generator) < 1 / 3] = 0

    model = double(copy.deepcopy(plain))
    logits = forward(model, sequences)
    logp, entropy = logps_and_entropies(logits, sequences)
    loss = (weights.double() * logp).sum() + ENTROPY_WEIGHT * entropy.sum()
    model.zero_grad()
    loss.backward()
    losses, grad_norms = train(double(copy.deepcopy(plain)), sequences, decay_norms=True)
    losses_matrices, grad_norms_matrices = train(double(copy.deepcopy(plain)), sequences, decay_norms=False)

    tensors = {
        "ids": torch.cat(sequences).int(),
        "lengths": torch.tensor(LENGTHS).int(),
        "logits": logits.detach().float(),
        "logp": logp.detach().float(),
        "entropy": entropy.detach().float(),
        "weights": weights,
        "loss": loss.detach().double().reshape(1),
        **{f"grad.{k}": v.grad.float() for k, v in model.named_parameters()},
        "adamw.losses": losses,
        "adamw.grad_norms": grad_norms,
        "adamw_undecayed_norms.losses": losses_matrices,
        "adamw_undecayed_norms.grad_norms": grad_norms_matrices,
    }
    save_file(tensors, folder / "expected.safetensors", metadata={"made_by": "make.py"})

    # The folder must load in transformers, whose own float32 arithmetic must agree.
    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        apart = (forward(loaded, sequences) - logits).abs().max().item()
    losses_32, grad_norms_32 = train(loaded, sequences, decay_norms=True)
    losses_apart = (losses_32 - losses).abs().max().item()
    norms_apart = (grad_norms_32 - grad_norms).abs().max().item()
    assert max(apart, losses_apart, norms_apart) < 1e-4, (apart, losses_apart, norms_apart)
    print(
        f"{name}: {sum(p.numel() for p in plain.parameters())} parameters, logits' deviation {logits.std():.2f}, "
        f"losses {losses[0]:.4f} to {losses[-1]:.4f}, norms {grad_norms[0]:.3f} to {grad_norms[-1]:.3f}; float32 differs by "
        f"{apart:.1e} in logits, {losses_apart:.1e} in losses, {norms_apart:.1e} in norms; "
        f"{sum(f.stat().st_size for f in folder.iterdir())} bytes"
    )


if __name__ == "__main__":
    for model_name in sys.argv[1:] or MODELS:
        make(model_name, MODELS[model_name])
