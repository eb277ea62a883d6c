"""ready.py INGOT: the start of a server: parts of the time to ready, what a terminal sees, readiness, private memory."""
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time

from harness import BUNDLE, TRUST, Cases, Server

INGOT = sys.argv[1]
SEQUENCES, TOKENS = 8, 2048
cases = Cases()


def command(folder, *options):
    return [INGOT, "serve", "--bundle", BUNDLE, "--trust", TRUST, "--log", folder + "/log", "--listen", "127.0.0.1:0", "--context", "512",
            "--kv-tokens", "1024", "--allow-writable", *options]


def start_and_stop(*options, stderr=subprocess.PIPE):
    """What a server prints up to ready, and from outside the time that took; then it ends."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        p = subprocess.Popen(command(folder, *options), stdout=subprocess.PIPE, stderr=stderr, text=True)
        lines = [p.stdout.readline()]
        while "ready" not in lines[-1] and lines[-1]:
            lines.append(p.stdout.readline())
        seconds = time.monotonic() - began
        p.terminate()
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0, err
        return "".join(lines) + out, err, seconds


def rows_of_ready_def():
    text = open("src/server/ready.def").read()
    return re.findall(r'^PART\(\w+, "(\w+)", (\w+),', text, re.M)


def every_part_of_the_time_is_named_and_they_add_up():
    out, err, seconds = start_and_stop("--json")
    r = json.loads(out)
    parts = r["parts_us"]
    assert list(parts) == [name for name, _ in rows_of_ready_def()], parts
    assert all(us >= 0 for us in parts.values()), parts
    assert sum(parts.values()) == r["ready_us"] <= seconds * 1e6, r
    for stage, key in (("LOAD", "load_us"), ("WARM", "warm_us")):
        assert r[key] == sum(parts[name] for name, s in rows_of_ready_def() if s == stage), r
    assert r["rest_us"] == r["ready_us"] - parts["hash"] - parts["touch"] - parts["prove"], r
    assert parts["hash"] > 0 and parts["touch"] > 0 and parts["prove"] > 0 and parts["text"] > 0, parts
    assert r["touch_bytes"] > r["kv_bytes"] + r["arena_bytes"] > 0, r
    assert err == "", err


def the_text_gives_each_stage_its_parts():
    out, err, _ = start_and_stop()
    for line, stage in (("  start ", "NONE"), ("2 load ", "LOAD"), ("3 warm ", "WARM")):
        text = next(x for x in out.splitlines() if x.startswith(line))
        total = float(re.search(r"([\d.]+) s", text)[1])
        names = [name for name, s in rows_of_ready_def() if s == stage]
        seconds = [float(re.search(rf"\b{name} ([\d.]+)", text)[1]) for name in names]
        assert abs(total - sum(seconds)) <= 0.001 * len(seconds), text
    assert err == "", "a pipe got a progress line: " + err


def a_terminal_sees_the_phases_and_a_clean_line_after():
    ours, theirs = pty.openpty()
    seen = bytearray()

    def read():
        try:
            while data := os.read(ours, 4096):
                seen.extend(data)
        except OSError:
            pass   # the other end is closed

    reader = threading.Thread(target=read)
    reader.start()
    start_and_stop(stderr=theirs)
    os.close(theirs)
    reader.join(10)
    os.close(ours)
    text = seen.decode()
    at = [text.find(phase) for phase in ("reading the log", "verifying", "touching", "proving")]
    assert -1 not in at and at == sorted(at), repr(text)
    assert "\n" not in text and text.endswith("\r") and not text.rstrip("\r").split("\r")[-1].strip(), repr(text)


def readyz_is_true_from_the_first_answer():
    for _ in range(3):
        server = Server(INGOT, "--kv-tokens", "1024", "--context", "512")
        try:
            assert server.request("GET", "/readyz") == (200, "ready\n")
        finally:
            server.close()


def nobody_listens_before_the_known_answer_is_proven():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/s"
        p = subprocess.Popen(command(folder, "--listen", "unix:" + path, "--json"), stdout=subprocess.PIPE, text=True)
        while not os.path.exists(path) and p.poll() is None:
            time.sleep(0.001)
        # the socket is there: warm has counted its bytes already
        out = subprocess.run(["curl", "-s", "--retry", "3", "--retry-connrefused", "--unix-socket", path, "http://x/limits"], capture_output=True, text=True, timeout=30).stdout
        warm = json.loads(out)["stages"][2]
        proven = warm["name"] == "warm" and warm["units"] > 0 and warm["us"] > 0
        p.terminate()
        p.communicate(timeout=60)
        assert proven and p.returncode == 0, out


def private_bytes(pid):
    """Of every mapping but those of the bundle, whose pages are the page cache's."""
    total, ours = 0, False
    for line in open(f"/proc/{pid}/smaps"):
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            ours = len(words) > 5 and os.path.realpath(BUNDLE) in words[5]
        elif words[0] in ("Private_Clean:", "Private_Dirty:") and not ours:
            total += int(words[1]) * 1024
    return total


def ask(server, i, results):
    prompt = [(j * (131 + 2 * i) + 7 * i) % 40000 + 100 for j in range(200)]
    results[i], _ = server.request("POST", "/v1/completions", {"prompt": prompt, "max_tokens": 8, "temperature": 0})


def private_memory_is_the_kv_cache_and_less_than_100_mb():
    """One copy of the weights (105 MB here) would break the bound."""
    server = Server(INGOT, "--context", str(TOKENS), "--kv-tokens", str(SEQUENCES * TOKENS))
    try:
        kv = server.request("GET", "/limits")[1]["kv"]["pool_bytes"]
        bound, results = kv + 100_000_000, [0] * SEQUENCES
        assert kv == 30 * 3 * 64 * 2 * 2 * SEQUENCES * TOKENS, kv
        ready = private_bytes(server.process.pid)
        assert kv < ready < bound, (kv, ready)
        threads = [threading.Thread(target=ask, args=(server, i, results)) for i in range(SEQUENCES)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert results == [200] * SEQUENCES, results
        asked = private_bytes(server.process.pid)
        assert kv < asked < bound, (kv, ready, asked)
    finally:
        server.close()


for case in (every_part_of_the_time_is_named_and_they_add_up, the_text_gives_each_stage_its_parts, a_terminal_sees_the_phases_and_a_clean_line_after,
             readyz_is_true_from_the_first_answer, nobody_listens_before_the_known_answer_is_proven, private_memory_is_the_kv_cache_and_less_than_100_mb):
    cases.run("ready." + case.__name__, case)
cases.end()
