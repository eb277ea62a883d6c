#!/usr/bin/env python3
"""Logits of transformers for SmolLM2-135M-Instruct, in float32 on the weights as they are quantised.

  apt-get install python3-torch; /usr/bin/python3 -m venv --system-site-packages VENV
  VENV/bin/pip install transformers==4.46.3
  ./setup.sh --model && build/ingot pack build/demo-model.gguf BUNDLE
  VENV/bin/python tests/golden/scripts/make_logits.py BUNDLE/model > tests/golden/lm/logits.txt

Weights: fma(scale, code, bias) in float32, computed in float64 and rounded once (a product of
two float32 is exact in float64; the sum is rounded twice, which double rounding can change in one
of 2^29 cases: far below what is compared). Output, text:
  prompt TEXT-AS-JSON
  ids ID...
  range MIN MAX             of all logits of the prompt
  at POSITION ARGMAX VALUE COLUMN=VALUE...    fixed columns, and those of the four largest logits
  greedy ID...              the greedy continuation, at most 16 tokens
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a land far away, there lived a miller who had three sons.",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "Water boils at 100 degrees Celsius at sea level, but on a high mountain it boils",
    "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nName three colours.<|im_end|>\n<|im_start|>assistant\n",
    "1, 1, 2, 3, 5, 8, 13, 21, 34,",
    "Q: Who wrote Hamlet?\nA:",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    "La vie est belle, mais",
    "東京は日本の首都です。",
    "😀 emojis and ünïcödé: ½ ≤ ∞",
    "int main(int argc, char **argv)\n{\n    printf(\"hello\\n\");\n",
    "In 1969, humans first walked on the Moon. The mission was called",
    "A",
    "    \t\n\n  leading and trailing space  ",
    "To be, or not to be, that is the question: Whether 'tis nobler in the mind to suffer",
    "SELECT name, count(*) FROM users GROUP BY name ORDER BY",
    "Photosynthesis is the process by which green plants use sunlight to make food from carbon dioxide and water. "
    "The light is taken up by chlorophyll, a green pigment in the leaves. " * 3,
    "the the the the the the the the the the the the the the the the",
]
COLUMNS = [0, 2, 28, 198, 260, 1000, 5000, 9999, 20000, 30000, 40000, 49151]
MAX_POSITIONS = 96


def dequantise(tensors, quant):
    out = {}
    for name, t in tensors.items():
        path = name.rsplit(".", 1)[0]
        if name.endswith((".scales", ".biases")):
            continue
        if path + ".scales" not in tensors:
            out[name] = torch.from_numpy(t.astype(np.float32))
            continue
        q = quant.get(path, quant)
        bits, group = q["bits"], q["group_size"]
        words = t
        per = 32 // bits
        codes = (words[:, :, None] >> (np.arange(per, dtype=np.uint32) * bits)) & ((1 << bits) - 1)
        codes = codes.reshape(words.shape[0], -1, group).astype(np.float64)
        s = tensors[path + ".scales"].astype(np.float64)[:, :, None]
        b = tensors[path + ".biases"].astype(np.float64)[:, :, None]
        w = (s * codes + b).astype(np.float32)
        out[name] = torch.from_numpy(w.reshape(w.shape[0], -1).copy())
    return out


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    tensors = {}
    for f in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(f))
    quant = config.pop("quantization")
    config.pop("quantization_config", None)
    model = LlamaForCausalLM(LlamaConfig(**config, attn_implementation="eager")).float().eval()
    missing, extra = model.load_state_dict(dequantise(tensors, quant), strict=False)
    assert not extra and missing in ([], ["lm_head.weight"]), (missing, extra)
    model.tie_weights()
    return model, PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


def greedy(model, ids):
    """What generate(do_sample=False) does; generate() of this pair of versions does not import."""
    made, cache, step = [], None, ids
    while len(made) < 16 and (not made or made[-1] != 2):
        out = model(torch.tensor([step]), past_key_values=cache, use_cache=True)
        cache, step = out.past_key_values, [int(out.logits[0, -1].argmax())]
        made += step
    return made


def text_of(v):
    return f"{float(v):.6g}"


def main():
    torch.set_num_threads(1)
    model, tokenizer = load(Path(sys.argv[1]))
    print("# made by tests/golden/scripts/make_logits.py")
    for prompt in PROMPTS:
        ids = tokenizer(prompt, add_special_tokens=False)["input_ids"][:MAX_POSITIONS]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].numpy()
            made = greedy(model, ids)
        print("prompt", json.dumps(prompt))
        print("ids", *ids)
        print("range", text_of(logits.min()), text_of(logits.max()))
        for p, row in enumerate(logits):
            columns = sorted(set(COLUMNS) | set(np.argsort(-row, kind="stable")[:4].tolist()))
            print("at", p, int(row.argmax()), *(f"{c}={text_of(row[c])}" for c in columns))
        print("greedy", *made)


main()
