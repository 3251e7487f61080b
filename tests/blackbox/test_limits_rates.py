"""Clients that send more than they may: each message too many is refused in the dialect's own shape
and its sender alone is told, bytes are read more slowly, and nobody else notices."""

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from harness import eq, eventually
from loomtalk import loom
from talk import of, spoken, talks
from test_limits import never_reads

# The setting allows one a second; as many as that in ten seconds may come at once.
SLOW = {"RATE_MESSAGES_PER_SEC": 1}
AT_ONCE = 10
LONG = "stream: 100000 10 20"
TOKEN = "0123456789abcdef"


def says_when(text, setting):
    """An error that names the limit and when to try again; those seconds."""
    assert setting in text, text
    found = re.search(r"try again in (\d+) s", text)
    assert found, text
    return int(found[1])


@talks
def test_messages_too_many_are_refused_by_name_and_the_rest_is_done(s):
    s.server(env=SLOW)
    client = s.unified()
    client.start()
    sent = [client.send("get_context") for _ in range(6 * AT_ONCE)]
    frames = [client.recv() for _ in sent]
    refused = of(frames, "error")
    done = of(frames, "context_info")
    eq(len(done) + len(refused), len(sent), "every message has its answer")
    assert len(done) >= AT_ONCE - 1 and refused, (len(done), len(refused))
    for error in refused:
        eq((error["code"], error["is_fatal"]), ("rate_limited", False), f"{error}")
        assert error["client_ref"] in sent, error
        secs = says_when(error["message"], "RATE_MESSAGES_PER_SEC")
    time.sleep(secs)
    client.still_open()


@talks
def test_what_stops_or_decides_is_always_taken(s):
    s.server(env=SLOW)
    client = s.unified()
    asked = client.asked("run: rm -f x\nsay: done")
    while not [f for f in client.seen if f.get("code") == "rate_limited"]:
        client.send("get_context")
        client.recv()
    client.decide(asked, "allow")
    eq(spoken(client.until_end()), ["done"])
    other = s.unified(session="s2")
    other.say(LONG)
    other.until("assistant_message")
    for _ in range(3 * AT_ONCE):
        other.send("get_context")
    other.until(lambda frame: frame.get("code") == "rate_limited")
    other.send("interrupt", reason="enough")
    eq(other.until_end()[-2]["error"], "Interrupted: enough")


@talks
def test_turns_too_many_in_every_dialect(s):
    server = s.server(env={"RATE_TURNS_PER_MIN": 2})
    unified = s.unified(session="u")
    eq([spoken(unified.turn(f"say: {n}")) for n in range(2)], [["0"], ["1"]])
    refused = unified.say("say: 2")
    error = unified.recv()
    eq((error["code"], error["client_ref"]), ("rate_limited", refused), f"{error}")
    assert 1 < says_when(error["message"], "RATE_TURNS_PER_MIN") <= 60, error
    unified.still_open()
    agentloop = s.agentloop("a")
    for n in range(2):
        agentloop.turn(f"say: {n}")
    agentloop.say("say: 2")
    error = agentloop.error()
    eq(error["details"]["code"], "rate_limited")
    says_when(error["details"]["error"], "RATE_TURNS_PER_MIN")
    agentloop.still_open()
    runs = loom(s)
    for n in range(2):
        runs.turn(f"say: {n}", thread="l")
    refused = runs.run("say: 2", thread="l")
    error = runs.error()
    eq(error["request_id"], refused, f"{error}")
    says_when(error["error"], "RATE_TURNS_PER_MIN")
    runs.still_open()
    chat, other = s.chat(session="c"), s.chat(session="d")
    for n in range(2):
        chat.turn(f"say: {n}")
    chat.say("say: 2")
    says_when(chat.error(), "RATE_TURNS_PER_MIN")
    # Nobody else in the room hears of it.
    frames = other.turn("say: mine")
    eq([f["message"] for f in of(frames, "agent_message")][:1], ["0"], "the first heard")
    eq(of(frames, "error"), [])
    for session in "ualc":
        said = [m for m in server.messages(session) if "say: 2" in str(m)]
        eq(said, [], f"{session}: what was refused is nowhere")


@talks
def test_connections_of_one_client_are_counted_together(s):
    s.server(env={"RATE_CLIENT_TURNS_PER_MIN": 3})
    first, second = s.unified(session="a"), s.unified(session="b")
    first.turn("say: 1")
    second.turn("say: 2")
    first.turn("say: 3")
    for client in (first, second):
        client.say("say: 4")
        says_when(client.error(), "RATE_CLIENT_TURNS_PER_MIN")


@talks
def test_who_has_the_token_is_one_client(s):
    s.server(env={"RATE_CLIENT_TURNS_PER_MIN": 1, "POLYLOOP_TOKEN": TOKEN})
    first = s.unified(path=f"/unified?token={TOKEN}", session="a")
    second = s.unified(path=f"/unified?token={TOKEN}", session="b")
    first.turn("say: 1")
    second.say("say: 2")
    says_when(second.error(), "RATE_CLIENT_TURNS_PER_MIN")


def frame(payload):
    """A masked text frame; a mask of zeros leaves the text as it is."""
    return b"\x81\xff" + len(payload).to_bytes(8, "big") + bytes(4) + payload


def test_bytes_too_many_are_read_slowly_and_none_is_lost(t):
    rate, burst_secs, count = 2_000_000, 4, 14
    server = t.server(env={"RATE_BYTES_PER_SEC": rate})
    stream = never_reads(server, "/ws/s1")
    flood = frame(b"x" * 1_000_000) * count
    began = time.monotonic()
    sending = threading.Thread(target=stream.sendall, args=(flood,), daemon=True)
    sending.start()
    other = server.client("/ws/other")
    other.turn("say: not held up")
    # Each is no JSON, and is told so.
    seen = []
    stream.settimeout(60)
    with stream.makefile("rb") as data:
        while len(seen) < count:
            head = data.read(2)
            length = head[1] & 0x7F
            if length == 126:
                length = int.from_bytes(data.read(2), "big")
            payload = data.read(length)
            if head[0] & 0x0F == 1:
                seen.append(payload)
    took = time.monotonic() - began
    assert all(b"rate_limited" not in payload for payload in seen), seen[-1]
    least = (len(flood) - 1_000_000) / rate - burst_secs
    assert took >= least, f"{len(flood)} bytes in {took:.1f} s; not before {least:.1f} s"


def test_requests_too_many_get_429_and_when_to_come_back(t):
    server = t.server(env={"RATE_CLIENT_REQUESTS_PER_SEC": 1})
    answers = [server.get("/sessions") for _ in range(AT_ONCE + 3)]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused, [answer.status for answer in answers]
    eq({answer.status for answer in answers}, {200, 429}, "statuses")
    says_when(refused[0].json["error"], "RATE_CLIENT_REQUESTS_PER_SEC")
    secs = int(refused[0].headers["retry-after"])
    assert 1 <= secs <= 60, secs
    eq({server.get("/healthz").status for _ in range(3 * AT_ONCE)}, {200}, "who asks if it lives")
    eq(server.upgrade("/ws/s1"), 101, "a socket is no request of this kind")
    time.sleep(secs)
    eq(server.get("/sessions").status, 200, "after the time that was told")


def test_the_upgrade_header_alone_excuses_nothing(t):
    server = t.server(env={"RATE_CLIENT_REQUESTS_PER_SEC": 1})
    def ask(path):
        return server.get(path, Upgrade="websocket", Connection="Upgrade").status
    for path in ("/sessions", "/models", "/nowhere"):
        eventually(lambda path=path: ask(path) == 429, f"{path}: too many requests")
    eq(server.upgrade("/ws/s1"), 101, "a socket is no request of this kind")


@talks
def test_a_length_that_is_only_promised_is_no_debt(s):
    """Who says that much will come has sent nothing yet, and holds nobody up."""
    server = s.server()
    client = s.unified()
    client.turn("say: before")
    host = f"Host: {server.address}"
    for length in ("1000000000000", "18446744073709551613", str(2 * 1024 * 1024 + 1)):
        for head in ("POST /sessions", "POST /nowhere", "GET /metrics"):
            head = f"{head} HTTP/1.1\r\n{host}\r\nContent-Length: {length}\r\n\r\n"
            answer = server.raw(head.encode())
            eq(answer.status, 413, head)
            assert "too large" in answer.json["error"], answer
    for size in (3, 12):
        # Who sends all of it before it reads is not cut off before it has the answer.
        answer = server.http("POST", "/render", body=b"x" * (size << 20))
        eq(answer.status, 413, f"{size} MiB")
        assert "too large" in answer.json["error"], answer
    waiting = [server.socket() for _ in range(20)]
    for stream in waiting:
        head = f"POST /render HTTP/1.1\r\n{host}\r\nContent-Length: 2097152\r\n\r\n"
        stream.sendall(head.encode())
    eq(server.get("/metrics").status, 200)
    eq(spoken(client.turn("say: after")), ["after"])
    for stream in waiting:
        stream.close()


def test_who_sends_too_many_bytes_in_requests_is_told_when_to_come_back(t):
    """And is let in when it does; who sends none is not held up."""
    server = t.server(env={"RATE_CLIENT_BYTES_PER_SEC": 100_000})
    body = json.dumps({"markdown": "x" * 500_000}).encode()
    render = lambda: server.http("POST", "/render", body=body)
    # At once, two of them would fit.
    with ThreadPoolExecutor() as pool:
        sent = [pool.submit(render) for _ in range(5)]
        come = (answer.result() for answer in as_completed(sent))
        answers = [next(answer for answer in come if answer.status == 429)]
        eq(server.get("/metrics").status, 200, "who sends no body")
        # Others may be let in before it, if they come late.
        while answers[-1].status == 429 and len(answers) < 9:
            says_when(answers[-1].json["error"], "RATE_CLIENT_BYTES_PER_SEC")
            secs = int(answers[-1].headers["retry-after"])
            assert 1 <= secs <= 20, answers[-1].headers
            time.sleep(secs)
            answers.append(render())
        eq(answers[-1].status, 200, "who comes back as told")
        answers = answers[1:] + [answer.result() for answer in sent]
    eq({answer.status for answer in answers}, {200, 429}, "statuses")
    count = sum(answer.status == 429 for answer in answers)
    refused = f'polyloop_refused_total{{limit="requests"}} {count}\n'
    assert refused in server.get("/metrics").text, f"{count} are counted"
    server.kill()
    other = t.server()
    eq(other.http("POST", "/render", body=body).status, 200, "with the bytes that are allowed")


@talks
def test_what_cannot_be_read_counts_like_any_message(s):
    """Refused by the same limit; a flood of it is no news for the room, and fills no file."""
    server = s.server(env=SLOW)
    flood, member = s.chat(session="c"), s.chat(session="d")
    count = 6 * AT_ONCE
    for client in (flood, s.unified(session="u")):
        if client is not flood:
            client.turn("say: here")
        for at in range(count):
            client.raw("{" if at % 2 else b"\xff")
        answers = of([client.recv() for _ in range(count)], "error")
        eq(len(answers), count, "every frame has its answer")
        refused = [frame for frame in answers if "RATE_MESSAGES_PER_SEC" in str(frame)]
        assert len(refused) >= count - AT_ONCE - 5, f"{len(refused)} of {count}"
    heard = of(member.turn("say: mine"), "error")
    assert 1 <= len(heard) <= AT_ONCE + 5, f"{len(heard)} of {count} were news for the room"
    noted = [event for event in server.events("u") if "not UTF-8" in json.dumps(event)]
    assert 1 <= len(noted) <= AT_ONCE + 5, f"{len(noted)} of {count} stand in the file"
    lost = server.client("/", checked=False)
    for _ in range(count):
        lost.ws.send("{")
    answers = [json.loads(lost.ws.recv(timeout=60))["error"] for _ in range(count)]
    refused = [error for error in answers if "RATE_MESSAGES_PER_SEC" in error]
    assert len(refused) >= count - AT_ONCE - 5, f"{len(refused)} of {count} of one without dialect"
    refused = re.search(r'refused_total\{limit="messages"\} (\d+)', server.get("/metrics").text)
    assert int(refused[1]) >= 3 * (count - AT_ONCE - 5), refused[0]


def test_guessing_tokens_is_slowed_and_who_has_it_is_not(t):
    server = t.server(env={"RATE_CLIENT_REQUESTS_PER_SEC": 1, "POLYLOOP_TOKEN": TOKEN})
    def guess(path="/sessions"):
        return server.get(path, Authorization="Bearer wrong-wrong-wrong").status
    eq([guess() for _ in range(AT_ONCE)], [401] * AT_ONCE, "guesses")
    for path in ("/sessions", "/", "/?token=wrong-wrong-wrong"):
        eventually(lambda path=path: guess(path) == 429, f"too many guesses at {path}")
    for _ in range(3 * AT_ONCE):
        server.http("OPTIONS", "/sessions", {"Origin": f"http://{server.address}"})
    right = server.get("/sessions", Authorization=f"Bearer {TOKEN}")
    eq(right.status, 200, "who has the token is another")


def test_nothing_is_no_limit(t):
    names = ("MESSAGES_PER_SEC", "TURNS_PER_MIN", "BYTES_PER_SEC", "CLIENT_MESSAGES_PER_SEC",
             "CLIENT_TURNS_PER_MIN", "CLIENT_BYTES_PER_SEC", "CLIENT_REQUESTS_PER_SEC")
    server = t.server(env={f"RATE_{name}": 0 for name in names})
    client = server.client()
    for _ in range(3000):
        client.send("get_context_info")
    for _ in range(3000):
        eq(client.recv()["type"], "context_info", "answer")
