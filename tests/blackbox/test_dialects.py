"""Which of the four dialects a connection speaks: every way to say so, and what outranks what."""

import json

from websockets.exceptions import InvalidStatus

from harness import eq
from loomtalk import loom, reply
from talk import Talker, spoken, talks

NAMES = ("agentloop", "unified", "loom", "chat")
S1 = {"session_id": "s1"}
USER_INPUT = {"input": [{"type": "message", "role": "user",
                         "content": [{"type": "input_text", "text": "say: x"}]}]}
# The twenty documented types, each in a message that may be sent first.
FIRST = {
    "agentloop": [
        {"type": "user_input", "id": "1", "payload": USER_INPUT},
        {"type": "approval_response", "id": "1", "payload": {"review": "yes"}},
        {"type": "get_context_info", "id": "1"},
        {"type": "manual_compact", "id": "1"},
    ],
    "unified": [
        {"type": "session_start", "id": "1", **S1},
        {"type": "session_end", "id": "1", **S1},
        {"type": "set_permission_mode", "id": "1", "mode": "auto", **S1},
        {"type": "user_message", "id": "1", "content": "say: x", **S1},
        {"type": "permission_response", "id": "1", "request_id": "r", "decision": "allow", **S1},
        {"type": "user_question_response", "id": "1", "tool_id": "r", "answers": [], **S1},
        {"type": "plan_approval_response", "id": "1", "tool_id": "r", "approved": True, **S1},
        {"type": "interrupt", "id": "1", **S1},
        {"type": "resume", "id": "1", **S1},
        {"type": "cancel", "id": "1", "target_id": "x", **S1},
    ],
    "loom": [
        {"type": "run", "message": "say: x", "agent": "react"},
        {"type": "tools_list", "id": "1"},
        {"type": "tool_show", "id": "1", "name": "bash"},
        {"type": "user_messages", "id": "1", "thread_id": "t"},
        {"type": "ping", "id": "1"},
    ],
    "chat": [{"type": "chat", "message": "say: x"}],
}
# What answers the quickest of them.
QUICK = {
    "agentloop": ({"type": "get_context_info", "id": "1"}, "context_info"),
    "unified": ({"type": "session_start", "id": "1", **S1}, "session_init"),
    "loom": ({"type": "ping", "id": "1"}, "pong"),
    "chat": ({"type": "chat", "message": "say: x"}, "user_message"),
}
NOBODYS = [
    "{", "", "[]", "null", "7", '"run"', "{}", '{"type":7}', '{"type":null}', '{"id":"1"}',
    b"\xff", '{"type":"nope"}', '{"type":""}', '{"type":"Ping","id":"1"}', '{"type":"ping "}',
    '{"type":"runs"}', '{"type":"user_inputs"}', '{"type":"user_messag"}', '{"type":"chats"}',
    # Additions do not decide.
    '{"type":"cancel_run","id":"1","run_id":"x"}', '{"type":"tool_approval_response","id":"1"}',
    '{"type":"compact","session_id":"s1"}', '{"type":"get_context","session_id":"s1"}',
    '{"type":"set_model","session_id":"s1","model":"x"}', '{"type":"set_agent"}',
    # What servers send does not either.
    '{"type":"pong","id":"1"}', '{"type":"agent_message"}', '{"type":"error","error":"x"}',
]


def opened(s, path, dialect, subprotocols=None, **options):
    """A connection, as the dialect that it should turn out to speak."""
    more = {"subprotocols": subprotocols} if subprotocols else {}
    return Talker(s._wire(path, dialect, {}, complete=False, **more, **options), None)


def say(client, message):
    client.raw(message if isinstance(message, (str, bytes)) else json.dumps(message))


def shape(frame):
    """The dialect of an error; chat and the undecided share theirs."""
    eq(frame["type"], "error", f"answer {frame}")
    if "payload" in frame:
        eq(sorted(frame["payload"]), ["details", "message"], f"an error of agentloop: {frame}")
        return "agentloop"
    if "is_fatal" in frame:
        assert {"id", "message"} <= set(frame), f"an error of unified: {frame}"
        return "unified"
    assert {"type", "error"} <= set(frame) and isinstance(frame["error"], str), frame
    return "plain"


def spoken_by(client):
    """Which dialect the connection speaks, by how it complains; "none" if it was undecided."""
    say(client, {"type": "cancel_run", "id": "probe", "run_id": "x"})
    frame = client.until("error")[-1]
    if shape(frame) != "plain":
        return shape(frame)
    if frame.get("id") == "probe":
        return "loom"
    say(client, {"type": "ping", "id": "probe"})
    frame = client.until(lambda frame: frame["type"] in ("error", "pong"))[-1]
    return "none" if frame["type"] == "pong" else "chat"


def speaks(s, path, dialect, subprotocols=None, echo=None):
    client = opened(s, path, dialect, subprotocols)
    eq(client.wire.ws.subprotocol, echo, f"subprotocol of {path} {subprotocols}")
    eq(spoken_by(client), dialect, f"dialect of {path} {subprotocols}")
    client.wire.close()


# The table.


@talks
def test_subprotocols(s):
    s.server()
    for name in NAMES:
        for path in ("/", "/ws"):
            speaks(s, path, name, [f"{name}.v1"], f"{name}.v1")
            speaks(s, path, name, ["other", f"{name}.v1", "more"], f"{name}.v1")


@talks
def test_of_several_subprotocols_the_first_counts(s):
    s.server()
    for first in NAMES:
        for second in NAMES:
            offered = list(dict.fromkeys([f"{first}.v1", f"{second}.v1"]))
            speaks(s, "/", first, offered, f"{first}.v1")


@talks
def test_query(s):
    s.server()
    for name in NAMES:
        for path in ("/", "/ws", "/ws/"):
            speaks(s, f"{path}?protocol={name}", name)


@talks
def test_paths(s):
    s.server()
    for path, name in (("/agentloop", "agentloop"), ("/agentloop/s1", "agentloop"),
                       ("/unified", "unified"), ("/loom", "loom"), ("/chat", "chat"),
                       ("/ws/s1", "agentloop")):
        speaks(s, path, name)


@talks
def test_ws_with_a_session_is_unified_and_greeted_at_once(s):
    s.server()
    client = opened(s, "/ws?session_id=s1", "unified")
    frame = client.recv()
    eq((frame["type"], frame["session_id"], frame["success"]), ("session_init", "s1", True))
    eq(spoken_by(client), "unified")


@talks
def test_subprotocol_outranks_query_outranks_path_outranks_session(s):
    s.server()
    for one in NAMES:
        for other in NAMES:
            speaks(s, f"/?protocol={other}", one, [f"{one}.v1"], f"{one}.v1")
            speaks(s, f"/{other}", one, [f"{one}.v1"], f"{one}.v1")
            speaks(s, f"/{other}?protocol={one}", one)
        speaks(s, "/ws/s1", one, [f"{one}.v1"], f"{one}.v1")
        speaks(s, f"/ws/s1?protocol={one}", one)
        speaks(s, "/ws?session_id=s1", one, [f"{one}.v1"], f"{one}.v1")
        speaks(s, f"/ws?session_id=s1&protocol={one}", one)
        speaks(s, f"/{one}?session_id=s1", one)
        speaks(s, "/?protocol=nope", one, [f"{one}.v1"], f"{one}.v1")
    speaks(s, "/ws/s1?session_id=s1", "agentloop")


@talks
def test_an_unknown_protocol_is_refused_before_the_upgrade(s):
    s.server()
    for path in ("/", "/ws", "/ws/s1", "/agentloop", "/unified", "/loom", "/chat"):
        for name in ("nope", "", "Loom", "loom.v1", "loom%20"):
            try:
                opened(s, f"{path}?protocol={name}", "loom")
                raise AssertionError(f"{path}?protocol={name} was taken")
            except InvalidStatus as refused:
                eq(refused.response.status_code, 400, f"{path}?protocol={name}")
                told = json.loads(refused.response.body)["error"]
                assert "loom" in told, f"it says what there is: {told}"


@talks
def test_an_unknown_subprotocol_decides_nothing(s):
    s.server()
    for offered in ("other", "loom", "Loom.v1", "loom.v2"):
        client = opened(s, "/", "loom", [offered])
        eq(client.wire.ws.subprotocol, None, f"echo of {offered}")
        eq(spoken_by(client), "none", f"dialect of {offered}")


# The first message.


def decides(s, path, name):
    for message in FIRST[name]:
        client = opened(s, path, name)
        say(client, message)
        client.recv()
        eq(spoken_by(client), name, f"{path} after {message['type']}")
        client.wire.close()


@talks
def test_the_first_message_decides_agentloop(s):
    s.server()
    for path in ("/", "/ws"):
        decides(s, path, "agentloop")


@talks
def test_the_first_message_decides_unified(s):
    s.server()
    for path in ("/", "/ws"):
        decides(s, path, "unified")


@talks
def test_the_first_message_decides_loom(s):
    s.server()
    for path in ("/", "/ws"):
        decides(s, path, "loom")


@talks
def test_the_first_message_decides_chat(s):
    s.server()
    for path in ("/", "/ws"):
        decides(s, path, "chat")


@talks
def test_a_binary_first_message_decides_too(s):
    s.server()
    for name, (message, answer) in QUICK.items():
        client = opened(s, "/", name)
        say(client, json.dumps(message).encode())
        eq(client.recv()["type"], answer, name)


@talks
def test_a_bad_message_of_a_documented_type_decides(s):
    s.server()
    for name, kind in (("agentloop", "user_input"), ("unified", "user_message"), ("loom", "run")):
        client = opened(s, "/", name)
        say(client, {"type": kind})
        client.until("error")
        eq(spoken_by(client), name, f"after a bad {kind}")


@talks
def test_what_nobody_knows_decides_nothing(s):
    s.server()
    for path in ("/", "/ws"):
        for name, (message, answer) in QUICK.items():
            client = opened(s, path, name)
            for nonsense in NOBODYS:
                say(client, nonsense)
                frame = client.recv()
                eq((frame["type"], sorted(frame)), ("error", ["error", "type"]),
                   f"{path} to {nonsense!r}")
                assert isinstance(frame["error"], str) and frame["error"], frame
            say(client, message)
            eq(client.recv()["type"], answer, f"{path}, then {name}")
            if name == "chat":
                # All that are on `/ws` would be told, the next one too.
                client.until("agent_message")
            eq(spoken_by(client), name, f"{path}, then {name}")
            client.wire.close()


@talks
def test_the_undecided_are_told_alone(s):
    s.server()
    member = s.chat(session="room")
    member.turn("say: x")
    viewer, lost = opened(s, "/ws", "loom"), opened(s, "/ws", "loom")
    for nonsense in NOBODYS:
        say(lost, nonsense)
        eq(lost.recv()["type"], "error", f"{nonsense!r}")
    member.turn("say: y")
    heard = [frame["type"] for frame in viewer.until("agent_message")]
    eq(heard, ["user_message", "agent_message"], "what a silent viewer hears")
    eq([frame["type"] for frame in member.seen if frame["type"] == "error"], [], "errors")


@talks
def test_who_was_undecided_hears_the_room_no_more(s):
    s.server()
    viewer = opened(s, "/ws", "loom")
    say(viewer, {"type": "ping", "id": "1"})
    eq(viewer.recv()["type"], "pong")
    s.chat(session="room").turn("say: x")
    say(viewer, {"type": "ping", "id": "2"})
    eq(viewer.recv(), {"type": "pong", "id": "2"}, "nothing of the room came")


# It sticks.


@talks
def test_a_decided_connection_stays_so(s):
    s.server()
    plain = {"agentloop": "agentloop", "unified": "unified", "loom": "plain", "chat": "plain"}
    for name in NAMES:
        client = opened(s, f"/{name}", name)
        foreign = [m for other in NAMES if other != name for m in FIRST[other]]
        # AgentLoop has an interrupt too, as an addition.
        for message in (m for m in foreign if (name, m["type"]) != ("agentloop", "interrupt")):
            say(client, {**message, "id": "1"})
            frame = client.recv()
            eq(shape(frame), plain[name], f"{name} to {message['type']}")
            assert message["type"] in json.dumps(frame), f"it names the type: {frame}"
        eq(spoken_by(client), name, "the dialect afterwards")
        client.wire.close()
    eq(s.sessions(), [], "nothing was begun")


# Attaching.


@talks
def test_a_session_named_in_the_address_is_attached(s):
    s.server()
    unified = s.unified()
    watchers = {
        "agentloop": [opened(s, path, "agentloop") for path in (
            "/agentloop/s1", "/ws/s1", "/agentloop?session_id=s1",
            "/?protocol=agentloop&session_id=s1")],
        "unified": [opened(s, path, "unified") for path in (
            "/unified?session_id=s1", "/ws?session_id=s1", "/?protocol=unified&session_id=s1")],
        "loom": [opened(s, path, "loom") for path in (
            "/loom?session_id=s1", "/loom?thread_id=s1", "/ws?protocol=loom&thread_id=s1")],
        "chat": [opened(s, path, "chat") for path in (
            "/chat?session_id=s1", "/?protocol=chat&session_id=s1")],
    }
    request = unified.asked("run: touch a\nsay: done")
    unified.decide(request, "allow")
    eq(spoken(unified.until_end()), ["done"])
    ends = {"agentloop": "agent_finished", "unified": "turn_completed", "loom": "run_end",
            "chat": "agent_message"}
    for name, clients in watchers.items():
        for client in clients:
            frames = client.until(ends[name])
            about = {frame["session_id"] for frame in frames if "session_id" in frame}
            eq(about, {"s1"}, f"{client.wire.opened['path']} is told of")


@talks
def test_a_session_named_on_the_bare_path_is_attached_when_the_dialect_is_known(s):
    s.server()
    watchers = []
    for name, end in (("agentloop", "agent_finished"), ("loom", "run_end")):
        message, answer = QUICK[name]
        client = opened(s, "/?session_id=s1", name)
        say(client, message)
        client.until(answer)
        watchers.append((client, end))
    eq(reply(loom(s).turn("say: x", "s1")), "x")
    for client, end in watchers:
        eq(client.until(end)[-1]["session_id"], "s1", f"{client.wire.opened['path']}")
