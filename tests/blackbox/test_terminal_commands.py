"""The terminal client in tmux: commands, the queue, sessions, and the line that is written."""

import json
import stat

from harness import eq, eventually
from talk import talks
from terminal import input_line, only_session, open_terminal, sessions

LONG = "stream: 100000 10 20"


def test_help_and_unknown_commands(t):
    terminal = open_terminal(t, rows=40)
    terminal.say("/help")
    terminal.shows("/context", "/interrupt", "/sessions [search]", "/cancel N", "Ctrl-D: leaves")
    terminal.say("/modle")
    terminal.shows("/modle is no command; did you mean /mode or /model?", "› /modle")


def test_context_and_compaction(t):
    terminal = open_terminal(t)
    terminal.say("/context")
    terminal.shows("there is no session yet")
    terminal.turn("say: x")
    terminal.turn("say: y")
    terminal.say("/context")
    terminal.shows("context  ", "of 128,000 tokens", "session  ", "so far")
    terminal.say("/compact")
    terminal.has("the conversation was made shorter")


def test_interrupt_and_resume(t):
    terminal = open_terminal(t)
    terminal.say("/interrupt")
    terminal.shows("there is no session yet")
    terminal.paste(f"run: touch a\nsay: rest of the work")
    terminal.key("Enter")
    terminal.shows("y allow")
    terminal.say("/interrupt")
    terminal.has("■ Interrupted")
    terminal.say("/resume")
    terminal.has("goes on with what was interrupted", "\nrest of the work\n")


def test_mode_model_agent_and_title(t):
    terminal = open_terminal(t)
    terminal.say("/mode")
    terminal.shows("the mode is manual", "acceptEdits")
    terminal.say("/model")
    terminal.shows("the model is offline")
    # A setting makes the session.
    terminal.say("/mode acceptEdits")
    terminal.shows("acceptEdits · offline · react")
    terminal.turn("say: x")
    terminal.say("/mode plan")
    terminal.has("the mode is plan now")
    terminal.shows("plan · offline · react")
    terminal.say("/agent dup")
    terminal.has("the agent is dup now")
    terminal.say("/model nothing-like-it")
    terminal.has('"nothing-like-it" is not available')
    terminal.say("/mode yolo")
    terminal.has('"yolo" is not a mode')
    terminal.say("/title A good name")
    terminal.has("the session's title is: A good name")
    terminal.shows("A good name")
    eq(sessions(t.servers[-1])[0]["title"], "A good name", "the title")


@talks
def test_waiting_messages_are_shown_and_can_be_taken_out(s):
    server = s.server()
    terminal = open_terminal(s.t, server=server)
    terminal.say("run: touch a")
    terminal.shows("y allow")
    for text in ("say: first one", "say: second one"):
        terminal.say(text)
    terminal.shows("queued 1: say: first one", "queued 2: say: second one")
    terminal.say("/queue")
    terminal.has("  1 say: first one", "  2 say: second one")
    terminal.say("/cancel 9")
    terminal.shows("give a number from 1 to 2")
    terminal.say("/cancel 1")
    terminal.has("taken out of the queue")
    terminal.shows("queued 1: say: second one")
    terminal.key("y")
    seen = terminal.has("› say: second one", "\nsecond one\n")
    terminal.shows_no("queued 1")
    assert "\nfirst one\n" not in seen, seen


@talks
def test_sessions_are_listed_searched_and_opened(s):
    server = s.server()
    for number in range(3):
        client = s.unified(session=f"talk-{number}")
        client.turn(f"say: answer {number}")
    terminal = open_terminal(s.t, server=server)
    terminal.say("/sessions")
    terminal.shows("talk-0", "talk-1", "talk-2", "/open goes on with one")
    terminal.say("/sessions TALK-1")
    terminal.until(lambda seen: " 1 talk-1" in seen, "what was found")
    terminal.say("/open 1")
    terminal.has("session talk-1", "› say: answer 1", "\nanswer 1\n")
    terminal.say("/open none-such")
    terminal.has("not found")
    terminal.say("/open talk-2")
    terminal.has("session talk-2", "\nanswer 2\n")
    terminal.turn("say: from here")
    client = s.watcher("talk-2", since=0)
    client.until(lambda frame: frame.get("message") == "say: from here")
    client.until_end()


@talks
def test_a_session_is_opened_in_mid_turn(s):
    server = s.server()
    client = s.unified(session="busy", complete=False)
    client.turn("say: an earlier answer")
    client.say("stream: 300 20 10")
    client.until("assistant_message")
    terminal = open_terminal(s.t, "--session", "busy", server=server)
    terminal.shows("working")
    seen = terminal.until(lambda seen: seen.count("tokens in") == 2, "the end", terminal.all)
    eq(seen.count("› stream:"), 1, "times that the message is shown")
    text = "".join(seen[seen.index("0000000 "):seen.rindex("✓")].split())
    eq(text, "".join(f"{number:07}" for number in range(750)), "what was streamed")
    client.until_end()


def test_a_session_is_opened_at_its_end(t):
    server = t.server()
    client = server.client("/unified")
    client.checked = False
    for number in range(60):
        client.ws.send(json.dumps({"type": "user_message", "session_id": "long",
                                   "content": f"say: answer {number} of many"}))
        while client.recv()["type"] != "turn_completed":
            pass
    terminal = open_terminal(t, "--session", "long", server=server)
    seen = terminal.has("… what was before is not shown", "\nanswer 59 of many\n")
    assert "answer 3 of many" not in seen, "the beginning is not shown"
    eq(seen.count("\nanswer 59 of many\n"), 1, "times that the end is shown")
    terminal.turn("say: and on")


def test_new_and_fork(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.turn("say: in the first")
    first = only_session(server)
    terminal.say("/fork")
    eventually(lambda: len(sessions(server)) == 2, "the fork")
    fork = next(session["id"] for session in sessions(server) if session["id"] != first)
    terminal.has(f"session {fork}")
    terminal.turn("say: in the fork")
    terminal.say("/new")
    terminal.has("a new session; it begins with your message")
    eq(len(sessions(server)), 2, "sessions")
    terminal.turn("say: in the third")
    eq(len(sessions(server)), 3, "sessions")


def test_undo_takes_edits_back(t):
    terminal = open_terminal(t)
    terminal.say('tool: write_file {"path":"f.txt","content":"x"}')
    terminal.shows("y allow")
    terminal.key("y")
    terminal.has("✓ allowed", "tokens in")
    assert (t.work / "f.txt").exists()
    terminal.say("/undo")
    terminal.has("the file edits were taken back", "f.txt")
    assert not (t.work / "f.txt").exists()
    terminal.say("/undo")
    terminal.has("No file edit of this session is left to take back")


def test_tab_completes(t):
    server = t.server()
    server.http("POST", "/sessions", body="{}")
    terminal = open_terminal(t, server=server)
    terminal.type("/comp")
    terminal.key("Tab")
    terminal.shows("› /compact")
    terminal.key("C-u")
    terminal.type("/mo")
    terminal.key("Tab")
    terminal.shows("› /mode", "mode  model")
    terminal.key("C-u")
    session = only_session(server)
    terminal.type(f"/open {session[:8]}")
    terminal.key("Tab")
    terminal.shows(f"› /open {session}")


def test_the_line_is_edited(t):
    terminal = open_terminal(t)
    terminal.type("say: wörld 語 hello")
    terminal.key("C-w", "C-a")
    terminal.type("X")
    terminal.key("Delete", "C-e")
    terminal.type("end")
    terminal.key("Left", "Left", "Left", "BSpace")
    terminal.shows("› Xay: wörld 語end")
    eq(terminal.cursor()[0], 2 + len("Xay: wörld ") + 2, "the cursor's column")
    terminal.key("C-k", "C-a", "C-y")
    terminal.shows("› endXay: wörld 語")
    terminal.key("C-c")
    terminal.until(lambda seen: input_line(seen) == "", "an empty line")


def test_several_lines_are_written_three_ways(t):
    terminal = open_terminal(t)
    terminal.type("say: one\\")
    terminal.key("Enter")
    terminal.type("say: two")
    terminal.key("M-Enter")
    terminal.paste("say: three\nsay: four")
    terminal.shows("› say: one\n  say: two\n  say: three\n  say: four")
    terminal.key("Up", "Up")
    terminal.type("+")
    terminal.shows("  say: two+")
    terminal.key("Enter")
    terminal.has("\none\n", "\ntwo+\n", "\nthree\n", "\nfour\n")


def test_earlier_lines_come_back_also_in_another_run(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.turn("say: alpha")
    terminal.turn(" say: secret")
    terminal.turn("say: beta")
    terminal.key("Up", "Up")
    terminal.until(lambda seen: input_line(seen) == "say: alpha", "the first line")
    terminal.key("C-u", "C-d")
    eq(terminal.ended(), 0, "exit status")
    file = t.home / "state/polyloop/history"
    eq(stat.S_IMODE(file.stat().st_mode), 0o600, "rights")
    assert "secret" not in file.read_text(), file.read_text()
    terminal = open_terminal(t, server=server)
    terminal.key("Up")
    terminal.until(lambda seen: input_line(seen) == "say: beta", "the last line")
    terminal.key("C-u", "C-r")
    terminal.type("alp")
    terminal.shows("search (alp) say: alpha")
    terminal.key("Enter")
    terminal.until(lambda seen: input_line(seen) == "say: alpha", "what was found")


def test_the_screen_is_cleared(t):
    terminal = open_terminal(t)
    terminal.turn("say: something")
    terminal.type("kept")
    terminal.key("C-l")
    cleared = lambda seen: "something" not in seen and input_line(seen) == "kept"
    terminal.until(cleared, "a clear screen")


def test_escape_and_ctrl_c_interrupt(t):
    terminal = open_terminal(t)
    for key in ("Escape", "C-c"):
        interrupted = terminal.all().count("■ Interrupted")
        terminal.say(LONG)
        terminal.shows("working")
        terminal.key(key)
        terminal.until(lambda seen: seen.count("■ Interrupted") > interrupted, key, terminal.all)
    terminal.turn("say: still here")
