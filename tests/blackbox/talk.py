"""Clients of every dialect for one test, each with a transcript that is checked at its end.

A test that is marked with `talks` is given a `Scene`: it starts servers, opens clients, and when
the test is done hands every client's transcript to the checker. What a client is still owed then
is waited for, so a test need not read to the end what it does not look at.
"""

import contextlib
import functools
import json
import socket
import time
from urllib.parse import quote, urlencode

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import checker
import harness
from harness import TURN_SECS, WAIT_SECS, eq

# What a client is owed when the test is done comes within this, or not at all.
OWED_SECS = 20.0
STEPS_SHOWN = 12
STEP_CHARS_SHOWN = 300


def talks(test):
    """Gives a test its scene, and checks what was said in it."""

    @functools.wraps(test)
    def run(t):
        scene = Scene(t)
        try:
            test(scene)
            scene.check()
        except Exception as error:
            for wire in scene.wires:
                error.add_note(wire.shown())
            raise

    return run


class Wire:
    """A WebSocket that takes down what goes over it."""

    def __init__(self, server, path, dialect, complete, full_auto, **options):
        options = {"proxy": None, "open_timeout": WAIT_SECS, "close_timeout": 2, **options}
        self.ws = connect(server.url(path), max_size=None, ping_interval=None, **options)
        self.dialect, self.complete, self.ended = dialect, complete, False
        self.opened = {"path": path, "protocol": self.ws.subprotocol, "full_auto": full_auto}
        self.steps = [{"open": self.opened}]

    def send(self, message):
        text = message if isinstance(message, str) else message.decode("utf-8", "replace")
        self.steps.append({"in": text})
        self.ws.send(message)

    def recv(self, timeout=WAIT_SECS):
        try:
            text = self.ws.recv(timeout=timeout)
        except ConnectionClosed as closed:
            if not self.ended:
                self.ended = True
                self.steps.append({"close": closed.rcvd.code if closed.rcvd else 1006})
            raise
        self.steps.append({"out": text})
        return text

    def attached(self):
        """Waits until it surely is: nothing is read from a socket before. Not for one who is sent
        much at once: its library reads on only when that is taken."""
        assert self.ws.ping().wait(WAIT_SECS), f"{self.opened['path']}: a ping is not answered"

    def close(self):
        self.ended = True
        self.ws.close()

    @property
    def socket(self):
        return self.ws.socket

    def check(self, shared):
        """What is wrong in the transcript, once nothing is owed any more."""
        self.opened["shared"] = shared
        problems = self._problems(self.complete)
        end = time.monotonic() + OWED_SECS
        while problems and not self.ended and not self._problems(False):
            try:
                self.recv(max(0.0, end - time.monotonic()))
            except (TimeoutError, ConnectionClosed):
                break
            problems = self._problems(self.complete)
        return problems

    def _problems(self, complete):
        return checker.check(self.dialect, self.steps, complete=complete)

    def shown(self):
        last = [json.dumps(step)[:STEP_CHARS_SHOWN] for step in self.steps[-STEPS_SHOWN:]]
        return "\n".join([f"{self.dialect} {self.opened['path']}, the last steps:", *last])


class Scene:
    """What a test has: its place, its servers, and clients whose words are kept."""

    def __init__(self, t):
        self.t, self.work, self.store = t, t.work, t.store
        self.wires = []
        self.last = None

    def server(self, *flags, **options):
        self.last = self.t.server(*flags, **options)
        return self.last

    def _wire(self, path, dialect, query, complete=True, full_auto=False, **options):
        query = {name: value for name, value in query.items() if value is not None}
        if query:
            path += ("&" if "?" in path else "?") + urlencode(query, quote_via=quote)
        wire = Wire(self.last, path, dialect, complete, full_auto, **options)
        self.wires.append(wire)
        self.t.closing.append(wire.ws.close)
        return wire

    def unified(self, path="/unified", session="s1", name=None, since=None, **options):
        query = {"name": name, "since": since}
        return Unified(self._wire(path, "unified", query, **options), session)

    def watcher(self, session="s1", since=None, **options):
        """A unified client that is attached at once; its greeting is read."""
        client = self.unified(f"/unified?session_id={session}", session, since=since, **options)
        eq(client.recv()["type"], "session_init", "the first event of who names a session")
        return client

    def chat(self, path="/chat", session=None, name=None, **options):
        wire = self._wire(path, "chat", {"name": name}, **options)
        # Who is not in the room yet does not hear what is said there.
        wire.attached()
        return Chat(wire, session)

    def agentloop(self, session="s1", name=None, since=None, **options):
        query = {"name": name, "since": since}
        return Agentloop(self._wire(f"/ws/{session}", "agentloop", query, **options))

    def sessions(self):
        """Ids of the sessions that are listed, newest first."""
        return [one["id"] for one in self.last.get("/sessions").json["sessions"]]

    def check(self):
        wrong = []
        for wire in self.wires:
            for problem in wire.check(shared=len(self.wires) > 1):
                wrong.append(f"{wire.dialect} {wire.opened['path']}: {problem}")
        assert not wrong, "the checker says:\n" + "\n".join(wrong)


class Talker:
    """What the clients of the new dialects have in common."""

    def __init__(self, wire, session):
        self.wire, self.session = wire, session
        self.seen = []
        self.sent = 0

    def raw(self, message):
        self.wire.send(message)

    def recv(self):
        frame = json.loads(self.wire.recv())
        self.seen.append(frame)
        return frame

    def until(self, wanted):
        """Frames up to and with the first of a type, or that a function accepts."""
        accepts = (lambda frame: frame["type"] == wanted) if isinstance(wanted, str) else wanted
        frames, end = [], time.monotonic() + TURN_SECS
        while not frames or not accepts(frames[-1]):
            late = time.monotonic() > end
            assert not late, f"not within {TURN_SECS} s: {wanted}; came: {types(frames)}"
            try:
                frames.append(self.recv())
            except TimeoutError:
                raise AssertionError(f"not in time: {wanted}; came: {types(frames)}") from None
        return frames

    def closed(self):
        """Waits for the end of the connection; the close code."""
        try:
            while True:
                self.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None

    def drop(self):
        """Ends the connection without a word."""
        with contextlib.suppress(OSError):
            self.wire.socket.shutdown(socket.SHUT_RDWR)
        self.wire.close()

    def place(self):
        """Where this client stands: the cursor or else the seq of its last frame."""
        frame = [frame for frame in self.seen if "seq" in frame][-1]
        return frame.get("cursor", frame["seq"])


ENDS = ("turn_completed", "turn_failed")
ASKS = ("control_request", "ask_user_question", "exit_plan_mode")


class Unified(Talker):
    """A client of the unified dialect."""

    def send(self, kind, session=None, **fields):
        self.sent += 1
        message = {"type": kind, "id": f"msg-{self.sent:03}", "session_id": session or self.session,
                   **fields}
        self.raw(json.dumps(message))
        return message["id"]

    def say(self, content, session=None, **fields):
        return self.send("user_message", session, content=content, **fields)

    def start(self, session=None, **fields):
        """Starts a session; its `session_init`, which must be a good one."""
        self.send("session_start", session, **fields)
        # A session that was there is made what this asks for, which all its clients are told.
        init, info = self.until("session_init")[-1], self.recv()
        eq(init["success"], True, f"answer {init}")
        eq((info["type"], info["status"]), ("session_info", "active"), f"answer {info}")
        return init

    def until_end(self, session=None):
        """Frames up to the end of a turn of the session, which asks nothing more."""
        session = session or self.session

        def ends(frame):
            asked = frame["type"] in ASKS and frame["session_id"] == session
            assert not asked, f"nobody expected to be asked: {frame}"
            return frame["type"] in ENDS and frame["session_id"] == session

        frames = self.until(ends)
        if frames[-1].get("error", "").startswith("Interrupted"):
            frames += self.until(lambda frame: frame.get("status") == "paused")
        return frames

    def turn(self, content, session=None):
        self.say(content, session)
        return self.until_end(session)

    def asked(self, content, kind="control_request"):
        """Says something and returns the request that it causes."""
        self.say(content)
        return self.until(kind)[-1]

    def decide(self, request, decision, **fields):
        return self.send("permission_response", request_id=request["request_id"],
                         decision=decision, **fields)

    def answer(self, request, *selected, key="tool_id"):
        """Answers each question of a request with its list of words."""
        answers = [{"question_index": at, "selected": words} for at, words in enumerate(selected)]
        return self.send("user_question_response", **{key: request[key]}, answers=answers)

    def approve(self, request, approved=True, **fields):
        return self.send("plan_approval_response", tool_id=request["tool_id"], approved=approved,
                         **fields)

    def error(self):
        """The next frame, which must be a harmless error; its message."""
        frame = self.recv()
        eq((frame["type"], frame.get("is_fatal")), ("error", False), f"answer {frame}")
        return frame["message"]

    def still_open(self, session=None):
        """The connection answers, and nothing else was under way."""
        self.send("get_context", session)
        eq(self.recv()["type"], "context_info", "answer of a connection that must be open")


class Chat(Talker):
    """A member of the chat room."""

    def say(self, message, session=None, **fields):
        session = session or self.session
        named = {} if session is None else {"session_id": session}
        self.raw(json.dumps({"type": "chat", "message": message, **named, **fields}))

    def until_answer(self):
        """Frames up to what ends the wait of whoever spoke."""
        return self.until(lambda frame: frame["type"] in ("agent_message", "error"))

    def turn(self, message, session=None):
        self.say(message, session)
        return self.until_answer()

    def error(self):
        frame = self.recv()
        eq(frame["type"], "error", f"answer {frame}")
        return frame["error"]


class Agentloop(harness.Client):
    """The harness's AgentLoop client on a wire that is kept."""

    def __init__(self, wire):
        self.ws, self.checked = wire, True
        self.seen, self.ids, self.seq, self.sent = [], set(), 0, 0


# How frames read.

STREAMED = ("assistant_message", "assistant_reasoning", "command_output")
ASIDE = ("token_usage", "heartbeat")


def types(frames, aside=ASIDE):
    """One word a message; the pieces of one stream count once, and some are left aside."""
    words, going_on = [], None
    for frame in frames:
        kind = frame["type"]
        if kind in aside:
            continue
        if kind != going_on:
            words.append(kind)
        over = frame.get("is_final") or frame.get("is_streaming") is False
        going_on = kind if kind in STREAMED and not over else None
    return words


def spoken(frames):
    """The assistant's texts of unified frames, put together from their pieces."""
    texts, open_text = [], None
    for frame in frames:
        if frame["type"] == "assistant_message":
            open_text = (open_text or "") + frame["text"]
            if frame["is_final"]:
                texts.append(open_text)
                open_text = None
    return texts if open_text is None else [*texts, open_text]


# What places a frame, but is no part of what it says.
PLACE = ("id", "seq", "cursor")


def merged(frames):
    """What unified frames say, whatever pieces their streams came in."""
    told, last = [], None
    for frame in frames:
        said = {name: value for name, value in frame.items() if name not in PLACE}
        text = {"command_output": "output"}.get(frame["type"], "text")
        same = ("type", "session_id", "tool_id")
        stream = tuple(frame.get(name) for name in same) if frame["type"] in STREAMED else None
        if stream and stream == last:
            told[-1] = {**said, text: told[-1][text] + said[text]}
        elif frame["type"] != "heartbeat":
            told.append(said)
        over = frame.get("is_final") or frame.get("is_streaming") is False
        last = None if over else stream
    return told


def of(frames, kind):
    return [frame for frame in frames if frame["type"] == kind]


def the(frames, kind):
    """The only frame of a type."""
    (frame,) = of(frames, kind)
    return frame


def words(frames):
    """Chat frames as (type, what they say)."""
    said = ("message", "reasoning", "error", "result", "tool_args")
    return [(frame["type"], *[frame[name] for name in said if name in frame]) for frame in frames]
