"""`GET /metrics`: what is counted, under documented names, with labels nobody can swell."""

import json
import re
from pathlib import Path

from fakemodel import FakeModel
from harness import eq, eventually
from talk import talks
from test_limits import STREAM, never_reads
from test_model_faults import FINE, access

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| `((?:polyloop|process)_\w+)` \| (\w+) \|([^|]*)\|")
SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# What a type adds to a name in the lines of its samples.
ENDS = {"counter": ("_total",), "info": ("_info",), "gauge": ("",),
        "histogram": ("_bucket", "_sum", "_count")}


class Told:
    """What `/metrics` told once, read by the rules of the format."""

    def __init__(self, text):
        assert text.endswith("# EOF\n"), text[-200:]
        self.text, self.types, self.samples = text, {}, {}
        for line in text.splitlines()[:-1]:
            if line.startswith("# TYPE "):
                name, kind = line.removeprefix("# TYPE ").split()
                assert name not in self.types, f"{name} is told twice"
                self.types[name] = kind
            elif not line.startswith("# HELP "):
                self._sample(line)

    def _sample(self, line):
        found = SAMPLE.match(line)
        assert found, f"no sample: {line!r}"
        name, labels = found[1], dict(LABEL.findall(found[2] or ""))
        family = self.family(name)
        assert family, f"{name} has no type"
        key = (name, frozenset(labels.items()))
        assert key not in self.samples, f"told twice: {line}"
        self.samples[key] = float(found[3])

    def family(self, name):
        for family, kind in self.types.items():
            if any(name == family + end for end in ENDS[kind]):
                return family
        return None

    def __call__(self, name, **labels):
        """The sum of all samples of that name with these labels."""
        name = name if name.startswith("process_") else f"polyloop_{name}"
        wanted = labels.items()
        values = [v for (n, have), v in self.samples.items() if n == name and wanted <= have]
        return sum(values)

    def values(self, label):
        """All that a label says anywhere."""
        return {value for _, labels in self.samples for name, value in labels if name == label}

    def documented(self):
        """Name as the table has it -> (type, label names)."""
        rows = {}
        for (name, labels) in self.samples:
            family = self.family(name)
            kind = self.types[family]
            shown = family if kind == "histogram" else name
            rows.setdefault(shown, (kind, set()))[1].update(n for n, _ in labels if n != "le")
        return rows


def told(server, **headers):
    answer = server.get("/metrics", **headers)
    eq(answer.status, 200, "GET /metrics")
    kind = answer.headers["content-type"]
    assert kind.startswith("application/openmetrics-text; version=1.0.0"), kind
    return Told(answer.text)


def soon(server, probe, what):
    eventually(lambda: probe(told(server)), what)


def documented():
    """The table of metrics: name -> (type, label names)."""
    rows = {}
    for line in (DOCS / "OPERATIONS.md").read_text().splitlines():
        if found := ROW.match(line):
            assert found[1] not in rows, f"{found[1]} stands there twice"
            rows[found[1]] = (found[2], set(re.findall(r"`(\w+)`", found[3])))
    return rows


@talks
def test_every_metric_is_documented_and_no_other(s):
    server = s.server(env={"TOOL_USE_APPROVAL_MODE": "suggest"})
    client = s.unified()
    client.turn("say: x\ntool: ls {}")
    told(server)
    eq(told(server).documented(), documented(), "what is told, and the table")


@talks
def test_a_turn_with_a_tool_is_counted_where_it_belongs(s):
    server = s.server(env={"TOOL_USE_APPROVAL_MODE": "suggest"})
    eq(told(server)("turns_total"), 0, "turns of a new server")
    client = s.unified()
    request = client.asked('tool: bash {"command": "echo hi > made"}')
    waiting = told(server)
    eq(waiting("waits_open", kind="approval"), 1, "approvals that wait")
    eq(waiting("turns_running"), 1, "turns under way")
    eq(waiting("sessions_awake"), 1, "sessions")
    eq(waiting("subscribers"), 1, "subscribers")
    eq(waiting("model_calls_running"), 0, "calls under way")
    client.decide(request, "allow")
    client.until_end()
    after = told(server)
    eq(after("waits_open"), 0, "approvals that wait")
    eq(after("turns_running"), 0, "turns under way")
    eq(after("turns_total", outcome="completed"), 1, "turns")
    eq(after("decisions_total", decision="yes"), 1, "decisions")
    eq(after("tool_calls_total", tool="bash", outcome="ok"), 1, "tool calls")
    eq(after("tool_seconds_count", tool="bash"), 1, "tool runs that were timed")
    eq(after("tools_running"), 0, "tools under way")
    calls = after("model_calls_total", provider="offline", model="offline", status="ok")
    assert calls >= 1, after.text
    eq(after("model_call_seconds_count"), calls, "calls that were timed")
    assert 1 <= after("model_first_token_seconds_count") <= calls, after.text
    for direction in ("input", "output"):
        assert after("model_tokens_total", direction=direction) > 0, after.text
    assert after("log_append_seconds_count", flush="disk") > 0, after.text
    assert after("log_flush_seconds_count") >= after("log_append_seconds_count", flush="disk")
    assert after("process_resident_memory_bytes") > 1_000_000
    assert after("process_cpu_seconds_total") > 0
    assert after("process_open_fds") > 3


@talks
def test_connections_by_dialect_and_why_they_ended(s):
    server = s.server()
    unified, chat = s.unified(), s.chat()
    unified.turn("say: x")
    bare = server.client("/")
    soon(server, lambda now: now("connections", dialect="undecided") == 1, "an undecided one")
    now = told(server)
    eq([now("connections", dialect=d) for d in ("unified", "chat", "agentloop")], [1, 1, 0])
    assert now("client_messages_total", dialect="unified") >= 1, now.text
    assert now("received_bytes_total") > 0 and now("sent_bytes_total") > 0, now.text
    bare.say("say: y")
    soon(server, lambda now: now("connections", dialect="agentloop") == 1, "it has decided")
    eq(told(server)("connections", dialect="undecided"), 0, "undecided ones")
    for gone in (unified.wire, chat.wire, bare.ws):
        gone.close()
    soon(server, lambda now: now("connections") == 0, "none is open")
    now = told(server)
    eq(now("connections_closed_total", reason="client"), 3, "closed by the client")
    eq(now("connections_opened_total"), 3, "opened")
    soon(server, lambda now: now("subscribers") == 0, "nobody watches")


def test_a_client_that_is_too_slow_is_counted(t):
    server = t.server()
    never_reads(server, "/ws/slow")
    soon(server, lambda now: now("subscribers") == 1, "it is attached")
    speaker = server.client("/ws/slow")
    speaker.say(STREAM)
    speaker.until("response_item")
    eq(told(server)("connections_closed_total", reason="too_slow"), 0, "cut off")
    speaker.until_end()
    # It takes nothing for its time, and is cut off.
    of = "connections_closed_total"
    eventually(lambda: told(server)(of, reason="too_slow") == 1, "cut off", secs=90)
    soon(server, lambda now: now("subscriber_queued_bytes") == 0, "nothing is left of its queue")


@talks
def test_faults_tokens_and_money_by_provider(s):
    model = FakeModel(test=s.t)
    rows = s.t.dir / "models.json"
    rows.write_text(json.dumps([{"match": "gpt-5", "input_usd": 1_000.0, "output_usd": 2_000.0,
                                 "cached_usd": 1_000.0}]))
    model.script([{"http": {"status": 429}, "error": {"type": "429"}},
                  {"blocks": [{"say": "Fine."}], "usage": {"input": 500, "output": 100}}])
    server = s.server(env={**access("responses", model.url), "MODELS_FILE": rows})
    client = s.unified()
    client.turn("Go")
    now = told(server)
    of = {"provider": "openai", "model": "gpt-5"}
    eq(now("model_calls_total", status="rate_limited", **of), 1, "calls that were refused")
    eq(now("model_calls_total", status="ok", **of), 1, "calls that went well")
    eq(now("model_call_seconds_count", **of), 2, "calls that were timed")
    eq(now("model_first_token_seconds_count", **of), 1, "first tokens")
    eq(now("model_tokens_total", direction="input", **of), 500, "input")
    eq(now("model_tokens_total", direction="output", **of), 100, "output")
    eq(round(now("model_cost_usd_total", **of), 6), 0.7, "dollars")


@talks
def test_nobody_can_swell_the_labels(s):
    model = FakeModel(test=s.t)
    odd = 'evil"} 1\nevil_metric 7'
    model.script([{"blocks": [{"call": "evil_tool", "args": {}}]}, FINE, FINE, FINE])
    server = s.server(env=access("responses", model.url))
    client = s.unified()
    client.turn("Go")
    for name in ("evil-model-1", "evil-model-2"):
        client.send("set_model", model=name)
        client.turn("Go")
    for path in ("/evil/1", "/evil/2", "/sessions/evil-3", "/ws-evil?evil=1"):
        server.get(path)
    server.http("EVIL", "/sessions")
    server.client("/unified?name=evil&session_id=evil-4").drop()
    with_agent = server.http("GET", "/about", {"User-Agent": odd.replace("\n", " ")})
    eq(with_agent.status, 200)
    now = told(server)
    assert "evil" not in now.text, [line for line in now.text.splitlines() if "evil" in line]
    eq(now("tool_calls_total", tool="other"), 1, "a tool that is none of ours")
    eq(now("model_calls_total", provider="openai", model="other"), 2, "models nobody named")
    assert now("http_requests_total", route="other", status="404") >= 2, now.text
    assert now("http_requests_total", method="other") == 1, now.text
    eq(now("http_requests_total", route="/sessions/{id}", status="404"), 1, "by the route")


@talks
def test_sessions_that_are_put_away_are_not_counted_any_more(s):
    server = s.server()
    for session in ("one", "two"):
        client = s.unified(session=session)
        client.turn("say: x")
        client.wire.close()
    eq(told(server)("sessions_awake"), 2, "sessions")
    eventually(lambda: server.http("DELETE", "/sessions/one").status == 204, "it is put away")
    soon(server, lambda now: now("sessions_awake") == 1, "one is left")
    eq(told(server)("sessions_opened_total"), 2, "opened")


def test_with_a_token_it_needs_the_token(t):
    server = t.server(env={"POLYLOOP_TOKEN": "correct-horse-battery-staple-42"})
    answer = server.get("/metrics")
    eq(answer.status, 401)
    assert "polyloop_" not in answer.text, answer
    now = told(server, Authorization="Bearer correct-horse-battery-staple-42")
    eq(now("http_requests_total", route="/metrics", status="401"), 1, "the refusal is counted")
    eq(server.http("GET", "/metrics", {"Host": "evil.example"}).status, 403, "by another name")


# What Prometheus adds by itself.
SCRAPED = {"job", "instance"}
NAME = re.compile(r"\b((?:polyloop|process)_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
SHOWN = re.compile(r"\{\{(\w+)\}\}")


def used(expression):
    """The metrics that an expression reads, as the table has them, and the labels it names."""
    names, labels = set(), set()
    for name, matchers in NAME.findall(expression):
        bucket = name.endswith("_bucket")
        names.add(re.sub(r"(_seconds)_(?:bucket|count|sum)$", r"\1", name))
        labels.update(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        labels.update({"le"} if bucket else ())
    grouped = [word.strip() for group in GROUPED.findall(expression) for word in group.split(",")]
    return names, labels | set(grouped)


def test_the_dashboard_reads_what_there_is_and_all_of_it(t):
    board = json.loads((DOCS / "grafana/polyloop.json").read_text())
    rows, seen, ids, taken = documented(), set(), set(), set()
    assert board["title"] and board["uid"] and board["schemaVersion"] >= 36, "not a dashboard"
    variables = {variable["name"] for variable in board["templating"]["list"]}
    for panel in board["panels"]:
        title, place = panel["title"], panel["gridPos"]
        assert panel["id"] not in ids, f"{title}: its id is taken"
        ids.add(panel["id"])
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert max(x for x, _ in cells) < 24 and not cells & taken, f"{title}: no room there"
        taken |= cells
        assert panel["type"] == "row" or panel["targets"], f"{title}: shows nothing"
        for target in panel.get("targets", []):
            expression = target["expr"]
            eq(expression.count("("), expression.count(")"), f"{title}: brackets")
            names, labels = used(expression)
            assert names, f"{title}: reads nothing of ours: {expression}"
            for name in names:
                assert name in rows, f"{title}: there is no {name}"
                kind, own = rows[name]
                known = own | SCRAPED | ({"le"} if kind == "histogram" else set())
                assert labels <= known, f"{title}: {name} has no {labels - known}"
            shown = set(SHOWN.findall(target["legendFormat"]))
            assert shown <= labels | SCRAPED, f"{title}: shows {shown}, has {labels}"
            asked = set(re.findall(r"\$(\w+)", expression)) - {"__rate_interval"}
            assert asked <= variables, f"{title}: no variable {asked - variables}"
            seen |= names
    eq(set(rows) - seen, {"polyloop_build_info"}, "metrics that no panel shows")
