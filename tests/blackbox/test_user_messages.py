"""Loom's `user_messages`: pages of what users and agents said, kept in a file of its own."""

import contextlib
import json
import random
import sqlite3
import time

from harness import eq, eventually
from loomtalk import loom, reply
from talk import talks

TURNS = 125


def serve(s, *flags, **options):
    return s.server("--user-message-db", str(s.t.dir / "messages.db"), *flags, **options)


def page(client, thread="t1", **fields):
    """An answer with its messages; its form is checked."""
    frame = client.ask("user_messages", thread_id=thread, **fields)
    eq(sorted(frame), ["has_more", "id", "messages", "thread_id", "type"], f"fields of {frame}")
    eq((frame["type"], frame["thread_id"]), ("user_messages", thread), "type and thread")
    for message in frame["messages"]:
        eq(sorted(message), ["content", "role", "seq"], "fields of a message")
    numbers = [message["seq"] for message in frame["messages"]]
    eq(numbers, sorted(set(numbers)), "oldest first, each with a number of its own")
    return frame


def said(frame):
    return [(message["role"], message["content"]) for message in frame["messages"]]


def talk_of(numbers):
    """What turns of `filled` say."""
    pairs = [[("user", f"say: a{number}"), ("assistant", f"a{number}")] for number in numbers]
    return [message for pair in pairs for message in pair]


def filled(client, turns=TURNS, thread="t1"):
    for number in range(turns):
        eq(reply(client.turn(f"say: a{number}", thread)), f"a{number}")


def all_pages(client, thread="t1", limit=100):
    """Pages from the newest to the oldest."""
    pages = [page(client, thread, limit=limit)]
    while pages[-1]["has_more"]:
        oldest = pages[-1]["messages"][0]["seq"]
        pages.append(page(client, thread, limit=limit, before=oldest))
    return pages


# Pages.


@talks
def test_pages_from_the_newest_to_the_oldest(s):
    serve(s)
    client = loom(s)
    filled(client)
    pages = all_pages(client)
    eq([len(one["messages"]) for one in pages], [100, 100, 50], "sizes")
    eq([one["has_more"] for one in pages], [True, True, False], "has_more")
    whole = [message for one in reversed(pages) for message in one["messages"]]
    numbers = [message["seq"] for message in whole]
    eq(numbers, sorted(set(numbers)), "no overlap")
    eq([(m["role"], m["content"]) for m in whole], talk_of(range(TURNS)), "the conversation")


@talks
def test_limits(s):
    serve(s)
    client = loom(s)
    filled(client)
    eq(len(page(client)["messages"]), 100, "the default")
    eq(len(page(client, limit=None, before=None)["messages"]), 100, "null is the default")
    newest = page(client, limit=1)
    eq((said(newest), newest["has_more"]), (talk_of([TURNS - 1])[1:], True), "one")
    eq(page(client, limit=0)["messages"], [], "none")
    exact = page(client, limit=2 * TURNS)
    eq((len(exact["messages"]), exact["has_more"]), (2 * TURNS, False), "exactly all")
    nearly = page(client, limit=2 * TURNS - 1)
    eq((len(nearly["messages"]), nearly["has_more"]), (2 * TURNS - 1, True), "all but one")
    more = page(client, limit=5000)
    eq((len(more["messages"]), more["has_more"]), (2 * TURNS, False), "more than there are")
    client.raw('{"type":"user_messages","id":"x","thread_id":"t1","limit":4294967296}')
    eq(client.recv()["type"] in ("error", "user_messages"), True, "a number beyond all numbers")


@talks
def test_a_page_has_at_most_a_thousand(s):
    serve(s)
    client = loom(s)
    for number in range(510):
        client.run(f"say: a{number}", "t1")
        client.until_end()
    most = page(client, limit=5000)
    eq((len(most["messages"]), most["has_more"]), (1000, True), "the cap")
    rest = page(client, limit=5000, before=most["messages"][0]["seq"])
    eq((said(rest), rest["has_more"]), (talk_of(range(10)), False), "the rest")


@talks
def test_before(s):
    serve(s)
    client = loom(s)
    filled(client, 5)
    whole = page(client)["messages"]
    for at, message in enumerate(whole):
        frame = page(client, before=message["seq"])
        eq((frame["messages"], frame["has_more"]), (whole[:at], False), f"before {message['seq']}")
    frame = page(client, before=whole[4]["seq"], limit=2)
    eq((frame["messages"], frame["has_more"]), (whole[2:4], True), "the page just before")
    for before in (whole[0]["seq"], 0):
        frame = page(client, before=before)
        eq((frame["messages"], frame["has_more"]), ([], False), f"before {before}")
    eq(page(client, before=whole[-1]["seq"] + 1)["messages"], whole, "beyond the newest")
    eq(page(client, before=2**63 - 1)["messages"], whole, "far beyond")
    eq(page(client, before=2**64 - 1)["messages"], whole, "as far as can be")


@talks
def test_threads_are_apart(s):
    serve(s)
    client = loom(s)
    client.turn("say: one", "t1")
    client.turn("say: two", "t2")
    client.turn("say: none")
    eq(said(page(client, "t1")), [("user", "say: one"), ("assistant", "one")], "t1")
    eq(said(page(client, "t2")), [("user", "say: two"), ("assistant", "two")], "t2")
    unknown = page(client, "nobody")
    eq((unknown["messages"], unknown["has_more"]), ([], False), "an unknown thread")
    eq(sorted(s.sessions()), ["t1", "t2"], "asking makes no session")


@talks
def test_thread_id_is_needed(s):
    serve(s)
    client = loom(s)
    for message in ({}, {"thread_id": None}, {"thread_id": ""}, {"thread_id": 1}):
        client.raw(json.dumps({"type": "user_messages", "id": "1", **message}))
        assert "thread_id" in client.error()["error"], f"what is wrong with {message}"
    client.still_open()


@talks
def test_without_a_store(s):
    s.server()
    client = loom(s)
    client.turn("say: one", "t1")
    for fields in ({}, {"limit": 5}, {"before": 3}):
        frame = page(client, **fields)
        eq((frame["messages"], frame["has_more"]), ([], False), "nothing, and no error")


# What is listed.


@talks
def test_what_users_and_agents_said_and_nothing_else(s):
    serve(s)
    client = loom(s)
    script = "think: secret\nsay: Grüße 👋\nrun: echo output\n& run: ls\nsay: two"
    client.turn(script, "t1")
    roles = [("user", script), ("assistant", "Grüße 👋"), ("assistant", "two")]
    eq(said(page(client)), roles, "no tools, no reasoning")


@talks
def test_a_long_message_is_whole(s):
    serve(s)
    client = loom(s)
    script = "say: " + "word " * 40_000 + "end"
    client.turn(script, "t1")
    eq(said(page(client)), [("user", script), ("assistant", script[5:])])


@talks
def test_every_dialect_is_listed(s):
    serve(s)
    s.agentloop("s1").turn("say: one")
    s.unified().turn("say: two")
    s.chat(session="s1").turn("say: three")
    client = loom(s)
    client.turn("say: four", "s1")
    words = ["one", "two", "three", "four"]
    want = [pair for word in words for pair in (("user", f"say: {word}"), ("assistant", word))]
    eq(said(page(client, "s1")), want)


@talks
def test_queued_messages_in_the_order_of_the_conversation(s):
    serve(s)
    unified = s.unified()
    request = unified.asked("run: touch a\nsay: one")
    unified.say("say: two")
    unified.say("say: three")
    unified.decide(request, "allow")
    for _ in range(3):
        unified.until_end()
    want = [("user", "run: touch a\nsay: one"), ("assistant", "one"), ("user", "say: two"),
            ("assistant", "two"), ("user", "say: three"), ("assistant", "three")]
    eq(said(page(loom(s), "s1")), want)


@talks
def test_a_turn_that_failed_or_was_cut(s):
    serve(s)
    client = loom(s)
    client.turn("say: half\nfail: 500", "t1")
    client.closed()
    frame = page(loom(s))
    eq(said(frame)[0], ("user", "say: half\nfail: 500"), "what the user said")
    eq([message for message in said(frame)[1:] if message != ("assistant", "half")], [], "no more")


# How it is kept.


@talks
def test_after_a_restart_it_is_the_same(s):
    server = serve(s)
    client = loom(s)
    filled(client, 3)
    before = page(client)["messages"]
    server.kill()
    serve(s)
    client = loom(s)
    eq(page(client)["messages"], before, "messages")
    client.turn("say: a3", "t1")
    eq(said(page(client)), talk_of(range(4)), "and it goes on")


@talks
def test_a_lost_file_is_made_again(s):
    server = serve(s)
    client = loom(s)
    filled(client, 3)
    client.turn("say: other", "t2")
    before = page(client)["messages"], page(client, "t2")["messages"]
    server.kill()
    for path in s.t.dir.glob("messages.db*"):
        path.unlink()
    serve(s)
    client = loom(s)
    eq((page(client)["messages"], page(client, "t2")["messages"]), before, "messages")


@talks
def test_a_store_that_is_set_later_lists_what_was_said_before(s):
    server = s.server()
    filled(loom(s), 3)
    server.kill()
    serve(s)
    eq(said(page(loom(s))), talk_of(range(3)))


@talks
def test_sessions_in_memory_are_listed_while_they_last(s):
    server = serve(s, store=False)
    filled(loom(s), 2)
    eq(said(page(loom(s))), talk_of(range(2)), "messages")
    server.kill()
    serve(s, store=False)
    client = loom(s)
    eq(page(client)["messages"], [], "the session is gone, and so are its messages")
    client.turn("say: a7", "t1")
    eq(said(page(client)), talk_of([7]), "a new conversation")


@talks
def test_a_run_without_a_thread_is_not_listed(s):
    serve(s)
    loom(s).turn("say: secret-of-mine")
    for path in s.t.dir.glob("messages.db*"):
        assert b"secret-of-mine" not in path.read_bytes(), f"in {path.name}"


@talks
def test_an_archived_session_is_gone(s):
    server = serve(s)
    client = loom(s)
    filled(client, 2)
    archived = lambda: server.http("DELETE", "/sessions/t1").status == 204
    eventually(archived, "it can be archived")
    eq(page(client)["messages"], [], "messages")
    anew = loom(s)
    anew.turn("say: anew", "t1")
    eq(said(page(anew)), [("user", "say: anew"), ("assistant", "anew")], "a new conversation")
    server.kill()
    serve(s)
    eq(said(page(loom(s))), [("user", "say: anew"), ("assistant", "anew")], "after a restart")


@talks
def test_a_bad_file_is_told_at_the_start(s):
    (s.t.dir / "messages.db").write_text("this is no database, but a text of some length" * 100)
    done = s.t.program("serve", "--port", "0", "--user-message-db", str(s.t.dir / "messages.db"))
    assert done.returncode != 0, "it does not start"
    assert "messages.db" in done.stderr, done.stderr


@talks
def test_a_fork_has_the_messages_of_its_own_log_and_each_once(s):
    serve(s)
    client = loom(s)
    filled(client, 3)
    made = s.last.http("POST", "/sessions/t1:fork").json["id"]
    eq(said(page(client, made)), talk_of(range(3)), "of the fork")
    eq(reply(client.turn("say: b", made)), "b")
    eq(said(page(client, made)), talk_of(range(3)) + [("user", "say: b"), ("assistant", "b")])
    eq(said(page(client)), talk_of(range(3)), "of the other one")
    s.last.kill()
    serve(s)
    client = loom(s)
    eq(len(said(page(client, made))), 8, "after a kill")


def test_the_store_is_made_anew_by_a_command(t):
    file = t.dir / "messages.db"
    env = {"USER_MESSAGE_DB": file, "SESSION_STORE_PATH": t.store}
    server = t.server(env=env)
    for session in ("a", "b"):
        server.client(f"/ws/{session}").turn(f"say: {session}")
    rebuild = ("sessions", "rebuild-messages")
    refused = t.program(*rebuild, env=env)
    eq(refused.returncode, 1, f"while a server runs: {refused.stderr}")
    assert "another server is using it" in refused.stderr, refused.stderr
    server.stop()
    rows = "SELECT session, role, content FROM messages ORDER BY session, seq"
    want = [(s, role, text) for s in "ab" for role, text in
            (("user", f"say: {s}"), ("assistant", s))]
    # Whatever was written there by others is gone.
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM messages WHERE session = 'a'")
        database.execute("UPDATE messages SET content = 'other' WHERE session = 'b'")
    for lost in (False, True):
        if lost:
            file.unlink()
        done = t.program(*rebuild, env=env)
        eq(done.returncode, 0, done.stderr)
        assert "2 sessions" in done.stdout, done.stdout
        with contextlib.closing(sqlite3.connect(file)) as database:
            eq(list(database.execute(rows)), want, f"lost: {lost}")
    eq(t.program(*rebuild, env={"SESSION_STORE_PATH": t.store}).returncode, 2, "no file named")


def test_kills_at_any_moment_leave_each_message_once(t):
    file = t.dir / "messages.db"
    env = {"USER_MESSAGE_DB": file, "SESSION_STORE_PATH": t.store}
    dice = random.Random(11)
    for number in range(8):
        server = t.server(env=env)
        client = server.client("/ws/s1")
        client.turn(f"say: a{number}")
        client.say(f"say: b{number}")
        time.sleep(dice.random() * 0.05)
        server.kill()
    server = t.server(env=env)
    log = [e["event"] for e in server.events() if e.get("event")]
    queued = [e["content"][0]["text"] for e in log if e["type"] == "message_queued"]

    def stored():
        with contextlib.closing(sqlite3.connect(file, timeout=10)) as database:
            rows = database.execute("SELECT content FROM messages WHERE role = 'user' ORDER BY seq")
            return [content for (content,) in rows]

    eventually(lambda: len(stored()) >= len(queued), "all messages are stored")
    eq(stored(), queued, "each once, in order")


@talks
def test_a_broken_file_is_made_anew_and_one_that_is_deleted_meanwhile_harms_nobody(s):
    serve(s)
    client = loom(s)
    filled(client, 60)
    whole = said(page(client, limit=1000))
    eq(whole, talk_of(range(60)))
    file = s.t.dir / "messages.db"
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    eq(said(page(client, limit=1000)), whole, "deleted while it runs")
    client.turn("say: a60", "t1")
    eq(said(page(client, limit=1000)), talk_of(range(61)), "and goes on")
    s.t.servers[-1].stop()
    serve(s)
    client = loom(s)
    eq(said(page(client, limit=1000)), talk_of(range(61)), "after a restart")
    s.t.servers[-1].stop()
    bytes_before = file.read_bytes()
    assert len(bytes_before) > 3 * 4096, len(bytes_before)
    # The beginning says whose it is; the rest is noise.
    noise = random.Random(3).randbytes(len(bytes_before) - 4096)
    file.write_bytes(bytes_before[:4096] + noise)
    for ending in ("-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    serve(s)
    client = loom(s)
    eq(said(page(client, limit=1000)), talk_of(range(61)), "broken before the start")
    client.turn("say: a61", "t1")
    eq(said(page(client, limit=1000)), talk_of(range(62)), "each once")
