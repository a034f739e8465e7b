"""Double precision all the way through a transformers model.

`model.double()` alone is not enough: transformers computes RMSNorm and the rotary cosines in float32 whatever the model's
type, and so does its eager softmax. Here the first two are replaced by the same formulas in the input's type; attention
must be loaded as "sdpa", which keeps it.
"""

import torch


def double(model):
    """Turns a Qwen2, Qwen3 or Llama model to float64, norms and rotary angles included; returns it in evaluation mode."""
    model = model.double().eval()
    for module in model.modules():
        name = type(module).__name__
        if name.endswith("RMSNorm"):
            module.forward = rms_norm(module)
        elif name.endswith("RotaryEmbedding"):
            module.forward = rotary(model.config, module)
    return model


def rms_norm(module):
    def forward(x):
        return module.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + module.variance_epsilon))

    return forward


def rotary(config, module):
    rope = config.rope_parameters
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    frequencies = rope["rope_theta"] ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    if rope["rope_type"] == "llama3":
        turns = rope["original_max_position_embeddings"] * frequencies / (2 * torch.pi)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        share = ((turns - low) / (high - low)).clamp(0, 1)
        frequencies = (1 - share) * frequencies / rope["factor"] + share * frequencies
    else:
        assert rope["rope_type"] == "default", rope
    assert torch.allclose(frequencies, module.inv_freq.double(), rtol=1e-6), (frequencies, module.inv_freq)

    def forward(x, position_ids):
        angles = position_ids[:, :, None].double() * frequencies
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    return forward
