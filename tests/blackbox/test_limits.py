"""Clients that do not read, and more connections than allowed: nobody else suffers."""

import contextlib
import json

from frames import said
from harness import WAIT_SECS, eq, eventually, handshake

# More than a server can be expected to keep for one client.
STREAM_BYTES = 24_000_000
STREAM = f"stream: {STREAM_BYTES // 1000} 1000 0"


def never_reads(server, path, segment_bytes=None):
    """A client that shakes hands and then takes nothing."""
    stream = server.socket(receive_bytes=4096, segment_bytes=segment_bytes)
    server.test.closing.append(stream.close)
    stream.sendall(handshake(path, server.address))
    data = b""
    while b"\r\n\r\n" not in data:
        data += stream.recv(1)
    assert b" 101 " in data, data
    return stream


def numbers(text):
    """The offline model's stream: numbered words without a gap."""
    return "".join(f"{n:07} " for n in range(len(text) // 8 + 1)).startswith(text)


def test_a_client_that_never_reads_disturbs_no_other_session(t):
    server = t.server()
    never_reads(server, "/ws/slow")
    speaker = server.client("/ws/slow")
    speaker.say(STREAM)
    speaker.until("response_item")
    other = server.client("/ws/other")
    for _ in range(5):
        eq(said(other.turn("say: quick")), ["quick"])
    speaker.until_end()


def test_a_client_that_never_reads_disturbs_nobody_in_its_own_session(t):
    server = t.server()
    never_reads(server, "/ws/s1")
    client = server.client("/ws/s1")
    frames = client.turn(STREAM)
    (text,) = said(frames)
    eq(len(text), STREAM_BYTES, "bytes")
    assert numbers(text), "a gap in the text"
    eq(said(client.turn("say: and on")), ["and on"])


def test_a_client_that_reads_late_gets_everything_or_is_cut_off(t):
    server = t.server()
    late = never_reads(server, "/ws/s1")
    client = server.client("/ws/s1")
    client.turn(STREAM)
    frames, code = read_frames(late)
    text = said(frames)[0] if said(frames) else ""
    assert numbers(text), "what came has no gap"
    if frames[-1]["type"] != "agent_finished":
        assert code in (1008, 1013), f"it is told why it was cut off: {code}"
        place = [f for f in frames if "seq" in f][-1]
        back = server.client(f"/ws/s1?since={place.get('cursor', place['seq'])}")
        back.until_end()
        text += said(back.seen)[0]
    eq(len(text), STREAM_BYTES, "bytes, in the end")
    assert numbers(text), "no gap in the end"


def read_frames(stream, last="agent_finished"):
    """Messages of a raw socket until one of a type, a close or its end; those and the code."""
    frames, code, parts = [], None, b""
    with contextlib.suppress(ConnectionResetError), contextlib.closing(stream), \
            stream.makefile("rb") as data:
        stream.settimeout(WAIT_SECS)
        while head := data.read(2):
            length = head[1] & 0x7F
            if length > 125:
                length = int.from_bytes(data.read(2 if length == 126 else 8), "big")
            payload = data.read(length)
            if len(payload) < length:
                break
            if head[0] & 0x0F == 8:
                code = int.from_bytes(payload[:2], "big")
                break
            # A long message comes in several frames.
            if head[0] & 0x0F in (0, 1):
                parts += payload
            if head[0] & 0x8F in (0x80, 0x81):
                frames.append(json.loads(parts))
                parts = b""
                if frames[-1]["type"] == last:
                    break
    return frames, code


def test_more_connections_than_allowed(t):
    server = t.server(env={"MAX_CONNECTIONS": 3})
    clients = [server.client(f"/ws/s{number}") for number in range(3)]
    eq(server.upgrade("/ws/s4"), 503, "a fourth socket")
    answer = server.get("/sessions")
    eq((answer.status, answer.headers["retry-after"]), (503, "5"), "a request")
    assert "MAX_CONNECTIONS" in answer.json["error"], answer
    for path in ("/healthz", "/readyz", "/metrics"):
        eq(server.get(path).status, 200, f"how a full server is, at {path}")
    head = f"POST /render HTTP/1.1\r\nHost: {server.address}\r\nContent-Length: 1000\r\n\r\n"
    eq(server.raw(head.encode()).status, 503, "nobody waits for what it would send")
    with contextlib.ExitStack() as silent:
        for _ in range(16):
            silent.enter_context(server.socket())
        eventually(lambda: server.get("/healthz").status == 503, "also that has an end")
        there = "who says nothing does not keep its place as long as a head may take"
        eventually(lambda: server.get("/healthz").status == 200, there, 15)
    for client in clients:
        eq(said(client.turn("say: fine")), ["fine"])
    clients.pop().close()
    eventually(lambda: server.get("/sessions").status == 200, "there is room again")
    clients.pop().drop()
    eventually(lambda: server.upgrade("/ws/s5") == 101, "also after a client just vanished")


def test_many_sessions_at_once(t):
    server = t.server()
    clients = [server.client(f"/ws/s{number}") for number in range(50)]
    for number, client in enumerate(clients):
        client.say(f"stream: 20 10 5\nsay: {number}")
    for number, client in enumerate(clients):
        eq(said(client.until_end())[1], str(number), "reply")


def test_a_command_with_endless_output_is_bounded(t):
    client = t.server().client()
    client.say("run: yes | head -c 50000000\nsay: end")
    client.until("approval_request")
    client.review("yes")
    frames = client.until_end()
    longest = max(len(json.dumps(frame)) for frame in frames)
    assert longest < 8 * 1024 * 1024, f"a frame of {longest} bytes"
    eq(said(frames), ["end"])


def test_a_command_that_takes_too_long_is_ended(t):
    client = t.server(env={"COMMAND_TIMEOUT_SECS": 1}).client()
    client.say("run: sleep 1000\nsay: end")
    client.until("approval_request")
    client.review("yes")
    frames = client.until_end()
    (output,) = [f["payload"]["output"] for f in frames if f["type"] == "response_item"
                 and f["payload"]["type"] == "function_call_output"]
    assert json.loads(output)["metadata"]["exit_code"] != 0, output
    eq(said(frames), ["end"])
    t.no_process_left()
