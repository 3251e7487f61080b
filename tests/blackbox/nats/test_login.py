"""NATS servers that want to know who comes: the user and the password in `STORE`."""

from urllib.parse import quote

from harness import eq
from natsserver import NatsServer
from talk import spoken, talks
from test_store_doctor import PASSWORD, checks, free_port

# As it may be made by a program: with what an address cannot hold.
ODD = PASSWORD + "@:/%"


def guarded(test, password=ODD):
    return NatsServer(test, f'authorization {{ user: "me", password: "{password}" }}\n')


def address(nats, user, more=""):
    return f"nats://{user}@127.0.0.1:{nats.port}{more}"


@talks
def test_with_user_and_password(s):
    nats = guarded(s.t)
    # It counts for all servers, also where only the first has it.
    other = f",127.0.0.1:{nats.port}/mine"
    store = address(nats, f"me:{quote(ODD, safe='')}", other)
    server = s.server(env={"STORE": store}, store=False)
    eq(spoken(s.unified().turn("say: let in")), ["let in"])
    seen = [status for status, _ in checks(s.t, store, 0)]
    eq(seen, ["ok", "ok", "ok", "warn"], "two servers, streams, flushes as doctor sees them")
    assert PASSWORD not in server.stderr(), server.stderr()


@talks
def test_with_a_token(s):
    nats = NatsServer(s.t, f'authorization {{ token: "{PASSWORD}" }}\n')
    s.server(env={"STORE": address(nats, PASSWORD)}, store=False)
    eq(spoken(s.unified().turn("say: let in")), ["let in"])


def test_with_a_wrong_password(t):
    nats = guarded(t)
    for user in ("me:wrong-" + PASSWORD, "me"):
        store = address(nats, user)
        ((status, text),) = checks(t, store, 1)
        eq(status, "fail", text)
        assert "authorization" in text, text
        told = t.program("serve", env={"PORT": str(free_port()), "STORE": store})
        eq(told.returncode, 1, f"{told}")
        assert "STORE" in told.stderr and "authorization" in told.stderr, told
        assert PASSWORD not in told.stdout + told.stderr, told
