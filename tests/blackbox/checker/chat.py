"""Order of messages in the chat dialect (seed 004, decisions section 6)."""

import re
from dataclasses import dataclass, field

from .base import Checker, Frame, bad_id, name_in
from .chat_shapes import BLANKS, MESSAGES

EMPTY = "Empty message received"
NOT_TEXT = "Field 'message' must be a string"
INVALID_JSON = "Invalid JSON: "
TOO_FAST = "Not taken: "
UNKNOWN_TYPE = "Unknown message type: "
VALIDATION = re.compile(
    "|".join([re.escape(EMPTY), re.escape(NOT_TEXT), INVALID_JSON + ".*", UNKNOWN_TYPE + ".*"]),
    re.DOTALL,
)
# Questions and plans are asked in words; their call may stay open meanwhile.
ASKING = {"ask_user", "exit_plan_mode", "AskUserQuestion", "ExitPlanMode"}


@dataclass
class Session:
    """One conversation of the room."""

    # Only this client makes it speak, as far as is known, so its order can be judged.
    ours: bool
    # Chats without an answer: at least and at most, since an error may or may not be an answer.
    least: int = 0
    most: int = 0
    calls: list[str] = field(default_factory=list)
    # An error may have ended the turn, or not: its calls cannot be judged.
    doubt: bool = False


class Chat(Checker):
    messages = MESSAGES

    def __init__(self, complete: bool) -> None:
        super().__init__(complete)
        self.sessions: dict[str, Session] = {}
        # Messages of this client that were not echoed yet, with the session they name.
        self.unechoed: list[tuple[str | None, str]] = []
        self.echoed = 0
        self.excuses_used = 0
        self.texts: list[str] = []

    # The client.

    def fault_of(self, frame: Frame) -> str | None:
        kind, message = frame["type"], frame.get("message")
        if kind != "chat":
            return UNKNOWN_TYPE + kind
        if not isinstance(message, str):
            return NOT_TEXT
        if message.strip(BLANKS) == "":
            return EMPTY
        session = frame.get("session_id")
        # Like the message it is trimmed; what is left of it must be an id.
        session = session.strip(BLANKS) if isinstance(session, str) else session
        return "bad session id" if session and bad_id(session) else None

    def take_in(self, frame: Frame) -> None:
        session = (name_in(frame) or "").strip(BLANKS) or None
        if session is not None and session not in self.sessions:
            self.sessions[session] = Session(ours=self._alone(session))
        self.unechoed.append((session, frame["message"].strip()))

    def _alone(self, session: str) -> bool:
        return not self.opening.shared and not self.resumed(session)

    # The server.

    def take_out(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "error":
            self._error(frame)
            return
        name = frame["session_id"]
        if kind == "user_message":
            self._echo(name, frame["message"])
        session = self.sessions.setdefault(name, Session(ours=False))
        match kind:
            case "user_message":
                session.least += 1
                session.most += 1
            case "agent_message":
                self._inside(session, kind)
                self._close(session, "agent_message")
            case "tool_call":
                self._inside(session, kind)
                session.calls.append(frame["tool_name"])
            case "tool_result":
                self._inside(session, kind)
                self._result(session, frame["tool_name"])
            case _:
                self._inside(session, kind)

    def _echo(self, name: str, message: str) -> None:
        for chat in ((name, message.strip()), (None, message.strip())):
            if chat in self.unechoed:
                self.unechoed.remove(chat)
                self.echoed += 1
                known = name in self.sessions
                # A session that the server named for this client.
                if not known and chat[0] is None:
                    self.sessions[name] = Session(ours=self._alone(name))
                return
        # Somebody else speaks here: what follows may be theirs.
        self.sessions.setdefault(name, Session(ours=False)).ours = False

    def _inside(self, session: Session, kind: str) -> None:
        if session.ours and session.most == 0:
            self.wrong("order", f"{kind} without a user_message that is not answered yet")

    def _result(self, session: Session, tool: str) -> None:
        if tool in session.calls:
            session.calls.remove(tool)
        elif session.ours and not session.doubt:
            self.wrong("tool_result", f"of {tool} without its tool_call")

    def _close(self, session: Session, kind: str) -> None:
        open_calls = [tool for tool in session.calls if tool not in ASKING]
        # Queued chats are echoed early, and their calls cannot be told apart.
        if open_calls and session.ours and session.most <= 1 and not session.doubt:
            self.wrong("tool_result", f"missing for {open_calls[0]} before {kind}")
        session.calls = [tool for tool in session.calls if tool in ASKING]
        session.doubt = False
        session.least, session.most = max(0, session.least - 1), max(0, session.most - 1)

    def _error(self, frame: Frame) -> None:
        self.texts.append(frame["error"])
        excused = self.ins - self.echoed > self.excuses_used
        if VALIDATION.fullmatch(frame["error"]):
            # Errors of the whole room are broadcast; this one need not be for us.
            self.excuses_used += excused
            return
        name = frame.get("session_id")
        if name in self.sessions and self.sessions[name].ours and not excused:
            session = self.sessions[name]
            if session.most == 0:
                self.wrong("order", "an error after the answer to the last chat")
            self._close(session, "error")
            return
        self.excuses_used += excused
        for one, session in self.sessions.items():
            if name in (None, one):
                session.least = max(0, session.least - 1)
                session.doubt = True

    # The end.

    def finish(self) -> None:
        for name, session in self.sessions.items():
            if session.ours and session.least > 0:
                self.wrong("unfinished", f"a chat of session {name} was not answered")
        if self.cut:
            return
        # On bare `/` an undecided client is answered as Loom would.
        if self.opening.room or not self.opening.bare:
            self._exact_texts()
        spare = self.errors - len(self.malformed)
        if len(self.unechoed) > max(0, spare):
            self.wrong("user_message", f"missing for {self.unechoed[0][1]!r}")

    def _exact_texts(self) -> None:
        left = list(self.texts)
        for step, why in self.malformed:
            if why == "no JSON":
                # A flood of them is refused without a look at each.
                told = (text for start in (INVALID_JSON, TOO_FAST) for text in left
                        if text.startswith(start))
                found = next(told, None)
            elif VALIDATION.fullmatch(why):
                found = why if why in left else None
            else:
                continue
            if found is None:
                self.wrong("error text", f"step {step} ({why}) got no such error")
            else:
                left.remove(found)
