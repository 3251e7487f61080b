"""The JSON Schemas of docs/schemas: the golden frames, real conversations and the documents' own
examples satisfy them, and each of them can be dissatisfied."""

import functools
import json
from pathlib import Path

from jsonschema import Draft202012Validator

from harness import eq
from loomtalk import loom, reply, watch
from schema_examples import CLIENT, choices, instance
from talk import talks

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "crates" / "dialects" / "golden"
DIALECTS = ("agentloop", "unified", "loom", "chat")
# Every message that the documents name, and the additions of docs/dialects.
SERVER_TYPES = {
    "agentloop": "response_item loading_state approval_request agent_finished context_info "
                 "context_compacted error",
    "unified": "session_init session_info turn_started turn_completed turn_failed "
               "assistant_message assistant_reasoning tool_started tool_completed control_request "
               "file_changed command_output token_usage context_compaction ask_user_question "
               "exit_plan_mode error heartbeat raw context_info notice session_renamed "
               "approval_settled message_queued message_dropped todos_changed",
    "loom": "run_stream_event run_end tools_list tool_show user_messages pong error",
    "chat": "user_message agent_message tool_call tool_result agent_thinking error",
}
CLIENT_TYPES = {
    "agentloop": "user_input approval_response get_context_info manual_compact interrupt",
    "unified": "session_start session_end set_permission_mode user_message permission_response "
               "user_question_response plan_approval_response interrupt resume cancel compact "
               "get_context set_model set_agent",
    "loom": "run tools_list tool_show user_messages ping cancel_run tool_approval_response",
    "chat": "chat",
}
# Fields that hold whatever a model, a tool or a client put there.
FREE = {"arguments", "input", "data", "metadata"}
WRONG = (17, "text", True, [], {}, None)


@functools.cache
def schema(dialect, side, kind):
    path = ROOT / "docs" / "schemas" / f"{dialect}.{side}.{kind}.json"
    assert path.exists(), f"no schema {path.name}"
    found = json.loads(path.read_text())
    Draft202012Validator.check_schema(found)
    return found


def faults(found, message):
    validator = Draft202012Validator(found)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(message)]


def fits(dialect, side, message, what=""):
    wrong = faults(schema(dialect, side, message["type"]), message)
    assert not wrong, f"{what} {json.dumps(message)[:300]}:\n  " + "\n  ".join(wrong[:5])


def names(types, side):
    return {(dialect, side, kind) for dialect in types for kind in types[dialect].split()}


def schema_files():
    """Dialect, side and type of every schema there is."""
    return [tuple(path.stem.split(".")) for path in sorted((ROOT / "docs/schemas").glob("*.json"))]


# The schemas themselves.


def test_every_message_has_a_schema_and_every_schema_a_message(t):
    found = set(schema_files())
    wanted = names(SERVER_TYPES, "server") | names(CLIENT_TYPES, "client")
    eq(sorted(wanted - found), [], "messages without a schema")
    eq(sorted(found - wanted), [], "schemas of messages that no document names")


def test_every_schema_tells_its_message_by_its_type(t):
    for dialect, side, kind in schema_files():
        found = schema(dialect, side, kind)
        what = f"{dialect}.{side}.{kind}"
        eq(found["properties"]["type"].get("const"), kind, f"type of {what}")
        assert "type" in found["required"], f"{what} does without its type"
        good = instance(found)
        eq(faults(found, good), [], f"an example of {what}, {good}")
        assert faults(found, {**good, "type": "nope"}), f"{what} takes another type"


def test_every_schema_refuses_a_field_of_a_wrong_type(t):
    lax = []
    for dialect, side, kind in schema_files():
        found = schema(dialect, side, kind)
        validator = Draft202012Validator(found)
        for choice in range(choices(found)):
            good = instance(found, whole=True, choice=choice)
            eq(faults(found, good), [], f"a whole example of {dialect}.{side}.{kind}, {good}")
            for path, bad in spoiled(good):
                if not set(path) & FREE and all(validator.is_valid(one) for one in bad):
                    lax.append(f"{dialect}.{side}.{kind} {'.'.join(map(str, path))}")
    eq(sorted(set(lax)), [], "fields that may be anything")


def spoiled(value, path=()):
    """Every place in a message, with copies in which something else stands there."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, part in parts:
        copies = []
        for wrong in (wrong for wrong in WRONG if type(wrong) is not type(part)):
            copy = json.loads(json.dumps(value))
            copy[name] = wrong
            copies.append(copy)
        yield (*path, name), copies
        if isinstance(part, (dict, list)):
            for deeper, inner in spoiled(part, (*path, name)):
                rest = [json.loads(json.dumps(value)) for _ in inner]
                for copy, one in zip(rest, inner):
                    copy[name] = one
                yield deeper, rest


def test_every_schema_needs_what_it_says(t):
    for dialect, side, kind in schema_files():
        found = schema(dialect, side, kind)
        good = instance(found)
        for name in found["required"]:
            less = {field: value for field, value in good.items() if field != name}
            assert faults(found, less), f"{dialect}.{side}.{kind} does without {name}"


# What they describe.


def golden(dialect, what):
    """The lines of a dialect's golden files, and where each stands."""
    for path in sorted(GOLDEN.glob(f"*/{dialect}.{what}.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.parent.name}/{path.name}:{number}", json.loads(line)


def test_golden_frames_of_the_server(t):
    seen = dict.fromkeys(DIALECTS, 0)
    for dialect in DIALECTS:
        told = [(place, frame) for place, frame in golden(dialect, "out")]
        told += [(place, frame) for place, line in golden(dialect, "attach")
                 for frame in line["frames"]]
        for place, frame in told:
            fits(dialect, "server", named(dialect, frame), place)
            seen[dialect] += 1
    assert min(seen.values()) > 100, f"golden frames: {seen}"


def test_golden_frames_of_clients(t):
    for dialect in DIALECTS:
        taken = [(place, line["frame"]) for place, line in golden(dialect, "in") if "ask" in line]
        assert taken, f"golden frames of {dialect}'s clients"
        for place, frame in taken:
            fits(dialect, "client", frame, place)


def named(dialect, frame):
    """A golden frame with an id in the place of `*` or `$name`."""
    if dialect == "unified" and str(frame.get("id", ""))[:1] in ("*", "$"):
        return {**frame, "id": "evt-1"}
    return frame


def test_the_examples_of_the_documents(t):
    for dialect, messages in CLIENT.items():
        for message in messages:
            fits(dialect, "client", message, "an example")
    told = {(dialect, "client", one["type"]) for dialect in CLIENT for one in CLIENT[dialect]}
    eq(sorted(names(CLIENT_TYPES, "client") - told), [], "messages without an example")


def transcript(wire):
    """Both sides of a connection's conversation are as the schemas say."""
    told = set()
    for step in wire.steps:
        side = "client" if "in" in step else "server"
        if "in" in step or "out" in step:
            message = json.loads(step.get("in", step.get("out")))
            fits(wire.dialect, side, message, f"on {wire.opened['path']},")
            told.add(message["type"])
    return told


def covers(told, dialect, *left_out):
    missing = set(SERVER_TYPES[dialect].split()) - told - set(left_out)
    eq(sorted(missing), [], f"messages of {dialect} that did not come")


@talks
def test_a_conversation_in_agentloop(s):
    s.server()
    client = s.agentloop("s1")
    client.turn("think: hm\nsay: one\nrun: ls\nsay: " + "two " * 300)
    client.say("run: touch a\nrun: touch b\nsay: three")
    client.until("approval_request")
    client.review("yes")
    client.until("approval_request")
    client.review("no-continue", customDenyMessage="no")
    client.until_end()
    client.send("get_context_info")
    client.until("context_info")
    client.send("manual_compact")
    client.until("agent_finished")
    client.turn("say: half\nfail: 500")
    client.send("interrupt", {"reason": "x"})
    client.error()
    covers(transcript(client.ws), "agentloop")


@talks
def test_a_conversation_in_unified(s):
    s.server()
    client = s.unified()
    client.start(permission_mode="manual", max_turns=50, metadata={"user_id": "u"})
    client.turn("think: hm\nsay: one\nrun: ls\nusage: 10 20\nsay: " + "two " * 300)
    client.decide(client.asked("run: touch a; echo out\nsay: three"), "allow")
    client.until_end()
    client.decide(client.asked("run: rm a"), "deny", explanation="no")
    client.until_end()
    client.answer(client.asked("ask: Which? | A | B\nsay: x", "ask_user_question"), ["A"])
    client.until_end()
    client.approve(client.asked("plan: 1. do\nsay: x", "exit_plan_mode"), feedback="good")
    client.until_end()
    client.asked("run: touch b")
    queued = client.say("say: later")
    client.send("cancel", target_id=queued)
    client.until("message_dropped")
    client.send("interrupt", reason="enough")
    client.until_end()
    client.send("get_context")
    client.until("context_info")
    client.send("compact")
    client.until_end()
    client.send("nonsense")
    client.error()
    del client.wire.steps[-2]
    client.turn("fail: 500")
    client.turn('tool: todo_write {"todos": [{"content": "a"}]}\nsay: x')
    request = client.asked('tool: write_file {"path": "w", "content": "w"}\nsay: x')
    client.decide(request, "allow")
    client.until_end()
    eq(s.last.http("POST", "/sessions/s1:undo").status, 200, "an undo is noticed")
    client.until("notice")
    s.last.http("PATCH", "/sessions/s1", {"Content-Type": "application/json"}, '{"title":"T"}')
    client.until("session_renamed")
    client.send("session_end")
    client.until(lambda frame: frame.get("status") == "completed")
    covers(transcript(client.wire), "unified", "heartbeat", "raw")


@talks
def test_a_conversation_in_loom(s):
    s.server("--user-message-db", str(s.t.dir / "messages.db"))
    client = loom(s)
    client.turn("think: hm\nsay: one\nrun: ls\nstream: 50 20 1", "t1", verbose=True)
    client.answer(client.asked("run: touch a; echo out\nsay: x", "t1"), True)
    client.until_end()
    client.answer(client.asked("run: touch b\nsay: x"), False, message="no")
    client.until_end()
    for kind, more in (("tools_list", {}), ("tool_show", {"name": "bash"}), ("ping", {}),
                       ("tool_show", {"name": "bash", "output": "json"}),
                       ("tool_show", {"name": "nope"}), ("user_messages", {"thread_id": "t1"})):
        client.ask(kind, **more)
    run = client.asked("run: touch c", "t1")["id"]
    client.send("cancel_run", run_id=run)
    client.until_end()
    watcher = watch(s, "t1", since=0)
    eq(reply(client.turn("say: last", "t1")), "last")
    watcher.until(lambda frame: frame.get("reply") == "last")
    watcher.ask("ping")
    client.turn("say: half\nfail: 500", "t1")
    transcript(watcher.wire)
    covers(transcript(client.wire), "loom")


@talks
def test_a_conversation_in_chat(s):
    s.server()
    client = s.chat()
    client.turn("think: hm\nsay: one\nrun: ls\nrun: touch a\nsay: two", "s1")
    client.turn("say: x")
    client.turn("fail: 500", "s1")
    client.turn(" ")
    covers(transcript(client.wire), "chat")
