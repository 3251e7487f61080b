"""Order of messages in the agentloop dialect (seeds 000 and 002, decisions section 3)."""

import json
import shlex
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .agentloop_shapes import MESSAGES
from .base import Checker, Frame

REVIEWS = {"yes", "no", "no-exit", "no-continue", "always", "explain"}
CLIENT_TYPES = {
    "user_input", "approval_response", "get_context_info", "manual_compact", "interrupt",
}
# These may carry an id that was seen: a request sent again, an answer that echoes.
REPEATABLE = {"approval_request", "context_info", "error"}
NOTHING_PENDING = "No pending approval request"


class Phase(Enum):
    # Resumed: anything may be under way.
    UNKNOWN = "unknown"
    IDLE = "idle"
    RUNNING = "running"
    # After `loading_state false`: `agent_finished` comes, or after an error may not.
    ENDING = "ending"


class Failure(Enum):
    NO = 0
    # An error came, which may have answered the client instead.
    MAYBE = 1
    # An error came that nothing the client sent can have caused.
    SURE = 2


@dataclass
class Call:
    command: Any = None
    asked: bool = False
    done: bool = False


@dataclass
class Session:
    phase: Phase = Phase.IDLE
    # The turn may have begun before this client was attached.
    partial: bool = False
    failure: Failure = Failure.NO
    failed_last: bool = False
    turns: int = 0
    calls: dict[str, Call] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)
    # The approval that is presented and, as far as can be seen, not settled.
    pending: str | None = None
    # Item id: the turn it was seen in, and what it is.
    items: dict[str, tuple[int, str]] = field(default_factory=dict)


def review_of(frame: Frame) -> str | None:
    payload = frame.get("payload")
    review = payload.get("review") if isinstance(payload, dict) else None
    return review.lower().replace("_", "-") if isinstance(review, str) else None


def shown_command(item: Frame) -> Any:
    """What the call of an item would run, to compare with what was asked."""
    if item["type"] == "local_shell_call":
        return item["action"]["command"]
    try:
        arguments = json.loads(item["arguments"])
    except ValueError:
        return None
    if not isinstance(arguments, dict):
        return None
    if isinstance(arguments.get("patch"), str):
        return ["apply_patch", arguments["patch"]]
    return arguments.get("command")


def same_command(asked: list[str], shown: Any) -> bool:
    """An approval shows a simple script as its words, a call shows `bash -lc script`."""
    if asked == shown:
        return True
    if not (isinstance(shown, list) and len(shown) == 3 and shown[:2] == ["bash", "-lc"]):
        return False
    try:
        return shlex.split(shown[2]) == asked
    except (ValueError, AttributeError):
        return False


class Agentloop(Checker):
    messages = MESSAGES
    loose = frozenset({"error", "context_info"})

    def __init__(self, complete: bool) -> None:
        super().__init__(complete)
        self.sessions: dict[str, Session] = {}
        self.ids: set[str] = set()
        self.inputs = 0
        self.turns = 0
        self.answers = 0
        self.requests = 0
        self.excuses_used = 0
        self.compactions_asked = 0
        self.error_texts: list[str] = []
        self.uninformed = False

    # The client.

    def fault_of(self, frame: Frame) -> str | None:
        kind, payload = frame["type"], frame.get("payload")
        if kind not in CLIENT_TYPES:
            return f"unknown type {kind}"
        if kind == "user_input":
            given = payload.get("input") if isinstance(payload, dict) else None
            return None if isinstance(given, list) else "input is no list"
        if kind == "approval_response" and review_of(frame) not in REVIEWS:
            return "unknown review"
        return None

    def take_in(self, frame: Frame) -> None:
        match frame["type"]:
            case "user_input":
                self.inputs += 1
            case "manual_compact":
                self.compactions_asked += 1
            case "approval_response":
                self.answers += 1
                meant = frame["payload"].get("requestId")
                for session in self.sessions.values():
                    if meant in (None, session.pending):
                        session.pending = None
            case _:
                pass

    # The server.

    def take_out(self, frame: Frame) -> None:
        kind = frame["type"]
        if frame["id"] in self.ids and kind not in REPEATABLE:
            self.wrong("id twice", f"message id {frame['id']} was used before")
        self.ids.add(frame["id"])
        session = self._session(frame)
        payload = frame["payload"]
        match kind:
            case "loading_state" if payload["loading"]:
                self._begin(session)
            case "loading_state":
                self._end(session)
            case "agent_finished":
                self._finished(session)
            case "response_item":
                self._item(session, payload)
            case "approval_request":
                self._asked(session, frame)
            case "error":
                self._error(session, payload)
            case "context_compacted":
                self.uninformed = True
            case "context_info":
                self.uninformed = False
            case _:
                pass

    def _session(self, frame: Frame) -> Session:
        name = frame.get("session_id")
        if name is None:
            # An agentloop connection has one session; an error need not name it.
            return next(reversed(self.sessions.values()), Session())
        if name not in self.sessions:
            phase = Phase.UNKNOWN if self.resumed(name) else Phase.IDLE
            self.sessions[name] = Session(phase)
        return self.sessions[name]

    def _begin(self, session: Session) -> None:
        if session.phase is Phase.RUNNING:
            self.wrong("loading_state", "true twice in one turn")
        if session.phase is Phase.ENDING and session.failure is Failure.NO:
            self.wrong("agent_finished", "missing after the turn before")
        unasked = session.turns == 0 and self.inputs == 0
        session.partial = session.phase is Phase.UNKNOWN or unasked
        session.phase, session.failure, session.pending = Phase.RUNNING, Failure.NO, None
        session.failed_last = False
        session.turns += 1
        self.turns += 1
        session.calls.clear()
        session.asked.clear()

    def _end(self, session: Session) -> None:
        if session.phase in (Phase.IDLE, Phase.ENDING):
            self.wrong("loading_state", "false outside a turn")
            return
        if session.failure is Failure.NO:
            for name, call in session.calls.items():
                if not call.done:
                    self.wrong("function_call_output", f"missing for call {name}")
        session.pending = None
        session.failed_last = session.failure is Failure.SURE
        if session.phase is Phase.UNKNOWN:
            # Its error may have come before this connection.
            session.failure = max(session.failure, Failure.MAYBE, key=lambda kind: kind.value)
        session.phase = Phase.IDLE if session.failed_last else Phase.ENDING

    def _finished(self, session: Session) -> None:
        match session.phase:
            case Phase.RUNNING:
                self.wrong("agent_finished", "before loading_state false")
            case Phase.IDLE if session.failed_last:
                self.wrong("agent_finished", "after a turn that failed")
            case Phase.IDLE:
                self.wrong("agent_finished", "outside a turn, or twice")
            case Phase.ENDING | Phase.UNKNOWN:
                pass
        session.phase, session.failed_last = Phase.IDLE, False

    def _error(self, session: Session, payload: Frame) -> None:
        self.error_texts.append(payload["message"])
        others = self.ins - self.inputs + max(0, self.inputs - self.turns)
        excused = others > self.excuses_used
        if excused:
            self.excuses_used += 1
        if session.phase in (Phase.RUNNING, Phase.UNKNOWN):
            session.failure = Failure.MAYBE if excused else Failure.SURE

    # Items and approvals.

    def _item(self, session: Session, item: Frame) -> None:
        kind = item["type"]
        if kind == "message" and item["role"] != "assistant":
            return
        if session.phase in (Phase.IDLE, Phase.ENDING):
            self.wrong("item outside a turn", f"{kind} {item['id']}")
        if session.failure is Failure.SURE:
            # The turn went on, so the error was not its end.
            session.failure = Failure.MAYBE
        session.pending = None
        if kind in ("message", "reasoning"):
            self._delta(session, item)
        elif kind in ("function_call", "local_shell_call"):
            self._call(session, item)
        else:
            self._output(session, item)

    def _delta(self, session: Session, item: Frame) -> None:
        turn, kind = session.items.setdefault(item["id"], (session.turns, item["type"]))
        if turn != session.turns:
            self.wrong("delta of a finished item", f"{item['id']} belongs to an earlier turn")
        if kind != item["type"]:
            self.wrong("item id", f"{item['id']} was a {kind}, now a {item['type']}")

    def _call(self, session: Session, item: Frame) -> None:
        name = item.get("call_id", item["id"])
        known = session.calls.get(name)
        if known and not known.done and item["type"] == "function_call":
            self.wrong("function_call", f"call {name} twice")
        command = shown_command(item)
        asked = next((c for c in session.asked if same_command(c, command)), None)
        if asked is not None:
            session.asked.remove(asked)
        # A shell call without an id cannot be matched with its output.
        if "call_id" in item:
            session.calls[name] = Call(command, asked is not None)

    def _output(self, session: Session, item: Frame) -> None:
        name = item.get("call_id")
        if name is None:
            return
        call = session.calls.get(name)
        if call is None:
            if session.phase is Phase.RUNNING and not session.partial:
                self.wrong(item["type"], f"call {name} was not shown before its output")
            return
        if call.done:
            self.wrong(item["type"], f"a second output for call {name}")
        call.done = True

    def _asked(self, session: Session, frame: Frame) -> None:
        self.requests += 1
        if session.phase in (Phase.IDLE, Phase.ENDING):
            self.wrong("approval outside a turn", f"request {frame['id']}")
        if session.pending not in (None, frame["id"]):
            self.wrong("one approval at a time", f"{session.pending} is not settled yet")
        session.pending = frame["id"]
        command = frame["payload"]["command"]
        session.asked.append(command)
        if session.phase is not Phase.RUNNING or session.partial or self.opening.full_auto:
            return
        for name, call in session.calls.items():
            if not call.done and not call.asked and same_command(command, call.command):
                self.wrong("approval_request after its call", f"call {name} was shown before")

    # The end.

    def finish(self) -> None:
        for name, session in self.sessions.items():
            if session.phase is Phase.RUNNING:
                self.wrong("unfinished turn", f"in session {name}")
            elif session.phase is Phase.ENDING and session.failure is Failure.NO:
                self.wrong("agent_finished", f"missing at the end, in session {name}")
        if self.cut:
            return
        if self.inputs and not self.turns and not self.errors and not self.opening.since:
            self.wrong("unanswered", "no turn and no error for user_input")
        if self.compactions_asked and self.uninformed:
            self.wrong("context_info", "missing after the compaction")
        nothing_asked = self.answers and not self.requests and not self.opening.since
        if nothing_asked and NOTHING_PENDING not in self.error_texts:
            self.wrong("error text", f"an answer to nothing gets {NOTHING_PENDING!r}")
