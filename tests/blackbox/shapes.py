"""The form of every message a server may send to an AgentLoop client, as the protocol document
writes it, and of every line of a session file."""

import json
import re

TEXT, NUMBER, BOOL = (str,), (int, float), (bool,)


def fields(thing, wanted, what, optional=()):
    """Exactly these fields, each of its type."""
    assert isinstance(thing, dict), f"{what} is no object: {thing!r}"
    unknown = set(thing) - set(wanted) - set(optional)
    assert not unknown, f"{what} has fields that no document names, {unknown}: {thing!r}"
    for name, types in wanted.items():
        assert name in thing, f"{what} lacks {name}: {thing!r}"
        value = thing[name]
        fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        assert fits, f"{what}.{name} has a wrong type: {thing!r}"


def content(parts, what):
    assert isinstance(parts, list) and parts, f"{what}.content is no list with parts: {parts!r}"
    for part in parts:
        fields(part, {"type": TEXT, "text": TEXT}, f"{what}.content[]")
        assert part["type"] == "input_text", f"{what}: text parts are input_text: {part!r}"


def tool_output(text, what):
    """A call's output is always a JSON text of one form."""
    inner = json.loads(text)
    fields(inner, {"output": TEXT, "metadata": (dict,)}, what)
    fields(inner["metadata"], {"exit_code": (int,), "duration_seconds": NUMBER}, f"{what}.metadata")


def response_item(item):
    what = f"response_item {item.get('type')}"
    match item.get("type"):
        case "message":
            wanted = {"id": TEXT, "type": TEXT, "role": TEXT, "content": (list,)}
            fields(item, wanted, what)
            assert item["role"] in ("assistant", "system"), f"role of {item!r}"
            content(item["content"], what)
        case "function_call":
            names = ("id", "type", "call_id", "name", "arguments")
            fields(item, dict.fromkeys(names, TEXT), what)
            if item["name"] == "shell":
                command = json.loads(item["arguments"])["command"]
                assert command and all(isinstance(word, str) for word in command), repr(item)
        case "function_call_output":
            fields(item, dict.fromkeys(("id", "type", "call_id", "output"), TEXT), what)
            tool_output(item["output"], what)
        case "reasoning":
            wanted = {"id": TEXT, "type": TEXT, "content": (list,), "duration_ms": NUMBER}
            fields(item, wanted, what)
            content(item["content"], what)
        case _:
            raise AssertionError(f"no response item that the offline model can cause: {item!r}")


def error(payload):
    fields(payload, {"message": TEXT, "details": (dict,)}, "error")
    fields(payload["details"], {"error": TEXT, "code": (str, int)}, "error.details")
    assert payload["message"] and payload["details"]["error"], f"an error says why: {payload!r}"


def approval_request(payload):
    fields(payload, {"command": (list,)}, "approval_request", optional=("applyPatch",))
    command = payload["command"]
    assert command and all(isinstance(word, str) for word in command), repr(payload)
    if "applyPatch" in payload:
        fields(payload["applyPatch"], {"patch": TEXT}, "applyPatch")


CONTEXT_INFO = {"tokenCount": (int,), "usagePercent": NUMBER, "transcriptLength": (int,),
                "maxTokens": (int,), "strategy": TEXT}
CONTEXT_COMPACTED = {"oldTokenCount": (int,), "newTokenCount": (int,),
                     "reductionPercent": NUMBER, "strategy": TEXT}


def payload(kind, data):
    match kind:
        case "response_item":
            response_item(data)
        case "loading_state":
            fields(data, {"loading": BOOL}, kind)
        case "approval_request":
            approval_request(data)
        case "agent_finished":
            fields(data, {"responseId": TEXT}, kind)
            assert data["responseId"], "an empty responseId"
        case "context_info":
            fields(data, CONTEXT_INFO, kind)
            assert 0 <= data["usagePercent"] <= 100, f"usagePercent is 0–100: {data!r}"
        case "context_compacted":
            fields(data, CONTEXT_COMPACTED, kind)
            assert 0 <= data["reductionPercent"] <= 100, f"reductionPercent is 0–100: {data!r}"
        case "error":
            error(data)
        case _:
            raise AssertionError(f"a message that no document names: {kind}")


def check(frame):
    """A message as it goes to a client. What concerns a session says which, and its place."""
    optional = ("session_id", "seq", "cursor", "settled")
    fields(frame, {"id": TEXT, "type": TEXT, "payload": (dict,)}, "message", optional)
    assert frame["id"], f"an empty id: {frame!r}"
    payload(frame["type"], frame["payload"])
    if frame["type"] not in ("error", "context_info"):
        fields(frame, {"session_id": TEXT, "seq": (int,)}, "message",
               optional=("id", "type", "payload", "cursor", "settled"))
    if "settled" in frame:
        fields(frame["settled"], {"request_id": TEXT, "decision": TEXT, "by": TEXT}, "settled")
    if "cursor" in frame:
        cursor = frame["cursor"]
        assert isinstance(cursor, str) and 0 < len(cursor) < 2048, f"no short string: {cursor!r}"


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def line(event):
    """A line of a session file: the four fields, whatever else it holds."""
    for name, types in {"timestamp": TEXT, "event_type": TEXT, "direction": TEXT}.items():
        assert isinstance(event.get(name), types), f"{name} of {event!r}"
    assert "message_data" in event, f"no message_data: {event!r}"
    assert TIME.fullmatch(event["timestamp"]), f"timestamp of {event!r}"
    assert event["direction"] in ("incoming", "outgoing"), f"direction of {event!r}"
    direction = {"websocket_message_received": "incoming", "websocket_message_sent": "outgoing"}
    if event["event_type"] in direction:
        assert event["direction"] == direction[event["event_type"]], f"direction of {event!r}"
    else:
        assert event["event_type"] == "session_event", f"event_type of {event!r}"
        assert event["message_data"] is None, f"a session_event has no message: {event!r}"
