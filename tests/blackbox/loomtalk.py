"""A client of the Loom dialect on a wire that is kept, and how its frames read."""

import json
import time

from harness import TURN_SECS, eq
from talk import Talker

# What may be left out of a run's words: it says nothing about the run itself.
ASIDE = ("custom", "tool_call_chunk")
STREAMED = ("message_chunk", "thought_chunk", "tool_output")


def loom(s, path="/loom", name=None, since=None, **options):
    return Loom(s._wire(path, "loom", {"name": name, "since": since}, **options), None)


def watch(s, thread, since=None, **options):
    """A client that is attached to a thread at once."""
    return loom(s, f"/loom?thread_id={thread}", since=since, **options)


class Loom(Talker):
    def send(self, kind, **fields):
        """A request with an id of its own, which is returned."""
        self.sent += 1
        message = {"type": kind, "id": f"req-{self.sent}", **fields}
        self.raw(json.dumps(message))
        return message["id"]

    def run(self, message, thread=None, agent="react", **fields):
        """Asks for a run; the id of the request."""
        named = {} if thread is None else {"thread_id": thread}
        return self.send("run", message=message, agent=agent, **named, **fields)

    def ask(self, kind, **fields):
        """The answer to a request, which must be the next frame."""
        asked = self.send(kind, **fields)
        frame = self.recv()
        eq(frame.get("id"), asked, f"id of {frame}")
        return frame

    def until_end(self):
        """Frames up to the end of a run, of which nothing is asked."""
        def ends(frame):
            event = frame.get("event", {})
            assert event.get("type") != "tool_approval", f"nobody expected to be asked: {frame}"
            return frame["type"] in ("run_end", "error")

        return self.until(ends)

    def turn(self, message, thread=None, **fields):
        self.run(message, thread, **fields)
        return self.until_end()

    def until_event(self, kind):
        return self.until(lambda frame: frame.get("event", {}).get("type") == kind)

    def asked(self, message, thread=None, **fields):
        """Asks for a run that can be answered, up to its first request; that frame."""
        self.run(message, thread, approvals=True, **fields)
        return self.until_event("tool_approval")[-1]

    def answer(self, request, approved, **fields):
        return self.send("tool_approval_response", run_id=request["id"],
                         call_id=request["event"]["call_id"], approved=approved, **fields)

    def error(self):
        """The next frame, which must be an error; the frame."""
        frame = self.recv()
        eq(frame["type"], "error", f"answer {frame}")
        return frame

    def still_open(self):
        """The connection answers, and nothing else was under way."""
        eq(self.ask("ping")["type"], "pong", "answer of a connection that must be open")

    def until_pong(self):
        """What came before the answer to a ping."""
        asked = self.send("ping")
        return self.until(lambda frame: frame.get("id") == asked)[:-1]

    def collect(self, count, kind):
        """Frames until so many events of a type came."""
        frames, end = [], time.monotonic() + TURN_SECS
        while len(events(frames, kind)) < count:
            assert time.monotonic() < end, f"not within {TURN_SECS} s: {count} of {kind}"
            frames.append(self.recv())
        return frames


def all_events(frames):
    return [frame["event"] for frame in frames if frame["type"] == "run_stream_event"]


def events(frames, kind):
    return [event for event in all_events(frames) if event["type"] == kind]


def event(frames, kind):
    """The only event of a type."""
    (found,) = events(frames, kind)
    return found


def words(frames, aside=ASIDE):
    """One word an event (the node's name where there is one), and how the run ended."""
    told = []
    for frame in frames:
        event = frame.get("event", {"type": frame["type"]})
        kind = event["type"]
        if kind in aside:
            continue
        word = f"{kind} {event['id']}" if kind.startswith("node_") else kind
        if not (told and told[-1] == word and kind in STREAMED):
            told.append(word)
    return told


def text(frames, kind="message_chunk"):
    return "".join(event["content"] for event in events(frames, kind))


def numbered(frames):
    """The ids of a run's events count from 1 without a gap, and its end is the next."""
    ids = [event["event_id"] for event in all_events(frames)]
    eq(ids, list(range(1, len(ids) + 1)), "event ids")
    if frames[-1]["type"] == "run_end":
        eq(frames[-1]["event_id"], len(ids) + 1, "event_id of run_end")


def reply(frames):
    eq(frames[-1]["type"], "run_end", f"end of the run, {frames[-1]}")
    return frames[-1]["reply"]
