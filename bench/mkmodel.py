"""mkmodel.py OUT.gguf SHAPE [META.gguf]: a random Llama model in F16 with a real vocabulary, for speed comparisons (speed does not depend on values).

SHAPE is 135m (SmolLM2-135M's), 1.7b (SmolLM2-1.7B's), or layers,hidden,heads,kv_heads,ffn. The tokenizer is copied from META (default build/demo-model.gguf);
`mkmodel.py OUT.gguf meta` writes a file that holds nothing but that metadata. Needs numpy only."""
import struct
import sys

import numpy as np

SHAPES = {"135m": (30, 576, 9, 3, 1536), "1.7b": (24, 2048, 32, 32, 8192)}


def read_keys(path):
    """The raw bytes of every key-value pair whose key starts with tokenizer."""
    with open(path, "rb") as f:
        data = f.read(1 << 26)
    n_keys = struct.unpack_from("<Q", data, 16)[0]
    at, keys = 24, []
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def text(at):
        return at + 8 + struct.unpack_from("<Q", data, at)[0]

    def value(at, kind):
        if kind == 8:
            return text(at)
        if kind == 9:
            element, n = struct.unpack_from("<IQ", data, at)
            at += 12
            for _ in range(n if element == 8 else 0):
                at = text(at)
            return at if element == 8 else at + n * sizes[element]
        return at + sizes[kind]

    for _ in range(n_keys):
        begin, after = at, text(at)
        name = data[begin + 8:after].decode()
        kind = struct.unpack_from("<I", data, after)[0]
        at = value(after + 4, kind)
        if name.startswith("tokenizer."):
            keys.append(data[begin:at])
    return keys


def key(name, kind, packed):
    raw = name.encode()
    return struct.pack("<Q", len(raw)) + raw + struct.pack("<I", kind) + packed


def string(s):
    return struct.pack("<Q", len(s)) + s.encode()


def tensors(layers, hidden, heads, kv_heads, ffn, vocab):
    kv = hidden // heads * kv_heads
    yield "token_embd.weight", (vocab, hidden)
    yield "output_norm.weight", (hidden,)
    for i in range(layers):
        for name, shape in (("attn_norm", (hidden,)), ("ffn_norm", (hidden,)), ("attn_q", (hidden, hidden)), ("attn_k", (kv, hidden)),
                            ("attn_v", (kv, hidden)), ("attn_output", (hidden, hidden)), ("ffn_gate", (ffn, hidden)), ("ffn_up", (ffn, hidden)),
                            ("ffn_down", (hidden, ffn))):
            yield f"blk.{i}.{name}.weight", shape


def main():
    out, shape = sys.argv[1], sys.argv[2]
    meta = read_keys(sys.argv[3] if len(sys.argv) > 3 else "build/demo-model.gguf")
    layers, hidden, heads, kv_heads, ffn = SHAPES.get(shape) or (0,) * 5 if shape in ("meta", *SHAPES) else map(int, shape.split(","))
    u32 = lambda name, v: key(name, 4, struct.pack("<I", v))
    f32 = lambda name, v: key(name, 6, struct.pack("<f", v))
    keys = [key("general.architecture", 8, string("llama")), key("general.name", 8, string("random " + shape)), u32("llama.block_count", layers),
            u32("llama.context_length", 8192), u32("llama.embedding_length", hidden), u32("llama.feed_forward_length", ffn),
            u32("llama.attention.head_count", heads), u32("llama.attention.head_count_kv", kv_heads),
            u32("llama.rope.dimension_count", hidden // heads if heads else 0), f32("llama.attention.layer_norm_rms_epsilon", 1e-5),
            f32("llama.rope.freq_base", 1e5), u32("llama.vocab_size", 49152), u32("general.file_type", 1)] + meta
    listed = list(tensors(layers, hidden, heads, kv_heads, ffn, 49152)) if layers else []
    infos, offset = b"", 0
    for name, dims in listed:
        kind, size = (0, 4) if len(dims) == 1 else (1, 2)
        infos += string(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in reversed(dims)) + struct.pack("<IQ", kind, offset)
        offset += (int(np.prod(dims)) * size + 31) // 32 * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(keys)) + b"".join(keys) + infos
    rng = np.random.default_rng(1)
    with open(out, "wb") as f:
        f.write(head + b"\0" * (-len(head) % 32))
        for name, dims in listed:
            if len(dims) == 1:
                data = np.ones(dims, "<f4").tobytes()
            else:
                block = (rng.standard_normal((min(dims[0], 4096), dims[1]), "f4") / np.sqrt(dims[1])).astype("<f2")
                data = np.resize(block, dims).tobytes()
            f.write(data + b"\0" * (-len(data) % 32))


main()
