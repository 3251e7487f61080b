"""Unified: the agent's list of todos, and what a client learns of a session when it comes."""

import json

from harness import eq
from talk import of, talks, the, types


def write(*todos):
    return f"tool: todo_write {json.dumps({'todos': list(todos)})}"


def todo(content, status="pending", priority="medium"):
    return {"content": content, "status": status, "priority": priority}


ONE = [todo("look", "in_progress", "high"), todo("tell")]
TWO = [todo("look", "completed", "high"), todo("tell", "cancelled", "low"), todo("end")]


@talks
def test_everybody_is_told_the_whole_list(s):
    s.server()
    client, watcher = s.unified(), s.watcher()
    client.say(f"{write(*ONE)}\n{write(*TWO)}\nsay: done")
    for talker in (client, watcher):
        frames = talker.until_end()
        eq([frame["todos"] for frame in of(frames, "todos_changed")], [ONE, TWO], "lists")
        told = [kind for kind in types(frames) if kind in ("tool_completed", "todos_changed")]
        eq(told, ["tool_completed", "todos_changed"] * 2, "after the call")


@talks
def test_what_is_not_said_has_its_default(s):
    s.server()
    client = s.unified()
    frames = client.turn(write({"content": "  a\nb "}) + "\nsay: done")
    eq(the(frames, "todos_changed")["todos"], [todo("a b")], "list")
    frames = client.turn("tool: todo_write {\"todos\": []}\nsay: done")
    eq(the(frames, "todos_changed")["todos"], [], "an empty list")


@talks
def test_who_comes_is_told_the_list_and_the_rest(s):
    server = s.server("--agent", "dup")
    client = s.unified()
    init = client.start()
    eq((init["agent"], init["title"], init["todos"]), ("dup", None, []), "new")
    client.send("set_agent", agent="react")
    client.until("session_info")
    client.turn(f"{write(*ONE)}\nsay: done")
    body = json.dumps({"title": "A title"})
    eq(server.http("PATCH", "/sessions/s1", body=body).status, 200, "a title")
    client.until("session_renamed")
    server.kill()
    s.server()
    comer = s.unified("/unified?session_id=s1")
    init = comer.recv()
    eq((init["agent"], init["title"], init["todos"]), ("react", "A title", ONE), "after a kill")


@talks
def test_a_list_that_a_batch_wrote_is_told(s):
    s.server()
    client = s.unified()
    calls = [{"tool": "todo_write", "parameters": {"todos": todos}} for todos in (ONE, TWO)]
    frames = client.turn(f"tool: batch {json.dumps({'calls': calls})}\nsay: done")
    eq([frame["todos"] for frame in of(frames, "todos_changed")], [TWO], "the last one")


@talks
def test_a_list_that_was_refused_is_not_told(s):
    s.server()
    client = s.unified()
    frames = client.turn(write(todo("a", "someday")) + "\nsay: done")
    eq(the(frames, "tool_completed")["success"], False, "refused")
    eq(of(frames, "todos_changed"), [], "no list")
    frames = client.turn("tool: todo_read {}\nsay: done")
    eq(of(frames, "todos_changed"), [], "who reads changes nothing")
