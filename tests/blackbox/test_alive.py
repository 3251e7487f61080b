"""The server asks whether its clients are still there."""

import contextlib
import json
import time

from frames import said
from harness import eq, handshake, read_answer

# A ping every 20 s, two of them unanswered, and some room.
PING_SECS_MAX = 20 + 10
GONE_SECS_MAX = 3 * 20 + 20
# Every 30 s, and some room.
HEARTBEAT_SECS_MAX = 30 + 20


def test_a_client_that_answers_no_ping_is_gone(t):
    server = t.server()
    began = time.monotonic()
    with server.socket() as stream:
        stream.sendall(handshake("/ws/s1", server.address))
        eq(read_answer(stream).status, 101, "status")
        stream.settimeout(PING_SECS_MAX)
        frame = stream.recv(2)
        eq(frame[0], 0x89, "the first frame is a ping")
        stream.settimeout(GONE_SECS_MAX)
        with contextlib.suppress(ConnectionError):
            while stream.recv(4096):
                assert time.monotonic() < began + GONE_SECS_MAX, "it is still connected"
    # Nobody is attached any more.
    eq(server.http("DELETE", "/sessions/s1").status, 204, "archived")


def test_unified_clients_get_heartbeats(t):
    client = t.server().client("/unified")
    began = time.time()
    frame = json.loads(client.ws.recv(timeout=HEARTBEAT_SECS_MAX))
    eq((frame["type"], frame["session_id"]), ("heartbeat", ""), "the first frame")
    assert frame["id"].startswith("evt-"), frame
    assert began - 1 <= frame["timestamp"] <= time.time() + 1, f"Unix seconds: {frame}"


def test_a_client_that_answers_stays(t):
    # The library answers pings by itself.
    client = t.server().client()
    end = time.monotonic() + GONE_SECS_MAX
    while time.monotonic() < end:
        with contextlib.suppress(TimeoutError):
            client.recv(secs=end - time.monotonic())
            raise AssertionError("a frame out of nowhere")
    eq(said(client.turn("say: still here")), ["still here"])
