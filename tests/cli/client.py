"""client.py INGOT: what `ingot ask` makes of a server's stream. The server is ours, one canned answer a case."""
import json
import os
import pty
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "server"))
from harness import Cases

INGOT = sys.argv[1]
cases = Cases()


def text(content):
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def ask(*events, terminal=False):
    """Runs `ingot ask` against one answer of these events; its exit code, standard output and error."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        s, _ = listener.accept()
        s.recv(1 << 16)
        body = b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in events)
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                  + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
        s.close()

    thread = threading.Thread(target=serve)
    thread.start()
    command = [INGOT, "ask", "--url", f"http://127.0.0.1:{listener.getsockname()[1]}", "Hello?"]
    if terminal:
        master, slave = pty.openpty()
        r = subprocess.run(command, stdout=slave, stderr=subprocess.PIPE, timeout=20)
        os.close(slave)
        out = os.read(master, 1 << 16)
        os.close(master)
    else:
        r = subprocess.run(command, capture_output=True, timeout=20)
        out = r.stdout
    thread.join()
    listener.close()
    return r.returncode, out, r.stderr.decode()


HOSTILE = "a\0b \x1b[2J\x9b2J\x07 \u00e9\tc\n"


def a_file_gets_the_very_bytes():
    code, out, err = ask(text(HOSTILE), END)
    assert code == 0 and out == HOSTILE.encode(), (code, out, err)


def a_terminal_gets_no_control_characters():
    code, out, err = ask(text(HOSTILE), END, terminal=True)
    shown = out.replace(b"\r\n", b"\n").decode()
    assert code == 0 and shown == "a\\x00b \\x1b[2J\\xc2\\x9b2J\\x07 \u00e9\tc\n\n", (code, shown, err)


def an_answer_without_its_end_is_an_error():
    code, out, err = ask(text("half"))
    assert code == 4 and out == b"half" and "before the answer's end" in err, (code, out, err)


def an_error_event_is_an_error_whatever_it_says():
    for error in ({"message": "no\x1b[2J"}, {"message": 5}, {"message": "x\0y"}, []):
        code, out, err = ask(text("half"), {"error": error})
        assert code == 4 and "ended the answer" in err and "\x1b" not in err, (error, code, out, err)


for case in (a_file_gets_the_very_bytes, a_terminal_gets_no_control_characters, an_answer_without_its_end_is_an_error,
             an_error_event_is_an_error_whatever_it_says):
    cases.run("client." + case.__name__, case)
cases.end()
