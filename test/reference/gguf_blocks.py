"""Random blocks of every GGUF type that is read, and the sha256 of what Python's gguf package makes of them.

Run: pip install gguf==0.19.0 && python test/reference/gguf_blocks.py > test/reference/gguf-blocks.json
Scales include zero, both signs, the smallest and the largest 16-bit floats.
"""

import base64
import hashlib
import json

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

# Where a block's 16-bit floats stand.
SCALES = {
    "Q8_0": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
}
BLOCKS = 16
rng = np.random.default_rng(7)


def quantized(name: str, size: int) -> np.ndarray:
    blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    is_scale = np.zeros(size, bool)
    for at in SCALES[name]:
        scales = rng.standard_normal(BLOCKS) * 10.0 ** rng.uniform(-6, 3, BLOCKS)
        scales[:8] = [6e-8, -6e-8, 0, -0.0, 65504, -65504, 1e-5, -3e-5]
        blocks[:, at : at + 2] = np.roll(scales, at).astype(np.float16).view(np.uint8).reshape(-1, 2)
        is_scale[at : at + 2] = True
    blocks[8, ~is_scale] = 255
    blocks[9, ~is_scale] = 0
    return blocks


def floats(name: str) -> np.ndarray:
    if name == "F32":
        numbers = (rng.standard_normal(256) * 10.0 ** rng.uniform(-40, 38, 256)).astype(np.float32)
        return numbers.view(np.uint8)
    infinite = 0x7C00 if name == "F16" else 0x7F80
    bits = rng.integers(0, 65536, 256).astype(np.uint16)
    bits[(bits & infinite) == infinite] &= 0xFFFF ^ infinite
    bits[:3] = [1, 0x8001, 0x8000]
    return bits.view(np.uint8)


result = {}
for name in ["F32", "F16", "BF16", *SCALES]:
    kind = GGMLQuantizationType[name]
    blocks = quantized(name, GGML_QUANT_SIZES[kind][1]) if name in SCALES else floats(name)
    numbers = dequantize(blocks.reshape(1, -1), kind).astype(np.float32)
    assert np.isfinite(numbers).all(), name
    result[name.lower()] = {
        "blocks": base64.b64encode(blocks.tobytes()).decode(),
        "sha256": hashlib.sha256(numbers.tobytes()).hexdigest(),
    }
print(json.dumps(result, indent=1))
