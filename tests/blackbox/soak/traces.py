"""A server built with the feature `otel` sends traces to a collector: spans of turns, model calls,
tools and waits, one inside the other, and nothing that was said.

Run: python traces.py --polyloop PATH, with FAKE_MODEL=PATH
"""

import argparse
import http.server
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
import talk  # noqa: E402
from fakemodel import FakeModel  # noqa: E402
from harness import eq  # noqa: E402
from test_limits_queue import busy, stop, until_queued  # noqa: E402
from test_model_faults import KEY, access  # noqa: E402

TOKEN = "correct-horse-battery-staple-42"
HEADER = "collector-password"


def fields(data):
    """The fields of a protobuf message: (number, value), numbers as ints and the rest as bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(kind)
        size = varint() if size is None else size
        value = data[at:at + size]
        at += size
        yield number, value if kind == 2 else int.from_bytes(value, "little")


def every(data, *path):
    """All messages at a path of field numbers."""
    if not path:
        return [data]
    return [deep for number, value in fields(data) if number == path[0]
            for deep in every(value, *path[1:])]


def attributes(pairs):
    read = {}
    for pair in pairs:
        [key], [value] = every(pair, 1), every(pair, 2)
        [(number, content)] = fields(value)
        read[key.decode()] = content.decode() if number == 1 else content
    return read


class Span:
    def __init__(self, data):
        parts = {}
        for number, value in fields(data):
            parts.setdefault(number, []).append(value)
        first = lambda number: parts.get(number, [b""])[0]
        self.trace, self.id, self.parent = first(1), first(2), first(4)
        self.name, self.begun, self.ended = first(5).decode(), first(7), first(8)
        self.attributes = attributes(parts.get(9, []))
        status = dict(fields(first(15)))
        self.failed = status.get(3) == 2

    def __getitem__(self, name):
        return self.attributes.get(name)

    def __repr__(self):
        return f"{self.name} {self.attributes}"


class Collector:
    """Takes what a server sends, and keeps it."""

    def __init__(self):
        bodies = self.bodies = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                bodies.append((self.path, dict(self.headers), body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self):
        return [Span(span) for _, _, body in self.bodies for span in every(body, 1, 2, 2)]

    def resources(self):
        return [attributes(every(body, 1, 1, 1)) for _, _, body in self.bodies]


def play(s, collector):
    """Two turns, one of them with a tool that a person lets run, and one that fails."""
    model = FakeModel(test=s.t)
    model.script([{"blocks": [{"think": "canary-thought"}, {"say": "canary-answer"},
                              {"call": "bash", "args": {"command": "echo canary > made"}}]},
                  {"blocks": [{"say": "canary-end"}]},
                  {"http": {"status": 401}, "error": {"type": "canary-error"}}])
    env = {**access("responses", model.url), "POLYLOOP_TOKEN": TOKEN, "NO_PROXY": "127.0.0.1",
           "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
           "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={HEADER}"}
    server = s.server(env=env)
    client = s.unified(f"/unified?token={TOKEN}", name="canary-name")
    request = client.asked("canary-message")
    client.decide(request, "allow")
    client.until_end()
    client.turn("canary-again")
    server.signal(signal.SIGTERM)
    eq(server.process.wait(60), 0, "exit status")
    return server


def check(s):
    collector = Collector()
    play(s, collector)
    spans = collector.spans()
    assert spans, "no span came"
    eq({path for path, _, _ in collector.bodies}, {"/v1/traces"}, "where they went")
    named = lambda name: sorted((x for x in spans if x.name == name), key=lambda x: x.begun)
    eq(collector.resources()[0].get("service.name"), "polyloop", "whose they are")
    first, second = named("turn")
    eq([(turn["polyloop.outcome"], turn.failed) for turn in (first, second)],
       [("completed", False), ("failed", True)], "turns")
    calls, [tool], [wait] = named("model_call"), named("tool"), named("wait")
    eq([call["polyloop.outcome"] for call in calls], ["ok", "ok", "unauthorized"], "calls")
    eq({call["gen_ai.request.model"] for call in calls}, {"gpt-5"}, "models")
    assert all(call["gen_ai.usage.input_tokens"] > 0 for call in calls[:2]), calls
    eq((tool["gen_ai.tool.name"], tool["polyloop.outcome"]), ("bash", "ok"), "the tool")
    eq((wait["polyloop.kind"], wait["polyloop.outcome"]), ("approval", "yes"), "the wait")
    assert wait.ended <= tool.begun, "the tool began before leave was given"
    for inner, turn in [(calls[0], first), (calls[1], first), (tool, first), (wait, first),
                        (calls[2], second)]:
        eq((inner.trace, inner.parent), (turn.trace, turn.id), f"where {inner} is")
        assert turn.begun <= inner.begun <= inner.ended <= turn.ended, f"when {inner} was"
    assert first.trace != second.trace, "a trace is a turn"
    eq({span["polyloop.session"] for span in spans}, {"s1"}, "sessions")
    for secret in ("canary", KEY, TOKEN, HEADER):
        for _, _, body in collector.bodies:
            assert secret.encode() not in body, f"{secret} was sent to the collector"


@talk.talks
def gates(s):
    """Who waits for a permit, and for whom there is no room."""
    collector = Collector()
    env = {"MAX_MODEL_CALLS": 1, "MAX_WAITING": 1, "MODEL_RETRIES": 0, "NO_PROXY": "127.0.0.1",
           "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    server = s.server(env=env)
    first = busy(s, "first")
    second, third = s.unified(session="second"), s.unified(session="third")
    second.say("say: at last")
    until_queued(second)
    third.say("say: no room")
    third.until_end()
    stop(first)
    second.until_end()
    server.signal(signal.SIGTERM)
    eq(server.process.wait(60), 0, "exit status")
    calls = [span for span in collector.spans() if span.name == "model_call"]
    of = lambda session: [call for call in calls if call["polyloop.session"] == session]
    [one], [two], [three] = of("first"), of("second"), of("third")
    eq((one["polyloop.outcome"], one["polyloop.waited_ms"]), ("stopped", 0), "the first")
    eq((two["polyloop.outcome"], two.failed), ("ok", False), "the second")
    assert two["polyloop.waited_ms"] > 0, f"it waited: {two}"
    eq((three["polyloop.outcome"], three.failed), ("refused_here", True), "the third")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--polyloop", required=True)
    harness.Options.polyloop = parser.parse_args().polyloop
    for part in (talk.talks(check), gates):
        test = harness.Test("traces")
        try:
            part(test)
        finally:
            test.clean()
    print("traces: ok")


if __name__ == "__main__":
    main()
