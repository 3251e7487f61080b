"""Memories: kept for their user alone, in every dialect, beyond the server; and skills."""

import json
import stat

from harness import eq, eventually
from loomtalk import events, loom
from talk import of, spoken, talks, the

AUTO = ("--tool-use-approval-mode", "auto-edit")
# Words that nobody but their user may be told.
ADA, BOB = "adas-quiet-harbour", "bobs-loud-engine"


def call(tool, /, **args):
    return f"tool: {tool} {json.dumps(args)}"


def script(*lines):
    return "\n".join([*lines, "say: end"])


def told(client, *calls, thread=None):
    """What the tools of a Loom run said, one text each."""
    frames = client.turn(script(*calls), thread)
    eq(frames[-1]["type"], "run_end", f"end {frames[-1]}")
    return [(event["result"], event["is_error"]) for event in events(frames, "tool_end")]


def results(frames):
    """What the tools of a unified turn said."""
    return [done["result"] or done["error"] for done in of(frames, "tool_completed")]


@talks
def test_users_have_memories_of_their_own_in_two_dialects_and_beyond_the_server(s):
    server = s.server(*AUTO)
    ada, bob = loom(s, name="ada"), loom(s, name="bob")
    eq(told(ada, call("remember", key="place", value=ADA)), [("ok\n", False)], "ada remembers")
    eq(told(bob, call("remember", key="place", value=BOB)), [("ok\n", False)], "bob remembers")
    eq(told(ada, call("recall", key="place")), [(f'"{ADA}"\n', False)], "ada recalls")
    eq(told(bob, call("recall", key="place"), thread="t1"), [(f'"{BOB}"\n', False)], "bob recalls")
    everything = [call("recall", key="place"), call("search_memories", query="quiet loud a"),
                  call("search_memories"), call("list_memories"), call("recall", key="plac")]
    for other in (bob, loom(s, name="carol"), loom(s)):
        told(other, *everything, thread="shared")
        assert ADA not in json.dumps(other.seen), "another user was told of ada's"
    told(ada, *everything)
    assert BOB not in json.dumps(ada.seen), "ada was told of bob's"
    server.kill()
    s.server(*AUTO)
    # The same user in another dialect: by the session's metadata, then by the connection's name.
    client = s.unified(session="u1")
    client.start(metadata={"user_id": "ada"})
    frames = client.turn(script(call("recall", key="place"),
                                call("search_memories", query="HARBOUR")))
    value, found = results(frames)
    eq(json.loads(value), ADA, "after a restart")
    (hit,) = json.loads(found)
    eq((hit["key"], hit["value"]), ("place", ADA), "found")
    assert hit["score"] > 0, hit
    named = s.unified(session="u2", name="bob")
    eq(results(named.turn(script(call("list_memories"), call("recall", key="place")))),
       ['["place"]\n', f'"{BOB}"\n'], "bob by name")
    nobody = s.unified(session="u3")
    frames = nobody.turn(script(call("list_memories"), call("recall", key="place")))
    eq(results(frames)[0], "[]\n", "whoever gave no name")
    assert "nothing is remembered" in results(frames)[1], frames
    for frame in [*named.seen, *nobody.seen]:
        assert ADA not in json.dumps(frame), f"told of ada's: {frame}"


@talks
def test_remembering_is_asked_about_with_nothing_hidden(s):
    s.server()
    client = s.unified(name="ada")
    said = call("remember", key="pay\u202epal", value="send it to me")
    request = client.asked(script(said))
    eq(request["context"]["command"], ["remember", "pay\\u{202e}pal", '"send it to me"'], "shown")
    assert '"ada"' in request["context"]["description"], request
    client.decide(request, "deny")
    client.until_end()
    eq(results(client.turn(script(call("list_memories")))), ["[]\n"], "after a denial")
    client.decide(client.asked(script(said)), "allow_always")
    eq(results(client.until_end()), ["ok\n"], "after consent")
    eq(results(client.turn(script(said))), ["ok\n"], "the same key, which always covers")
    request = client.asked(script(call("remember", key="other", value=1)))
    client.decide(request, "deny")
    client.until_end()
    eq(json.loads(results(client.turn(script(call("list_memories"))))[0]), ["pay\u202epal"], "kept")


@talks
def test_the_file_is_the_servers_own(s):
    file = s.t.work / "memories.db"
    s.server(*AUTO, "--memory-db", str(file))
    client = s.unified(name="ada")
    client.turn(script(call("remember", key="k", value=ADA)))
    for one in s.t.work.glob("memories.db*"):
        eq(stat.S_IMODE(one.stat().st_mode), 0o600, f"mode of {one}")
    frames = client.turn(script(call("read", path="memories.db"),
                                call("write_file", path="memories.db-wal", content="x"),
                                call("grep", pattern="quiet"), call("ls")))
    read, written, found, listed = results(frames)
    assert "server's own" in read and "server's own" in written, frames
    assert ADA not in found and "memories.db" not in listed, frames
    request = client.asked(script("run: cat memories.db"))
    client.decide(request, "deny")
    client.until_end()


@talks
def test_commands_cannot_read_the_file(s):
    """In a sandbox it is not there; where there is none, a person is asked."""
    file = s.t.work / "memories.db"
    s.server("--tool-use-approval-mode", "full-auto", "--memory-db", str(file))
    s.unified(session="s1", name="ada").turn(script(call("remember", key="k", value=ADA)))
    assert any(ADA.encode() in one.read_bytes() for one in s.t.work.glob("memories.db*")), "where?"
    other = s.unified(session="s2", full_auto=True)
    tries = "cat memories.db memories.db-wal; grep -ra quiet .; cp memories.db x; echo"
    other.say(script(f"run: {tries}"))
    while True:
        frame = other.recv()
        if frame["type"] == "control_request":
            other.decide(frame, "deny")
        if frame["type"] in ("turn_completed", "turn_failed"):
            break
    assert ADA not in json.dumps(other.seen), "a command read it"
    copy = s.t.work / "x"
    assert not copy.exists() or ADA.encode() not in copy.read_bytes(), "a command copied it"


@talks
def test_where_memories_are_is_said_at_start(s):
    eq((s.t.store / "memories.db").exists(), False, "before")
    server = s.server()
    eventually(lambda: f"memories           {s.t.store}/memories.db" in server.stdout(), "the line")
    eq((s.t.store / "memories.db").exists(), True, "beside the sessions")
    client = s.unified()
    client.turn("say: x")
    eq(s.sessions(), ["s1"], "the file is no session")
    server = s.server(*AUTO, store=False)
    eventually(lambda: "memories           in memory" in server.stdout(), "the line without")
    client = s.unified()
    client.turn(script(call("remember", key="k", value=ADA)))
    eq(results(client.turn(script(call("recall", key="k")))), [f'"{ADA}"\n'], "while it runs")
    server.kill()
    s.server(*AUTO, store=False)
    eq(results(s.unified().turn(script(call("list_memories")))), ["[]\n"], "after it")


@talks
def test_a_damaged_file_that_nobody_named_stops_nobody(s):
    s.t.store.mkdir(exist_ok=True)
    (s.t.store / "memories.db").write_text("no database " * 1000)
    server = s.server(*AUTO)
    client = s.unified()
    frames = client.turn(script(call("remember", key="k", value=1), "run: echo works"))
    remembered, ran = results(frames)
    assert "the memories cannot be reached" in remembered, frames
    assert str(s.t.store) not in remembered, remembered
    eq(spoken(frames), ["end"], "the turn went on")
    assert "works" in ran, frames
    assert "memories cannot be used" in server.stderr(), server.stderr()
    assert (s.t.store / "memories.db").read_text().startswith("no database"), "it was changed"


def test_a_named_file_must_be_one(t):
    (t.dir / "text.db").write_text("no database at all")
    try:
        t.server("--memory-db", str(t.dir / "text.db"))
    except AssertionError as refused:
        assert "MEMORY_DB" in str(refused) and "text.db" in str(refused), refused
    else:
        raise AssertionError("it started")


@talks
def test_skills_are_loaded_and_listed(s):
    s.server()
    skills = s.t.work / ".polyloop/skills"
    skills.mkdir(parents=True)
    (skills / "ship.md").write_text("---\ndescription: Ships it.\n---\nRun make ship.\n")
    (s.t.work / ".loom/skills/test").mkdir(parents=True)
    (s.t.work / ".loom/skills/test/SKILL.md").write_text("# How to test\n")
    client = s.unified()
    frames = client.turn(script(call("skill", name="ship"), call("skill", name="../../x")))
    ship, missed = results(frames)
    assert ship.startswith('<skill_content name="ship">\n---\n'), ship
    assert ship.endswith("Run make ship.\n</skill_content>\n"), ship
    assert "- ship: Ships it.\n- test: How to test" in missed, missed
    done = [completed["success"] for completed in of(frames, "tool_completed")]
    eq(done, [True, False], "success")
    (text, is_error), = told(loom(s), call("skill", name="test"))
    assert "How to test" in text and not is_error, text
    # A skill says what agents do later, so writing one is asked about in every mode.
    client.send("set_permission_mode", mode="acceptEdits")
    client.until("session_info")
    for folder in (".polyloop", ".loom"):
        path = f"{folder}/skills/new.md"
        request = client.asked(script(call("write_file", path=path, content="x\n")))
        assert "protected" in request["context"]["description"], request
        client.decide(request, "deny")
        client.until_end()
    assert the(client.turn("say: x"), "turn_completed"), "the session goes on"
