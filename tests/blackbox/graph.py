"""A plan of eight sub-tasks in three levels, with a model that takes its time: what got makes of
it, and how long the parts of it take at best."""

import json
import time

from strategies import Thinker

# Three, then three, then two that nobody needs: the last two are put together at the end.
PLAN = [
    {"id": "a1", "task": "level one, first"}, {"id": "a2", "task": "level one, second"},
    {"id": "a3", "task": "level one, third"},
    {"id": "b1", "task": "level two, first", "needs": ["a1", "a2"]},
    {"id": "b2", "task": "level two, second", "needs": ["a2", "a3"]},
    {"id": "b3", "task": "level two, third", "needs": ["a1", "a3"]},
    {"id": "c1", "task": "level three, first", "needs": ["b1", "b2"]},
    {"id": "c2", "task": "level three, second", "needs": ["b2", "b3"]},
]
LEVELS = ["level one", "level two", "level three"]
# The plan, three levels, and what puts the results together.
PATH_CALLS = 5
ALL_CALLS = 10
INNER = [{"id": "x", "task": "inner first"}, {"id": "y", "task": "inner second"},
         {"id": "z", "task": "inner both", "needs": ["x", "y"]}]
CYCLE = [{"id": "a", "task": "first", "needs": ["c"]},
         {"id": "b", "task": "second", "needs": ["a"]},
         {"id": "c", "task": "third", "needs": ["b"]}]
END_SECS = 60.0


def answers(plan=PLAN, delay_secs=0.0, complex_task=None):
    """What the model says, a while after it is asked."""
    def answer(asked):
        time.sleep(delay_secs)
        if asked.kind == "plan":
            return json.dumps({"nodes": INNER if asked.about else plan})
        if asked.kind == "judge":
            return "complex" if asked.about == complex_task else "simple"
        return f"done: {asked.about or 'all'}"
    return answer


class Graph:
    """A server whose model answers so, and runs of got on it."""

    def __init__(self, t, answer, **env):
        self.model = Thinker(answer, test=t)
        self.server = t.server(env=self.model.settings(**{"MODEL_RETRIES": "0", **env}))
        self.client = self.server.client("/loom", checked=False)

    def begin(self, **fields):
        self.client.ws.send(json.dumps(
            {"type": "run", "message": "Do all of it.", "agent": "got", **fields}))

    def end(self):
        """All frames of the run."""
        frames, end = [], time.monotonic() + END_SECS
        while not frames or frames[-1]["type"] not in ("run_end", "error"):
            assert time.monotonic() < end, f"it does not end: {frames[-3:]}"
            frames.append(json.loads(self.client.ws.recv(timeout=END_SECS)))
        return frames

    def run(self, **fields):
        self.begin(**fields)
        return self.end()


def told(frames):
    """What a client sees of the graph, an event a line."""
    lines = []
    for frame in frames:
        event = frame.get("event", frame)
        kind = event["type"]
        if kind == "custom" and "notice" in event["value"]:
            lines.append(f"notice: {event['value']['notice']['text']}")
        elif kind.startswith("got_"):
            own = {key: value for key, value in event.items()
                   if key not in ("type", "session_id", "event_id", "node_ids")}
            own.pop("node_id", None) if kind != "got_expand" else None
            lines.append(" ".join([kind, *(f"{key}={value}" for key, value in own.items())]))
        elif kind in ("run_end", "error"):
            lines.append(f"{kind}: {frame.get('reply') or frame.get('error')}")
    return lines
