"""A file that held a long text is gone: whoever asks for the text is told, nobody is shown an empty
one, and the session goes on."""

import json

from fakemodel import FakeModel
from frames import item_text
from harness import WAIT_SECS, eq
from sdk_types import ANTHROPIC, COMPLETIONS, RESPONSES
from talk import spoken, talks
from test_models import bash, unasked

# More than a line holds.
LONG = "word " * 20_000
MISSING = "bytes are missing here"
GAP = "cannot be shown"


def stopped(server):
    server.signal(15)
    server.process.wait(WAIT_SECS)


def lost(t, holding):
    """Takes away the long texts with these words in their beginning."""
    found = [p for p in t.store.glob("*.blobs/*") if holding in p.read_text()[:200]]
    assert found, f"no long text holds {holding!r}"
    for path in found:
        path.unlink()


def test_a_lost_text_is_told_where_an_index_knows_better(t):
    server = t.server()
    client = server.client()
    client.turn(f"say: {LONG}")
    for number in range(15):
        client.turn(f"say: {number} " + "more " * 1000)
    stopped(server)
    assert (t.store / "s1.index").exists(), "an index"
    lost(t, "word ")
    server = t.server()
    shown = [item_text(m["payload"]) for m in server.messages()
             if m.get("type") == "response_item" and m["payload"].get("role") == "assistant"]
    eq(len(shown), 16, "answers")
    assert MISSING in shown[0] and str(len(LONG.strip())) in shown[0], shown[0][:200]
    assert "" not in shown, "an empty text is told as if it were true"
    page = server.get("/sessions/s1?after=0&limit=12")
    eq((page.status, MISSING in page.text), (200, True), "a page of it")
    frames = server.client("/ws/s1?since=0", checked=False).until(
        lambda frame: frame["type"] == "response_item" and item_text(frame["payload"])[:3] == "14 ")
    told = [item_text(f["payload"]) for f in frames if f["type"] == "response_item"]
    assert any(GAP in text for text in told), f"who comes anew is told: {told[:3]}"
    eq(server.client().turn("say: on")[-1]["type"], "agent_finished", "it goes on")
    stopped(server)
    told = t.program("sessions", "show", "s1", env={"SESSION_STORE_PATH": t.store})
    assert GAP in told.stdout, told.stdout[:500]
    exported = t.program("sessions", "export", "s1", env={"SESSION_STORE_PATH": t.store})
    assert MISSING in exported.stdout, "the export"
    checked = t.program("sessions", "check", env={"SESSION_STORE_PATH": t.store})
    eq((checked.returncode, "missing" in checked.stdout), (1, True), checked.stdout)


def answers_of_a_lost_output(s, api):
    model = FakeModel(test=s.t)
    env = api.settings(model.url, MODEL_RETRIES="0")
    server = s.server(env=env)
    session = unasked(server)
    client = s.watcher(session)
    call = bash("for i in $(seq 9000); do echo word $i; done")
    model.script([{"blocks": [call]}, {"blocks": [{"say": "done"}]}])
    eq(spoken(client.turn("count")), ["done"])
    stopped(server)
    lost(s.t, "word 2")
    for index in s.t.store.glob("*.index"):
        index.unlink()
    model.clear_requests()
    server = s.server(env=env)
    client = s.watcher(session, complete=False)
    model.script([{"blocks": [{"say": "on"}]}])
    eq(spoken(client.turn("go on")), ["on"])
    # The provider's own types, and a result for every call.
    api.check(model.requests()[-1])
    text = json.dumps(model.requests()[-1]["body"])
    assert "word 9000" not in text, "the text is not gone"
    notices = [e for e in server.events(session) if "damaged" in json.dumps(e)]
    assert notices, "the damage is told"


@talks
def test_a_model_is_told_no_empty_result_completions(s):
    answers_of_a_lost_output(s, COMPLETIONS)


@talks
def test_a_model_is_told_no_empty_result_anthropic(s):
    answers_of_a_lost_output(s, ANTHROPIC)


@talks
def test_a_model_is_told_no_empty_result_responses(s):
    answers_of_a_lost_output(s, RESPONSES)
