"""Order of messages in the Loom dialect (seed 003, decisions section 5)."""

from typing import Any

from .base import Checker, Frame, bad_id, name_in
from .loom_run import Run
from .loom_shapes import MESSAGES
from .shapes import is_int, shown

AGENTS = {"react", "dup", "tot", "got"}
CLIENT_FIELDS: dict[str, tuple[str, ...]] = {
    "run": ("message", "agent"),
    "tools_list": ("id",),
    "tool_show": ("id", "name"),
    "user_messages": ("id", "thread_id"),
    "ping": ("id",),
    "cancel_run": (),
    "tool_approval_response": (),
}
# A request, and the message that answers it.
ANSWERS = {
    "pong": "ping",
    "tools_list": "tools_list",
    "tool_show": "tool_show",
    "user_messages": "user_messages",
}
PAGE_DEFAULT = 100
PAGE_MAX = 1000
RUN_FAILED_CLOSE = 1011


class Loom(Checker):
    messages = MESSAGES
    loose = frozenset(MESSAGES) - {"run_stream_event", "run_end"}

    def __init__(self, complete: bool) -> None:
        super().__init__(complete)
        self.runs: dict[str, Run] = {}
        self.asked: list[Frame] = []
        self.waiting: dict[str, list[Frame]] = {kind: [] for kind in ANSWERS.values()}
        # Errors that named what they were about.
        self.placed_errors = 0
        self.request_ids: set[str] = set()

    # The client.

    def fault_of(self, frame: Frame) -> str | None:
        kind = frame["type"]
        if kind not in CLIENT_FIELDS:
            return f"unknown type {kind}"
        for name in CLIENT_FIELDS[kind]:
            if not isinstance(frame.get(name), str):
                return f"{name} is missing or no string"
        if kind == "run" and frame["agent"] not in AGENTS:
            return "unknown agent"
        if kind == "user_messages" and frame["thread_id"] == "":
            return "empty thread_id"
        return "bad thread_id" if bad_id(frame.get("thread_id")) else None

    def take_in(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "run":
            self.asked.append(frame)
        elif kind in self.waiting:
            self.waiting[kind].append(frame)

    # The server.

    def envelope(self, frame: Frame) -> list[str]:
        wrong = super().envelope(frame)
        if frame["type"] in self.loose:
            return wrong
        # A run without a thread is nothing that could be resumed.
        event = frame.get("event")
        inner = event.get("session_id") if isinstance(event, dict) else None
        run = self.runs.get(str(frame.get("id")))
        alone = frame.get("id") == (inner or (run.session if run else frame.get("session_id")))
        return [one for one in wrong if not (alone and one.endswith("is missing"))]

    def take_out(self, frame: Frame) -> None:
        kind = frame["type"]
        for place in (frame, frame.get("event")):
            if isinstance(place, dict) and (named := name_in(place, "request_id")):
                self.request_ids.add(named)
        if kind == "run_stream_event":
            self._event(frame)
        elif kind == "run_end":
            self._run_end(frame)
        elif kind == "error":
            self._error(frame)
        else:
            self._answer(frame)

    def _event(self, frame: Frame) -> None:
        name, event = frame["id"], frame["event"]
        run = self.runs.get(name)
        if run is None:
            run = self._begin(frame)
        if run.ended:
            self.wrong("after its end", f"{event['type']} of run {name}")
        if frame.get("session_id", run.session) != event["session_id"]:
            self.wrong("session_id", "the frame and its event disagree")
        run.take(event)

    def _begin(self, frame: Frame) -> Run:
        event = frame["event"]
        name, session = frame["id"], event["session_id"]
        before = [run for run in self.runs.values() if run.session == session]
        for other in before:
            if not other.ended:
                self.wrong("one run at a time", f"{other.name} of {session} has not ended")
        resumed = not before and self.resumed(session)
        # Whoever watches a thread may meet its run in the middle.
        partial = resumed or (not before and session != name and not self._ours(frame))
        run = self.runs[name] = Run(self.wrong, name, session, resumed, partial)
        return run

    def _ours(self, frame: Frame) -> bool:
        """Whether a run is surely one that this client asked for."""
        event = frame["event"]
        ids = [name_in(asked, "id") for asked in self.asked]
        texts = [asked["message"] for asked in self.asked]
        named = name_in(frame, "request_id")
        return (named is not None and named in ids) or event.get("message") in texts

    def _run_end(self, frame: Frame) -> None:
        name = frame["id"]
        run = self.runs.get(name)
        if run is None:
            session = frame.get("session_id", name)
            run = self.runs[name] = Run(self.wrong, name, session, self.resumed(session), True)
        if run.ended:
            self.wrong("after its end", f"run_end of run {name}, which has ended")
        run.end(frame)

    def _error(self, frame: Frame) -> None:
        name = frame.get("id")
        if name is None:
            return
        run = self.runs.get(name)
        if run is not None:
            self.placed_errors += 1
            if run.ended:
                self.wrong("after its end", f"error of run {name}, which has ended")
            run.fail()
            return
        for waiting in self.waiting.values():
            for request in waiting:
                if request["id"] == name:
                    waiting.remove(request)
                    self.placed_errors += 1
                    return

    # Requests with one answer.

    def _answer(self, frame: Frame) -> None:
        kind = frame["type"]
        waiting = self.waiting[ANSWERS[kind]]
        request = next((one for one in waiting if one["id"] == frame["id"]), None)
        if request is None:
            self.wrong("request id", f"{kind} with {shown(frame['id'])} answers no request")
            return
        waiting.remove(request)
        if kind == "tool_show":
            wanted = "tool" if request.get("output") == "json" else "tool_yaml"
            if wanted not in frame:
                self.wrong("tool_show", f"{wanted} was asked for")
        elif kind == "user_messages":
            self._page(request, frame)

    def _page(self, request: Frame, frame: Frame) -> None:
        if frame["thread_id"] != request["thread_id"]:
            self.wrong("user_messages", f"thread_id is not {request['thread_id']}")
        messages: list[Any] = frame["messages"]
        before, limit = request.get("before"), request.get("limit")
        if is_int(before) and any(message["seq"] >= before for message in messages):
            self.wrong("user_messages", f"a message is not before {before}")
        size = PAGE_DEFAULT if limit is None else limit
        if not is_int(size) or size < 1:
            return
        size = min(size, PAGE_MAX)
        if len(messages) > size:
            self.wrong("user_messages", f"{len(messages)} messages, the limit is {size}")
        if frame.get("has_more") and len(messages) < size:
            self.wrong("has_more", f"true on a page of {len(messages)} that is not full ({size})")

    # The end.

    def finish(self) -> None:
        for name, run in self.runs.items():
            if not run.ended:
                self.wrong("unfinished run", name)
        if self.close == RUN_FAILED_CLOSE and not self.errors:
            self.wrong("close", f"{RUN_FAILED_CLOSE} without an error frame before it")
        if self.cut:
            return
        spare = max(0, self.errors - self.placed_errors - len(self.malformed))
        left = [request for waiting in self.waiting.values() for request in waiting]
        if len(left) > spare:
            self.wrong("unanswered", f"{left[0]['type']} {left[0]['id']}")
        if len(self.runs) + spare < len(self.asked):
            self.wrong("unanswered", f"{len(self.asked)} runs asked for, {len(self.runs)} seen")
        for name in filter(None, (name_in(one, "id") for one in self.asked)):
            if name not in self.request_ids and not spare:
                self.wrong("request_id", f"{name} was not echoed")
