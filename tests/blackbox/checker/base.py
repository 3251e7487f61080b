"""What the checkers of all dialects share: the steps, the shapes, the sequence numbers.

Never knows an order of messages; that is each dialect's own.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from . import chat_shapes
from .shapes import SESSION_ID, Shape, count, session_id, shown, text, words

Frame = dict[str, Any]
Transcript = list[dict[str, Any]]

# Closes after which nothing is owed to a client any more: it left, or the server did in order.
ORDERLY_CLOSES = (1000, 1001, 1005)
EXPONENT = re.compile(r'"usage_percent"\s*:\s*-?[0-9.]+[eE]')


@dataclass
class Opening:
    """How the connection was opened, as far as the transcript says."""

    # A session that the address names, so that the client is attached at once.
    session: str | None = None
    # The connection resumes: its first messages may stand in the middle of anything.
    since: str | None = None
    # The first message decides the dialect; before it, others' shapes may come.
    bare: bool = True
    # Viewers of bare `/ws` are members of the chat room until they speak.
    room: bool = True
    # Said by whoever recorded it: others act on the same sessions.
    shared: bool = False
    # Said by whoever recorded it: a call may be asked about after it began, outside the sandbox.
    full_auto: bool = False


def opening(step: Any) -> Opening:
    if not isinstance(step, dict):
        return Opening()
    parts = urlsplit(str(step.get("path", "/")))
    query = parse_qs(parts.query)
    place = [unquote(part) for part in parts.path.split("/") if part]
    named = place[1] if len(place) > 1 and place[0] in ("ws", "agentloop") else None
    session = (query.get("session_id") or query.get("thread_id") or [named])[0]
    decided = bool(step.get("protocol") or query.get("protocol"))
    by_session = place == ["ws"] and "session_id" in query
    return Opening(
        session=session,
        since=query.get("since", [None])[0],
        bare=not decided and not by_session and place in ([], ["ws"]),
        room=not decided and not by_session and place == ["ws"],
        shared=bool(step.get("shared")),
        full_auto=bool(step.get("full_auto")),
    )


class Broken:
    """A frame that is no JSON."""


def parsed(frame: Any) -> Any:
    """A frame of the client: raw strings are parsed, everything else is taken as it is."""
    if not isinstance(frame, str):
        return frame
    try:
        return json.loads(frame, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return Broken()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def bad_id(value: object) -> bool:
    """A session id that must be refused. An empty one may pass as none at all."""
    return isinstance(value, str) and value != "" and SESSION_ID.fullmatch(value) is None


def name_in(frame: Frame, field: str = "session_id") -> str | None:
    """A name that a client gives, or None: whatever else it sent is not one."""
    value = frame.get(field)
    return value if isinstance(value, str) and value else None


class Checker:
    """Goes through a transcript; a dialect says what its messages mean."""

    messages: ClassVar[Mapping[str, Shape]] = {}
    # Messages that may be about no session, or to one client alone: no number is asked of them.
    loose: ClassVar[frozenset[str]] = frozenset({"error"})

    def __init__(self, complete: bool) -> None:
        self.complete = complete
        self.opening = Opening()
        self.problems: list[str] = []
        self.step = 0
        self.at_end = False
        # Sent by the client so far, and how many of these cannot but be refused.
        self.ins = 0
        self.malformed: list[tuple[int, str]] = []
        # Those without an error since.
        self.unanswered: list[tuple[int, str]] = []
        self.errors = 0
        self.outs = 0
        self.decided = False
        self.close: int | None = None
        self.closed = False
        self._last_seq: dict[str, int] = {}

    # What a dialect fills in.

    def fault_of(self, frame: Frame) -> str | None:
        """Why the server must refuse a client's frame, or None if it need not."""
        raise NotImplementedError

    def take_in(self, frame: Frame) -> None:
        """A frame of the client that is in order."""

    def take_out(self, frame: Frame) -> None:
        """A message of the server whose shape is right."""

    def finish(self) -> None:
        """The transcript ended, and is complete."""

    # What they use.

    def wrong(self, rule: str, what: str) -> None:
        place = f"step {self.step} (end)" if self.at_end else f"step {self.step}"
        self.problems.append(f"{place}: {rule}: {what}")

    def resumed(self, session: str) -> bool:
        """Whether the first messages of a session may stand in the middle of a turn."""
        return self.opening.since is not None and self.opening.session in (None, session)

    @property
    def cut(self) -> bool:
        """The connection ended so that answers may be missing."""
        return self.closed and self.close not in ORDERLY_CLOSES

    # The steps.

    def check(self, transcript: Transcript) -> list[str]:
        for self.step, step in enumerate(transcript, 1):
            self._take(step)
        self.at_end = True
        if self.complete:
            self._owed_errors()
            self.finish()
        return self.problems

    def _take(self, step: Any) -> None:
        if not isinstance(step, dict):
            self.wrong("transcript", f"{shown(step)} is no step")
        elif self.closed:
            self.wrong("after close", "something follows the close of the connection")
        elif "open" in step:
            if self.step > 1:
                self.wrong("transcript", "a connection is opened once, first")
            self.opening = opening(step["open"])
        elif "in" in step:
            self._take_in(parsed(step["in"]))
        elif "out" in step:
            self._take_out(step["out"])
        elif "close" in step:
            self.closed, self.close = True, step["close"]
        else:
            self.wrong("transcript", "a step is one of open, in, out and close")

    def _take_in(self, frame: Any) -> None:
        self.ins += 1
        if isinstance(frame, Broken):
            fault: str | None = "no JSON"
        elif not isinstance(frame, dict):
            fault = "no object"
        elif not isinstance(frame.get("type"), str):
            fault = "no type"
        else:
            fault = self.fault_of(frame)
        if fault is None:
            self.take_in(frame)
        else:
            self.malformed.append((self.step, fault))
            self.unanswered.append((self.step, fault))

    def _take_out(self, frame: Any) -> None:
        self.outs += 1
        if isinstance(frame, str):
            if EXPONENT.search(frame):
                self.wrong("shape", "usage_percent is not printed as a plain decimal")
            frame = parsed(frame)
        if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
            self.wrong("shape", "a message is a JSON object with a type")
            return
        kind = frame["type"]
        if kind == "error":
            self.errors += 1
            del self.unanswered[:1]
        if self._of_the_undecided(frame):
            return
        self.decided = self.decided or kind != "error"
        shape = self.messages.get(kind)
        if shape is None:
            self.wrong("unknown type", f"the dialect has no message {shown(kind)}")
            return
        wrong = [*shape(frame, kind), *self.envelope(frame)]
        for complaint in wrong:
            self.wrong("shape", complaint)
        if not wrong:
            self._number(frame)
            self.take_out(frame)

    def _of_the_undecided(self, frame: Frame) -> bool:
        """Whether a message came before the dialect was decided, in the shape of such."""
        kind = frame["type"]
        if self.decided or not self.opening.bare or kind not in chat_shapes.MESSAGES:
            return False
        if kind in self.messages and not any(self.messages[kind](frame, kind)):
            return False
        if kind != "error" and not self.opening.room:
            return False
        return not any(chat_shapes.MESSAGES[kind](frame, kind))

    def envelope(self, frame: Frame) -> list[str]:
        """What is wrong with the fields that place a message in its session."""
        kind, wrong = frame["type"], []
        loose = kind in self.loose
        if not loose or "session_id" in frame:
            if "session_id" not in frame:
                wrong.append(f"{kind}.session_id: is missing")
            else:
                shape = text if loose else session_id
                wrong += shape(frame["session_id"], f"{kind}.session_id")
        if not loose or "seq" in frame:
            if "seq" not in frame:
                wrong.append(f"{kind}.seq: is missing")
            else:
                wrong += count(frame["seq"], f"{kind}.seq")
        if "cursor" in frame:
            wrong += words(frame["cursor"], f"{kind}.cursor")
        return wrong

    def _number(self, frame: Frame) -> None:
        session, seq = frame.get("session_id"), frame.get("seq")
        if session is None or seq is None:
            return
        last = self._last_seq.get(session, 0)
        if seq < last:
            self.wrong("seq goes back", f"{seq} after {last} in session {session}")
        self._last_seq[session] = max(seq, last)

    def _owed_errors(self) -> None:
        """Every malformed frame has an error of its own behind it."""
        if self.unanswered and not self.cut:
            places = ", ".join(f"step {step} ({why})" for step, why in self.malformed)
            self.wrong("error owed", f"too few errors for the malformed frames: {places}")
