"""A server that nobody uses: what it holds, and what it looks at before it is there."""

import os
from pathlib import Path

from harness import eq, eventually

# A vocabulary alone is twice as much.
IDLE_BYTES_MAX = 10_000_000
LOOKS = 20
SESSIONS = 10_000
# Of all that is read on the way, whatever the store holds; each of its sessions has some KB.
READ_BYTES_MAX = 200_000


def process(server, name):
    return Path(f"/proc/{server.process.pid}/{name}").read_text()


def own_memory(server):
    """What it has written to, not the pages of its program."""
    line = next(line for line in process(server, "status").splitlines() if "RssAnon" in line)
    return int(line.split()[1]) * 1024


def read_bytes(server):
    return int(process(server, "io").split("rchar:")[1].split()[0])


def at_rest(server):
    """Nothing it does by itself is left to do: it has used no more time for as many looks."""
    looks = []

    def same():
        looks.append(sum(int(n) for n in process(server, "stat").rsplit(")")[-1].split()[11:13]))
        return len(looks) > LOOKS and len(set(looks[-LOOKS:])) == 1

    eventually(same, "the server rests")


def test_what_counts_and_encrypts_is_there_when_it_is_used(t):
    server = t.server()
    eq(server.get("/healthz").status, 200, "status")
    at_rest(server)
    idle = own_memory(server)
    assert idle < IDLE_BYTES_MAX, f"{idle} bytes while nobody is there"
    client = server.client()
    client.turn("say: hello")
    eventually(lambda: own_memory(server) > IDLE_BYTES_MAX, "the vocabulary is there")


def test_a_full_store_is_not_read_at_the_start(t):
    first = t.server()
    before = read_bytes(first)
    first.client().turn("say: hello")
    first.stop()
    original = t.store / "s1.jsonl"
    assert original.stat().st_size * SESSIONS > 20 * READ_BYTES_MAX, "the sessions are too short"
    for number in range(SESSIONS):
        os.link(original, t.store / f"t{number:05}.jsonl")
    second = t.server()
    more = read_bytes(second) - before
    assert more < READ_BYTES_MAX, f"{more} bytes more were read"
    eq(second.get("/sessions/t00042").status, 200, "status of one of them")
