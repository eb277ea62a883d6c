"""forge.py: receipts that lie, under a log's own key: what a server could have logged that tells one story and computed another."""
import base64
import hashlib
import hmac
import json
import os
import subprocess
import tempfile

PARTS = ("load", "admit", "done")


def commitment(secret, name, data):
    return hashlib.sha256(b"\x50" + hmac.new(secret, name.encode(), hashlib.sha256).digest() + data).hexdigest()


def leaf_hash(leaf):
    return hashlib.sha256(b"\0" + leaf).digest()


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def tree_root(hashes):
    if len(hashes) == 1:
        return hashes[0]
    k = 1 << (len(hashes) - 1).bit_length() - 1
    return node(tree_root(hashes[:k]), tree_root(hashes[k:]))


def inclusion(hashes, i):
    if len(hashes) == 1:
        return []
    k = 1 << (len(hashes) - 1).bit_length() - 1
    if i < k:
        return inclusion(hashes[:k], i) + [tree_root(hashes[k:])]
    return inclusion(hashes[k:], i - k) + [tree_root(hashes[:k])]


def sign(text, key_file):
    """The note of a checkpoint's text under a log's private key (PRIVATE+KEY+NAME+HASH+BASE64)."""
    name, key_hash, seed = open(key_file).read().strip()[len("PRIVATE+KEY+"):].split("+", 2)
    with tempfile.TemporaryDirectory() as d:
        open(d + "/text", "wb").write(text)
        open(d + "/key", "wb").write(bytes.fromhex("302e020100300506032b657004220420") + base64.b64decode(seed)[1:])
        subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-keyform", "DER", "-inkey", d + "/key", "-in", d + "/text", "-out", d + "/sig"], check=True)
        signature = open(d + "/sig", "rb").read()
    return text + b"\n\xe2\x80\x94 " + name.encode() + b" " + base64.b64encode(bytes.fromhex(key_hash) + signature) + b"\n"


def forge(receipt, key_file, edit):
    """The receipt after edit(events, secret), whose events are those of its leaves, in a log that holds them and is signed."""
    top, note = receipt.split("\n\n", 1)
    lines = top.split("\n")
    starts = [next(i for i, l in enumerate(lines) if l.startswith(f"leaf {p} ")) for p in PARTS]
    index = [int(lines[s].split()[2]) for s in starts]
    events = {p: json.loads(lines[s + 1]) for p, s in zip(PARTS, starts)}
    edit(events, bytes.fromhex(lines[1].split()[1]))
    leaves = []
    for p in PARTS:
        if p == "done":
            events["done"]["admit"]["h"] = leaf_hash(leaves[1]).hex()
        leaves.append(json.dumps(events[p], separators=(",", ":")).encode())
    origin, size = note.split("\n")[:2]
    hashes = [os.urandom(32) for _ in range(int(size))]
    for i, leaf in zip(index, leaves):
        hashes[i] = leaf_hash(leaf)
    out = "\n".join(lines[:starts[0]]).encode() + b"\n"
    for p, i, leaf in zip(PARTS, index, leaves):
        out += f"leaf {p} {i}\n".encode() + leaf + b"\n"
        out += b"".join(base64.b64encode(h) + b"\n" for h in inclusion(hashes, i))
    text = f"{origin}\n{size}\n{base64.b64encode(tree_root(hashes)).decode()}\n".encode()
    return out + b"\n" + sign(text, key_file)
