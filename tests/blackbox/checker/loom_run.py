"""What may come when in the stream of one Loom run."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .base import Frame
from .loom_search import Graph, Search, Wrong

TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")

# Everything that a node does stands between its node_enter and its node_exit.
NODE_EVENTS = {
    "message_chunk", "thought_chunk", "tool_start", "tool_end", "tot_expand", "tot_evaluate",
    "tot_backtrack", "got_plan", "got_node_start", "got_node_complete", "got_node_failed",
    "usage",
}
# The node whose text is the reply.
THINK = {"react": "think", "dup": "plan", "tot": "think", "got": "think"}
# Nodes that every agent may have beside its own.
COMMON = {"act", "observe", "compress", "explain"}
OWN = {
    "react": {"think"},
    "dup": {"understand", "plan"},
    "tot": {"think_expand", "think_evaluate", "backtrack", "think"},
    "got": {"plan_graph", "execute_graph", "think"},
}
# Nodes that may run beside one another, and beside which others may be explained or compressed.
SIDE_BY_SIDE = {
    "react": set(),
    "dup": set(),
    "tot": {"think_expand", "act", "observe"},
    "got": {"execute_graph"},
}
ASIDE = {"explain", "compress"}
# What is said to the user; all else that a model writes is thought.
SAYING = {"think", "plan", "explain"}
# One call of it makes further calls.
BATCH = "batch"


@dataclass
class Node:
    """A node that is open."""

    name: str
    task: str | None = None
    # Of the events that are a strategy's own, those that came in it.
    told: list[str] = field(default_factory=list)


@dataclass
class Call:
    name: str
    stage: str
    span: str


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
    agent: str = "react"
    # Open nodes by their node_id.
    nodes: dict[str, Node] = field(default_factory=dict)
    entered: set[str] = field(default_factory=set)
    # After node_exit Ok: which event is due, and of which node.
    due: tuple[str, str] | None = None
    failed_node: bool = False
    checkpointed: bool = False
    calls: dict[str, Call] = field(default_factory=dict)
    chunks: dict[tuple[str, str], Arguments] = field(default_factory=dict)
    # Whose arguments go on, by node.
    chunk_calls: dict[str, str] = field(default_factory=dict)
    search: Search = field(default_factory=Search)
    graph: Graph = field(default_factory=Graph)
    usage: Counter = field(default_factory=Counter)
    # The text of the last node that may have said the reply, and whether it ended in calls.
    replying: str | None = None
    reply: str | None = None
    reply_calls: bool = False

    @property
    def lenient(self) -> bool:
        """Nothing is known yet of the node that the run is in."""
        return self.partial and not self.entered

    def take(self, event: Frame) -> None:
        self._count(event)
        kind = event["type"]
        if event["session_id"] != self.session:
            self.wrong("session_id", f"{event['session_id']} in a run of {self.session}")
        if kind in NODE_EVENTS and event["node_id"] not in self.nodes and not self.partial:
            self.wrong("outside a node", f"{kind} of {event['node_id']}")
        if self.due and kind not in ("values", "updates"):
            self._nothing_due()
        handler = getattr(self, f"_{kind}", None)
        if handler is not None:
            handler(event)
        node = self.nodes.get(event["node_id"])
        if node is not None and kind.startswith(("tot_", "got_")):
            node.told.append(kind)

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
        self.agent = event.get("agent") or self.agent
        if event.get("run_id") not in (None, self.name):
            self.wrong("run_start", f"run_id is {event['run_id']}")

    def _open(self) -> str:
        return ", ".join(sorted(node.name for node in self.nodes.values())) or "None"

    def _node_enter(self, event: Frame) -> None:
        name, place = event["id"], event["node_id"]
        if place in self.entered:
            self.wrong("node_enter", f"{place} twice")
        if self.started and name not in OWN[self.agent] | COMMON:
            self.wrong("node_enter", f"{name} is no node of {self.agent}")
        others = {node.name for node in self.nodes.values()} - ASIDE
        beside = SIDE_BY_SIDE[self.agent] if self.started else set.union(*SIDE_BY_SIDE.values())
        if others and name not in ASIDE and not {name} | others <= beside:
            self.wrong("node_enter", f"{name} while {self._open()} is open")
        if self.checkpointed:
            self.wrong("checkpoint", f"is not at the end: {name} is entered after it")
        self.nodes[place] = Node(name, event.get("got_node"))
        self.entered.add(place)
        self.failed_node = False
        if name == THINK[self.agent]:
            self.replying, self.reply, self.reply_calls = place, "", False

    def _node_exit(self, event: Frame) -> None:
        name, place, ok = event["id"], event["node_id"], event["result"] == "Ok"
        node = self.nodes.pop(place, None)
        if node is None and not self.partial:
            self.wrong("node_exit", f"{name}, but the open node is {self._open()}")
        elif node is not None and node.name != name:
            self.wrong("node_exit", f"{name}, but the open node is {node.name}")
        elif node is not None and ok:
            self._did(node)
        self.chunk_calls.pop(place, None)
        self.failed_node = not ok
        self.due = ("values", name) if ok else None

    def _did(self, node: Node) -> None:
        """A node that ended well told what it is there for."""
        wanted = {"backtrack": "tot_backtrack", "plan_graph": "got_plan"}.get(node.name)
        if wanted and node.told != [wanted]:
            self.wrong(wanted, f"a {node.name} tells {node.told or 'nothing'}")
        if node.name == "think_evaluate" and len(node.told) > 1:
            self.wrong("tot_evaluate", "more than one in a round")
        if node.task is not None and node.told and self.graph.runs(node.task):
            if "got_node_start" in node.told:
                self.wrong("node_exit", f"{node.task} has not ended")

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

    def _usage(self, event: Frame) -> None:
        self.usage.update({name: event[name] for name in TOKENS})

    # Text and tools.

    def _message_chunk(self, event: Frame) -> None:
        place = event["node_id"]
        node = self.nodes.get(place)
        if node is not None and node.name not in SAYING:
            self.wrong("message_chunk", f"in {node.name}, where nothing is said")
        if place == self.replying and self.reply is not None:
            self.reply += event["content"]

    def _tool_call_chunk(self, event: Frame) -> None:
        place, name = event["node_id"], event.get("call_id")
        if name is not None:
            self.chunk_calls[place] = name
        if place in self.chunk_calls:
            parts = self.chunks.setdefault((place, self.chunk_calls[place]), Arguments())
            parts.add(event["arguments_delta"], name is not None)

    def _tool_call(self, event: Frame) -> None:
        place, name = event["node_id"], event.get("call_id")
        self.reply_calls = self.reply_calls or place == self.replying
        if name is None:
            return
        known = self.calls.get(name)
        if known and known.stage == "called" and known.span == place:
            self.wrong("tool_call", f"{name} twice")
        self.calls[name] = Call(event["name"], "called", place)
        parts = self.chunks.pop((place, name), None)
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
                self.calls[event["call_id"]] = Call(event["name"], "started", event["node_id"])
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

    # Searches.

    def _inside(self, event: Frame, name: str) -> Node | None:
        """The node that an event of a strategy belongs into."""
        node = self.nodes.get(event["node_id"])
        if node is not None and node.name != name:
            self.wrong(event["type"], f"in {node.name}, not in {name}")
        return node

    def _tot_expand(self, event: Frame) -> None:
        self._inside(event, "think_expand")
        self.search.expand(event, self.wrong, self.partial)

    def _tot_evaluate(self, event: Frame) -> None:
        self._inside(event, "think_evaluate")
        self.search.evaluate(event, self.wrong, self.partial)

    def _tot_backtrack(self, event: Frame) -> None:
        self._inside(event, "backtrack")
        self.search.backtrack(event, self.wrong, self.partial)

    def _got_plan(self, event: Frame) -> None:
        self._inside(event, "plan_graph")
        self.graph.plan(event, self.wrong)

    def _got_expand(self, event: Frame) -> None:
        self.graph.expand(event, self.wrong, self._takes_up())

    def _got_node_start(self, event: Frame) -> None:
        node = self._inside(event, "execute_graph")
        if node is not None and node.task not in (None, event["id"]):
            self.wrong("got_node_start", f"{event['id']} in the node of {node.task}")
        self.graph.start(event, self.wrong, self._takes_up())

    def _got_node_complete(self, event: Frame) -> None:
        self._inside(event, "execute_graph")
        self.graph.end(event, self.wrong, self._takes_up())

    _got_node_failed = _got_node_complete

    def _takes_up(self) -> bool:
        """The graph may have been planned before what this client was sent."""
        return self.partial or not self.graph.planned

    # The end.

    def fail(self) -> None:
        """An error ends a run wherever it is, but what was open is left before."""
        self.ended = True
        if self.nodes:
            self.wrong("node_exit", f"missing for {self._open()} at the error")
        self._nothing_due()

    def end(self, frame: Frame) -> None:
        """`run_end`."""
        self.ended = True
        if self.last_id is None:
            if not self.resumed:
                self.wrong("run_start", "missing: the run ends without events")
        elif frame["event_id"] != self.last_id + 1:
            self.wrong("event_id", f"run_end has {frame['event_id']}, last was {self.last_id}")
        if self.nodes:
            self.wrong("node_exit", f"missing for {self._open()} at run_end")
        self._nothing_due()
        for name, call in self.calls.items():
            if call.stage == "started":
                self.wrong("tool_end", f"missing for {name} at run_end")
        if self.started and self.session != self.name and not self.checkpointed:
            self.wrong("checkpoint", "missing at the end of a run on a thread")
        if not self.partial:
            self.graph.done(self.wrong)
            total = frame.get("total_usage") or {}
            summed = {name: self.usage[name] for name in TOKENS}
            if self.usage and total and {name: total.get(name) for name in TOKENS} != summed:
                self.wrong("total_usage", f"{total} is not the sum of the calls, {summed}")
        self._compare(frame["reply"])

    def _compare(self, reply: str) -> None:
        if self.reply is None or self.reply_calls:
            return
        # A text that was cut and begun anew leaves its first attempt in front.
        if not self.reply.endswith(reply) or (reply == "" and self.reply != ""):
            self.wrong("reply", "is not what the chunks of the last think node add up to")
