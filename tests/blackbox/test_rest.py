"""Sessions over HTTP: every row of the document with its status codes."""

import json
import re

import shapes
from frames import kinds, said
from harness import eq, eventually

BAD_IDS = [".hidden", "x" * 129, "a%20b", "a%2Fb", "%2e%2e", "a%00b", "%C3%A4"]


def listed(server):
    return [s["id"] for s in server.get("/sessions").json["sessions"]]


def check_info(info):
    want = {"id": str, "start_time": str, "last_update_time": str, "event_count": int}
    # Where it stands is an addition, and so is what its model calls cost, once there were any.
    additions = {"usage", "status", "waiting", "preview"}
    assert additions - {"usage"} <= info.keys(), info
    kinds = {name: type(value) for name, value in info.items() if name not in additions}
    eq(kinds, want, "fields of a session")
    for name in ("start_time", "last_update_time"):
        assert shapes.TIME.fullmatch(info[name]), f"{name}: {info[name]}"
    assert info["start_time"] <= info["last_update_time"], info


def test_no_sessions(t):
    answer = t.server().get("/sessions")
    eq((answer.status, answer.json), (200, {"sessions": []}))
    assert answer.headers["content-type"].startswith("application/json"), answer.headers


def test_create(t):
    server = t.server()
    answer = server.http("POST", "/sessions")
    eq(answer.status, 201, "status")
    check_info(answer.json)
    eq(answer.json["event_count"], 1, "event_count")
    assert re.fullmatch(r"[0-9a-f]{32}", answer.json["id"]), answer.json
    eq(server.get("/sessions").json, {"sessions": [answer.json]}, "the list")
    assert (t.store / f"{answer.json['id']}.jsonl").is_file(), "its file"
    client = server.client(f"/ws/{answer.json['id']}")
    eq(said(client.turn("say: hello")), ["hello"])


def test_create_makes_a_new_one_each_time(t):
    server = t.server()
    ids = {server.http("POST", "/sessions").json["id"] for _ in range(5)}
    eq((len(ids), set(listed(server))), (5, ids), "sessions")


def test_read(t):
    server = t.server()
    client = server.client()
    client.say("think: hm\nsay: begin\nrun: touch a\nsay: end")
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    answer = server.get("/sessions/s1")
    eq((answer.status, answer.json["id"]), (200, "s1"))
    events = answer.json["events"]
    for event in events:
        shapes.line(event)
    eq(events[0]["message_data"], {"event": "session_started"}, "the first event")
    sent = [e["message_data"] for e in events if e["event_type"] == "websocket_message_sent"]
    for message in sent:
        shapes.payload(message["type"], message["payload"])
    want = kinds(client.seen)
    eq(kinds(sent), want, "what was sent")
    received = [e["message_data"].get("type") for e in events
                if e["event_type"] == "websocket_message_received"]
    eq(received, [None, "user_input", "approval_response"], "what was received")


def test_the_user_s_input_is_kept_as_it_was_sent(t):
    server = t.server()
    client = server.client()
    sent = client.say("say: Grüße 👋")
    client.until_end()
    (kept,) = [m for m in server.messages() if m.get("type") == "user_input"]
    eq(kept["id"], sent, "id")
    (item,) = kept["payload"]["input"]
    eq(item["content"], [{"type": "input_text", "text": "say: Grüße 👋"}], "content")


def test_errors_are_events_too(t):
    server = t.server()
    client = server.client()
    client.ws.send("nonsense")
    error = client.error()
    found = lambda: [m for m in server.messages() if m.get("type") == "error"]
    (kept,) = eventually(found, "the error is in the session's events")
    eq(kept["payload"], error, "error")
    back = server.client("/ws/s1?since=0")
    back.still_open()
    eq(kinds(back.seen), ["context_info"], "what went to one client alone is not replayed")


def test_unknown_and_bad_ids(t):
    server = t.server(todos=True)
    for method, suffix in (("GET", ""), ("DELETE", ""), ("POST", ":switch")):
        answer = server.http(method, f"/sessions/nobody{suffix}")
        eq(answer.status, 404, f"{method} of no session")
        eq(list(answer.json), ["error"], "the answer")
        for bad in BAD_IDS:
            answer = server.http(method, f"/sessions/{bad}{suffix}")
            assert answer.status in (400, 404), f"{method} {bad}: {answer}"
            assert answer.json["error"], answer
    eq(listed(server), [], "reading makes no session")
    eq(server.http("GET", "/sessions/.hidden").status, 400, "an id that is none")


def test_other_methods(t):
    server = t.server()
    session = server.http("POST", "/sessions").json["id"]
    for method, path in (("PUT", "/sessions"), ("DELETE", "/sessions"), ("PATCH", "/sessions"),
                         ("PUT", f"/sessions/{session}"), ("POST", f"/sessions/{session}"),
                         ("POST", f"/sessions/{session}:delete"), ("POST", "/healthz"),
                         ("GET", f"/sessions/{session}:switch")):
        answer = server.http(method, path)
        assert answer.status in (400, 404, 405), f"{method} {path}: {answer}"
        assert answer.json["error"], answer
    eq(listed(server), [session], "sessions")


def test_newest_first_and_in_pages(t):
    server = t.server()
    ids = []
    for number in range(7):
        server.client(f"/ws/n{number}").turn("say: x")
        ids.insert(0, f"n{number}")
    answer = server.get("/sessions").json["sessions"]
    for info in answer:
        check_info(info)
    eq([s["id"] for s in answer], ids, "newest first")
    eq([s["id"] for s in server.get("/sessions?limit=3").json["sessions"]], ids[:3], "a page")
    pages, before = [], ""
    while page := server.get(f"/sessions?limit=3{before}").json["sessions"]:
        pages.append([s["id"] for s in page])
        before = f"&before={page[-1]['id']}"
    eq(pages, [ids[:3], ids[3:6], ids[6:]], "pages")
    eq(server.get("/sessions?limit=0").json["sessions"], [], "a page of none")
    for bad in ("x", "-1", "1.5", "99999999999999999999999"):
        eq(server.get(f"/sessions?limit={bad}").status, 400, f"limit={bad}")


def test_event_count_and_times_follow_the_session(t):
    server = t.server()
    client = server.client()
    client.turn("say: x")
    (one,) = server.get("/sessions").json["sessions"]
    client.turn("say: y")
    (two,) = server.get("/sessions").json["sessions"]
    eq(two["start_time"], one["start_time"], "start_time")
    assert two["event_count"] > one["event_count"], (one, two)
    assert two["last_update_time"] >= one["last_update_time"], (one, two)
    events = server.events()
    eq(two["event_count"], len(events), "event_count")
    lines = (t.store / "s1.jsonl").read_text().splitlines()
    eq([json.loads(line) for line in lines], events, "the file's lines")
    eq((two["start_time"], two["last_update_time"]),
       (events[0]["timestamp"], events[-1]["timestamp"]), "times")


def test_archive(t):
    server = t.server(todos=True)
    client = server.client()
    client.turn("say: x")
    content = (t.store / "s1.jsonl").read_text()
    todos = (t.todos / "s1.md").read_text()
    answer = server.http("DELETE", "/sessions/s1")
    eq(answer.status, 409, "while a client is attached")
    assert answer.json["error"], answer
    client.close()
    gone = lambda: server.http("DELETE", "/sessions/s1").status == 204
    eventually(gone, "it can be archived once its client has left")
    eq(listed(server), [], "the list")
    eq(server.get("/sessions/s1").status, 404, "GET afterwards")
    eq(server.http("DELETE", "/sessions/s1").status, 404, "DELETE afterwards")
    time = r"\d{4}-\d\d-\d\dT[\d:.-]+Z"
    for place, kind, want in ((t.store, "jsonl", content), (t.todos, "md", todos)):
        assert not (place / f"s1.{kind}").exists(), f"s1.{kind} is still there"
        found = [p for p in place.iterdir() if re.fullmatch(rf"\.s1-{time}\.{kind}", p.name)]
        eq(len(found), 1, f"archived {kind} in {sorted(p.name for p in place.iterdir())}")
        assert found[0].read_text().startswith(want), "its content"
    server.client().still_open()
    eq(server.events()[0]["message_data"], {"event": "session_started"}, "the id begins anew")
    assert len(server.events()) <= 2, "what was archived is not in it"


def test_a_running_turn_cannot_be_archived(t):
    server = t.server()
    client = server.client()
    client.say("run: touch a\nsay: end")
    client.until("approval_request")
    client.drop()
    eq(server.http("DELETE", "/sessions/s1").status, 409, "a turn waits")
    client = server.client()
    client.until("approval_request")
    client.review("no-exit")
    client.until_end()
    client.close()
    gone = lambda: server.http("DELETE", "/sessions/s1").status == 204
    eventually(gone, "it can be archived afterwards")


def test_archiving_and_making_it_again_keeps_both(t):
    server = t.server()
    for number in range(3):
        client = server.client()
        client.turn(f"say: {number}")
        client.close()
        eventually(lambda: server.http("DELETE", "/sessions/s1").status == 204, "archived")
    found = [p for p in t.store.iterdir() if p.name.startswith(".s1-") and p.suffix == ".jsonl"]
    eq(len(found), 3, "archives")


def test_healthz(t):
    eq(t.server().get("/healthz").status, 200, "status")


def test_a_large_session_is_read_whole(t):
    server = t.server()
    client = server.client()
    client.turn("stream: 3000 1000 0")
    for _ in range(5):
        client.turn("say: x")
    answer = server.get("/sessions/s1")
    eq(len(answer.json["events"]), len((t.store / "s1.jsonl").read_text().splitlines()), "events")
    longest = max(len(json.dumps(m)) for m in server.messages())
    assert longest > 3_000_000, f"a long text is shown whole, not in {longest} bytes"


def test_markdown_becomes_safe_html(t):
    server = t.server()
    answer = server.http("POST", "/render", body='{"markdown":"**hi** <script>x</script>"}')
    eq(answer.status, 200, "status")
    eq(answer.json, {"html": "<p><strong>hi</strong> &lt;script&gt;x&lt;/script&gt;</p>\n"})
    for bad in ("", "{}", '{"markdown":1}', "["):
        answer = server.http("POST", "/render", body=bad)
        eq((answer.status, list(answer.json)), (400, ["error"]), f"answer to {bad!r}")


def test_a_session_is_made_as_asked_and_renamed(t):
    server = t.server()
    (t.work / "sub").mkdir()
    wish = '{"cwd":"sub","model":"offline","agent":"react","permission_mode":"plan","title":"T"}'
    made = server.http("POST", "/sessions", body=wish)
    eq(made.status, 201, "status")
    path = f"/sessions/{made.json['id']}"
    created = server.get(path).json["events"][0]["event"]
    kept = {name: created["settings"][name] for name in ("mode", "title")}
    eq(kept, {"mode": "plan", "title": "T"}, "settings")
    eq(created["settings"]["cwd"], str((t.work / "sub").resolve()), "folder")
    for bad in ('{"cwd":"/etc"}', '{"cwd":"nowhere"}', '{"model":"x"}', '{"agent":"cot"}',
                '{"permission_mode":"bypass"}', '{"permission_mode":"yolo"}', '{"title":7}', "[1"):
        answer = server.http("POST", "/sessions", body=bad)
        eq((answer.status, list(answer.json)), (400, ["error"]), f"answer to {bad}")
    eq(len(server.get("/sessions").json["sessions"]), 1, "sessions")
    renamed = server.http("PATCH", path, body='{"title":" New name "}')
    eq((renamed.status, renamed.json["title"]), (200, "New name"), "renamed")
    for bad in ('{"title":""}', "{}", '{"title":"' + "x" * 300 + '"}'):
        eq(server.http("PATCH", path, body=bad).status, 400, f"answer to {bad[:40]}")
    eq(server.http("PATCH", "/sessions/nope", body='{"title":"x"}').status, 404, "unknown")
