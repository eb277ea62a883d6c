"""speed.py: decode, prefill and eight streams, Ingot against llama.cpp at equal bits per weight, in one run, alternating, both at the same threads.

  python3 bench/speed.py [--shape 135m|1.7b] [--threads 2] [--rounds 5] [--isa NAME] [--streams] [--prompt 512] [--generate 128] [--json]

Models are random (bench/mkmodel.py): Q4_0 for llama.cpp (llama-quantize --pure: 4.5 bits per weight, embeddings included), 4 bits in groups of 64 for
Ingot (4.5 bits too). Ratios are medians over rounds; machines are shared, so quote ratios. --streams compares the two servers with eight clients."""
import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEER = os.path.join(ROOT, "build/peer/bin")
INGOT = os.path.join(ROOT, "build/ingot")


def sh(*args, **kw):
    return subprocess.run(args, check=True, capture_output=True, text=True, cwd=ROOT, **kw).stdout


def models(shape, meta):
    base = os.path.join(ROOT, "build/peer", shape)
    if not os.path.exists(base + ".q4_0.gguf"):
        sh(sys.executable, "bench/mkmodel.py", base + ".f16.gguf", shape, meta)
        sh(PEER + "/llama-quantize", "--pure", base + ".f16.gguf", base + ".q4_0.gguf", "Q4_0")
    if not os.path.exists(base + ".bundle"):
        sh(INGOT, "pack", base + ".f16.gguf", base + ".bundle", "--bits", "4", "--group", "64", "--name", "random-" + shape)
    if os.path.exists(base + ".f16.gguf"):
        os.remove(base + ".f16.gguf")
    return base + ".q4_0.gguf", base + ".bundle"


def llama(model, a):
    out = json.loads(sh(PEER + "/llama-bench", "-m", model, "-p", str(a.prompt), "-n", str(a.generate), "-t", str(a.threads), "-r", "1", "-o", "json"))
    return {("pp" if r["n_prompt"] else "tg"): r["avg_ts"] for r in out}


def ingot(bundle, a):
    isa = ["--isa", a.isa] if a.isa else []
    out = json.loads(sh(INGOT, "bench", "-m", bundle, "-p", str(a.prompt), "-n", str(a.generate), "-t", str(a.threads), "-r", "1", "--json", *isa))
    rows = {r["test"][:2]: r["tok_s"] for r in out["rows"]}
    return rows, out["machine"], {r["test"][:2]: r["fraction"] for r in out["rows"]}


def one_stream(port, n, counts, i):
    body = json.dumps({"prompt": f"Story number {i}: once upon a time", "max_tokens": n, "temperature": 0, "stream": False, "ignore_eos": True} if counts["peer"] else
                      {"prompt": f"Story number {i}: once upon a time", "max_tokens": n, "temperature": 0})
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    c.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    answer = json.loads(c.getresponse().read())
    counts["n"][i] = answer["usage"]["completion_tokens"]


def streams(port, peer, n=96, clients=8):
    counts = {"peer": peer, "n": [0] * clients}
    threads = [threading.Thread(target=one_stream, args=(port, n, counts, i)) for i in range(clients)]
    begin = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sum(counts["n"]) / (time.monotonic() - begin)


def wait_http(port, path):
    for _ in range(600):
        try:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            c.request("GET", path)
            if c.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit("a server did not become ready")


def serve_both(model, bundle, a):
    d = os.path.join(ROOT, "build/peer/serve")
    sh("rm", "-rf", d)
    os.makedirs(d)
    sh(INGOT, "keygen", "publisher", d + "/key")
    sh(INGOT, "sign", bundle, "--key", d + "/key")
    isa = ["--isa", a.isa] if a.isa else []
    ours = subprocess.Popen([INGOT, "serve", "--bundle", bundle, "--trust", d + "/key.pub", "--log", d + "/log", "--listen", "127.0.0.1:18081", "--context", "2048",
                             "--kv-tokens", "16384", "--allow-writable", "--threads", str(a.threads), *isa], stdout=subprocess.DEVNULL, cwd=ROOT)
    theirs = subprocess.Popen([PEER + "/llama-server", "-m", model, "-t", str(a.threads), "-tb", str(a.threads), "-np", "8", "-c", "16384", "--port", "18082",
                               "--host", "127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_http(18081, "/readyz")
        wait_http(18082, "/health")
        rows = []
        for _ in range(a.rounds):
            rows.append((streams(18081, False), streams(18082, True)))
        return rows
    finally:
        ours.terminate()
        theirs.terminate()
        ours.wait()
        theirs.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--shape", default="135m")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--prompt", type=int, default=512)
    p.add_argument("--generate", type=int, default=128)
    p.add_argument("--isa")
    p.add_argument("--meta", default="build/demo-model.gguf")
    p.add_argument("--streams", action="store_true")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    model, bundle = models(a.shape, a.meta)
    rows = []
    for _ in range(a.rounds):
        mine, machine, fraction = ingot(bundle, a)
        rows.append((mine, llama(model, a), fraction))
    med = statistics.median
    result = {"machine": machine, "shape": a.shape, "threads": a.threads, "rounds": a.rounds}
    for test in ("tg", "pp"):
        result[test] = {"ingot": med(r[0][test] for r in rows), "llama_cpp": med(r[1][test] for r in rows), "ratio": med(r[0][test] / r[1][test] for r in rows)}
    result["tg"]["fraction_of_read_bandwidth"] = med(r[2]["tg"] for r in rows)
    if a.streams:
        s = serve_both(model, bundle, a)
        result["streams8"] = {"ingot": med(x for x, _ in s), "llama_server": med(y for _, y in s), "ratio": med(x / y for x, y in s)}
    print(json.dumps(result) if a.json else json.dumps(result, indent=1))


main()
