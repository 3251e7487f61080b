"""What may come when in the stream of one Loom run."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .base import Frame

Wrong = Callable[[str, str], None]

# Everything that a node does stands between its node_enter and its node_exit.
NODE_EVENTS = {
    "message_chunk", "thought_chunk", "tool_start", "tool_end", "tot_expand", "tot_evaluate",
    "tot_backtrack", "got_plan", "got_node_start", "got_node_complete", "got_node_failed",
    "got_expand",
}
# The node whose text is the reply; only the react strategy has it.
THINK = "think"
# One call of it makes further calls.
BATCH = "batch"


@dataclass
class Call:
    name: str
    stage: str
    span: int


@dataclass
class Arguments:
    """What the chunks of a call's arguments add up to."""

    whole: str = ""
    # Since the last chunk that named the call: an attempt that was cut may have been repeated.
    latest: str = ""

    def add(self, delta: str, named: bool) -> None:
        self.whole += delta
        self.latest = delta if named else self.latest + delta

    def agree(self, arguments: Any) -> bool:
        return any(_same(written, arguments) for written in (self.whole, self.latest))


def _same(written: str, arguments: Any) -> bool:
    try:
        parsed = json.loads(written or "{}")
    except ValueError:
        parsed = written
    return arguments in (parsed, written)


@dataclass
class Run:
    wrong: Wrong
    name: str
    session: str
    # The connection resumed inside this run: it may begin anywhere.
    resumed: bool
    # The client may have been attached after the run began: what is open may lack its beginning.
    partial: bool
    started: bool = False
    ended: bool = False
    last_id: int | None = None
    # Counts node_enter; zero while none was seen.
    span: int = 0
    node: str | None = None
    outer: str | None = None
    # After node_exit Ok: which event is due, and of which node.
    due: tuple[str, str] | None = None
    failed_node: bool = False
    checkpointed: bool = False
    calls: dict[str, Call] = field(default_factory=dict)
    chunks: dict[tuple[int, str], Arguments] = field(default_factory=dict)
    chunk_call: str | None = None
    graph: dict[str, bool] = field(default_factory=dict)
    # The text of the last think node, and whether it ended in calls.
    reply: str | None = None
    reply_calls: bool = False

    @property
    def lenient(self) -> bool:
        """Nothing is known yet of the node that the run is in."""
        return self.partial and self.span == 0

    def take(self, event: Frame) -> None:
        self._count(event)
        kind = event["type"]
        if event["session_id"] != self.session:
            self.wrong("session_id", f"{event['session_id']} in a run of {self.session}")
        if kind in NODE_EVENTS and self.node is None and not self.lenient:
            self.wrong("outside a node", kind)
        handler = getattr(self, f"_{kind}", None)
        if handler is not None:
            handler(event)

    def _count(self, event: Frame) -> None:
        number = event["event_id"]
        if self.last_id is None:
            if event["type"] != "run_start" and not self.resumed:
                self.wrong("run_start", f"{event['type']} is the first event of the run")
            if number != 1 and not self.resumed:
                self.wrong("event_id", f"the first is {number}, not 1")
        elif number != self.last_id + 1:
            self.wrong("event_id", f"{number} after {self.last_id}")
        self.last_id = number

    # Nodes.

    def _run_start(self, event: Frame) -> None:
        if self.started:
            self.wrong("run_start", "twice")
        self.started = True
        if event.get("run_id") not in (None, self.name):
            self.wrong("run_start", f"run_id is {event['run_id']}")

    def _node_enter(self, event: Frame) -> None:
        name = event["id"]
        if (self.node, name) == ("act", "explain"):
            # A request is explained while the act waits for the answer.
            self.outer = self.node
        elif self.node is not None:
            self.wrong("node_enter", f"{name} while {self.node} is open")
        if self.checkpointed:
            self.wrong("checkpoint", f"is not at the end: {name} is entered after it")
        self._nothing_due()
        self.node, self.failed_node, self.chunk_call = name, False, None
        self.span += 1
        if name == THINK:
            self.reply, self.reply_calls = "", False

    def _node_exit(self, event: Frame) -> None:
        name, ok = event["id"], event["result"] == "Ok"
        if self.outer == name:
            # It was answered before the explanation was done.
            self.outer = None
        else:
            if self.node != name and not (self.node is None and self.lenient):
                self.wrong("node_exit", f"{name}, but the open node is {self.node}")
            self.node, self.outer = self.outer, None
        self.failed_node = not ok
        self.due = ("values", name) if ok else None

    def _values(self, event: Frame) -> None:
        if self.due and self.due[0] == "values":
            self.due = ("updates", self.due[1])
        elif self.failed_node:
            self.wrong("values", "after a node that failed")
        elif not self.lenient:
            self.wrong("values", "not after node_exit Ok")

    def _updates(self, event: Frame) -> None:
        if self.due == ("updates", event["id"]):
            self.due = None
        elif not (self.lenient and self.due is None):
            self.wrong("updates", f"of {event['id']}, not after its node_exit and values")

    def _nothing_due(self) -> None:
        if self.due:
            self.wrong(self.due[0], f"missing after node_exit of {self.due[1]}")
        self.due = None

    def _checkpoint(self, event: Frame) -> None:
        if self.checkpointed:
            self.wrong("checkpoint", "twice in one run")
        self._nothing_due()
        self.checkpointed = True
        if self.session == self.name:
            self.wrong("checkpoint", "in a run without a thread")
        elif event["thread_id"] != self.session:
            self.wrong("checkpoint", f"thread_id {event['thread_id']} is not {self.session}")

    # Text and tools.

    def _message_chunk(self, event: Frame) -> None:
        if self.node == THINK and self.reply is not None:
            self.reply += event["content"]

    def _tool_call_chunk(self, event: Frame) -> None:
        name = event.get("call_id")
        self.chunk_call = name or self.chunk_call
        if self.chunk_call is not None:
            parts = self.chunks.setdefault((self.span, self.chunk_call), Arguments())
            parts.add(event["arguments_delta"], name is not None)

    def _tool_call(self, event: Frame) -> None:
        self.reply_calls = self.reply_calls or self.node == THINK
        name = event.get("call_id")
        if name is None:
            return
        known = self.calls.get(name)
        if known and known.stage == "called" and known.span == self.span:
            self.wrong("tool_call", f"{name} twice")
        self.calls[name] = Call(event["name"], "called", self.span)
        parts = self.chunks.pop((self.span, name), None)
        if parts and not self.lenient and not parts.agree(event["arguments"]):
            self.wrong("tool_call_chunk", f"the chunks of {name} are not its arguments")

    def _call(self, event: Frame) -> Call | None:
        """The call of an event; only a run seen from its start must have shown it."""
        name = event.get("call_id")
        call = self.calls.get(name) if name else None
        if name and call is None and not self.partial and not self._in_batch():
            self.wrong("tool_call", f"missing before {event['type']} of {name}")
        return call

    def _in_batch(self) -> bool:
        return any(call.name == BATCH and call.stage == "started" for call in self.calls.values())

    def _tool_start(self, event: Frame) -> None:
        call = self._call(event)
        if call is None:
            if event.get("call_id"):
                self.calls[event["call_id"]] = Call(event["name"], "started", self.span)
            return
        if call.stage != "called":
            self.wrong("tool_start", f"{event['call_id']} was {call.stage} already")
        call.stage = "started"

    def _tool_output(self, event: Frame) -> None:
        call = self._call(event)
        if call and call.stage != "started":
            self.wrong("tool_output", f"{event['call_id']} is not running but {call.stage}")

    def _tool_approval(self, event: Frame) -> None:
        call = self._call(event)
        if call and call.stage == "ended":
            self.wrong("tool_approval", f"{event['call_id']} has ended already")

    def _tool_end(self, event: Frame) -> None:
        call = self._call(event)
        if call is None:
            return
        if call.stage == "ended":
            self.wrong("tool_end", f"{event['call_id']} twice")
        elif (call.stage == "called" and not event["is_error"]
              and event["name"] not in ("ask_user", "exit_plan_mode")):
            # A call that was denied ends without having started; one that only asks never does.
            self.wrong("tool_start", f"missing before tool_end of {event['call_id']}")
        call.stage = "ended"

    # Graphs.

    def _got_node_start(self, event: Frame) -> None:
        if self.graph.get(event["id"]):
            self.wrong("got_node_start", f"{event['id']} is running already")
        self.graph[event["id"]] = True

    def _got_node_complete(self, event: Frame) -> None:
        if not self.graph.get(event["id"]) and not self.partial:
            self.wrong(event["type"], f"{event['id']} was not started")
        self.graph[event["id"]] = False

    _got_node_failed = _got_node_complete

    # The end.

    def end(self, frame: Frame) -> None:
        """`run_end`; an error ends a run wherever it is."""
        self.ended = True
        if self.last_id is None:
            if not self.resumed:
                self.wrong("run_start", "missing: the run ends without events")
        elif frame["event_id"] != self.last_id + 1:
            self.wrong("event_id", f"run_end has {frame['event_id']}, last was {self.last_id}")
        if self.node is not None:
            self.wrong("node_exit", f"missing for {self.node} at run_end")
        self._nothing_due()
        for name, call in self.calls.items():
            if call.stage == "started":
                self.wrong("tool_end", f"missing for {name} at run_end")
        if self.started and self.session != self.name and not self.checkpointed:
            self.wrong("checkpoint", "missing at the end of a run on a thread")
        self._compare(frame["reply"])

    def _compare(self, reply: str) -> None:
        if self.reply is None or self.reply_calls:
            return
        # A text that was cut and begun anew leaves its first attempt in front.
        if not self.reply.endswith(reply) or (reply == "" and self.reply != ""):
            self.wrong("reply", "is not what the chunks of the last think node add up to")
