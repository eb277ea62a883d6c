"""harness.py: starts servers, speaks HTTP to them, counts cases."""
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUNDLE, TRUST = "build/tests/bundle", "build/tests/keys/publisher.pub"


class Server:
    """One `ingot serve` on a port of its own; the folder holds its log."""

    def __init__(self, ingot, *options, folder=None, bundle=BUNDLE, trust=TRUST, wait=True, limit=None, env=None):
        self.ingot, self.folder = ingot, folder or tempfile.mkdtemp(prefix="ingot-server-")
        self.port_file = os.path.join(self.folder, "port")
        if os.path.exists(self.port_file):
            os.remove(self.port_file)
        self.err = open(os.path.join(self.folder, "err"), "ab+")
        command = [ingot, "serve", "--bundle", bundle, "--trust", trust, "--log", self.log, "--listen", "127.0.0.1:0", "--port-file", self.port_file,
                   "--context", "2048", "--kv-tokens", "8192", "--allow-writable", *options]
        if limit is not None:
            command = ["sh", "-c", f'ulimit -f {limit}; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.err, env={**os.environ, **(env or {})})
        if wait:
            self.wait_ready()

    @property
    def log(self):
        return os.path.join(self.folder, "log")

    @property
    def key(self):
        return self.log + ".key.vkey"

    def wait_ready(self, seconds=120):
        end = time.monotonic() + seconds
        while not os.path.exists(self.port_file):
            if self.process.poll() is not None:
                raise AssertionError("the server ended: " + self.stderr())
            if time.monotonic() > end:
                raise AssertionError("the server was not ready in time")
            time.sleep(0.02)
        self.port = int(open(self.port_file).read())

    def stderr(self):
        self.err.flush()
        self.err.seek(0)
        return self.err.read().decode(errors="replace")

    def request(self, method, path, body=None, headers=None, timeout=120):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        c.request(method, path, data, headers or {})
        r = c.getresponse()
        raw = r.read()
        c.close()
        try:
            return r.status, json.loads(raw)
        except ValueError:
            return r.status, raw.decode(errors="replace")

    def chat(self, text="Say hello.", **more):
        status, answer = self.request("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": text}], "max_tokens": 8, "temperature": 0, **more})
        assert status == 200, answer
        return answer

    def stop(self, sig=signal.SIGTERM, seconds=60):
        self.process.send_signal(sig)
        return self.process.wait(seconds)

    def audit(self, *args):
        return subprocess.run([self.ingot, "audit", *args, "--key", self.key], capture_output=True, text=True)

    def events(self):
        out = self.audit("show", self.log)
        assert out.returncode == 0, out.stderr
        return [json.loads(line.split(" ", 1)[1]) for line in out.stdout.splitlines()]

    def verify(self):
        out = self.audit("verify", self.log)
        assert out.returncode == 0, out.stdout + out.stderr

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.err.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cases:
    """Runs functions as cases; ends with the counting line."""

    def __init__(self):
        self.passed = self.failed = 0

    def run(self, name, fn, *args):
        begin = time.monotonic()
        try:
            fn(*args)
            self.passed += 1
            print(f"ok {name} ({time.monotonic() - begin:.2f} s)", flush=True)
        except Exception as e:  # a failing case is reported, the others go on
            self.failed += 1
            print(f"not ok {name}: {type(e).__name__}: {e}", flush=True)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(self.failed > 0)
