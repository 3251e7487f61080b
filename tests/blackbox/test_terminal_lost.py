"""The terminal client when the server is killed, started again, or stays away."""

import contextlib
import json
import os
import re
import signal
import socket
import threading

from harness import eq
from talk import talks
from terminal import Piped, Terminal, only_session, open_terminal, piped

LONG = "stream: 100000 20 5"


def again(t, server):
    """Kills the server and starts it again where it was."""
    server.kill()
    return t.server("--addr", server.address)


def streamed(seen):
    """What of the stream is on the screen, without what stands around it."""
    text = seen[seen.rindex("› stream:"):]
    return "".join(re.findall(r"^[0-9][0-9 ]*$", text, re.MULTILINE)).replace(" ", "")


def test_killed_in_mid_stream_and_back(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.say(LONG)
    terminal.has("0000100")
    terminal.type("half a line")
    server.kill()
    terminal.shows("the connection is lost", "again in", "› half a line")
    t.server("--addr", server.address)
    seen = terminal.has("connected again", "■ Interrupted")
    # The turn was cut: what the server kept of it is shown once, without a hole.
    text = streamed(seen)
    want = "".join(f"{number:07}" for number in range(len(text) // 7 + 1))
    assert want.startswith(text) and len(text) > 700, text
    session = only_session(t.servers[-1])
    client = t.servers[-1].client(f"/unified?session_id={session}&since=0", checked=False)
    frames = client.until("turn_failed")
    kept = "".join(f["text"] for f in frames if f["type"] == "assistant_message").replace(" ", "")
    eq(text, kept, "what is shown and what is kept")
    terminal.shows("› half a line")
    terminal.key("C-u")
    terminal.turn("say: on we go")


def test_a_request_outlives_the_server(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.say("run: touch a")
    terminal.shows("y allow")
    server.kill()
    terminal.shows("the connection is lost")
    terminal.key("y")
    terminal.shows("not connected")
    t.server("--addr", server.address)
    terminal.has("connected again")
    terminal.shows("y allow")
    terminal.key("y")
    terminal.has("✓ allowed", "tokens in")
    assert (t.work / "a").exists()
    eq(terminal.all().count("needs your leave"), 1, "times that it is asked")


def test_what_is_said_while_it_is_away_is_said_once(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.turn("say: before")
    server.kill()
    terminal.shows("the connection is lost")
    terminal.say("say: meanwhile")
    terminal.shows("sending: say: meanwhile")
    server = t.server("--addr", server.address)
    terminal.has("› say: meanwhile", "\nmeanwhile\n")
    terminal.shows_no("sending:")
    again(t, server)
    terminal.until(lambda seen: seen.count("connected again") == 2, "back twice", terminal.all)
    terminal.turn("say: after")
    eq(terminal.all().count("› say: meanwhile"), 1, "times that it was said")


@talks
def test_messages_that_wait_are_there_again(s):
    server = s.server()
    terminal = open_terminal(s.t, server=server)
    terminal.say("run: touch a")
    terminal.shows("y allow")
    terminal.say("say: later")
    terminal.shows("queued 1: say: later")
    server.kill()
    terminal.shows("the connection is lost")
    s.server("--addr", server.address)
    terminal.has("connected again")
    terminal.shows("queued 1: say: later", "y allow")
    terminal.key("y")
    seen = terminal.has("› say: later", "\nlater\n")
    eq(seen.count("› say: later"), 1, "times that it was said")


def test_no_server_at_the_start(t):
    server = t.server()
    server.kill()
    terminal = Terminal(t, server)
    terminal.has("error: no server answers at", "polyloop demo")
    eq(terminal.ended(), 4, "exit status")


def test_a_session_that_is_not_there(t):
    terminal = Terminal(t, t.server(), "--session", "none")
    terminal.has('error: there is no session "none"')
    eq(terminal.ended(), 2, "exit status")


def test_a_pipe_outlives_the_server(t):
    server = t.server()
    run = Piped(t, server, "--session", "p", "--new", "--json",
                "run: touch a\nstream: 400 20 5\nsay: end")
    # It is denied at once, so the stream runs.
    lines = run.lines(run.process.stdout, '"assistant_message"')
    server.kill()
    run.lines(run.process.stderr, "connection is lost")
    t.server("--addr", server.address)
    code, out, _ = run.rest()
    # What the kill cut ends as interrupted; it was not the user of this client.
    eq(code, 5, "exit status")
    frames = [json.loads(line) for line in lines + out.splitlines()]
    text = "".join(f["text"] for f in frames if f["type"] == "assistant_message")
    numbers = text.split()
    eq(numbers[:-1], [f"{number:07}" for number in range(len(numbers) - 1)], "the stream")
    places = [f["seq"] for f in frames if "seq" in f]
    eq(places, sorted(places), "places")
    ids = [f["id"] for f in frames if f["type"] not in ("session_init", "control_request")]
    eq(len(ids), len(set(ids)), "no frame comes twice")


def cutting(t, server, most):
    """An address from which connections lead to the server, and are cut after so many bytes."""
    front = socket.create_server(("127.0.0.1", 0))
    t.closing.append(front.close)

    def copy(source, sink, most):
        with contextlib.suppress(OSError):
            while most > 0 and (data := source.recv(min(most, 4096))):
                sink.sendall(data)
                most -= len(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                stream, _ = front.accept()
                back = server.socket()
                back.settimeout(None)
                threading.Thread(target=copy, args=(stream, back, 1 << 30), daemon=True).start()
                threading.Thread(target=copy, args=(back, stream, most), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"http://127.0.0.1:{front.getsockname()[1]}"


def test_a_connection_that_is_cut_again_and_again(t):
    """Every cut is inside a frame or between two; nothing is lost or doubled by any."""
    server = t.server()
    for most in (2500, 3333, 6001):
        code, out, err = piped(t, None, "--url", cutting(t, server, most), "stream: 60 40 20")
        assert "trying again" in err, err
        want = "".join(f"{number:07} " for number in range(300)).rstrip()
        eq((code, out.rstrip()), (0, want), f"the answer, cut after {most} bytes")


def test_a_connection_lost_for_good_is_4(t):
    server = t.server()
    run = Piped(t, server, "--session", "p", "--new", "--json", "--reconnect-secs", "1", LONG)
    run.lines(run.process.stdout, '"assistant_message"')
    server.kill()
    code, _, err = run.rest()
    eq(code, 4, "exit status")
    assert "lost for good" in err, err


def test_a_slow_server_does_not_hold_the_keys(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.turn("say: x")
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        terminal.say("/sessions")
        terminal.type("keys work")
        terminal.shows("› keys work")
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    terminal.has("/open goes on with one")


def test_a_server_that_has_lost_the_session_is_4_in_a_pipe(t):
    server = t.server(store=False)
    run = Piped(t, server, "--json", LONG)
    run.lines(run.process.stdout, '"assistant_message"')
    server.kill()
    t.server("--addr", server.address, store=False)
    code, _, err = run.end()
    eq(code, 4, "exit status")
    assert "no longer has this session" in err, err


def test_a_server_that_has_lost_the_session_is_told_in_a_terminal(t):
    server = t.server(store=False)
    terminal = open_terminal(t, server=server)
    terminal.say("run: touch a")
    terminal.shows("y allow")
    server.kill()
    terminal.shows("the connection is lost")
    t.server("--addr", server.address, store=False)
    terminal.has("the server no longer has this session as it was")
    # What was asked is gone, and so is the turn.
    terminal.shows_no("y allow")
    terminal.shows_no("waiting for you")
    terminal.turn("say: on we go")


def test_what_was_not_sent_to_a_session_that_cannot_be_reached_comes_back(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.say("run: touch a")
    terminal.shows("y allow")
    server.kill()
    terminal.shows("the connection is lost")
    terminal.say("say: meanwhile")
    terminal.shows("sending: say: meanwhile")
    # It does not let this client in any more.
    t.server("--addr", server.address, env={"POLYLOOP_TOKEN": "a-token-of-some-length"})
    terminal.has("the session cannot be reached")
    terminal.shows("› say: meanwhile")
    for gone in ("sending:", "y allow", "waiting for you"):
        terminal.shows_no(gone)


def test_a_session_is_not_left_while_a_message_is_on_its_way(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    terminal.turn("say: before")
    session = only_session(server)
    server.kill()
    terminal.shows("the connection is lost")
    terminal.say("say: meanwhile")
    terminal.shows("sending: say: meanwhile")
    for command in ("/new", "/fork", f"/open {session}"):
        terminal.say(command)
        terminal.shows("a message is still being sent", "sending: say: meanwhile")
        terminal.key("C-l")
        terminal.shows_no("a message is still being sent")
    server = t.server("--addr", server.address)
    terminal.has("› say: meanwhile", "\nmeanwhile\n")
    eq(only_session(server), session, "the session")


def test_what_is_set_while_the_session_is_made_holds_for_its_first_message(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        terminal.say("/mode acceptEdits")
        terminal.say("/agent dup")
        terminal.say("say: hello")
        terminal.shows("sending: say: hello")
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    seen = terminal.has("the agent is dup now", "› say: hello", "\nhello\n", "✓ ")
    assert seen.index("the agent is dup now") < seen.index("› say: hello"), seen
    terminal.shows("acceptEdits · offline · dup")
    only_session(server)


def test_another_request_that_fails_is_no_failed_session(t):
    server = t.server()
    terminal = open_terminal(t, server=server)
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        terminal.say("/open none")
        terminal.say("say: hello")
        terminal.shows("sending: say: hello")
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    terminal.has("✗", "› say: hello", "\nhello\n")
    terminal.shows_no("sending:")
    only_session(server)
