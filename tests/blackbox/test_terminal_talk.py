"""The terminal client in tmux: what is shown, and that nothing in it is obeyed."""

import json
import os
import re
import signal

from harness import Options, eq
from talk import talks
from terminal import Terminal, input_line, only_session, open_shell, open_terminal, sessions

MARKDOWN = (r"say: # Head\n\n**bold** and `code` and [link](https://x.example)\n\n- item\n\n"
            r"```rust\nlet a = 1;\n```\n\n| a | b |")


def test_markdown_is_shown(t):
    terminal = open_terminal(t)
    seen = terminal.turn(MARKDOWN)
    answer = seen[seen.rindex("Head\n"):]
    for line in ("Head", "bold and code and link (https://x.example)", "• item", "  ╭─ rust",
                 "  │ let a = 1;", "  ╰─", "| a | b |"):
        assert line in answer.splitlines(), f"{line!r} is not in:\n{answer}"
    coloured = terminal.coloured()
    assert re.search(r"\x1b\[35mHead", coloured) and "\x1b[36mcode" in coloured, coloured


def test_no_colours_where_none_are_wanted(t):
    server = t.server()
    for before in ("NO_COLOR=1", "TERM=dumb"):
        terminal = open_shell(t, server, before=before)
        terminal.turn("say: **bold**")
        coloured = terminal.coloured()
        assert "\x1b[1m" not in coloured and "\x1b[3" not in coloured, coloured


def test_a_turn_has_its_tools_and_its_use(t):
    terminal = open_terminal(t)
    seen = terminal.turn(r"run: echo one; echo two")
    assert "● Bash  echo one; echo two\n  │ one\n  │ two\n" in seen, seen
    assert re.search(r"✓ \d+ s · [\d,]+ tokens in, \d+ out", seen), seen
    terminal.shows("% of the window")
    seen = terminal.turn("run: ls nowhere-at-all")
    assert "✗ exit code 2" in seen, seen


def test_long_output_is_bounded_and_its_tail_is_shown(t):
    terminal = open_terminal(t)
    seen = terminal.turn("run: seq 1 5000")
    assert "  │ … 4,988 lines before these\n  │ 4989\n" in seen, seen
    assert "  │ 5000\n" in seen, seen
    assert "│ 2500\n" not in seen, seen


def test_the_agent_is_seen_working_and_typing_stays_intact(t):
    terminal = open_terminal(t)
    terminal.say("stream: 100000 20 20")
    terminal.shows("working", "Esc interrupts", "0000000 0000001")
    terminal.type("written meanwhile")
    terminal.until(lambda seen: input_line(seen) == "written meanwhile", "the line")
    # More comes above it, and the line stays.
    before = terminal.all().count("00000")
    seen = terminal.until(lambda seen: seen.count("00000") > before, "more", terminal.all)
    eq(input_line(seen), "written meanwhile", "the line")
    terminal.key("C-u", "Escape")
    terminal.has("■ Interrupted: stopped by the user", "/resume goes on")
    terminal.until(lambda seen: input_line(seen) == "", "an empty line")


def test_every_streamed_character_is_shown_once(t):
    terminal = open_terminal(t, rows=20)
    seen = terminal.turn("stream: 200 16 1")
    text = "".join(seen[seen.index("0000000 "):seen.rindex("✓")].split())
    # 200 pieces of 16 bytes, of numbers of seven digits and a blank.
    want = "".join(f"{number:07}" for number in range(400))
    eq(text, want, "what was streamed")


ESC, BEL = "\x1b", "\x07"


@talks
def test_hostile_text_is_shown_and_not_obeyed(s):
    terminal = open_terminal(s.t, server=s.server())
    terminal.turn("say: before")
    # Another client can write such things into a session.
    evil = f"{ESC}[2J{ESC}[H{ESC}]0;pwned{BEL}{ESC}]52;c;cHduZWQ={BEL}evil\u202etxt\u200b"
    other = s.unified(session="evil")
    other.turn(f"say: {evil}")
    other.turn("run: printf '\\033[2J\\033]0;pwned\\007out'")
    path = json.dumps({"path": f"a{ESC}[31mb.txt"})
    other.turn(f"tool: read {path}")
    s.last.http("PATCH", "/sessions/evil", body=json.dumps({"title": f"t{ESC}[2Jitle"}))
    other.until("session_renamed")
    terminal.say("/open evil")
    seen = terminal.has("␛[2J␛[H␛]0;pwned␇", "evil<202E>txt<200B>", "␛[2J␛]0;pwned␇out",
                        "a␛[31mb.txt", "t␛[2Jitle")
    assert "\nbefore\n" in seen, "the screen was cleared"
    # What comes live goes the same way.
    other.turn(f"say: live {evil}")
    terminal.has("live ␛[2J␛[H␛]0;pwned␇")
    title = terminal.tmux("display-message", "-p", "#{pane_title}")
    assert "pwned" not in title, title


def test_reasoning_and_retries_are_shown(t):
    terminal = open_terminal(t)
    terminal.say("think: first I look")
    terminal.has("┊ first I look", "↻ The model gave an empty answer", "✗ The model gave an empty")
    terminal.say("fail: 429")
    terminal.has("✗ 429 Too Many Requests")


def test_todos_are_shown(t):
    terminal = open_terminal(t)
    todos = {"todos": [{"id": "1", "content": "first thing", "status": "in_progress"},
                       {"id": "2", "content": "second thing", "status": "completed"}]}
    terminal.say(f"tool: todo_write {json.dumps(todos)}")
    terminal.has("Todos\n  ◐ first thing\n  ☑ second thing")
    terminal.shows("✓ ")
    terminal.say("/todos")
    terminal.until(lambda seen: seen.count("  ◐ first thing") == 2, "the list again", terminal.all)


def test_edits_are_shown_as_diffs(t):
    terminal = open_terminal(t)
    (t.work / "f.txt").write_text("one\ntwo\nthree\n")
    edit = {"path": "f.txt", "oldString": "two", "newString": "zwei"}
    terminal.say(f"tool: edit {json.dumps(edit)}")
    terminal.shows("y allow")
    seen = terminal.coloured()
    for line in (r"\x1b\[31m(\x1b\[49m)?-two", r"\x1b\[32m(\x1b\[49m)?\+zwei"):
        assert re.search(line, seen), seen
    terminal.key("y")
    terminal.has("● Edit  f.txt\n  │ -two\n  │ +zwei", "changed", "✓ ")
    eq((t.work / "f.txt").read_text(), "one\nzwei\nthree\n", "the file")


def test_a_narrower_and_a_wider_terminal(t):
    terminal = open_terminal(t)
    terminal.turn("say: " + "word " * 60)
    terminal.type("a line that is written and long enough to be wrapped")
    for columns, rows in ((40, 12), (120, 40), (30, 10), (80, 24)):
        terminal.resize(columns, rows)
        text = "a line that is written and long enough to be wrapped"

        def whole(seen):
            lines = seen.splitlines()
            starts = [at for at, line in enumerate(lines) if line.startswith("› a line")]
            if len(starts) != 1:
                return False
            joined = "".join(line[2:].ljust(columns - 2) if len(line) > columns - 4 else line[2:]
                             for line in lines[starts[0]:starts[0] + 3])
            return text.replace(" ", "") in joined.replace(" ", "")

        terminal.until(whole, f"the line at {columns}x{rows}")
    terminal.key("C-u")
    terminal.turn("say: still here")


def test_a_small_terminal_has_room_for_what_is_needed(t):
    terminal = open_terminal(t, columns=40, rows=8)
    terminal.say("run: seq 1 30; touch a")
    terminal.shows("y allow", "n deny", "s stop")
    terminal.key("y")
    terminal.has("✓ allowed", "  │ 30\n", "tokens in")
    terminal.turn("say: " + "word " * 100)


def test_no_session_is_made_before_something_is_said(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    eq(sessions(server), [], "sessions")
    terminal.turn("say: x")
    only_session(server)


def test_a_message_on_the_command_line_begins_the_conversation(t):
    terminal = open_terminal(t, "say:", "given")
    terminal.has("› say: given", "\ngiven\n", "✓ ")
    terminal.turn("say: and more")


def test_it_leaves_by_keys_and_by_signals(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.key("C-d")
    eq(terminal.ended(), 0, "exit status after Ctrl-D")
    terminal = open_terminal(t, server=server)
    terminal.key("C-c")
    terminal.shows("Ctrl-C again leaves")
    terminal.key("C-c")
    eq(terminal.ended(), 130, "exit status after Ctrl-C twice")
    terminal = open_terminal(t, server=server)
    terminal.say("/quit")
    eq(terminal.ended(), 0, "exit status after /quit")
    terminal = open_terminal(t, server=server)
    os.kill(terminal.child(), signal.SIGTERM)
    eq(terminal.ended(), 143, "exit status after SIGTERM")


def test_the_terminal_is_as_it_was_afterwards(t):
    terminal = Terminal(t, t.server(), shell=True)
    settings = lambda name: terminal.say(f"stty -a > {t.dir}/{name}; echo {name}-noted")
    settings("before")
    terminal.shows("\nbefore-noted")
    for number, leave in enumerate((lambda: terminal.key("C-d"),
                                    lambda: os.kill(terminal.child(), signal.SIGTERM))):
        terminal.say(f"clear; {t.polyloop or Options.polyloop} chat; echo ended-$?")
        terminal.ready()
        terminal.turn("say: x")
        leave()
        terminal.shows("\nended-")
        settings(f"after{number}")
        terminal.shows(f"\nafter{number}-noted")
        eq((t.dir / f"after{number}").read_text(), (t.dir / "before").read_text(), "settings")


def test_stopped_and_brought_back(t):
    terminal = open_shell(t, t.server())
    terminal.turn("say: x")
    terminal.type("kept")
    terminal.shows("› kept")
    terminal.key("C-z")
    terminal.shows("Stopped")
    terminal.say("echo the-shell-$((1+1)) speaks")
    terminal.shows("the-shell-2 speaks")
    terminal.say("fg")
    terminal.shows("› kept")
    terminal.key("C-u")
    terminal.turn("say: back again")
    terminal.key("C-d")
    terminal.shows("session: ")
