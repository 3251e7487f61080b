"""What may come when in one session of the unified dialect."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from .base import Frame

Wrong = Callable[[str, str], None]

# Only inside a turn.
TURN_EVENTS = {
    "assistant_message", "assistant_reasoning", "tool_started", "tool_completed",
    "control_request", "command_output", "ask_user_question", "exit_plan_mode",
}
TURN_BOUNDS = {"turn_started", "turn_completed", "turn_failed"}
# One call of it may run several commands.
BATCH = "batch"


class Turn(Enum):
    # Resumed: anything may be under way.
    UNKNOWN = "unknown"
    NONE = "none"
    RUNNING = "running"


@dataclass
class Tool:
    name: str
    # More output of a command is to come.
    streaming: bool = False
    # The last output of its command came.
    ended: bool = False
    done: bool = False


@dataclass
class Session:
    wrong: Wrong
    resumed: bool
    # Whether this client has sent a message to the session.
    spoken_to: Callable[[], bool] = lambda: False
    # `session_init` answered a start; `session_info active` is still to come.
    owes_active: bool = False
    turn: Turn = Turn.NONE
    turns: int = 0
    # The turn may have begun before this client was attached.
    partial: bool = False
    # An interrupted turn was reported; `session_info paused` is still to come.
    owes_paused: bool = False
    text_open: bool = False
    tools: dict[str, Tool] = field(default_factory=dict)
    # Commands without a last output, told once the turn is known to have gone well.
    unended: list[str] = field(default_factory=list)
    waits: set[str] = field(default_factory=set)
    # Request id: the call it asks about.
    requests: dict[str, str] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    # Messages that wait for their turn, and those that have left the queue.
    queued: dict[str, str] = field(default_factory=dict)
    unqueued: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.resumed:
            self.turn = Turn.UNKNOWN

    @property
    def strict(self) -> bool:
        return self.turn is Turn.RUNNING and not self.partial

    def take(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind in TURN_EVENTS | TURN_BOUNDS and self.owes_active:
            self.wrong("session_info", f"{kind} comes before the session was said to be active")
            self.owes_active = False
        if kind in TURN_EVENTS and self.turn is Turn.NONE:
            self.wrong("outside a turn", kind)
        handler = getattr(self, f"_{kind}", None)
        if handler is not None:
            handler(frame)

    def _session_info(self, frame: Frame) -> None:
        if frame["status"] == "active":
            self.owes_active = False
        elif frame["status"] in ("paused", "completed"):
            # A session that was ended has no turn to pause.
            self.owes_paused = False

    # Turns.

    def _turn_started(self, frame: Frame) -> None:
        if self.turn is Turn.RUNNING:
            self.wrong("turn_started", "while a turn is running")
        self._paused_or_wrong()
        unasked = self.turns == 0 and not self.spoken_to()
        self.partial = self.turn is Turn.UNKNOWN or unasked
        self.turn = Turn.RUNNING
        if "message_id" in frame:
            said = self._unqueued(frame, frame["message_id"], self.partial)
            if said is not None and said != frame.get("message"):
                self.wrong("message_id", f"another message waited as {frame['message_id']}")
        self.turns += 1

    def _turn_completed(self, frame: Frame) -> None:
        if self.turn is Turn.RUNNING and self.text_open:
            self.wrong("is_final", "the turn is completed, but a text was not")
        for tool in self.unended:
            self.wrong("command_output", f"the last one of {tool} is missing")
        self._turn_over(frame)

    def _turn_failed(self, frame: Frame) -> None:
        self._turn_over(frame)
        error = frame["error"]
        if error.startswith("Interrupted"):
            if not error.startswith("Interrupted: "):
                self.wrong("turn_failed", f"{error!r} is not 'Interrupted: <reason>'")
            # A turn that a crash cut is reported when the session is opened again.
            self.owes_paused = not self.partial

    def _turn_over(self, frame: Frame) -> None:
        if self.turn is Turn.NONE:
            self.wrong(frame["type"], "outside a turn, or twice")
        for name, tool in self.tools.items():
            if not tool.done:
                self.wrong("tool_completed", f"missing for {name} at the end of the turn")
        self.partial = self.partial or self.turn is Turn.UNKNOWN
        self.turn, self.text_open = Turn.NONE, False
        self.tools.clear()
        self.unended.clear()
        self.waits.clear()

    def _paused_or_wrong(self) -> None:
        if self.owes_paused:
            self.wrong("session_info", "paused is missing after an interrupted turn")
        self.owes_paused = False

    # The queue.

    def _message_queued(self, frame: Frame) -> None:
        name = frame["message_id"]
        if name in self.unqueued:
            self.wrong("message_queued", f"{name} does not wait any more")
        if self.queued.setdefault(name, frame["message"]) != frame["message"]:
            self.wrong("message_id", f"another message waits as {name}")

    def _message_dropped(self, frame: Frame) -> None:
        self._unqueued(frame, frame["message_id"], False)

    def _unqueued(self, frame: Frame, name: str, may_be_unknown: bool) -> str | None:
        if name in self.unqueued:
            self.wrong(frame["type"], f"{name} has left the queue before")
        if name not in self.queued and not (may_be_unknown or self.resumed):
            self.wrong(frame["type"], f"{name} was never told as one that waits")
        self.unqueued.add(name)
        return self.queued.pop(name, None)

    # Items.

    def _assistant_message(self, frame: Frame) -> None:
        if not frame["is_final"]:
            self.text_open = True
            return
        if self.text_open and frame["text"]:
            self.wrong("is_final", "the end of a streamed text has text of its own")
        self.text_open = False

    def _tool_started(self, frame: Frame) -> None:
        name = frame["tool_id"]
        if name in self.tools and not self.tools[name].done:
            self.wrong("tool_started", f"{name} twice")
        if name in self.waits:
            self.wrong("question or plan", f"{name} has its own event and no tool_started")
        self.tools[name] = Tool(frame["tool_name"])

    def _tool_completed(self, frame: Frame) -> None:
        name = frame["tool_id"]
        if name in self.waits:
            self.wrong("question or plan", f"{name} has its own event and no tool_completed")
            return
        tool = self._tool(name, "tool_completed")
        if tool is None:
            return
        if tool.done:
            self.wrong("tool_completed", f"{name} twice")
        if tool.streaming and tool.name != BATCH:
            self.unended.append(name)
        tool.done = True

    def _tool(self, name: str, kind: str) -> Tool | None:
        """The call that an event is about; only a turn seen from its start must have shown it."""
        tool = self.tools.get(name)
        if tool is None and self.strict:
            if kind != "command_output" or not self._in_batch():
                self.wrong("tool_started", f"{kind} of {name}, which was not started")
        return tool

    def _in_batch(self) -> bool:
        return any(tool.name == BATCH and not tool.done for tool in self.tools.values())

    def _command_output(self, frame: Frame) -> None:
        tool = self._tool(frame["tool_id"], "command_output")
        if tool is None or tool.name == BATCH:
            return
        if tool.done:
            self.wrong("command_output", f"after tool_completed of {frame['tool_id']}")
        elif tool.ended:
            self.wrong("command_output", f"after the last one of {frame['tool_id']}")
        tool.streaming, tool.ended = frame["is_streaming"], not frame["is_streaming"]

    # Waits.

    def _control_request(self, frame: Frame) -> None:
        name = frame["tool_use_id"]
        tool = self._tool(name, "control_request")
        if tool is not None:
            if tool.done:
                self.wrong("control_request", f"after tool_completed of {name}")
            # What the sandbox refused may run again outside.
            tool.ended = tool.streaming = False
        self._request(frame["request_id"], name)

    def _ask_user_question(self, frame: Frame) -> None:
        name = frame["tool_id"]
        if name in self.tools:
            self.wrong("question or plan", f"{name} has its own event and no tool_started")
            del self.tools[name]
        self.waits.add(name)
        self._request(frame["request_id"], name)

    _exit_plan_mode = _ask_user_question

    def _request(self, request: str, call: str) -> None:
        if self.requests.setdefault(request, call) != call:
            self.wrong("request_id", f"{request} asked about {self.requests[request]} before")
        # Asked again, after an explanation.
        self.settled.discard(request)

    def _approval_settled(self, frame: Frame) -> None:
        request = frame["request_id"]
        if request in self.settled:
            self.wrong("approval_settled", f"{request} twice")
        if request not in self.requests and self.strict:
            self.wrong("approval_settled", f"{request} was never asked")
        self.settled.add(request)

    # The end.

    def finish(self, name: str) -> None:
        if self.turn is Turn.RUNNING:
            self.wrong("unfinished turn", f"in session {name}")
        self._paused_or_wrong()
