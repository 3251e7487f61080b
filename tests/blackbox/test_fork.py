"""Forks: `POST /sessions/{id}:fork?at=<seq>` makes a session of another one's beginning."""

import json
import os
import re

from harness import eq, eventually
from loomtalk import loom
from talk import of, talks, the

AUTO = ("--tool-use-approval-mode", "auto-edit")


def call(name, **args):
    return f"tool: {name} {json.dumps(args)}"


def fork(server, session="s1", query="", status=201):
    answer = server.http("POST", f"/sessions/{session}:fork{query}")
    eq(answer.status, status, f"fork: {answer}")
    return answer.json


def entries(server, session):
    """The session's entries: number and event."""
    lines = server.events(session)
    return [(line["seq"], line["event"]) for line in lines if line.get("event")]


def files(t, session):
    """What the store has of a session, byte for byte."""
    found = {}
    for path in sorted(t.store.glob(f"{session}.*")):
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            found[str(file.relative_to(t.store))] = file.read_bytes()
    return found


def test_a_fork_has_the_same_beginning_and_goes_its_own_way(t):
    server = t.server(*AUTO, todos=True)
    client = server.client()
    client.turn("say: one")
    client.turn("say: two")
    (t.todos / "s1.md").write_text("# Todos\n\nSession ID: `s1`\n\n- [ ] mine\n")
    server.http("PATCH", "/sessions/s1", body=json.dumps({"title": "Named"}))
    before = files(t, "s1")
    made = fork(server)
    fields = ["event_count", "id", "last_update_time", "preview", "start_time", "status", "title",
              "usage", "waiting"]
    eq(sorted(made), fields, "shape")
    eq(made["title"], "Named")
    eq(files(t, "s1"), before, "the original")
    old, new = entries(server, "s1"), entries(server, made["id"])
    eq(new[:len(old)], old, "the beginning")
    seq, forked = new[len(old)]
    eq((seq, forked["type"], forked["session"], forked["upto"], forked["by"]["via"]),
       (old[-1][0] + 1, "forked", "s1", old[-1][0], "rest"))
    text = (t.todos / f"{made['id']}.md").read_text()
    eq(text, f"# Todos\n\nSession ID: `{made['id']}`\n\n- [ ] mine\n", "todos")
    listed = [s["id"] for s in server.get("/sessions").json["sessions"]]
    assert {"s1", made["id"]} <= set(listed), listed
    other = server.client(f"/ws/{made['id']}")
    other.turn("say: three")
    eq(files(t, "s1"), before, "the original after the fork spoke")
    client.turn("say: four")
    assert "three" not in json.dumps(server.messages("s1"))
    assert "four" not in json.dumps(server.messages(made["id"]))
    server.kill()
    server = t.server(*AUTO, todos=True)
    server.client(f"/ws/{made['id']}").turn("say: five")
    eq(entries(server, made["id"])[:len(old)], old, "after a kill")


def test_at_any_entry_and_whatever_was_open_is_closed(t):
    server = t.server(*AUTO)
    client = server.client()
    client.turn(call("write_file", path="a.txt", content="a\n") + "\nsay: done")
    client.turn("think: so\nrun: ls\nsay: x")
    old = entries(server, "s1")
    for at, _ in old:
        made = fork(server, query=f"?at={at}")["id"]
        new = entries(server, made)
        eq(new[:at], old[:at], f"up to {at}")
        eq((new[at][0], new[at][1]["type"], new[at][1]["upto"]), (at + 1, "forked", at))
        open_turns = 0
        for _, event in new:
            open_turns += {"turn_started": 1, "turn_ended": -1}.get(event["type"], 0)
        eq(open_turns, 0, f"turns left open at {at}: {new[at:]}")
        server.client(f"/ws/{made}").turn(f"say: goes on {at}")
    eq((t.work / "a.txt").read_text(), "a\n", "no tool ran again")
    eq(entries(server, "s1"), old, "the original")


def test_bad_requests(t):
    server = t.server()
    server.client().turn("say: x")
    last = entries(server, "s1")[-1][0]
    for query in ("?at=x", "?at=0", "?at=-1", f"?at={last + 1}", "?at=99999999999999999999"):
        answer = fork(server, query=query, status=400)
        assert answer["error"].startswith("at: "), answer
    fork(server, "nobody", status=404)
    fork(server, ".bad", status=400)
    eq(len(server.get("/sessions").json["sessions"]), 1, "nothing was made")
    eq([p.name for p in t.store.iterdir() if "fork" in p.name], [], "nothing is left")
    refused = server.http("POST", "/sessions/s1:fork", headers={"Origin": "https://evil.example"})
    eq(refused.status, 403, "another origin")
    secret = t.server(env={"SESSION_STORE_PATH": t.dir / "other", "POLYLOOP_TOKEN": "x" * 40})
    eq(secret.http("POST", "/sessions/s1:fork").status, 401, "without the token")


def test_a_running_session_goes_on_and_its_fork_rests(t):
    server = t.server(env={"AUTO_RESUME": "true"})
    client = server.client()
    command = "echo began; while [ ! -e go ]; do sleep 0.05; done; echo x >> ran"
    client.say(call("bash", command=command) + "\nsay: done")
    client.until("approval_request")
    client.review("yes")
    eventually(lambda: "tool_started" in json.dumps(server.events("s1")), "the command runs")
    made = fork(server)["id"]
    new = [event for _, event in entries(server, made)]
    ended = [event for event in new if event["type"] == "turn_ended"]
    eq(len(ended), 1, f"{new}")
    assert "forked" in ended[0]["outcome"]["reason"], ended
    told = [m for m in server.messages(made) if "forked while this was running" in json.dumps(m)]
    eq(len(told), 1, "what the model is told of the command")
    (t.work / "go").write_text("")
    client.until_end()
    eq((t.work / "ran").read_text(), "x\n", "it ran once")
    server.kill()
    server = t.server(env={"AUTO_RESUME": "true"})
    server.client(f"/ws/{made}").still_open()
    eq((t.work / "ran").read_text(), "x\n", "nothing is taken up by itself")


def test_an_open_request_is_withdrawn_in_the_fork_alone(t):
    server = t.server()
    client = server.client()
    client.say(call("write_file", path="a.txt", content="a\n") + "\nsay: done")
    client.until("approval_request")
    made = fork(server)["id"]
    kinds = [event["type"] for _, event in entries(server, made)]
    assert "wait_withdrawn" in kinds and kinds[-1] == "turn_ended", kinds
    client.review("always")
    client.until_end()
    eq((t.work / "a.txt").read_text(), "a\n")
    after = fork(server)["id"]
    other = server.client(f"/ws/{after}")
    other.say(call("write_file", path="a.txt", content="b\n") + "\nsay: done")
    other.until("approval_request")
    eq((t.work / "a.txt").read_text(), "a\n", "what was always allowed there is asked about here")


def test_long_texts_and_kept_contents_outlive_the_other_session(t):
    server = t.server(*AUTO)
    large = os.urandom(2 * 1024 * 1024)
    (t.work / "large.bin").write_bytes(large)
    client = server.client()
    text = "long " * 40_000
    client.turn(f"say: {text}")
    client.turn(call("delete_file", path="large.bin") + "\nsay: done")
    made = fork(server)["id"]
    client.close()
    eventually(lambda: server.http("DELETE", "/sessions/s1").status == 204, "it is put away")
    for path in t.store.glob(".s1-*"):
        os.system(f"rm -rf '{path}'")
    assert text.strip() in json.dumps(server.messages(made)), "the long text"
    answer = server.http("POST", f"/sessions/{made}:undo")
    eq(answer.status, 200, f"{answer}")
    eq((t.work / "large.bin").read_bytes(), large, "the file")


def test_another_programs_file_and_a_damaged_one_can_be_forked(t):
    t.store.mkdir()
    line = {"timestamp": "2026-01-01T00:00:00.000Z", "event_type": "websocket_message_received",
            "direction": "incoming", "message_data": {"id": "1", "type": "user_input", "payload": {
                "input": [{"type": "message", "role": "user",
                           "content": [{"type": "input_text", "text": "old words"}]}]}}}
    (t.store / "old.jsonl").write_text(json.dumps(line) + "\n")
    server = t.server()
    before = (t.store / "old.jsonl").read_bytes()
    made = fork(server, "old")["id"]
    eq((t.store / "old.jsonl").read_bytes(), before, "the original is not even opened")
    lines = (t.store / f"{made}.jsonl").read_bytes()
    assert lines.startswith(before), lines
    server.client(f"/ws/{made}").turn("say: new")
    server.client("/ws/s1").turn("say: x")
    server.kill()
    path = t.store / "s1.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:2], b"{damaged\n", *whole[2:], whole[-1][:20]]))
    server = t.server()
    before = path.read_bytes()
    made = fork(server, "s1")["id"]
    eq(path.read_bytes(), before, "the original stays damaged")
    notices = [e for _, e in entries(server, made) if e["type"] == "noticed"]
    eq([n["code"] for n in notices], ["damaged_file"], "told once")
    server.client(f"/ws/{made}").turn("say: goes on")


def test_what_a_killed_fork_left_is_removed(t):
    server = t.server()
    server.client().turn("say: x")
    server.kill()
    (t.store / ".fork-0f0f.tmp").write_text("half")
    (t.store / "0f0f.blobs").mkdir()
    (t.store / "0f0f.blobs" / "1-0").write_text("text")
    (t.store / "0f0f.live").write_text("")
    server = t.server()
    eq([p.name for p in t.store.iterdir() if "0f0f" in p.name], [], "left")
    eq([s["id"] for s in server.get("/sessions").json["sessions"]], ["s1"])


@talks
def test_every_dialect_sees_the_history_and_what_it_is_a_fork_of(s):
    s.server(*AUTO)
    server = s.t.servers[-1]
    s.unified().turn("say: remembered")
    made = fork(server)["id"]
    unified = s.watcher(made, since=0)
    frames = unified.until("notice")
    assert any("remembered" in json.dumps(frame) for frame in frames), frames
    notice = the(frames, "notice")
    eq(notice["code"], "forked")
    assert "fork of s1" in notice["text"], notice
    told = [m for m in server.messages(made) if "fork of s1" in json.dumps(m)]
    eq([m["type"] for m in told], ["response_item"], "agentloop")
    s.agentloop(session=made)
    client = loom(s)
    client.turn("say: on", made)


def test_forks_of_forks_of_ended_sessions_and_of_ones_that_are_put_away(t):
    server = t.server(*AUTO)
    client = server.client()
    client.turn("say: one")
    first = fork(server)["id"]
    other = server.client(f"/ws/{first}")
    other.turn("say: two")
    second = fork(server, first)["id"]
    told = [event for _, event in entries(server, second) if event["type"] == "forked"]
    eq([event["session"] for event in told], ["s1", first], "both are told")
    early = fork(server, second, query="?at=1")["id"]
    eq([event["type"] for _, event in entries(server, early)][:2], ["session_created", "forked"])
    server.client(f"/ws/{early}").turn("say: from nothing")
    texts = json.dumps(server.messages(second))
    assert "one" in texts and "two" in texts, texts
    client.close()
    eventually(lambda: server.http("DELETE", "/sessions/s1").status == 204, "it is put away")
    fork(server, status=404)
    third = fork(server, second)["id"]
    server.client(f"/ws/{third}").turn("say: three")
    for query in ("?at=1e9", "?at=", "?at=1.5", "?at=1%00", "?at=0x1"):
        answer = server.http("POST", f"/sessions/{third}:fork{query}")
        assert answer.status == 400, f"{query}: {answer}"


def test_forks_of_a_session_that_is_being_written_are_whole_beginnings_of_it(t):
    server = t.server(*AUTO)
    client = server.client()
    client.say("stream: 400 30 5")
    client.until("loading_state")
    made = [fork(server)["id"] for _ in range(12)]
    client.until_end()
    for number in range(3):
        client.turn(call("write_file", path="a.txt", content=f"{number}\n") + "\nsay: x")
    whole = entries(server, "s1")
    for one in made:
        new = entries(server, one)
        at = next(seq for seq, event in new if event["type"] == "forked") - 1
        eq(new[:at], whole[:at], f"the beginning of {one}")
        eq([seq for seq, _ in new], list(range(1, len(new) + 1)), "without gaps")
        eq(new[-1][1]["type"], "turn_ended", "at rest")
        server.client(f"/ws/{one}").turn("say: on")
