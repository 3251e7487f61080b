"""Changes that put a fault into a good transcript.

A message is found by its kind: its type, or that of the item or stream event inside it;
`loading_state` is told apart as `loading_true` and `loading_false`.
"""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

GOOD = Path(__file__).resolve().parent / "good"

Steps = list[dict[str, Any]]
Mutation = Callable[[Steps], Steps]


class Fault(NamedTuple):
    name: str
    # The good transcript that it is put into, without its dialect.
    good: str
    mutate: Mutation
    # Stands in the problem that must be found.
    word: str


def load(path: Path) -> Steps:
    # Not splitlines, which also splits at characters that JSON leaves as they are.
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def kind_of(step: dict[str, Any]) -> str:
    frame = step.get("out")
    if not isinstance(frame, dict):
        return next(iter(step))
    if frame["type"] == "loading_state":
        return "loading_true" if frame["payload"]["loading"] else "loading_false"
    inner = {"response_item": "payload", "run_stream_event": "event"}.get(frame["type"])
    return frame[inner]["type"] if inner else frame["type"]


def at(steps: Steps, kind: str, nth: int = 1) -> int:
    """Where the nth message of a kind stands; -1 is the last."""
    places = [place for place, step in enumerate(steps) if kind_of(step) == kind]
    return places[nth - 1 if nth > 0 else nth]


def drop(kind: str, nth: int = 1) -> Mutation:
    def mutate(steps: Steps) -> Steps:
        del steps[at(steps, kind, nth)]
        return steps

    return mutate


def double(kind: str, nth: int = 1, **changes: Any) -> Mutation:
    """Sends a message again, right after itself, with some of its own fields changed."""

    def mutate(steps: Steps) -> Steps:
        place = at(steps, kind, nth)
        again = copy.deepcopy(steps[place])
        again["out"].update(changes)
        steps.insert(place + 1, again)
        return steps

    return mutate


def swap(one: str, other: str, nth: int = 1, nth_other: int = 1) -> Mutation:
    """Two messages change places; their numbers stay where they were."""

    def mutate(steps: Steps) -> Steps:
        first, second = at(steps, one, nth), at(steps, other, nth_other)
        steps[first], steps[second] = steps[second], steps[first]
        a, b = steps[first]["out"], steps[second]["out"]
        if "seq" in a and "seq" in b:
            a["seq"], b["seq"] = b["seq"], a["seq"]
        return steps

    return mutate


def _owner(steps: Steps, kind: str, nth: int, path: str) -> tuple[Any, Any]:
    owner = steps[at(steps, kind, nth)]["out"]
    *parents, last = path.split(".")
    for parent in parents:
        owner = owner[int(parent) if isinstance(owner, list) else parent]
    return owner, int(last) if isinstance(owner, list) else last


def put(kind: str, path: str, value: Any, nth: int = 1) -> Mutation:
    """Sets a field, which need not have been there."""

    def mutate(steps: Steps) -> Steps:
        owner, name = _owner(steps, kind, nth, path)
        owner[name] = value
        return steps

    return mutate


def cut(kind: str, path: str, nth: int = 1) -> Mutation:
    """Removes a field."""

    def mutate(steps: Steps) -> Steps:
        owner, name = _owner(steps, kind, nth, path)
        del owner[name]
        return steps

    return mutate


def after(kind: str, step: dict[str, Any], nth: int = 1) -> Mutation:
    """Inserts a step of its own."""

    def mutate(steps: Steps) -> Steps:
        steps.insert(at(steps, kind, nth) + 1, step)
        return steps

    return mutate


def until(kind: str, nth: int = 1) -> Mutation:
    """Nothing follows."""
    return lambda steps: steps[: at(steps, kind, nth) + 1]


def both(*mutations: Mutation) -> Mutation:
    """One change after another."""

    def mutate(steps: Steps) -> Steps:
        for mutation in mutations:
            steps = mutation(steps)
        return steps

    return mutate


def renumbered(*mutations: Mutation) -> Mutation:
    """Loom: the events are counted anew, so that only the other fault is left."""

    def mutate(steps: Steps) -> Steps:
        steps = both(*mutations)(steps)
        last: dict[str, int] = {}
        for step in steps:
            frame = step.get("out", {})
            if frame.get("type") in ("run_stream_event", "run_end"):
                holder = frame.get("event", frame)
                if frame["id"] in last:
                    holder["event_id"] = last[frame["id"]] + 1
                last[frame["id"]] = holder["event_id"]
        return steps

    return mutate
