"""Loom: what is refused and why, what a failed run is, and what each means for the connection."""

import json

from harness import eq
from loomtalk import event, events, loom, numbered, reply, text, watch, words
from talk import talks

RUN = {"type": "run", "message": "say: x", "agent": "react"}
SHOW = {"type": "tool_show", "id": "1", "name": "bash"}
PAGE = {"type": "user_messages", "id": "1", "thread_id": "t"}
CANCEL = {"type": "cancel_run", "id": "1", "run_id": "r"}
ANSWER = {"type": "tool_approval_response", "id": "1", "run_id": "r", "call_id": "c",
          "approved": True}


def parse_error(client, message):
    """The answer to what cannot be read."""
    client.raw(message if isinstance(message, (str, bytes)) else json.dumps(message))
    frame = client.recv()
    eq(sorted(frame), ["error", "type"], f"fields of the answer {frame} to {message!r}")
    eq(frame["type"], "error", f"answer to {message!r}")
    assert frame["error"].lower().startswith("parse error"), f"{frame} to {message!r}"
    return frame["error"]


def without(message, name):
    return {field: value for field, value in message.items() if field != name}


# Frames that cannot be read.


@talks
def test_what_is_no_json_object(s):
    s.server()
    client = loom(s)
    for message in ("", " ", "{", "}", "nonsense", '{"type":"ping","id":"1"', "[]", "[1]", "null",
                    "1", '"ping"', '["ping","1"]', '{"type":"ping","id":"1"} {}', "{}",
                    '{"type":"ping","id":"\\ud800"}', "{'type':'ping'}", '{"type":"ping",}'):
        parse_error(client, message)
    client.still_open()


@talks
def test_bytes_that_are_no_utf8_are_not_guessed_at(s):
    s.server()
    client = loom(s)
    client.raw(b'{"type":"ping","id":"\xff"}')
    frame = client.error()
    assert "id" not in frame and frame["error"], frame
    client.still_open()


@talks
def test_unknown_types(s):
    s.server()
    client = loom(s)
    for kind in ("nope", "", "Ping", "runs", "user_message", "user_input", "chat", "pong", 7, None,
                 ["ping"]):
        told = parse_error(client, {"type": kind, "id": "1", "message": "x"})
        if kind == "nope":
            assert "nope" in told and "tools_list" in told, f"what it is and what there is: {told}"
    client.still_open()


@talks
def test_each_required_field_is_needed(s):
    s.server()
    client = loom(s)
    needed = [(RUN, "message"), (RUN, "agent"), ({"type": "tools_list", "id": "1"}, "id"),
              (SHOW, "id"), (SHOW, "name"), (PAGE, "id"), (PAGE, "thread_id"),
              ({"type": "ping", "id": "1"}, "id"), (CANCEL, "id"), (CANCEL, "run_id"),
              (ANSWER, "id"), (ANSWER, "run_id"), (ANSWER, "call_id"), (ANSWER, "approved")]
    for message, name in needed:
        assert name in parse_error(client, without(message, name)), f"{name} of {message}"
        parse_error(client, {**message, name: None})
    client.still_open()


@talks
def test_each_field_has_its_type(s):
    s.server()
    client = loom(s)
    texts = [(RUN, "message"), (RUN, "id"), (RUN, "thread_id"), (RUN, "working_folder"),
             ({"type": "tools_list", "id": "1"}, "id"), (SHOW, "id"), (SHOW, "name"),
             (SHOW, "thread_id"), (SHOW, "working_folder"), (PAGE, "id"), (PAGE, "thread_id"),
             ({"type": "ping", "id": "1"}, "id"), (CANCEL, "run_id"), (ANSWER, "call_id"),
             (ANSWER, "message")]
    flags = [(RUN, "got_adaptive"), (RUN, "verbose"), (RUN, "approvals"), (ANSWER, "approved")]
    counts = [(PAGE, "before"), (PAGE, "limit")]
    wrong = [(texts, (1, True, [], {})), (flags, ("yes", 1, [])), (counts, ("1", -1, 1.5, True))]
    for places, values in wrong:
        for message, name in places:
            for value in values:
                told = parse_error(client, {**message, name: value})
                assert name in told, f"{told} does not name {name}"
    client.still_open()


@talks
def test_unknown_words(s):
    s.server()
    client = loom(s)
    for agent in ("React", "", "reactor", "plan"):
        assert "agent" in parse_error(client, {**RUN, "agent": agent}), agent
    for output in ("xml", "", "JSON"):
        assert "output" in parse_error(client, {**SHOW, "output": output}), output
    client.still_open()


@talks
def test_a_parse_error_in_the_middle_of_a_run(s):
    s.server()
    client = loom(s)
    request = client.asked("run: touch a\nsay: x")
    client.raw("{")
    frame = client.error()
    assert "id" not in frame, f"it is not about the run: {frame}"
    client.answer(request, True)
    eq(reply(client.until_end()), "x")


# Requests that are refused.


def refused(client, **fields):
    """A run that is refused; why."""
    client.run("say: x", **fields)
    frame = client.recv()
    eq(frame["type"], "error", f"answer to {fields}")
    assert not str(frame.get("id", "")).startswith("run-"), f"there is no run: {frame}"
    assert not frame["error"].lower().startswith("parse error"), f"it could be read: {frame}"
    client.still_open()
    return frame["error"]


@talks
def test_bad_thread_ids(s):
    s.server()
    client = loom(s)
    for bad in ("", ".", "..", ".hidden", "../x", "a/b", "a b", "ä", "x" * 129, "a\0b", "a\\b"):
        assert "thread_id" in refused(client, thread=bad), bad
        for request in ({"type": "tools_list"}, SHOW, PAGE):
            frame = client.ask(request["type"], **{**without(without(request, "type"), "id"),
                                                   "thread_id": bad})
            eq(frame["type"], "error", f"{request['type']} with {bad!r}")
            assert "thread_id" in frame["error"], frame
    eq(s.sessions(), [], "sessions")


@talks
def test_bad_working_folders(s):
    s.server()
    (s.work / "file").write_text("x")
    (s.work / "out").symlink_to("/etc")
    client = loom(s)
    for bad in ("/etc", "..", str(s.t.dir), "nowhere", str(s.work / "nowhere"), "file", "out",
                "/", f"{s.work}/../store", f"{s.work}x", "a\0b"):
        assert "folder" in refused(client, working_folder=bad), bad
        for kind, more in (("tools_list", {}), ("tool_show", {"name": "bash"})):
            frame = client.ask(kind, working_folder=bad, **more)
            eq(frame["type"], "error", f"{kind} in {bad}")
    refused(client, thread="t1", working_folder="/etc")
    eq(s.sessions(), [], "no session was made")


@talks
def test_blank_messages(s):
    s.server()
    client = loom(s)
    for blank in ("", " ", "\n\t "):
        for thread in (None, "t1"):
            client.run(blank, thread)
            assert "empty" in client.error()["error"], "why"
            client.still_open()


@talks
def test_a_refused_run_makes_no_session(s):
    s.server()
    client = loom(s)
    client.run("  ", "t1")
    client.error()
    client.run("say: x", "t2", "tot", got_adaptive="yes")
    client.error()
    client.still_open()
    eq(s.sessions(), [], "sessions")


@talks
def test_after_a_refused_run_the_next_one_goes(s):
    s.server()
    client = loom(s)
    client.run("say: x", working_folder="/etc")
    client.run("say: y")
    client.error()
    frames = client.until_end()
    eq((frames[0]["request_id"], reply(frames)), ("req-2", "y"))


# Runs that fail.


@talks
def test_a_failed_run(s):
    s.server()
    for way, hint in (("429", "429"), ("500", "500"), ("garbage", ""), ("disconnect", "")):
        for thread in (None, f"t-{way}"):
            client = loom(s)
            frames = client.turn(f"say: half\nfail: {way}", thread)
            error = frames[-1]
            eq((error["type"], error["id"]), ("error", frames[0]["id"]), f"end of {way}")
            eq(error["request_id"], "req-1", "request_id")
            assert hint in error["error"], error
            exits = events(frames, "node_exit")
            eq(exits[-1]["result"], {"Err": error["error"]}, f"the last node_exit of {way}")
            eq(words(frames)[-2:], ["node_exit think", "error"], "nothing follows the exit")
            numbered(frames)
            eq(text(frames), "half", f"what came before {way}")
            eq(client.closed(), 1011, f"close code of {way}")


@talks
def test_the_thread_of_a_failed_run_goes_on(s):
    s.server()
    client = loom(s)
    client.turn("say: one", "t1")
    client.turn("fail: 500", "t1")
    client.closed()
    frames = loom(s).turn("say: two", "t1")
    eq(reply(frames), "two")


@talks
def test_a_watcher_of_a_failed_run_stays(s):
    s.server()
    watcher = watch(s, "t1")
    watcher.still_open()
    client = loom(s)
    client.turn("fail: 500", "t1")
    eq(client.closed(), 1011, "close code of who asked")
    frames = watcher.until_end()
    eq((frames[-1]["type"], frames[-1]["id"]), ("error", frames[0]["id"]), "end")
    watcher.still_open()
    eq(reply(watcher.turn("say: x", "t1")), "x")


@talks
def test_a_watcher_who_asks_for_the_run_is_closed_too(s):
    s.server()
    watcher = watch(s, "t1")
    frames = watcher.turn("fail: 500", "t1")
    eq(frames[-1]["type"], "error", "end")
    eq(watcher.closed(), 1011, "close code")


@talks
def test_another_thread_of_the_same_server_is_untouched(s):
    s.server()
    other = loom(s)
    request = other.asked("run: touch a\nsay: x", "t2")
    client = loom(s)
    client.turn("fail: disconnect", "t1")
    client.closed()
    other.answer(request, True)
    eq(reply(other.until_end()), "x")


# Runs that are interrupted.


@talks
def test_an_interrupted_run_keeps_the_connection(s):
    s.server()
    client = loom(s)
    request = client.asked("run: touch a\nsay: x", "t1")
    unified = s.watcher("t1")
    unified.send("interrupt", reason="enough")
    frames = client.until_end()
    error = frames[-1]
    eq((error["type"], error["id"]), ("error", request["id"]), "end")
    eq(error["error"], "Interrupted: enough")
    eq(event(frames, "tool_end")["is_error"], True, "the call that waited")
    client.still_open()
    eq(reply(client.turn("say: next", "t1")), "next")
