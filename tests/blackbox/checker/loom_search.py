"""What a search of tot and a graph of got may tell when."""

from collections.abc import Callable
from dataclasses import dataclass, field

from .base import Frame

Wrong = Callable[[str, str], None]


@dataclass
class Search:
    """A tree of thoughts. Depths count steps from the beginning; the first is 1."""

    # How many thoughts were proposed at a depth, and not weighed.
    proposed: dict[int, int] = field(default_factory=dict)
    # The depths at which thoughts were weighed, and of the last round.
    weighed: set[int] = field(default_factory=set)
    last: int | None = None

    def expand(self, event: Frame, wrong: Wrong, partial: bool) -> None:
        depth = event.get("depth")
        if depth is None:
            return
        if depth > 1 and depth - 1 not in self.weighed and not partial and self.weighed:
            wrong("depth", f"tot_expand at {depth}, but nothing was weighed at {depth - 1}")
        self.proposed[depth] = self.proposed.get(depth, 0) + len(event["candidates"])

    def evaluate(self, event: Frame, wrong: Wrong, partial: bool) -> None:
        depth, count = event.get("depth"), len(event["scores"])
        if depth is None:
            return
        known = self.proposed.pop(depth, None)
        # A run that takes up another may weigh what that one proposed.
        if known is not None and self.weighed and not partial and known != count:
            wrong("scores", f"{count} for {known} candidates at depth {depth}")
        self.weighed.add(depth)
        self.last = depth
        if any(not 0 <= score <= 1 for score in event["scores"]):
            wrong("scores", f"{event['scores']} are not between 0 and 1")

    def backtrack(self, event: Frame, wrong: Wrong, partial: bool) -> None:
        to = event["to_depth"]
        if self.last is not None and to >= self.last:
            wrong("to_depth", f"{to} is not back from {self.last}")
        if self.last is None and not partial:
            wrong("tot_backtrack", "before anything was weighed")


@dataclass
class Graph:
    """A graph of sub-tasks: which run, and which have ended."""

    planned: bool = False
    nodes: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    # How many are inside of one that was split.
    inside: dict[str, int] = field(default_factory=dict)

    def runs(self, name: str) -> bool:
        return name in self.running

    def plan(self, event: Frame, wrong: Wrong) -> None:
        if self.planned:
            wrong("got_plan", "twice in one run")
        names = event["node_ids"]
        if len(set(names)) != len(names):
            wrong("got_plan", "two nodes have one name")
        self.planned = True
        self.nodes.update(names)

    def expand(self, event: Frame, wrong: Wrong, lenient: bool) -> None:
        name = event["node_id"]
        if name not in self.running and not lenient:
            wrong("got_expand", f"{name} is not running")
        if name in self.inside:
            wrong("got_expand", f"{name} is split twice")
        self.inside[name] = event["nodes_added"]

    def _known(self, name: str) -> bool:
        above = name.rpartition(".")[0]
        return name in self.nodes or above in self.inside

    def start(self, event: Frame, wrong: Wrong, lenient: bool) -> None:
        name = event["id"]
        if name in self.running:
            wrong("got_node_start", f"{name} is running already")
        elif name in self.ended:
            wrong("got_node_start", f"{name} has ended already")
        elif not self._known(name) and not lenient:
            wrong("got_node_start", f"{name} was not planned")
        self.running.add(name)

    def end(self, event: Frame, wrong: Wrong, lenient: bool) -> None:
        name, failed = event["id"], event["type"] == "got_node_failed"
        if name in self.ended:
            wrong(event["type"], f"{name} has ended already")
        # One that needs what failed is never begun.
        elif name not in self.running and not failed and not lenient:
            wrong(event["type"], f"{name} was not started")
        self.running.discard(name)
        self.ended.add(name)

    def done(self, wrong: Wrong) -> None:
        """The run has its answer."""
        for name in sorted((self.nodes | self.running) - self.ended):
            wrong("got_node_complete", f"missing for {name} at run_end")
        for above, count in self.inside.items():
            ended = [name for name in self.ended if name.rpartition(".")[0] == above]
            if len(ended) != count:
                wrong("got_expand", f"{above} has {count} nodes, {len(ended)} ended")
