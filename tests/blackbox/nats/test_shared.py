"""Several servers keep their sessions on one NATS server."""

from harness import eq, eventually
from loomtalk import loom
from natsserver import NatsServer
from talk import spoken, talks

LONG_CHARS = 300_000


def two_servers(s, **env):
    """Two servers of one store, each with a message database of its own."""
    nats = NatsServer(s.t)
    servers = []
    for name in ("one", "two"):
        own = {"USER_MESSAGE_DB": s.t.dir / f"{name}.db", **env}
        servers.append(s.server(env=nats.env(**own), store=False))
    return nats, *servers


def at(s, server):
    """Clients connect there from now on."""
    s.last = server
    return s


def said(s, session):
    """The messages that a server's database lists, oldest first."""
    page = loom(s).ask("user_messages", thread_id=session)
    return [message["content"] for message in page["messages"]]


@talks
def test_one_reads_what_the_other_wrote(s):
    _, one, two = two_servers(s)
    client = at(s, one).unified()
    eq(spoken(client.turn("say: first")), ["first"])
    eq(spoken(client.turn("say: second")), ["second"])
    # Lists, files and messages are the same at both, while the first one has it open.
    eq(at(s, two).sessions(), ["s1"], "the list at the other")
    eq(two.events(), one.events(), "the session's lines")
    wanted = ["say: first", "first", "say: second", "second"]
    for server in (two, one):
        eq(said(at(s, server), "s1"), wanted, "messages")


@talks
def test_a_session_goes_on_at_another_server(s):
    _, one, two = two_servers(s)
    client = at(s, one).unified(complete=False)
    eq(spoken(client.turn("say: first")), ["first"])
    client.say("run: touch a\nsay: done")
    request = client.until("control_request")[-1]
    one.kill()
    # The approval is still open, and what is approved runs at the other.
    again = at(s, two).watcher(since=0)
    asked = again.until("control_request")[-1]
    eq(asked["request_id"], request["request_id"], "the same request")
    again.decide(asked, "allow")
    frames = again.until_end()
    eq(spoken(frames)[-1:], ["done"])
    eq([path.name for path in s.work.iterdir()], ["a"], "what was approved")
    eq(said(at(s, two), "s1")[:2], ["say: first", "first"], "messages")


@talks
def test_long_texts_forks_and_archives(s):
    _, one, two = two_servers(s)
    client = at(s, one).unified()
    long = "x" * LONG_CHARS
    client.turn(f"say: ok\n{long}")
    forked = two.http("POST", "/sessions/s1:fork")
    eq(forked.status, 201, f"fork: {forked}")
    copy = forked.json["id"]
    one.kill()
    archived = two.http("DELETE", "/sessions/s1")
    assert archived.status in (200, 204), archived
    eq(at(s, two).sessions(), [copy], "the list")
    messages = said(s, copy)
    assert messages == [f"say: ok\n{long}", "ok", long], [text[:20] for text in messages]
    # What is begun under its id is another session.
    eq(spoken(s.unified().turn("say: new")), ["new"])
    eq(said(s, "s1"), ["say: new", "new"], "messages")


@talks
def test_nats_goes_away_and_comes_back(s):
    nats, one, _ = two_servers(s)
    client = at(s, one).unified()
    eq(spoken(client.turn("say: before")), ["before"])
    nats.kill()
    nats.start()
    # Without a restart of the server.
    eq(spoken(client.turn("say: after")), ["after"])
    eq(said(s, "s1"), ["say: before", "before", "say: after", "after"], "messages")


@talks
def test_a_server_without_nats_says_so(s):
    nats = NatsServer(s.t)
    nats.stop()
    told = s.t.program("serve", "--port", "0", env=nats.env())
    assert told.returncode != 0 and "STORE" in told.stderr, told
    assert "reach NATS" in told.stderr, told.stderr


@talks
def test_without_nats_people_are_told_and_nothing_acknowledged_is_lost(s):
    nats, one, _ = two_servers(s)
    client = at(s, one).unified(complete=False)
    eq(spoken(client.turn("say: before")), ["before"])
    nats.kill()
    client.say("say: meanwhile")
    told = client.until("error")[-1]
    assert "NATS" in told["message"], told
    eq(one.get("/sessions").status, 503, "the list")
    nats.start()
    # Whether the last message was stored nobody could know; what was acknowledged is there.
    again = at(s, one).unified()
    eq(spoken(again.turn("say: after"))[-1:], ["after"])
    messages = said(s, "s1")
    eq((messages[:2], messages[-2:]), (["say: before", "before"], ["say: after", "after"]), "both")
