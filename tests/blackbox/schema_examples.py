"""Messages to check schemas with: what the documents' examples show clients to send, and whatever
a schema itself says would do."""

UUID = "550e8400-e29b-41d4-a716-44665544000"
S = {"session_id": "session-456"}
INPUT = "Please check the git status and list the files in the current directory"

CLIENT = {
    "agentloop": [
        {"id": f"{UUID}0", "type": "user_input", "payload": {"input": [
            {"type": "message", "role": "user",
             "content": [{"type": "input_text", "text": INPUT}]}]}},
        {"id": f"{UUID}1", "type": "approval_response",
         "payload": {"review": "yes", "customDenyMessage": None}},
        {"id": f"{UUID}2", "type": "get_context_info"},
        {"id": f"{UUID}2", "type": "get_context_info", "payload": {}},
        {"id": f"{UUID}3", "type": "manual_compact"},
        {"id": f"{UUID}4", "type": "interrupt", "payload": {"reason": "enough"}},
    ],
    "unified": [
        {"type": "session_start", "id": "msg-001", **S, "permission_mode": "manual",
         "max_turns": 10, "metadata": {"user_id": "user-123", "project": "my-project"}},
        {"type": "session_end", "id": "msg-002", **S},
        {"type": "set_permission_mode", "id": "msg-003", **S, "mode": "auto"},
        {"type": "user_message", "id": "msg-004", **S,
         "content": "Please help me debug this code", "parent_tool_use_id": None},
        {"type": "permission_response", "id": "msg-005", **S, "request_id": "req-001",
         "decision": "allow", "explanation": "This operation is safe"},
        {"type": "user_question_response", "id": "msg-006", **S, "tool_id": "tool-890",
         "answers": [{"question_index": 0, "selected": ["Option A: Fast but less flexible"]}]},
        {"type": "plan_approval_response", "id": "msg-007", **S, "tool_id": "tool-891",
         "approved": True, "feedback": "Looks good, proceed with implementation"},
        {"type": "interrupt", "id": "msg-008", **S, "reason": "User requested stop"},
        {"type": "resume", "id": "msg-009", **S},
        {"type": "cancel", "id": "msg-010", **S, "target_id": "msg-004"},
        {"type": "compact", "id": "msg-011", **S},
        {"type": "get_context", "id": "msg-012", **S},
        {"type": "set_model", "id": "msg-013", **S, "model": "offline"},
        {"type": "set_agent", "id": "msg-014", **S, "agent": "react"},
    ],
    "loom": [
        {"type": "run", "message": "What time is it?", "agent": "react"},
        {"type": "run", "message": "x", "agent": "got", "id": "1", "thread_id": "t",
         "working_folder": "/tmp", "got_adaptive": True, "verbose": False},
        {"type": "run", "message": "x", "agent": "dup", "id": None, "thread_id": None,
         "working_folder": None, "got_adaptive": None, "verbose": None},
        {"type": "tools_list", "id": "1"},
        {"type": "tools_list", "id": "1", "working_folder": None, "thread_id": "t"},
        {"type": "tool_show", "id": "1", "name": "read"},
        {"type": "tool_show", "id": "1", "name": "web_fetcher", "output": "json",
         "working_folder": "/tmp", "thread_id": None},
        {"type": "user_messages", "id": "1", "thread_id": "t"},
        {"type": "user_messages", "id": "1", "thread_id": "t", "before": 9, "limit": 100},
        {"type": "ping", "id": "1"},
        {"type": "cancel_run", "id": "1", "run_id": "run-1"},
        {"type": "tool_approval_response", "id": "1", "run_id": "run-1", "call_id": "call_1",
         "approved": False, "message": "no"},
    ],
    "chat": [
        {"type": "chat", "message": "Hello agent", "session_id": "optional-session-id"},
        {"type": "chat", "message": "Hello agent"},
    ],
}


def choices(schema):
    """How many alternatives a schema has where it has the most."""
    inner = schema.values() if isinstance(schema, dict) else schema
    deeper = [choices(part) for part in inner if isinstance(part, (dict, list))]
    here = [len(schema[name]) for name in ("oneOf", "anyOf")
            if isinstance(schema, dict) and isinstance(schema.get(name), list)]
    return max([1, *here, *deeper])


def instance(schema, whole=False, choice=0, root=None):
    """A value that satisfies a schema; with `whole`, one that has every field. Of alternatives it
    is the one of that number."""
    if schema is True:
        return "anything"
    root = root or schema
    more = {"whole": whole, "choice": choice, "root": root}
    if "$ref" in schema:
        return instance(root["$defs"][schema["$ref"].rpartition("/")[2]], **more)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][choice % len(schema["enum"])]
    merged = {}
    if either := schema.get("oneOf") or schema.get("anyOf"):
        merged = instance(either[choice % len(either)], **more)
        if not isinstance(merged, dict):
            return merged
    for part in schema.get("allOf", []):
        merged |= instance(part, **more)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        return {**merged, **_object(schema, more)}
    return merged or _plain(schema, kind, more)


def _object(schema, more):
    fields = schema.get("properties", {})
    wanted = fields if more["whole"] else schema.get("required", [])
    return {name: instance(fields[name], **more) for name in wanted if name in fields}


def _plain(schema, kind, more):
    if kind == "array":
        least = schema.get("minItems", 0)
        least = max(1, least) if more["whole"] else least
        return [instance(schema.get("items", {}), **more) for _ in range(least)]
    if kind == "string":
        return schema.get("pattern", "^text").lstrip("^").rstrip("$") + "1"
    known = {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1),
             "boolean": True, "null": None}
    return known.get(kind, "anything")
