"""Which protocol a connection speaks, and what is refused before the upgrade."""

import json
import re

from websockets.exceptions import InvalidStatus

from frames import kinds, said
from harness import eq

GOOD_IDS = ["a", "A-b_c.9", "x" * 128, "_", "-", "0", "a..b",
            "550e8400-e29b-41d4-a716-446655440000"]
BAD_IDS = [".", "..", ".hidden", "x" * 129, "a%20b", "a%2Fb", "..%2F..%2Fetc%2Fpasswd", "a%00b",
           "%", "%zz", "a:b", "a%5Cb", "%C3%A4", "a*b", "a~b", "a+b", "%2e%2e"]


def undecided(client):
    """The error of a connection that nobody knows the protocol of."""
    frame = json.loads(client.ws.recv(timeout=10))
    eq(sorted(frame), ["error", "type"], f"fields of {frame}")
    eq(frame["type"], "error", f"type of {frame}")
    assert isinstance(frame["error"], str) and frame["error"], frame
    return frame["error"]


def status(server, path, **options):
    """The HTTP status that a handshake gets."""
    try:
        server.client(path, **options).close()
        return 101
    except InvalidStatus as refused:
        body = refused.response.body or b"{}"
        if 400 <= refused.response.status_code < 500:
            assert json.loads(body)["error"], f"no reason for {path}: {body}"
        return refused.response.status_code


def test_the_first_message_decides(t):
    server = t.server()
    for path in ("/", "/ws", "/ws/"):
        client = server.client(path)
        frames = client.turn("say: hello")
        eq(kinds(frames), ["loading", "assistant", "idle", "agent_finished"], path)
        session = frames[0]["session_id"]
        assert re.fullmatch(r"[0-9a-f]{32}", session), f"a generated id: {session}"
        eq({f["session_id"] for f in frames}, {session}, "session_id")
        eq(server.get(f"/sessions/{session}").status, 200, "the session")


def test_every_documented_type_decides(t):
    server = t.server()
    for kind in ("approval_response", "get_context_info", "manual_compact", "user_input"):
        client = server.client("/ws")
        client.send(kind)
        frame = client.recv()
        assert frame["type"] in ("error", "context_info"), frame
        client.send("nonsense")
        client.error()


def test_an_unknown_type_decides_nothing(t):
    server = t.server()
    for path in ("/", "/ws"):
        client = server.client(path)
        for message in ('{"id":"1","type":"nope"}', '{"type":"user_inputs"}', "{", "", "[]", "1",
                        '{"type":7}', '{"id":"1"}', '{"id":"1","type":"cancel_run"}', b"\xff"):
            client.ws.send(message)
            undecided(client)
        assert "nope" in told(client, '{"type":"nope"}'), "the error names the type"
        eq(said(client.turn("say: at last")), ["at last"], f"{path} then decides")
        client.ws.send("{")
        client.error()


def told(client, message):
    client.ws.send(message)
    return undecided(client)


def test_nothing_is_sent_before_a_client_has_spoken(t):
    server = t.server()
    silent = server.client("/")
    server.client("/ws/s1").turn("say: something elsewhere")
    eq(said(silent.turn("say: mine")), ["mine"], "the first it hears is its own")


def test_a_decided_connection_may_name_its_session(t):
    server = t.server()
    server.client("/ws/s1").turn("say: one")
    for path in ("/agentloop/s1", "/agentloop?session_id=s1", "/?session_id=s1",
                 "/ws/s1?protocol=agentloop", "/ws?protocol=agentloop&session_id=s1"):
        client = server.client(path)
        frames = client.turn("say: two")
        eq(frames[0]["session_id"], "s1", path)


def test_each_connection_without_a_session_has_its_own(t):
    server = t.server()
    ids = {server.client("/agentloop").turn("say: x")[0]["session_id"] for _ in range(3)}
    eq(len(ids), 3, "sessions")


def test_the_query_names_the_protocol(t):
    server = t.server()
    client = server.client("/?protocol=agentloop")
    client.ws.send('{"type":"nope"}')
    client.error()
    for name in ("nope", "", "AGENTLOOP", "agentloop.v1"):
        for path in ("/", "/ws", "/ws/s1"):
            eq(status(server, f"{path}?protocol={name}"), 400, f"{path} {name!r}")


def test_the_subprotocol_is_selected_and_echoed(t):
    server = t.server()
    for offered in (["agentloop.v1"], ["other", "agentloop.v1"], ["agentloop.v1", "x"]):
        client = server.client("/", subprotocols=offered)
        eq(client.ws.subprotocol, "agentloop.v1", f"selected of {offered}")
        client.ws.send("{")
        client.error()
    client = server.client("/", subprotocols=["other"])
    eq(client.ws.subprotocol, None, "selected of an unknown one")
    client.ws.send("{")
    undecided(client)
    # The first rule wins over the second.
    client = server.client("/?protocol=nope", subprotocols=["agentloop.v1"])
    eq(client.ws.subprotocol, "agentloop.v1", "selected")


def test_only_what_was_offered_is_echoed(t):
    # A client must fail the handshake when it reads another name than it wrote.
    client = t.server().client("/", subprotocols=["AgentLoop.v1"])
    assert client.ws.subprotocol in (None, "AgentLoop.v1"), client.ws.subprotocol


def test_ids(t):
    server = t.server()
    for good in GOOD_IDS:
        for path in (f"/ws/{good}", f"/?protocol=agentloop&session_id={good}"):
            server.client(path).still_open()
    for bad in BAD_IDS:
        eq(status(server, f"/ws/{bad}"), 400, f"/ws/{bad}")
        eq(status(server, f"/agentloop/{bad}"), 400, f"/agentloop/{bad}")
        if bad != "a+b":
            eq(status(server, f"/?session_id={bad}"), 400, f"?session_id={bad}")
    assert status(server, "/ws/a/b") in (400, 404), "a path with two parts"
    eq(status(server, "/?session_id="), 400, "an empty id")
    listed = {s["id"] for s in server.get("/sessions").json["sessions"]}
    eq(listed, set(GOOD_IDS), "sessions")
    outside = [p for p in t.dir.rglob("*.jsonl") if p.parent != t.store]
    eq(outside, [], "files outside the store")


def test_bad_since(t):
    server = t.server()
    server.client("/ws/s1").turn("say: x")
    for bad in ("x", "-1", "1.5", "", "99999999999999999999999", "1~", "1+", "1~zz", "%00", "1~1q1",
                "0x1", "1" * 5000):
        eq(status(server, f"/ws/s1?since={bad}"), 400, f"since={bad[:30]}")


def test_a_since_beyond_the_end_is_the_end(t):
    server = t.server()
    server.client("/ws/s1").turn("say: x")
    client = server.client("/ws/s1?since=999999999")
    eq(said(client.turn("say: y")), ["y"])
    eq(len(client.seen), 4, f"nothing else: {kinds(client.seen)}")


def test_without_an_upgrade(t):
    server = t.server()
    for path in ("/ws", "/ws/", "/ws/s1", "/agentloop", "/agentloop/s1"):
        answer = server.get(path)
        assert answer.status in (400, 426), f"{path}: {answer}"
        assert answer.json["error"], answer
    eq(server.get("/").status, 200, "the page")
    assert "html" in server.get("/").headers["content-type"], "the page"
    eq(server.get("/sessions").json, {"sessions": []}, "no session was made")


def test_a_broken_handshake(t):
    server = t.server()
    base = ["GET /ws/s1 HTTP/1.1", f"Host: {server.address}", "Upgrade: websocket",
            "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    cases = {
        "no key": base[:-1],
        "another version": [*base[:4], "Sec-WebSocket-Version: 8", base[5]],
        "no connection header": [*base[:3], *base[4:]],
        "POST": ["POST /ws/s1 HTTP/1.1", *base[1:], "Content-Length: 0"],
    }
    for what, lines in cases.items():
        answer = server.raw(("\r\n".join(lines) + "\r\n\r\n").encode())
        assert answer.status in (400, 405, 426), f"{what}: {answer}"
    eq(server.raw(("\r\n".join(base) + "\r\n\r\n").encode()).headers["sec-websocket-accept"],
       "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "the accept key of the RFC's example")


def test_unknown_paths(t):
    server = t.server()
    for path in ("/nope", "/wss", "/ws1", "/agentloops", "/sessions/", "/api/sessions"):
        assert status(server, path) in (400, 404), path
        answer = server.get(path)
        assert answer.status in (400, 404), f"{path}: {answer}"
        assert answer.json["error"], answer
