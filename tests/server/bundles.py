"""bundles.py INGOT: what may not be served, and why the message says so."""
import base64
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from harness import BUNDLE, TRUST, Cases, Server

INGOT = sys.argv[1]
KEY = "build/tests/keys/publisher"
SHARD = "model-00001-of-00002.safetensors"
cases = Cases()
root = tempfile.mkdtemp(prefix="ingot-bundles-")


def ingot(*args):
    return subprocess.run([INGOT, *args], capture_output=True, text=True, timeout=120)


class Copy:
    """A copy of the bundle by hard links; `own` makes a file writable without touching the original."""

    count = 0

    def __init__(self):
        Copy.count += 1
        self.path = f"{root}/bundle{Copy.count}"
        shutil.copytree(BUNDLE, self.path, copy_function=os.link)

    def file(self, name):
        return f"{self.path}/model/{name}"

    def own(self, name):
        path = self.file(name)
        data = open(path, "rb").read()
        os.remove(path)
        open(path, "wb").write(data)
        return path

    def edit_json(self, name, **changes):
        path = self.own(name)
        value = json.load(open(path))
        for k, v in changes.items():
            if v is None:
                value.pop(k, None)
            else:
                value[k] = v
        json.dump(value, open(path, "w"))

    def sign(self):
        os.remove(self.path + "/model.sig")
        out = ingot("sign", self.path, "--key", KEY)
        assert out.returncode == 0, out.stderr


def serve_refuses(bundle, *words, trust=TRUST, options=(), code=None):
    folder = tempfile.mkdtemp(dir=root)
    out = subprocess.run([INGOT, "serve", "--bundle", bundle, "--trust", trust, "--log", folder + "/log", "--listen", "127.0.0.1:0", "--context", "512",
                          "--kv-tokens", "1024", "--allow-writable", *options], capture_output=True, text=True, timeout=60)
    assert out.returncode != 0, "it was served"
    for word in words:
        assert word in out.stderr, f"'{word}' is not in: {out.stderr}"
    assert code is None or out.returncode == code, out.returncode
    assert out.stderr.count("\n") <= 3, out.stderr


def case(name):
    def decorate(fn):
        cases.run("bundle." + name, fn)
    return decorate


@case("flipped-bit-names-the-tensor")
def _():
    b = Copy()
    path = b.own(SHARD)
    with open(path, "r+b") as f:
        f.seek(os.path.getsize(path) * 9 // 10)
        byte = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([byte[0] ^ 16]))
    serve_refuses(b.path, SHARD, "damaged tensor: model.layers.", code=1)


@case("truncated-shard")
def _():
    b = Copy()
    path = b.own(SHARD)
    os.truncate(path, os.path.getsize(path) - 100)
    serve_refuses(b.path, SHARD, code=1)


@case("missing-shard")
def _():
    b = Copy()
    os.remove(b.file(SHARD))
    serve_refuses(b.path, SHARD)


@case("extra-file")
def _():
    b = Copy()
    open(b.file("extra.txt"), "w").write("x")
    serve_refuses(b.path, "extra.txt", code=1)


@case("symlink")
def _():
    b = Copy()
    os.rename(b.file("README.md"), b.path + "/README.md")
    os.symlink(b.path + "/README.md", b.file("README.md"))
    serve_refuses(b.path, "README.md")


@case("changed-template")
def _():
    b = Copy()
    b.edit_json("tokenizer_config.json", chat_template="{{ messages[0].content }}")
    serve_refuses(b.path, "tokenizer_config.json", code=1)


@case("unsigned")
def _():
    b = Copy()
    os.remove(b.path + "/model.sig")
    serve_refuses(b.path, "model.sig")


@case("signature-not-json")
def _():
    b = Copy()
    os.remove(b.path + "/model.sig")
    open(b.path + "/model.sig", "w").write("{")
    serve_refuses(b.path, "model.sig")


@case("other-key")
def _():
    ingot("keygen", "publisher", root + "/other")
    serve_refuses(BUNDLE, "trust", trust=root + "/other.pub", code=1)


@case("key-missing")
def _():
    serve_refuses(BUNDLE, "nowhere.pub", trust=root + "/nowhere.pub")


@case("key-garbage")
def _():
    open(root + "/garbage.pub", "w").write("not a key")
    serve_refuses(BUNDLE, "garbage.pub", trust=root + "/garbage.pub")


@case("private-key-as-trust")
def _():
    serve_refuses(BUNDLE, trust=KEY)


@case("bundle-missing")
def _():
    serve_refuses(root + "/nothing", "nothing")


@case("expired")
def _():
    b = Copy()
    b.edit_json("release.json", not_after="2020-01-01")
    b.sign()
    serve_refuses(b.path, "2020-01-01", code=1)
    out = ingot("verify", b.path, "--trust", TRUST)
    assert out.returncode == 0 and "may not be used after 2020-01-01" in out.stderr, out.stderr


@case("newer-engine-needed")
def _():
    b = Copy()
    b.edit_json("release.json", min_engine="99.0.0")
    b.sign()
    serve_refuses(b.path, "99.0.0", code=1)


@case("config-contradicts-tensors")
def _():
    b = Copy()
    b.edit_json("config.json", hidden_size=640, head_dim=64)
    b.sign()
    serve_refuses(b.path, "tensor", "the config needs", code=3)


@case("config-heads-do-not-divide")
def _():
    b = Copy()
    b.edit_json("config.json", num_key_value_heads=4)
    b.sign()
    serve_refuses(b.path, "num_key_value_heads", code=3)


@case("config-other-architecture")
def _():
    b = Copy()
    b.edit_json("config.json", architectures=["MambaForCausalLM"])
    b.sign()
    serve_refuses(b.path, "MambaForCausalLM", code=5)


@case("config-fewer-layers-leaves-tensors")
def _():
    b = Copy()
    b.edit_json("config.json", num_hidden_layers=29)
    b.sign()
    serve_refuses(b.path, "model.layers.29.", code=3)


@case("config-more-layers-misses-tensors")
def _():
    b = Copy()
    b.edit_json("config.json", num_hidden_layers=31)
    b.sign()
    serve_refuses(b.path, "model.layers.30.", "missing", code=3)


@case("tokenizer-bigger-than-vocabulary")
def _():
    b = Copy()
    b.edit_json("config.json", vocab_size=1000, eos_token_id=2, bos_token_id=1)
    b.sign()
    serve_refuses(b.path, "vocab_size", code=3)


@case("tokenizer-unknown-component")
def _():
    b = Copy()
    b.edit_json("tokenizer.json", pre_tokenizer={"type": "Telepathy"})
    b.sign()
    serve_refuses(b.path, "Telepathy", code=5)


@case("template-syntax")
def _():
    b = Copy()
    b.edit_json("tokenizer_config.json", chat_template="{% for m in messages %}{{ m.content }}")
    b.sign()
    serve_refuses(b.path, "tokenizer_config.json")


@case("known-answer-differs")
def _():
    b = Copy()
    path = b.own("kat.json")
    text = open(path).read()
    at = text.index('"logits":"') + 10
    open(path, "w").write(text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1:])
    b.sign()
    serve_refuses(b.path, "logits", code=1)


@case("safetensors-header-lies")
def _():
    b = Copy()
    path = b.own(SHARD)
    with open(path, "r+b") as f:
        f.write(struct.pack("<Q", 1 << 40))
    b.sign()
    serve_refuses(b.path, SHARD, code=3)


@case("index-names-a-path")
def _():
    b = Copy()
    path = b.own("model.safetensors.index.json")
    text = open(path).read().replace(SHARD, "../" + SHARD)
    open(path, "w").write(text)
    b.sign()
    serve_refuses(b.path, "plain", code=3)


# --- settings
@case("open-address-without-keys")
def _():
    serve_refuses(BUNDLE, "api-keys", options=("--listen", "0.0.0.0:0"))


@case("setting-unknown-in-file")
def _():
    open(root + "/conf", "w").write("threads = 2\nfrobs = 1\n")
    serve_refuses(BUNDLE, "conf:2", "frobs", options=("--file", root + "/conf"))


@case("setting-out-of-range")
def _():
    serve_refuses(BUNDLE, "queue", options=("--queue", "0"))


@case("writable-model-without-leave")
def _():
    folder = tempfile.mkdtemp(dir=root)
    out = ingot("serve", "--bundle", BUNDLE, "--trust", TRUST, "--log", folder + "/log", "--listen", "127.0.0.1:0", "--kv-tokens", "1024", "--context", "512")
    assert out.returncode == 1 and "--allow-writable" in out.stderr, out.stderr


# --- packing
@case("pack-truncated-gguf")
def _():
    data = open("build/demo-model.gguf", "rb").read(50_000_000)
    open(root + "/cut.gguf", "wb").write(data)
    out = ingot("pack", root + "/cut.gguf", root + "/cut-bundle")
    assert out.returncode == 3 and "truncated" in out.stderr and not os.path.exists(root + "/cut-bundle"), out.stderr


@case("pack-not-a-gguf")
def _():
    open(root + "/text.gguf", "w").write("hello, I am text and no model")
    out = ingot("pack", root + "/text.gguf", root + "/text-bundle")
    assert out.returncode == 3 and "GGUF" in out.stderr, out.stderr


def gguf_with(path, *values):
    """The demo model with further values; a filler keeps the tensors where they are aligned."""
    def string(s):
        return struct.pack("<Q", len(s)) + s.encode()

    data = open("build/demo-model.gguf", "rb").read()
    more = b"".join(string(k) + (struct.pack("<I", 8) + string(v) if isinstance(v, str) else struct.pack("<If", 6, v)) for k, v in values)
    head = struct.pack("<IB", 7, 0)   # a false after a name as long as is needed
    more += string("x" * ((-len(more) - 8 - len(head)) % 32)) + head
    n, = struct.unpack_from("<Q", data, 16)
    open(path, "wb").write(data[:16] + struct.pack("<Q", n + len(values) + 1) + more + data[24:])


@case("pack-gguf-with-rotary-scaling")
def _():
    gguf_with(root + "/linear.gguf", ("llama.rope.scaling.type", "linear"), ("llama.rope.scaling.factor", 4.0))
    out = ingot("pack", root + "/linear.gguf", root + "/linear-bundle", "--no-known-answer")
    assert out.returncode == 0, out.stderr
    assert json.load(open(root + "/linear-bundle/model/config.json"))["rope_scaling"] == {"rope_type": "linear", "factor": 4}
    gguf_with(root + "/yarn.gguf", ("llama.rope.scaling.type", "yarn"), ("llama.rope.scaling.factor", 4.0))
    out = ingot("pack", root + "/yarn.gguf", root + "/yarn-bundle")
    assert out.returncode == 5 and "yarn" in out.stderr, out.stderr


@case("pack-with-a-last-day-that-is-no-date")
def _():
    out = ingot("pack", "build/demo-model.gguf", root + "/never", "--not-after", "31.12.2027")
    assert out.returncode == 3 and "YYYY-MM-DD" in out.stderr, out.stderr


@case("release-limits-that-cannot-be-read")
def _():
    for change in ({"not_after": "31.12.2"}, {"min_engine": "soon"}, {"min_engine": "1.2.3.4"}):
        b = Copy()
        b.edit_json("release.json", **change)
        b.sign()
        serve_refuses(b.path, "release.json", next(iter(change)), code=3)


@case("pack-what-is-packed-already")
def _():
    first, again = (json.loads(ingot("pack", source, f"{root}/{name}", "--no-known-answer", "--json").stdout)
                    for source, name in (("build/demo-model.gguf", "packed"), (f"{root}/packed/model", "packed-again")))
    assert first["parameters"] == again["parameters"] > 134e6 and first["bits_per_weight"] == again["bits_per_weight"], again
    config = json.load(open(f"{root}/packed/model/config.json"))
    del config["quantization"]["group_size"]
    del config["quantization_config"]
    os.chmod(f"{root}/packed/model/config.json", 0o644)
    json.dump(config, open(f"{root}/packed/model/config.json", "w"))
    out = ingot("pack", f"{root}/packed/model", root + "/packed-thrice")
    assert out.returncode == 3 and "group_size" in out.stderr, out.stderr


@case("pack-that-fails-leaves-nothing-behind")
def _():
    target = root + "/second-try"
    out = ingot("pack", root + "/mistyped.gguf", target)
    assert out.returncode == 3 and out.stderr.startswith("ingot pack: " + root + "/mistyped.gguf: "), out.stderr
    assert not os.path.exists(target) and not os.path.exists(target + ".partial")
    out = ingot("pack", root + "/cut.gguf", target)
    assert out.returncode == 3 and "truncated" in out.stderr, out.stderr
    assert not os.path.exists(target + ".partial")


@case("pack-of-an-unknown-architecture-is-refused-before-any-work")
def _():
    b = Copy()
    b.edit_json("config.json", architectures=["MambaForCausalLM"])
    out = ingot("pack", b.path + "/model", root + "/mamba", "--no-known-answer")
    assert out.returncode == 5 and "MambaForCausalLM" in out.stderr and ".partial" not in out.stderr, out.stderr
    assert b.path + "/model: config.json: " in out.stderr and not os.path.exists(root + "/mamba"), out.stderr


@case("pack-options-without-effect")
def _():
    out = ingot("pack", "build/demo-model.gguf", root + "/grouped", "--group", "128")
    assert out.returncode == 2 and "--bits" in out.stderr, out.stderr
    out = ingot("pack", "build/demo-model.gguf", root + "/overridden", "--override", "*.no_such_proj=8")
    assert out.returncode == 3 and "*.no_such_proj" in out.stderr and "model.embed_tokens" in out.stderr, out.stderr


@case("pack-says-once-what-holds-for-many-matrices")
def _():
    out = ingot("pack", "build/demo-model.gguf", root + "/coarse", "--bits", "8", "--group", "128", "--no-known-answer")
    assert out.returncode == 0, out.stderr
    narrowed = [line for line in out.stderr.splitlines() if "instead of 128" in line]
    assert len(narrowed) == 1 and "180 more" in narrowed[0], out.stderr


@case("json-of-a-bundle-whose-name-needs-escapes")
def _():
    path = root + '/a "name" \\ with\ta tab'
    shutil.copytree(BUNDLE, path, copy_function=os.link)
    os.remove(path + "/model.sig")
    for out in (ingot("sign", path, "--key", KEY, "--json"), ingot("verify", path, "--trust", KEY + ".pub", "--json")):
        assert out.returncode == 0 and json.loads(out.stdout)["bundle"] == path, out


@case("pack-over-an-existing-bundle")
def _():
    out = ingot("pack", "build/demo-model.gguf", BUNDLE)
    assert out.returncode == 3 and "exists" in out.stderr, out.stderr


# --- the log
def server_with_log(folder, **more):
    return Server(INGOT, "--kv-tokens", "2048", "--context", "1024", folder=folder, **more)


@case("log-in-use")
def _():
    folder = tempfile.mkdtemp(dir=root)
    s = server_with_log(folder)
    out = ingot("serve", "--bundle", BUNDLE, "--trust", TRUST, "--log", folder + "/log", "--listen", "127.0.0.1:0", "--allow-writable")
    assert out.returncode == 4 and "in use" in out.stderr, out.stderr
    s.stop()


@case("log-tampered")
def _():
    folder = tempfile.mkdtemp(dir=root)
    s = server_with_log(folder)
    s.chat()
    s.stop()
    segments = folder + "/log/segments"
    path = segments + "/" + sorted(os.listdir(segments))[0]
    data = open(path, "rb").read()
    at = data.index(b'"type":"admit"')
    with open(path, "r+b") as f:
        f.seek(at + 9)
        f.write(b"X")
    out = ingot("serve", "--bundle", BUNDLE, "--trust", TRUST, "--log", folder + "/log", "--listen", "127.0.0.1:0", "--allow-writable")
    assert out.returncode == 1, (out.returncode, out.stderr)


@case("killed-in-mid-answer-five-times")
def _():
    folder = tempfile.mkdtemp(dir=root)
    for i in range(5):
        s = server_with_log(folder)
        curl = subprocess.Popen(["curl", "-sN", f"http://127.0.0.1:{s.port}/v1/chat/completions", "-d",
                                 json.dumps({"messages": [{"role": "user", "content": "Tell a long story."}], "max_tokens": 900, "stream": True, "logit_bias": {"0": -100, "2": -100}})], stdout=subprocess.PIPE)
        curl.stdout.readline()
        time.sleep(0.03 * i)
        s.process.send_signal(signal.SIGKILL)
        s.process.wait()
        assert b"[DONE]" not in curl.communicate()[0]
    s = server_with_log(folder)
    s.chat()
    s.stop()
    s.verify()
    events = s.events()
    admits, dones = [e["req"] for e in events if e["type"] == "admit"], [e["req"] for e in events if e["type"] == "done"]
    assert sorted(admits) == sorted(dones) and sum(e.get("status") == "recovered" for e in events) == 5


@case("full-disk-admits-nothing-and-loses-nothing")
def _():
    folder = tempfile.mkdtemp(dir=root)
    s = server_with_log(folder)
    s.chat()
    s.stop()
    small = Server(INGOT, "--kv-tokens", "2048", "--context", "1024", folder=folder, wait=False, limit=8)   # files of at most 4 KiB
    small.process.wait(60)
    assert small.process.returncode != 0, "it ran on a full disk"
    s = server_with_log(folder)
    s.chat()
    s.stop()
    s.verify()


# --- another model than the receipt's
def receipt_ids(receipt, name):
    ids = base64.b64decode(next(l.split()[2] for l in receipt.splitlines() if l.startswith(f"open {name} ")))
    return [i for i, in struct.iter_unpack("<i", ids)]


def find_tensor(bundle, name):
    """Shard, offset of the data, dtype, shape."""
    shard = json.load(open(bundle.file("model.safetensors.index.json")))["weight_map"][name]
    with open(bundle.file(shard), "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        info = json.loads(f.read(n))[name]
    return shard, 8 + n + info["data_offsets"][0], info["dtype"], info["shape"]


def alter_token(bundle, token):
    """Makes one scale of the token's row in the embedding, which is the output matrix too, four times as large, and signs again."""
    shard, at, dtype, shape = find_tensor(bundle, "model.embed_tokens.scales")
    assert dtype == "F16", dtype
    at += (token * shape[1] + 3) * 2
    with open(bundle.own(shard), "r+b") as f:
        f.seek(at)
        scale, = struct.unpack("<e", f.read(2))
        f.seek(at)
        f.write(struct.pack("<e", 4 * scale))
    bundle.sign()


@case("pack-refuses-tensors-without-elements")
def _():
    folder = root + "/hollow"
    os.mkdir(folder)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{BUNDLE}/model/{name}", folder)
    for shape in ([5, 0], [0, 5], [0]):
        header = json.dumps({"model.norm.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
        header += b" " * (-len(header) % 8)
        open(folder + "/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header)
        shutil.rmtree(root + "/hollow-bundle.partial", ignore_errors=True)
        out = ingot("pack", folder, root + "/hollow-bundle")
        assert out.returncode == 3 and "model.norm.weight is empty" in out.stderr, (shape, out.returncode, out.stderr)


@case("replay-with-one-altered-resigned-weight-names-the-first-token-that-differs")
def _():
    folder = tempfile.mkdtemp(dir=root)
    s = server_with_log(folder)
    a = s.chat("Name three colours.", max_tokens=12)
    s.stop()
    receipt = a["audit"]["receipt"]
    open(folder + "/receipt", "w").write(receipt)
    prompt, answer = receipt_ids(receipt, "in.ids"), receipt_ids(receipt, "tout.0")
    at = next(i for i, t in enumerate(answer) if i > 2 and t not in prompt + answer[:i])
    b = Copy()
    alter_token(b, answer[at])   # nothing before its turn can tell
    replay = ["replay", folder + "/receipt", "--trust", TRUST, "--key", s.key, "--bundle"]
    out = ingot(*replay, b.path)
    found = re.fullmatch(r"differs: choice 0, token (\d+) of (\d+) is (\d+) in the log and (\d+) now, by another model\n", out.stdout)
    assert out.returncode == 1 and found, out.stdout + out.stderr
    *where, now = map(int, found.groups())
    assert where == [at, len(answer), answer[at]] and now != answer[at], out.stdout
    assert "note: the bundle's root is" in out.stderr, out.stderr
    told = json.loads(ingot(*replay, b.path, "--json").stdout)
    assert told == {"replay": "differs", "choice": 0, "token": at, "of": len(answer), "recorded": answer[at], "computed": now, "same_model": False}, told
    assert ingot(*replay, BUNDLE).returncode == 0


shutil.rmtree(root, ignore_errors=True)
cases.end()
