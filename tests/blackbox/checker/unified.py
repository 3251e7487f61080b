"""Order of messages in the unified dialect (seed 001, decisions section 4)."""

from .base import Checker, Frame, bad_id, name_in
from .unified_session import Session
from .unified_shapes import MESSAGES

DECISIONS = {"allow", "deny", "allow_always", "explain", "deny_stop"}
# What each message of a client cannot do without; its session may be the connection's.
CLIENT_FIELDS: dict[str, dict[str, type]] = {
    "session_start": {},
    "session_end": {},
    "set_permission_mode": {"mode": str},
    "user_message": {"content": str},
    "permission_response": {"decision": str},
    "user_question_response": {"answers": list},
    "plan_approval_response": {"approved": bool},
    "interrupt": {},
    "resume": {},
    "cancel": {"target_id": str},
    "compact": {},
    "get_context": {},
    "set_model": {"model": str},
    "set_agent": {"agent": str},
}
# Sent again to whoever attaches again, and then perhaps under the id it had.
AGAIN = {"control_request", "ask_user_question", "exit_plan_mode", "message_queued"}


class Unified(Checker):
    messages = MESSAGES
    loose = frozenset({
        "error", "heartbeat", "raw", "notice", "context_info", "todos_changed",
    })

    def __init__(self, complete: bool) -> None:
        super().__init__(complete)
        self.sessions: dict[str, Session] = {}
        self.ids: set[str] = set()
        self.sent: dict[str, int] = {}
        self.seen: dict[str, int] = {}
        # Sessions asked for before anything of them was seen; None stands for one without name.
        self.starting: set[str | None] = set()
        self.spoken_to: set[str] = set()
        self.fatal = False
        # How many `session_info completed` or errors had come when `session_end` was sent.
        self.ended_at: int | None = None
        self.ends = 0

    # The client.

    def fault_of(self, frame: Frame) -> str | None:
        kind = frame["type"]
        if kind not in CLIENT_FIELDS:
            return f"unknown type {kind}"
        for name, wanted in CLIENT_FIELDS[kind].items():
            if not isinstance(frame.get(name), wanted):
                return f"{name} is missing or of the wrong type"
        if kind == "permission_response" and frame["decision"] not in DECISIONS:
            return "unknown decision"
        if bad_id(frame.get("session_id")):
            return "bad session id"
        return None

    def take_in(self, frame: Frame) -> None:
        kind, name = frame["type"], name_in(frame) or self.opening.session
        self.sent[kind] = self.sent.get(kind, 0) + 1
        if kind == "session_start" and name not in self.sessions:
            if name is None or name != self.opening.session:
                self.starting.add(name)
        elif kind == "user_message" and name is not None:
            self.spoken_to.add(name)
        elif kind == "session_end":
            self.ended_at = self.ends + self.errors

    # The server.

    def take_out(self, frame: Frame) -> None:
        kind = frame["type"]
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if self.fatal:
            self.wrong("after a fatal error", f"{kind} follows though the connection must close")
        if frame["id"] in self.ids and kind not in AGAIN:
            self.wrong("id twice", f"event id {frame['id']} was used before")
        self.ids.add(frame["id"])
        if kind == "error":
            self.fatal = frame["is_fatal"]
        if kind == "session_info" and frame["status"] == "completed":
            self.ends += 1
        if kind not in self.loose:
            self._session(frame).take(frame)

    def _session(self, frame: Frame) -> Session:
        name = frame["session_id"]
        if name not in self.sessions:
            session = Session(self.wrong, resumed=self.resumed(name))
            session.spoken_to = lambda: name in self.spoken_to
            starts = self.starting & {name, None}
            if starts and frame["type"] == "session_init":
                session.owes_active = True
            elif name in self.starting and not self.errors:
                self.wrong("session_init", f"is not the first answer to session_start of {name}")
            self.starting -= starts if frame["type"] == "session_init" else {name}
            self.sessions[name] = session
        return self.sessions[name]

    # The end.

    def finish(self) -> None:
        for name, session in self.sessions.items():
            session.finish(name)
        if not self.cut:
            self._answers()

    def _answers(self) -> None:
        def sent(kind: str) -> int:
            return self.sent.get(kind, 0)

        def seen(kind: str) -> int:
            return self.seen.get(kind, 0)

        spare = self.errors - len(self.malformed)
        if sent("user_message") and not seen("turn_started") and spare <= 0:
            if not self.opening.since:
                self.wrong("unanswered", "no turn and no error for user_message")
        if seen("session_init") + spare < sent("session_start"):
            self.wrong("session_init", "missing for a session_start")
        if seen("session_info") + spare < sent("set_permission_mode"):
            self.wrong("session_info", "missing for a set_permission_mode")
        if self.ended_at is not None and self.ends + self.errors <= self.ended_at:
            self.wrong("session_info", "completed is missing for a session_end")
        owing = [name for name, one in self.sessions.items() if one.owes_active]
        if owing and spare <= 0:
            self.wrong("session_info", f"active is missing after session_init of {owing[0]}")
