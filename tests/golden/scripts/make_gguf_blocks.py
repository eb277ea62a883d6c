"""make_gguf_blocks.py: two random rows of 256 values in every block type that Ingot decodes, with what the PyPI package gguf (0.19.0) makes of them, as
tests/golden/io/gguf_blocks.h. Run: python make_gguf_blocks.py > tests/golden/io/gguf_blocks.h (needs numpy, gguf)."""
import gguf
import numpy as np

rng = np.random.default_rng(5)
print("/* Made by tests/golden/scripts/make_gguf_blocks.py: raw blocks and what the gguf package decodes. */")
for name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "BF16"):
    kind = gguf.GGMLQuantizationType[name]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, 256 // block * size, dtype=np.uint8)
    # sane half-precision scales wherever the format keeps them
    rows = raw.reshape(-1, size)
    at = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "BF16": []}[name]
    for o in at:
        for r in rows:
            r[o:o + 2] = np.frombuffer(np.float16(rng.uniform(0.01, 0.5)).tobytes(), np.uint8)
    if name == "BF16":
        raw = (rng.standard_normal(256).astype("<f4").view("<u4") >> 16).astype("<u2").view(np.uint8)
    out = gguf.quants.dequantize(raw, kind).astype("<f4").ravel()
    print(f"static const uint8_t raw_{name}[] = {{{','.join(map(str, raw.tolist()))}}};")
    print(f"static const float want_{name}[] = {{{','.join(float(x).hex() + 'f' for x in out)}}};")
