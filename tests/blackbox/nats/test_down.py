"""NATS is away: whoever asks is told so, nothing acknowledged is lost, and servers go on by
themselves when it is back."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import eq, eventually
from loomtalk import loom
from natsserver import NatsServer
from talk import spoken, talks

# What needs the store, with a session that is there. The first of them wait for an answer of
# NATS, each by itself.
WAITING = [
    ("GET", "/sessions", None),
    ("POST", "/sessions", "{}"),
    ("GET", "/sessions/s1", None),
    ("PATCH", "/sessions/s1", '{"title": "other"}'),
]
ASKED = [
    *WAITING,
    ("GET", "/sessions/s1:context", None),
    ("GET", "/sessions/s1/frames", None),
    ("POST", "/sessions/s1:fork", None),
    ("POST", "/sessions/s1:undo", None),
    ("DELETE", "/sessions/s1", None),
]


def with_session(s):
    """A server on a NATS server of its own, with a session that nobody is attached to."""
    nats = NatsServer(s.t)
    server = s.server(env=nats.env(), store=False)
    client = s.unified()
    eq(spoken(client.turn("say: before")), ["before"])
    client.drop()
    return nats, server


def not_told(server, asks):
    """Asks for everything at once; who was not told that the store is away."""
    def ask(asked):
        method, path, body = asked
        return method, path, server.http(method, path, body=body)

    with ThreadPoolExecutor(len(asks)) as threads:
        answers = list(threads.map(ask, asks))

    def is_told(answer):
        return (answer.status == 503 and answer.headers["Retry-After"] == "5"
                and "session store cannot be reached" in answer.json["error"]
                and "NATS" in answer.json["error"])

    return [(method, path, answer.status, answer.body)
            for method, path, answer in answers if not is_told(answer)]


def ready(server, status):
    return eventually(lambda: (answer := server.get("/readyz")).status == status and answer,
                      f"/readyz answers {status}")


def away_and_back(s, go, come):
    nats, server = with_session(s)
    events = server.events()
    eq(ready(server, 200).json, {"status": "ready"}, "/readyz")
    go(nats)
    eq(not_told(server, WAITING), [], "who waited")
    told = ready(server, 503)
    eq(not_told(server, ASKED), [], "who came when it was known")
    assert "NATS" in told.json["error"] and told.headers["Retry-After"], told
    eq(server.get("/healthz").status, 200, "it lives")
    come(nats)
    ready(server, 200)
    eq(server.events()[:len(events)], events, "what was acknowledged")
    client = s.unified()
    eq(spoken(client.turn("say: after"))[-1:], ["after"], "without a restart")


@talks
def test_http_while_nats_is_not_there(s):
    away_and_back(s, NatsServer.kill, NatsServer.start)


@talks
def test_http_while_nats_stands_still(s):
    def stop(nats):
        nats.process.send_signal(signal.SIGSTOP)
        state = Path(f"/proc/{nats.process.pid}/stat")
        eventually(lambda: state.read_text().rsplit(")")[-1].split()[0] == "T", "it stands still")

    away_and_back(s, stop, lambda nats: nats.process.send_signal(signal.SIGCONT))


def test_ready_with_files(t):
    eq(t.server().get("/readyz").json, {"status": "ready"}, "/readyz")


def told_in(client):
    """The next error, in the words of its dialect."""
    frame = client.until("error")[-1]
    return json.dumps(frame)


@talks
def test_every_dialect_while_nats_is_not_there(s):
    nats = NatsServer(s.t)
    server = s.server(env=nats.env(), store=False)
    runs = loom(s, complete=False)
    clients = {
        name: make(session=name, complete=False)
        for name, make in (("unified", s.unified), ("chat", s.chat), ("agentloop", s.agentloop))
    }
    runs.turn("say: before", "loom")
    for client in clients.values():
        client.turn("say: before")
    before = {name: server.events(name) for name in ("loom", *clients)}
    nats.kill()
    runs.run("say: meanwhile", "loom")
    for client in clients.values():
        client.say("say: meanwhile")
    for name, client in {"loom": runs, **clients}.items():
        told = told_in(client)
        assert "NATS does not answer" in told, f"{name}: {told}"
    nats.start()
    ready(server, 200)
    # What was shown is there, and every session goes on without a restart.
    for name, events in before.items():
        eq(server.events(name)[:len(events)], events, f"what {name} was shown")
        again = s.unified(session=name)
        eq(spoken(again.turn("say: after"))[-1:], ["after"], name)
