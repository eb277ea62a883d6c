#!/usr/bin/env python3
"""Writes tests/golden/array/mlx.h: what MLX's CPU build answers. Needs: pip install 'mlx[cpu]' (made with 0.32.4).

    python3 tests/golden/scripts/mlx_arrays.py > tests/golden/array/mlx.h
"""
import numpy as np
import mlx.core as mx

mx.set_default_device(mx.cpu)
TYPES = [mx.bool_, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.int8, mx.int16, mx.int32, mx.int64,
         mx.float16, mx.bfloat16, mx.float32, mx.float64, mx.complex64]
NUMBER = {t: i for i, t in enumerate(TYPES)}


def table(kind, name, values, per_line=8):
    values = [str(v) for v in values]
    print(f"static const {kind} {name}[] = {{")
    for i in range(0, len(values), per_line):
        print("    " + ", ".join(values[i:i + per_line]) + ",")
    print("};")


def words(a):
    return [f"0x{int(v):08x}u" for v in np.array(a).view(np.uint32).reshape(-1)]


def halves(a):
    return [f"0x{int(v):04x}" for v in np.array(a.view(mx.uint16)).reshape(-1)]


def result_type(f, *dtypes):
    try:
        out = f(*[mx.ones((3, 3), t) for t in dtypes])
        mx.eval(out)
        return NUMBER[out.dtype]
    except (ValueError, RuntimeError, TypeError):
        return -1


print("/* mlx.h: made by tests/golden/scripts/mlx_arrays.py with MLX %s. */" % mx.__version__)
print("/* Numbers are those of ig_dtype; -1: MLX refuses. */")
table("int8_t", "mlx_promotion", [result_type(mx.add, a, b) for a in TYPES for b in TYPES], 14)

UNARY = "negative abs sign square sqrt rsqrt reciprocal exp expm1 log log1p tanh sigmoid erf sin cos floor ceil " \
        "logical_not isnan isfinite".split()
BINARY = "add multiply divide floor_divide remainder power maximum minimum equal not_equal less less_equal greater " \
         "greater_equal logical_and logical_or bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()
AXIS = "sum prod mean max min all any logsumexp argmax argmin softmax cumsum sort argsort".split()
print("typedef struct mlx_rule {\n    const char *op;\n    int8_t result[14];\n} mlx_rule;")
for name, ops, call in [("unary", UNARY, lambda n: lambda a: getattr(mx, n)(a)),
                        ("binary", BINARY, lambda n: lambda a: getattr(mx, n)(a, a)),
                        ("axis", AXIS, lambda n: lambda a: getattr(mx, n)(a, axis=-1))]:
    print(f"static const mlx_rule mlx_{name}_rules[] = {{")
    for op in ops:
        row = ", ".join(str(result_type(call(op), t)) for t in TYPES)
        print(f'    {{"{op}", {{{row}}}}},')
    print("};")

print("/* Threefry. Python's mlx shows bits only through split, which is bits of (n, 2); uniform shows odd counts. */")
for seed in (0, 42, 12345678901):
    tag = {0: "a", 42: "b", 12345678901: "c"}[seed]
    key = mx.random.key(seed)
    table("uint32_t", f"mlx_key_{tag}", words(key))
    table("uint32_t", f"mlx_split_{tag}", words(mx.random.split(key, 3)))
    for n in (1, 2, 7, 16):
        table("uint32_t", f"mlx_uniform_{tag}_{n}", words(mx.random.uniform(shape=(n,), key=key)))
logits = mx.array(np.sin(np.arange(8 * 33, dtype=np.float32)).reshape(8, 33) * 3)
table("float", "mlx_logits", ["%.9ef" % v for v in np.array(logits).reshape(-1)], 6)
for axis in (0, 1):
    draws = [mx.random.categorical(logits, axis=axis, key=mx.random.key(s)) for s in range(4)]
    table("uint32_t", f"mlx_categorical_{axis}", [int(v) for d in draws for v in np.array(d)], 16)

print("/* Quantisation of 6 rows of 128: see weights() in test_quant.c, which makes the same values. */")
i = np.arange(6 * 128, dtype=np.uint64)
w = (((i * 2654435761) % 4294967296 >> 8) % 65536).astype(np.float32) / 65536 - 0.5
w = w.reshape(6, 128)
w[1] = 0
w[2] = 0.3
w[3] = np.where(np.arange(128) % 2 == 0, 1, -1)
w[4] = -np.abs(w[4]) - 1
w[5] = np.abs(w[5]) + 1
for dtype, tag, raw in ((mx.float32, "f32", words), (mx.float16, "f16", halves), (mx.bfloat16, "bf16", halves)):
    kind = "uint32_t" if tag == "f32" else "uint16_t"
    for group in (32, 64, 128):
        for bits in (2, 3, 4, 5, 6, 8):
            if tag != "f32" and (group, bits) not in ((32, 3), (64, 4), (128, 8)):
                continue
            q, s, b = mx.quantize(mx.array(w).astype(dtype), group_size=group, bits=bits)
            name = f"{tag}_{group}_{bits}"
            table("uint32_t", f"mlx_codes_{name}", words(q))
            table(kind, f"mlx_scales_{name}", raw(s))
            table(kind, f"mlx_biases_{name}", raw(b))
