"""busy_core.py: what a busy process on one of two cores costs a decode with two threads, beside one thread on a quiet machine.

  python3 bench/busy_core.py MODEL_DIR [--rounds 5] [--generate 128]

A core that is taken away must not stall a token: the bar is 0.9 of one quiet thread. The three runs of a round follow each other; medians over rounds."""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def decode(model, threads, n):
    out = subprocess.run([os.path.join(ROOT, "build/ingot"), "bench", "-m", model, "-p", "0", "-n", str(n), "-t", str(threads), "-r", "1", "--json"], check=True,
                         capture_output=True, text=True).stdout
    return next(r["tok_s"] for r in json.loads(out)["rows"] if r["test"].startswith("tg"))


def with_busy_core(model, n):
    busy = subprocess.Popen(["taskset", "-c", "1", sys.executable, "-c", "while True: pass"])
    try:
        return decode(model, 2, n)
    finally:
        busy.kill()
        busy.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--generate", type=int, default=128)
    a = p.parse_args()
    rows = [(decode(a.model, 1, a.generate), with_busy_core(a.model, a.generate), decode(a.model, 2, a.generate)) for _ in range(a.rounds)]
    med = statistics.median
    print(json.dumps({"one_quiet_thread": med(r[0] for r in rows), "two_threads_one_core_busy": med(r[1] for r in rows),
                      "two_quiet_threads": med(r[2] for r in rows), "ratio": med(r[1] / r[0] for r in rows)}))


main()
