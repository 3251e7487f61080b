"""AUDIT_LOG: who came from where and who decided what, and never what was said."""

import json
import os
import re
import signal
from pathlib import Path

from harness import eq, eventually
from talk import talks, the

TOKEN = "correct-horse-battery-staple-42"
DOCS = Path(__file__).resolve().parents[2] / "docs"
AT = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


class Log:
    """An audit log as it stands in its file."""

    def __init__(self, t, path=None):
        self.path = path or t.dir / "audit.log"

    def notes(self, what=None, **fields):
        """Notes of a kind with these fields, oldest first; every line must be one."""
        text = self.path.read_text() if self.path.exists() else ""
        assert not text or text.endswith("\n"), f"a torn line: {text[-200:]!r}"
        notes = [json.loads(line) for line in text.splitlines()]
        for note in notes:
            assert AT.match(note["at"]) and note["what"], note
        fits = lambda note: what in (None, note["what"]) and fields.items() <= note.items()
        return [note for note in notes if fits(note)]

    def one(self, what, **fields):
        """The one note of a kind, which may come a moment later."""
        eventually(lambda: self.notes(what, **fields), f"{what} {fields} is noted")
        [note] = self.notes(what, **fields)
        return note


def local(client):
    """The client's end of its connection."""
    return "{}:{}".format(*client.wire.ws.local_address[:2])


def begin(s, **env):
    log = Log(s.t)
    server = s.server(env={"AUDIT_LOG": log.path, "TOOL_USE_APPROVAL_MODE": "suggest", **env})
    return server, log


@talks
def test_who_approved_what_from_where(s):
    server, log = begin(s)
    asker, other = s.unified(name="ada"), s.watcher(name="bob")
    request = asker.asked('tool: bash {"command": "echo secret-argument > made"}')
    other.until("control_request")
    other.decide(request, "allow")
    asker.until_end()
    other.until_end()
    decided = log.one("decided")
    eq(decided["by"], {"via": "unified", "name": "bob", "from": local(other)}, "who decided")
    eq((decided["session"], decided["tool"], decided["effect"], decided["decision"]),
       ("s1", "bash", "execute", "yes"), "what was decided")
    eq(log.one("message")["by"]["from"], local(asker), "who spoke")
    ran = log.one("tool_started")
    eq((ran["item"], ran["leave"]), (decided["item"], "a person"), "what ran, and why")
    opened = {note["from"]: note for note in log.notes("connection_opened")}
    eq(set(opened), {local(asker), local(other)}, "who came")
    eq({note["dialect"] for note in opened.values()}, {"unified"})
    attached = {note["by"]["name"] for note in log.notes("session_attached", session="s1")}
    eq(attached, {"ada", "bob"}, "who sees the session")
    address = local(other)
    other.wire.close()
    closed = log.one("connection_closed")
    eq((closed["from"], closed["reason"], closed["dialect"]), (address, "client", "unified"))
    assert closed["messages"] == 1 and closed["sent_bytes"] > closed["received_bytes"] > 0, closed
    eq(oct(log.path.stat().st_mode & 0o777), "0o600", "who may read it")


@talks
def test_denials_answers_modes_and_stops(s):
    server, log = begin(s, ALLOW_BYPASS="true")
    client = s.unified(name="ada")
    request = client.asked('tool: bash {"command": "touch x"}')
    client.decide(request, "deny")
    client.until_end()
    eq(log.one("decided")["decision"], "no")
    client.send("set_permission_mode", mode="acceptEdits")
    eq(log.one("mode_set", mode="auto_edit")["by"]["name"], "ada", "who changed the mode")
    client.say("stream: 100000 10 20")
    client.until("assistant_message")
    client.send("interrupt", reason="words-of-a-person")
    client.until_end()
    eq(log.one("interrupted")["by"]["name"], "ada", "who stopped it")
    chat = s.chat()
    chat.turn("say: hello", session="s1")
    eq(log.one("room_joined")["by"]["via"], "chat", "who sees the room")
    chat.turn("say: hello", session="s-of-the-room")
    by = log.one("session_created", session="s-of-the-room")["by"]
    assert by["via"] == "chat" and by["from"].startswith("127.0.0.1:"), f"who made it: {by}"


def test_every_request_and_who_was_turned_away(t):
    log = Log(t)
    server = t.server(env={"AUDIT_LOG": log.path, "POLYLOOP_TOKEN": TOKEN})
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    wrong = server.http("GET", "/sessions?token=wrong-token-wrong-token", {"User-Agent": "one"})
    eq(wrong.status, 401)
    refused = log.one("request", status=401)
    eq((refused["method"], refused["path"], refused["user_agent"]), ("GET", "/sessions", "one"))
    assert "token" in refused["refused"] and refused["from"].startswith("127.0.0.1:"), refused
    made = server.http("POST", "/sessions", bearer)
    eq(made.status, 201)
    session = made.json["id"]
    eq(log.one("request", method="POST", status=201)["token"], "header", "how it was let in")
    created = log.one("session_created", session=session)
    eq(created["by"]["via"], "rest")
    eq(created["by"]["from"], log.one("request", method="POST", status=201)["from"], "from where")
    title = json.dumps({"title": "words-of-a-person"}).encode()
    eq(server.http("PATCH", f"/sessions/{session}", bearer, title).status, 200)
    eq(log.one("setting_set")["setting"], "title")
    eq(server.upgrade("/ws/s1", ["Origin: http://evil.example"]), 403)
    log.one("request", status=403, path="/ws/s1")
    eq(server.http("GET", f"/metrics?token={TOKEN}").status, 200)
    eq(log.one("request", path="/metrics")["token"], "url")
    eventually(lambda: server.http("DELETE", f"/sessions/{session}", bearer).status == 204, "gone")
    log.one("request", method="DELETE", path=f"/sessions/{session}", status=204)
    text = log.path.read_text()
    for secret in (TOKEN, "wrong-token", "words-of-a-person"):
        assert secret not in text, f"{secret} is in the audit log"


@talks
def test_a_fork_is_a_session_that_somebody_made(s):
    server, log = begin(s)
    client = s.unified()
    client.turn("say: one")
    made = server.http("POST", "/sessions/s1:fork")
    eq(made.status, 201, f"{made}")
    noted = log.one("session_created", session=made.json["id"])
    eq((noted["forked_from"], noted["by"]["via"]), ("s1", "rest"), f"{noted}")
    assert noted["by"]["from"].startswith("127.0.0.1:") and noted["upto"] > 1, noted


@talks
def test_nothing_that_was_said_and_no_secret_is_in_it(s):
    from fakemodel import FakeModel
    from test_model_faults import KEY, access

    model = FakeModel(test=s.t)
    model.script([{"blocks": [{"think": "canary-thought"}, {"say": "canary-answer"},
                              {"call": "bash", "args": {"command": "echo canary-argument"}}]},
                  {"blocks": [{"say": "canary-end"}]}])
    server, log = begin(s, **access("responses", model.url), POLYLOOP_TOKEN=TOKEN)
    client = s.unified(f"/unified?token={TOKEN}")
    client.say("canary-message")
    client.until("turn_completed")
    client.wire.close()
    log.one("connection_closed")
    text = log.path.read_text()
    assert "tool_started" in text and '"path":"/unified"' in text, text
    for secret in ("canary", KEY, TOKEN, "token="):
        assert secret not in text, f"{secret} is in the audit log: {text}"


@talks
def test_hostile_names_and_paths_stay_in_their_lines(s):
    server, log = begin(s)
    odd = 'x"}\n{"what":"decided","by":"root"}\x1b[2J'
    client = s.unified(name=odd)
    client.turn("say: x")
    server.get("/%0a%7b%22what%22:%22decided%22%7d", **{"User-Agent": "y" * 5_000})
    asked = log.one("request", status=404)
    assert len(asked["user_agent"]) < 300, asked
    eq(log.notes("decided"), [], "forged notes")
    assert "\x1b" not in log.path.read_text(), "a terminal's codes"


@talks
def test_a_file_that_is_moved_away_is_followed_by_a_new_one(s):
    server, log = begin(s)
    client = s.unified()
    client.turn("say: x")
    log.one("message")
    old = log.path.with_suffix(".1")
    os.rename(log.path, old)
    client.turn("say: y")
    eventually(lambda: log.notes("message"), "the new file has the second message")
    before = Log(s.t, old)
    eq((len(before.notes("message")), len(log.notes("message"))), (1, 1), "messages in each")
    eq(before.notes("connection_closed"), [])
    server.signal(signal.SIGTERM)
    eq(server.process.wait(30), 0, "exit status")
    eq(log.one("connection_closed")["reason"], "shutdown", "the last notes are written")
    # The next server goes on with it.
    before = len(log.notes())
    s.server(env={"AUDIT_LOG": log.path})
    s.unified().turn("say: z")
    eventually(lambda: len(log.notes()) > before, "it is added to")


@talks
def test_a_disk_that_is_full_loses_notes_and_nothing_else(s):
    server = s.server(env={"AUDIT_LOG": "/dev/full"})
    client = s.unified()
    for _ in range(3):
        client.turn("say: x")
    lost = re.compile(r"^polyloop_audit_notes_lost_total [1-9]", re.M)
    eventually(lambda: lost.search(server.get("/metrics").text), "the loss is counted")
    said = server.stderr()
    eq(said.count("the audit log cannot be written"), 1, f"people are told once: {said}")


def test_a_file_that_cannot_be_made_stops_the_start(t):
    ended = t.program("serve", "--port", "0", env={"AUDIT_LOG": "/no/such/folder/audit.log"})
    eq(ended.returncode, 1)
    assert "AUDIT_LOG: /no/such/folder/audit.log cannot be written" in ended.stderr, ended.stderr


@talks
def test_the_agent_keeps_its_hands_off_it(s):
    server, log = begin(s, AUDIT_LOG=s.t.work / "audit.log")
    log.path = s.t.work / "audit.log"
    client = s.unified()
    client.say("say: x")
    client.until_end()
    log.one("connection_opened")
    frames = client.turn('tool: read {"path": "audit.log"}')
    eq(the(frames, "tool_completed")["success"], False, "it was read")
    assert "connection_opened" not in json.dumps(server.events("s1")), "the agent has seen it"


def test_every_kind_of_note_is_documented(t):
    """The words that the program has, and the table's."""
    crates = DOCS.parent / "crates"
    sources = [*crates.glob("agent/src/audit*.rs"), crates / "agent/src/actor/noted.rs",
               crates / "server/src/access.rs"]
    kinds = set()
    for source in sources:
        said = re.findall(r'(?:note|note_with|by|line)\(\s*"([a-z_]+)"', source.read_text())
        kinds.update(said)
    rows = (DOCS / "OPERATIONS.md").read_text().split("## The audit log")[1]
    cells = [line.split("|")[1] for line in rows.splitlines() if line.startswith("| `")]
    documented = {word for cell in cells for word in re.findall(r"`([a-z_]+)`", cell)} - {"what"}
    eq(kinds, documented, "kinds of notes")
