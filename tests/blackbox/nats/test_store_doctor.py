"""`polyloop doctor` with sessions on NATS: what it sees there, and what it cannot see."""

import json
import socket

from harness import eq
from natsserver import NatsServer

PASSWORD = "fake-password-0123456789"


def checks(t, store, status, **env):
    """What is said of the session store: status and text of each line."""
    told = t.program("doctor", "--json", env={"PORT": "0", "STORE": store, **env})
    assert PASSWORD not in told.stdout + told.stderr, told
    eq(told.returncode, status, f"exit status: {told.stdout}")
    report = json.loads(told.stdout)
    return [(one["status"], one["text"]) for one in report["checks"]
            if one["thing"] == "session store"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def test_a_store_that_is_there(t):
    nats = NatsServer(t)
    url = nats.env()["STORE"]
    (reached, streams, flushed) = checks(t, url, 0)
    eq(reached[0], "ok", f"{reached}")
    assert f"answers at 127.0.0.1:{nats.port}" in reached[1] and "NATS 2." in reached[1], reached
    eq(streams[0], "ok", f"{streams}")
    assert "5 of its 5 streams are not there yet" in streams[1], streams
    # A look makes nothing, and a start makes what was missing.
    eq(checks(t, url, 0)[1], streams, "the second look")
    t.server(env=nats.env(), store=False)
    (_, streams, flushed) = checks(t, url, 0)
    eq(streams[0], "ok", f"{streams}")
    eq(streams[1], "replicas of its streams: polyloop-log 1, polyloop-live 1, "
       "KV_polyloop-sessions 1, KV_polyloop-owners 1, OBJ_polyloop-objects 1")
    # More is wanted than there is.
    (_, streams, flushed) = checks(t, url, 0, STORE_REPLICAS="3")
    eq(streams[0], "warn", f"{streams}")
    eq(flushed[0], "warn", f"{flushed}")
    assert "sync_interval: always" in flushed[1] and "cannot be seen" in flushed[1], flushed


def test_a_store_that_is_not_there(t):
    port = free_port()
    ((status, text),) = checks(t, f"nats://me:{PASSWORD}@127.0.0.1:{port}", 1)
    eq(status, "fail", text)
    assert f"127.0.0.1:{port}" in text and "STORE" in text, text


def test_one_of_two_is_not_there(t):
    nats, port = NatsServer(t), free_port()
    found = checks(t, f"nats://127.0.0.1:{port},127.0.0.1:{nats.port}", 0)
    eq([status for status, _ in found], ["warn", "ok", "ok", "warn"], f"{found}")
    assert f"127.0.0.1:{port}" in found[0][1], found


def test_nats_without_streams(t):
    nats = NatsServer(t)
    nats.kill()
    nats.start(jetstream=False)
    ((status, text),) = checks(t, nats.env()["STORE"], 1)
    eq(status, "fail", text)
    assert "JetStream" in text, text


def test_sessions_looks_at_files_only(t):
    t.store.mkdir(exist_ok=True)
    env = {"STORE": "nats://127.0.0.1:1", "SESSION_STORE_PATH": str(t.store)}
    told = t.program("sessions", "list", env=env)
    eq(told.returncode, 2, f"{told}")
    assert "STORE" in told.stderr and "session files only" in told.stderr, told
    told = t.program("sessions", "list", "--session-store-path", str(t.store), env=env)
    eq(told.returncode, 0, f"{told}")
