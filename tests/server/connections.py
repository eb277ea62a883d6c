"""connections.py INGOT: what connections cost and how they end: vanished clients, bodies, stops, sockets."""
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

from harness import Cases, Server

INGOT = sys.argv[1]
CHAT = "/v1/chat/completions"
U = [{"role": "user", "content": "Write a long story."}]
ENDLESS = {"0": -100, "2": -100}   # without its stop tokens an answer ends by max_tokens only
cases = Cases()
root = tempfile.mkdtemp(prefix="ingot-connections-")


def case(name):
    def decorate(fn):
        cases.run("connections." + name, fn)
    return decorate


def send(server, body, extra=b""):
    s = socket.create_connection(("127.0.0.1", server.port))
    data = json.dumps(body).encode()
    s.sendall(b"POST " + CHAT.encode() + b" HTTP/1.1\r\nHost: x\r\n" + extra + b"Content-Length: %d\r\n\r\n" % len(data) + data)
    return s


def long_request(**more):
    return {"messages": U, "max_tokens": 1500, "temperature": 0, "logit_bias": ENDLESS, **more}


def n_sockets(server):
    folder = f"/proc/{server.process.pid}/fd"
    links = []
    for fd in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{fd}"))
        except FileNotFoundError:
            pass
    return sum(l.startswith("socket:") for l in links)


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def dones(server):
    return [e for e in server.events() if e["type"] == "done"]


@case("a-vanished-client-leaves-no-connection-behind")
def _():
    server = Server(INGOT)
    try:
        before = n_sockets(server)
        for s in [send(server, long_request()) for _ in range(4)]:
            time.sleep(0.1)
            s.close()
        until(lambda: len(dones(server)) == 4)
        assert {e["status"] for e in dones(server)} == {"cancelled"}, dones(server)
        until(lambda: n_sockets(server) == before)
        assert server.stop() == 0, server.stderr()
        server.verify()
    finally:
        server.close()


@case("a-stop-cuts-what-does-not-end-in-time-and-says-so")
def _():
    server = Server(INGOT, "--drain", "1")
    try:
        plain, stream = send(server, long_request()), send(server, long_request(stream=True))
        time.sleep(0.5)
        begin = time.monotonic()
        server.process.terminate()
        answers = [b"", b""]
        for i, s in enumerate((plain, stream)):
            while piece := s.recv(65536):
                answers[i] += piece
                if b"shutting_down" in answers[i]:
                    break
        assert server.process.wait(30) == 0, server.stderr()
        assert time.monotonic() - begin < 8
        assert answers[0].startswith(b"HTTP/1.1 503") and b"shutting_down" in answers[0], answers[0][:300]
        assert answers[1].startswith(b"HTTP/1.1 200") and b"shutting_down" in answers[1] and b"[DONE]" not in answers[1]
        assert [(e["status"], e["err"]) for e in dones(server)] == [("error", "shutting_down")] * 2, dones(server)
        server.verify()
    finally:
        server.close()


@case("a-stop-lets-every-recorded-answer-arrive")
def _():
    for _ in range(3):
        server = Server(INGOT)
        try:
            answers = []

            def ask():
                answers.append(server.request("POST", CHAT, {"messages": U, "max_tokens": 6, "temperature": 0, "n": 4, "logprobs": True, "top_logprobs": 20}))

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for t in threads:
                t.start()
            until(lambda: sum(e["type"] == "admit" for e in server.events()) == 4)
            assert server.stop() == 0, server.stderr()
            for t in threads:
                t.join()
            assert [a[0] for a in answers] == [200] * 4 and all("receipt" in a[1]["audit"] for a in answers)
        finally:
            server.close()


@case("no-body-is-kept-for-a-client-without-a-key")
def _():
    key = "ik-" + "0" * 64
    path = root + "/keys"
    open(path, "w").write("# a comment\n\nkey1 tenant1 " + hashlib.sha256(key.encode()).hexdigest() + "\n")
    server = Server(INGOT, "--api-keys", path, "--max-body", str(256 << 20))
    try:
        def rss():
            return int(next(l for l in open(f"/proc/{server.process.pid}/status") if l.startswith("VmRSS")).split()[1])

        before = rss()
        for head, status in ((b"POST " + CHAT.encode(), b"401"), (b"GET /livez", b"200")):
            s = socket.create_connection(("127.0.0.1", server.port))
            s.sendall(head + b" HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (128 << 20))
            for _ in range(127):
                s.sendall(b"x" * (1 << 20))
            assert rss() - before < 32 << 10, rss() - before
            s.sendall(b"x" * (1 << 20))
            assert s.recv(65536).startswith(b"HTTP/1.1 " + status)
        assert server.request("GET", "/v1/models")[0] == 401 and server.request("GET", "/livez")[0] == 200
        assert server.request("GET", "/v1/models", headers={"Authorization": "Bearer " + key})[0] == 200
    finally:
        server.close()


@case("strangers-are-counted-and-do-not-fill-the-log")
def _():
    path = root + "/some-keys"
    open(path, "w").write("key1 tenant1 " + "0" * 64 + "\n")
    server = Server(INGOT, "--api-keys", path)
    try:
        begin = time.monotonic()
        for _ in range(200):
            assert server.request("POST", CHAT, {"messages": U})[0] == 401
        seconds = time.monotonic() - begin
        assert server.stop() == 0, server.stderr()
        counts = [e["n"] for e in server.events() if e["type"] == "denied" and e["reason"] == "auth"]
        assert sum(counts) == 200 and len(counts) <= seconds + 3, counts
        server.verify()
    finally:
        server.close()


@case("a-keys-file-is-refused-with-its-line")
def _():
    path = root + "/bad-keys"
    open(path, "w").write("# a comment\n\n\nkey1 tenant1 12\n")
    server = Server(INGOT, "--api-keys", path, wait=False)
    try:
        assert server.process.wait(60) == 3 and path + ":4:" in server.stderr(), server.stderr()
    finally:
        server.close()


@case("an-error-message-is-valid-utf-8-whatever-was-asked")
def _():
    server = Server(INGOT)
    try:
        out = subprocess.run(["curl", "-s", f"http://127.0.0.1:{server.port}/v1/models/%ff%c3%28"], capture_output=True, timeout=60).stdout
        assert json.loads(out.decode())["error"]["code"] == "model_not_found"
        status, answer = server.request("POST", CHAT, {"messages": U, "a" + "\u00e9" * 100: 1})
        assert status == 400 and answer["error"]["param"], answer
    finally:
        server.close()


@case("a-unix-socket-takes-nobody-elses-place")
def _():
    path = root + "/socket"
    open(path, "w").write("precious")
    server = Server(INGOT, "--listen", "unix:" + path, wait=False)
    try:
        assert server.process.wait(60) == 3 and "is no socket" in server.stderr(), server.stderr()
        assert open(path).read() == "precious"
    finally:
        server.close()
    os.remove(path)
    first = Server(INGOT, "--listen", "unix:" + path)
    second = Server(INGOT, "--listen", "unix:" + path, wait=False)
    try:
        assert second.process.wait(60) == 3 and "another server" in second.stderr(), second.stderr()
        socket.socket(socket.AF_UNIX).connect(path)
        first.process.kill()
        first.process.wait()
        second = Server(INGOT, "--listen", "unix:" + path)   # what a killed server left is stale
        assert second.stop() == 0 and not os.path.exists(path)
    finally:
        first.close()
        second.close()


cases.end()
