"""The todos file of a session, and the link that points to the one in use."""

import re

from frames import said
from harness import eq, eventually

TEMPLATE = """# Terraine Session Todos

Session ID: `{id}`
Created: TIME

This file helps the agent plan and track tasks for the current session.

## Current Tasks

- [ ] No tasks yet - add your goals here

## Completed Tasks

(Tasks will be moved here when completed)

---

*This file was auto-created for session tracking. You can edit it manually or let the agent update it.*
"""
LINK = ".terraine-todos.md"


def made(t, session):
    """The session's todos file, with its time made comparable."""
    text = (t.todos / f"{session}.md").read_text()
    return re.sub(r"(?m)^Created: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", "Created: TIME", text)


def switch(server, session):
    return server.http("POST", f"/sessions/{session}:switch")


def test_a_new_session_gets_its_file(t):
    server = t.server(todos=True)
    server.client("/ws/s1").still_open()
    eq(made(t, "s1"), TEMPLATE.format(id="s1"), "todos of a new session")
    session = server.http("POST", "/sessions").json["id"]
    eq(made(t, session), TEMPLATE.format(id=session), "todos of one made by REST")


def test_only_a_new_session_gets_its_file(t):
    server = t.server(todos=True)
    server.client("/ws/s1").turn("say: x")
    (t.todos / "s1.md").unlink()
    server.client("/ws/s1").turn("say: y")
    server.kill()
    server = t.server(todos=True)
    server.client("/ws/s1").turn("say: z")
    assert not (t.todos / "s1.md").exists(), "made again for a session that is not new"


def test_a_file_that_is_there_is_kept(t):
    t.todos.mkdir()
    (t.todos / "s1.md").write_text("- [ ] mine\n")
    t.server(todos=True).client("/ws/s1").turn("say: x")
    eq((t.todos / "s1.md").read_text(), "- [ ] mine\n", "todos")


def test_without_a_store_there_is_no_file_and_no_switching(t):
    server = t.server()
    server.client("/ws/s1").turn("say: x")
    eq(list(t.dir.rglob("*.md")), [], "files")
    answer = switch(server, "s1")
    eq(answer.status, 503, "status")
    assert "TODOS_STORE_PATH" in answer.json["error"], answer
    eq(list(t.work.iterdir()), [], "no link")


def test_switching_points_the_link(t):
    server = t.server(todos=True)
    for session in ("s1", "s2"):
        server.client(f"/ws/{session}").still_open()
    for session in ("s1", "s2", "s1", "s1"):
        answer = switch(server, session)
        eq(answer.status, 200, "status")
        assert session in answer.text, f"the answer names the session: {answer}"
        link = t.work / LINK
        assert link.is_symlink(), "a symbolic link"
        eq(link.resolve(), t.todos / f"{session}.md", "where it points")
        eq([p.name for p in t.work.iterdir()], [LINK], "nothing else is left behind")
    eq(made(t, "s1"), TEMPLATE.format(id="s1"), "the file itself")


def test_switching_makes_the_file_if_it_is_missing(t):
    server = t.server(todos=True)
    server.client("/ws/s1").still_open()
    (t.todos / "s1.md").unlink()
    eq(switch(server, "s1").status, 200, "status")
    eq(made(t, "s1"), TEMPLATE.format(id="s1"), "todos")


def test_switching_replaces_any_link_but_no_file(t):
    server = t.server(todos=True)
    server.client("/ws/s1").still_open()
    link = t.work / LINK
    for target in (t.dir / "elsewhere", t.todos / "gone.md", t.work):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        eq(switch(server, "s1").status, 200, f"a link to {target.name}")
        eq(link.resolve(), t.todos / "s1.md", "where it points")
    link.unlink()
    link.write_text("mine")
    answer = switch(server, "s1")
    eq(answer.status, 409, "a regular file")
    assert LINK in answer.json["error"], answer
    eq((link.is_symlink(), link.read_text()), (False, "mine"), "the regular file")
    link.unlink()
    link.mkdir()
    eq(switch(server, "s1").status, 409, "a directory")
    assert link.is_dir() and not link.is_symlink(), "the directory"


def test_switching_to_no_session(t):
    server = t.server(todos=True)
    answer = switch(server, "nobody")
    eq((answer.status, list(answer.json)), (404, ["error"]), "answer")
    eq((list(t.work.iterdir()), list(t.todos.iterdir())), ([], []), "nothing was made")


def test_the_agent_reads_the_session_s_todos_by_the_link(t):
    server = t.server(todos=True)
    client = server.client("/ws/s1")
    client.still_open()
    (t.todos / "s1.md").write_text("- [ ] buy milk\n")
    switch(server, "s1")
    client.say(f"run: cat {LINK}\nsay: read")
    frames = client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
    if frames[-1]["type"] == "approval_request":
        client.review("yes")
        frames += client.until_end()
    assert "buy milk" in str(frames), frames
    eq(said(frames), ["read"])


def test_archiving_a_session_that_never_had_todos(t):
    server = t.server()
    client = server.client("/ws/s1")
    client.turn("say: x")
    server.kill()
    server = t.server(todos=True)
    eventually(lambda: server.http("DELETE", "/sessions/s1").status == 204, "archived")
    eq(list(t.todos.iterdir()), [], "todos")
