"""Session files: those of the original program, and those that a crash or a disk damaged."""

import json

import shapes
from frames import item_text, kinds, said
from harness import eq

RECEIVED, SENT = "websocket_message_received", "websocket_message_sent"


def line(time, kind, data):
    direction = "incoming" if kind == RECEIVED else "outgoing"
    event = {"timestamp": f"2025-01-09T12:{time}Z", "event_type": kind, "direction": direction,
             "message_data": data}
    return json.dumps(event, ensure_ascii=False)


def item(ident, payload):
    return {"id": ident, "type": "response_item", "payload": payload}


def assistant(text):
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


# The examples of the server's document, one conversation with a tool call in it.
ORIGINAL = [
    line("34:56.789", RECEIVED, {"event": "session_started"}),
    line("35:01.456", RECEIVED, {
        "id": "msg-123", "type": "user_input",
        "payload": {"input": [{"type": "input_text", "text": "Hello, can you help me?"}]}}),
    line("35:02.100", SENT, {"id": "l-1", "type": "loading_state", "payload": {"loading": True}}),
    line("35:02.789", SENT, item("resp-456", assistant("Hello! I'd be happy to help you."))),
    line("36:15.234", SENT, {
        "id": "approval-789", "type": "approval_request",
        "payload": {"command": ["git", "status"], "applyPatch": None}}),
    line("36:20.567", RECEIVED, {
        "id": "approval-response-abc", "type": "approval_response", "payload": {"review": "YES"}}),
    line("36:21.000", SENT, item("r-2", {
        "id": "call_abc123", "type": "function_call", "call_id": "call_abc123", "name": "shell",
        "arguments": '{"command": ["git", "status"]}'})),
    line("36:22.000", SENT, item("r-3", {
        "id": "output_abc123", "type": "function_call_output", "call_id": "call_abc123",
        "output": '{"output": "On branch main", "metadata": '
                  '{"exit_code": 0, "duration_seconds": 0.1}}'})),
    line("36:30.000", SENT, {"id": "c-1", "type": "context_info", "payload": {"tokenCount": 1}}),
    line("37:00.123", SENT, {
        "id": "error-ghi", "type": "error",
        "payload": {"message": "Command execution failed", "details": {"exitCode": 1}}}),
    line("37:01.000", SENT, {
        "id": "f-1", "type": "agent_finished", "payload": {"responseId": "resp_def456"}}),
    line("45:30.123", RECEIVED, {"event": "session_ended"}),
]
OLD_ID = "a1b2c3d4e5f6789012345678901234567890abcd"


def original(t, lines=None, session=OLD_ID):
    t.store.mkdir(exist_ok=True)
    text = "\n".join(ORIGINAL if lines is None else lines) + "\n"
    (t.store / f"{session}.jsonl").write_text(text)


def info(client):
    client.send("get_context_info")
    return client.until("context_info")[-1]["payload"]


def lines_of(t, session="s1"):
    return (t.store / f"{session}.jsonl").read_text().splitlines()


def notices(server, session="s1"):
    found = [m["payload"] for m in server.messages(session) if m.get("type") == "response_item"]
    return [item_text(i) for i in found if i.get("role") == "system"]


def test_a_file_of_the_original_program_is_listed_and_read(t):
    original(t)
    server = t.server()
    (listed,) = server.get("/sessions").json["sessions"]
    eq(listed, {"id": OLD_ID, "start_time": "2025-01-09T12:34:56.789Z",
                "last_update_time": "2025-01-09T12:45:30.123Z", "event_count": 12,
                "status": "idle", "waiting": 0, "preview": "Hello, can you help me?"}, "the list")
    eq(server.events(OLD_ID), [json.loads(one) for one in ORIGINAL], "events")


def test_a_file_of_the_original_program_is_resumed(t):
    original(t)
    server = t.server()
    client = server.client(f"/ws/{OLD_ID}")
    told = info(client)
    # A user's message, a reply, a call and its result; nothing else is conversation.
    eq(told["transcriptLength"], 4, "transcriptLength")
    assert told["tokenCount"] > 0, told
    eq(said(client.turn("say: here I am")), ["here I am"])
    events = server.events(OLD_ID)
    eq(events[:12], [json.loads(one) for one in ORIGINAL], "the old events stay as they were")
    for event in events:
        shapes.line(event)
    client.send("manual_compact")
    client.until("agent_finished")
    later = "\n".join(lines_of(t, OLD_ID)[12:])
    # The offline model's summary repeats what the user asked for.
    assert "can you help me" in later, "the summary knows the old conversation"


def test_resuming_calls_no_model_and_sends_nothing(t):
    original(t)
    server = t.server()
    client = server.client(f"/ws/{OLD_ID}")
    client.still_open()
    eq(kinds(client.seen), ["context_info"], "frames")
    sent = [m.get("type") for m in server.messages(OLD_ID)[12:]]
    assert "response_item" not in sent and "loading_state" not in sent, sent


def test_a_resumed_session_outlives_the_server(t):
    original(t)
    server = t.server()
    client = server.client(f"/ws/{OLD_ID}")
    client.turn("say: more")
    told, events = info(client), server.events(OLD_ID)
    server.kill()
    server = t.server()
    eq(info(server.client(f"/ws/{OLD_ID}")), told, "context_info after a restart")
    eq(server.events(OLD_ID)[: len(events)], events, "events after a restart")


def test_an_original_file_replays(t):
    original(t)
    client = t.server().client(f"/ws/{OLD_ID}?since=0", checked=False)
    client.send("get_context_info")
    words = kinds(client.until("context_info"))
    want = ["assistant", "function_call", "function_call_output"]
    eq([word for word in words if word in want], want, f"items of {words}")


def test_every_other_line_the_original_program_may_hold(t):
    odd = [
        line("35:00.000", RECEIVED, {"event": "session_connected"}),
        line("35:01.000", SENT, item("1", {"type": "reasoning", "id": "r", "content": [],
                                           "duration_ms": 3})),
        line("35:02.000", SENT, item("2", {"type": "local_shell_call", "id": "s", "call_id": "s",
                                           "action": {"command": ["ls"]}, "status": "completed"})),
        line("35:03.000", SENT, item("3", {"type": "local_shell_call_output", "id": "o",
                                           "call_id": "s", "output": '{"output":""}'})),
        line("35:04.000", SENT, item("4", {"type": "something_new", "id": "n"})),
        line("35:05.000", SENT, item("5", None)), line("35:06.000", SENT, None),
        line("35:07.000", RECEIVED, {"id": "x", "type": "user_input"}),
        line("35:08.000", SENT, {"id": "c", "type": "context_compacted", "payload": {}}),
        line("35:09.000", "some_other_kind", {"a": 1}),
        line("35:10.000", SENT, item("6", {"type": "function_call", "id": "lost",
                                           "call_id": "lost", "name": "shell",
                                           "arguments": "no json"})),
    ]
    original(t, ORIGINAL[:3] + odd)
    server = t.server()
    eq(len(server.events(OLD_ID)), 3 + len(odd), "events")
    client = server.client(f"/ws/{OLD_ID}")
    assert info(client)["transcriptLength"] >= 1
    eq(said(client.turn("say: fine")), ["fine"])


def damaged(t, change):
    """A session of two turns whose file's bytes were changed while no server ran."""
    server = t.server()
    client = server.client()
    client.turn("say: one")
    client.turn("say: two")
    server.kill()
    path = t.store / "s1.jsonl"
    before = path.read_bytes()
    path.write_bytes(change(before))
    return before, t.server()


def test_a_torn_last_line_is_cut_off(t):
    torn = b'{"timestamp":"2025-01-09T12:34:56.789Z","event_type":"websocket_mess'
    before, server = damaged(t, lambda data: data + torn)
    eq([s["id"] for s in server.get("/sessions").json["sessions"]], ["s1"], "the list")
    client = server.client()
    eq(said(client.turn("say: three")), ["three"])
    after = (t.store / "s1.jsonl").read_bytes()
    assert after.startswith(before), "what was whole is untouched"
    for text in after.decode().splitlines():
        shapes.line(json.loads(text))
    eq(info(client)["transcriptLength"], 6, "transcriptLength")


def test_a_last_line_torn_at_every_byte(t):
    server = t.server()
    client = server.client()
    client.turn("say: one")
    server.kill()
    whole = (t.store / "s1.jsonl").read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    step = max(1, (len(whole) - last) // 12)
    for cut in range(last + 1, len(whole), step):
        (t.store / "s1.jsonl").write_bytes(whole[:cut])
        server = t.server()
        client = server.client()
        eq(said(client.turn("say: on")), ["on"], f"cut at {cut}")
        for text in lines_of(t):
            shapes.line(json.loads(text))
        server.kill()


def test_a_tail_of_zeros_is_cut_off(t):
    _, server = damaged(t, lambda data: data + b"\0" * 4096)
    eq([s["id"] for s in server.get("/sessions").json["sessions"]], ["s1"], "the list")
    client = server.client()
    eq(said(client.turn("say: three")), ["three"])
    eq(info(client)["transcriptLength"], 6, "transcriptLength")


def test_a_damaged_line_in_the_middle_is_skipped_and_told(t):
    def change(data):
        parts = data.split(b"\n")
        parts[4] = b'{"this is": no json'
        return b"\n".join(parts)

    before, server = damaged(t, change)
    eq([s["id"] for s in server.get("/sessions").json["sessions"]], ["s1"], "the list")
    client = server.client()
    client.still_open()
    (notice,) = notices(server)
    assert "line 5" in notice or "damage" in notice.lower(), notice
    events = server.events()
    later = [json.loads(text) for text in before.decode().splitlines()[5:]]
    eq(events[4: 4 + len(later)], later, "the events after it")
    eq(said(client.turn("say: three")), ["three"])
    server.kill()
    server = t.server()
    server.client().still_open()
    eq(len(notices(server)), 1, "it is told once")


def test_bytes_that_are_no_text_are_skipped_too(t):
    def change(data):
        parts = data.split(b"\n")
        parts[4] = b"\xff\xfe\x00garbage"
        return b"\n".join(parts)

    _, server = damaged(t, change)
    client = server.client()
    eq(said(client.turn("say: three")), ["three"])
    eq(len(notices(server)), 1, "notices")


def test_a_file_of_nothing_but_garbage_stays_listed(t):
    t.store.mkdir()
    (t.store / "bad.jsonl").write_bytes(b"garbage\nmore garbage\n")
    (t.store / "empty.jsonl").write_bytes(b"")
    server = t.server()
    listed = {s["id"] for s in server.get("/sessions").json["sessions"]}
    eq(listed, {"bad", "empty"}, "the list")
    for session in ("bad", "empty"):
        eq(server.get(f"/sessions/{session}").status, 200, f"GET {session}")
        eq(said(server.client(f"/ws/{session}").turn("say: fine")), ["fine"], session)


def test_other_files_in_the_store_are_left_alone(t):
    t.store.mkdir()
    others = {"notes.txt": "mine", ".hidden.jsonl": "{}", "a b.jsonl": "{}", "x.json": "{}"}
    for name, text in others.items():
        (t.store / name).write_text(text)
    server = t.server()
    server.client().turn("say: x")
    ids = [s["id"] for s in server.get("/sessions").json["sessions"]]
    eq(ids, ["s1"], "the list")
    for name, text in others.items():
        eq((t.store / name).read_text(), text, name)


def test_what_cannot_be_read_does_not_hide_the_rest(t):
    server = t.server()
    server.client().turn("say: x")
    (t.store / "directory.jsonl").mkdir()
    (t.store / "loop.jsonl").symlink_to(t.store / "loop.jsonl")
    answer = server.get("/sessions")
    eq(answer.status, 200, "status")
    assert "s1" in [s["id"] for s in answer.json["sessions"]], answer
    for session in ("directory", "loop"):
        answer = server.get(f"/sessions/{session}")
        assert answer.status in (404, 500, 503) and answer.json["error"], answer


def test_sessions_from_another_clock_and_with_windows_line_ends(t):
    original(t, [text + "\r" for text in ORIGINAL])
    server = t.server()
    client = server.client(f"/ws/{OLD_ID}")
    eq(info(client)["transcriptLength"], 4, "transcriptLength")
    eq(said(client.turn("say: fine")), ["fine"])
