"""Unified: whatever a client sends gets one harmless error, and the connection goes on."""

import json

from harness import eq
from talk import spoken, talks

DEEP = 2000


def one_error_each(client, table):
    """Each text gets one error and nothing else."""
    for text in table:
        client.raw(text)
        shown = text[:200]
        frame = client.recv()
        eq((frame["type"], frame.get("is_fatal")), ("error", False), f"{shown!r} got {frame}")
        assert frame["message"], f"{shown!r}: an error says why"
        client.still_open()


def message(kind, **fields):
    return json.dumps({"type": kind, "id": "m", "session_id": "s1", **fields})


def with_value(kind, field, value, **others):
    """A message whose field has a value that is given as JSON text."""
    return message(kind, **others, **{field: "HERE"}).replace('"HERE"', value)


def opened(s, **options):
    s.server(**options)
    client = s.unified()
    client.start()
    return client


@talks
def test_what_is_no_json(s):
    client = opened(s)
    one_error_each(client, [
        "", " ", "{", "}", "nope", "{'type':'interrupt'}", '{"type":}', "[1,", "nul", "{}{}",
        "\0", message("get_context")[:-1], message("get_context") + "x",
        message("user_message", content="say: x").replace("say", "sa\0y"),
        message("user_message", content="say: x").replace("say", "sa\ny"), "NaN", "Infinity",
        "\ufeff" + message("get_context"), '{"type":"interrupt",}', "// x", "{\"a\":01}",
    ])


@talks
def test_what_is_no_object(s):
    client = opened(s)
    one_error_each(client, [
        "[]", "[1]", '["user_message"]', "null", "true", "1", "1.5", '"interrupt"', "[{}]",
        '["user_message", "m", "s1", "say: x", null]',
    ])


@talks
def test_types_that_are_none(s):
    client = opened(s)
    kinds = ["nope", "", "chat", "run", "user_messages", "USER_MESSAGE", "user_message ", "user",
             "user_input", "turn_started", "session_init", "\0", "x" * 100_000, "type", "ping"]
    one_error_each(client, [message(kind, content="say: x", message="x") for kind in kinds])
    one_error_each(client, ["{}", '{"session_id":"s1"}', '{"type":null}', '{"type":1}',
                            '{"type":["user_message"]}', '{"type":{}}', '{"Type":"resume"}'])


# A field that must hold a text; what else it may not hold.
NO_TEXT = ["1", "true", "[]", "{}", "1.5", '["x"]', "-0", "1e400"]
FIELDS = {
    "user_message": {"content": [*NO_TEXT, "null"], "parent_tool_use_id": NO_TEXT},
    "set_permission_mode": {"mode": [*NO_TEXT, "null"]},
    "interrupt": {"reason": NO_TEXT},
    "cancel": {"target_id": [*NO_TEXT, "null"]},
    "set_model": {"model": [*NO_TEXT, "null"]},
    "set_agent": {"agent": [*NO_TEXT, "null"]},
    "session_start": {
        "permission_mode": NO_TEXT,
        "max_turns": ['"1"', "true", "[]", "{}", "-1", "0", "1.5", "1e3", "1e400",
                      "99999999999999999999", "-99999999999999999999"],
        "metadata": ['"x"', "1", "true", "[]", '[["user_id","x"]]'],
    },
    "permission_response": {
        "request_id": [*NO_TEXT, "null"], "decision": [*NO_TEXT, "null"], "explanation": NO_TEXT,
    },
    "user_question_response": {
        "tool_id": NO_TEXT, "request_id": NO_TEXT,
        "answers": ['"x"', "1", "true", "{}", "null", "[1]", '["x"]', "[null]", "[{}]",
                    '[{"question_index":0}]', '[{"selected":["a"]}]',
                    '[{"question_index":"0","selected":["a"]}]',
                    '[{"question_index":-1,"selected":["a"]}]',
                    '[{"question_index":1.5,"selected":["a"]}]',
                    '[{"question_index":99999999999999999999,"selected":["a"]}]',
                    '[{"question_index":0,"selected":"a"}]',
                    '[{"question_index":0,"selected":[1]}]',
                    '[{"question_index":0,"selected":null}]'],
    },
    "plan_approval_response": {
        "tool_id": NO_TEXT, "request_id": NO_TEXT, "feedback": NO_TEXT,
        "approved": ['"true"', "1", "0", "null", "[]", "{}", '"yes"'],
    },
}
WHOLE = {
    "user_message": {"content": "say: x"}, "set_permission_mode": {"mode": "manual"},
    "interrupt": {}, "cancel": {"target_id": "x"}, "set_model": {"model": "x"},
    "set_agent": {"agent": "react"}, "session_start": {},
    "permission_response": {"request_id": "req-1", "decision": "allow"},
    "user_question_response": {"tool_id": "req-1", "answers": []},
    "plan_approval_response": {"tool_id": "req-1", "approved": True},
}


@talks
def test_fields_of_a_wrong_type(s):
    client = opened(s)
    for kind, fields in FIELDS.items():
        for field, values in fields.items():
            one_error_each(client, [with_value(kind, field, v, **{
                k: w for k, w in WHOLE[kind].items() if k != field}) for v in values])


@talks
def test_fields_that_are_missing(s):
    client = opened(s)
    for kind, fields in WHOLE.items():
        for field in fields:
            left = {k: v for k, v in fields.items() if k != field}
            one_error_each(client, [message(kind, **left)])


@talks
def test_ids_of_a_wrong_type(s):
    client = opened(s)
    one_error_each(client, [message("user_message", content="say: x").replace('"m"', value)
                            for value in ("1", "[]", "{}", "true", "1.5")])


@talks
def test_a_missing_session_id(s):
    s.server()
    client = s.unified()
    for kind, fields in WHOLE.items():
        client.raw(json.dumps({"type": kind, "id": "m", **fields}))
        client.error()
    eq(s.sessions(), [], "sessions")
    eq(spoken(client.turn("say: x")), ["x"], "the connection afterwards")


@talks
def test_a_bad_session_id(s):
    s.server()
    client = s.unified()
    bad = ["", "a/b", "../x", "..", ".", ".hidden", "a" * 129, "ä", "a b", "a\0", "a\n", "/etc",
           "a%2fb", "s1 ", "\\x", "*", 1, [], {}, True, 1.5]
    for name in bad:
        for kind in ("user_message", "session_start", "interrupt"):
            client.raw(json.dumps({"type": kind, "session_id": name, "content": "say: x"}))
            client.error()
    eq(s.sessions(), [], "sessions")
    for name in ("a" * 128, "A-z_0.9", "-", "_"):
        eq(spoken(client.turn("say: x", session=name)), ["x"], name)


@talks
def test_texts_with_nothing_in_them(s):
    client = opened(s)
    one_error_each(client, [message("user_message", content=text)
                            for text in ("", " ", "\n\t ", "\u3000")])


@talks
def test_lone_surrogates(s):
    client = opened(s)
    one_error_each(client, [
        with_value("user_message", "content", '"say: \\ud800"'),
        with_value("user_message", "content", '"say: \\udc00\\ud800"'),
        with_value("interrupt", "reason", '"\\udfff"'),
        with_value("cancel", "target_id", '"\\ud83d"'),
        message("user_message", content="say: x").replace('"m"', '"\\ud800"'),
        message("user_message", content="say: x").replace('"s1"', '"\\ud800"'),
    ])
    frames = client.turn("say: 👩")
    eq(spoken(frames), ["👩"], "a pair is a character")


@talks
def test_keys_that_stand_twice(s):
    client = opened(s)
    one_error_each(client, [
        '{"type":"user_message","type":"interrupt","session_id":"s1","content":"say: x"}',
        '{"type":"user_message","session_id":"s1","session_id":"s2","content":"say: x"}',
        '{"type":"user_message","session_id":"s1","content":"say: x","content":"say: y"}',
        '{"type":"session_start","session_id":"s1","max_turns":1,"max_turns":2}',
    ])


@talks
def test_deep_nesting(s):
    client = opened(s)
    deep = "[" * DEEP + "]" * DEEP
    objects = '{"a":' * DEEP + "1" + "}" * DEEP
    one_error_each(client, [
        deep, objects,
        with_value("user_message", "content", deep),
        with_value("session_start", "metadata", objects),
        with_value("session_start", "metadata", '{"user_id":"x","a":' + deep + "}"),
        with_value("user_question_response", "answers", deep, tool_id="req-1"),
    ])


@talks
def test_deep_nesting_in_a_field_that_nobody_reads(s):
    s.server()
    # The checker cannot read it either, and would expect an error.
    client = s.unified(complete=False)
    deep = "[" * DEEP + "]" * DEEP
    client.raw(with_value("user_message", "extra", deep, content="say: x"))
    if client.recv()["type"] == "turn_started":
        client.until_end()
    eq(spoken(client.turn("say: next")), ["next"], "the session afterwards")


@talks
def test_bytes_that_are_no_utf_8(s):
    client = opened(s)
    for data in (b"\xff", b"\xc3\x28", message("resume").encode()[:-1] + b"\xff}", b""):
        client.raw(data)
        client.error()
        client.still_open()
    client.raw(message("user_message", content="say: ä世").encode())
    eq(spoken(client.until_end()), ["ä世"], "a binary frame that is JSON")


@talks
def test_nul_and_other_controls_are_text(s):
    client = opened(s)
    frames = client.turn("say: a\0b\x07c\u2028d\u202ee")
    eq(spoken(frames), ["a\0b\x07c\u2028d\u202ee"])


@talks
def test_fields_that_nobody_knows_are_left_aside(s):
    client = opened(s)
    client.say("say: x", extra={"a": [1, 2, 1e300]}, message="no", payload=None)
    eq(spoken(client.until_end()), ["x"])


@talks
def test_numbers_that_are_huge_or_exact(s):
    client = opened(s)
    client.start(max_turns=4294967295, metadata={"n": 1e300, "user_id": 7, "big": 10**40})
    eq(spoken(client.turn("say: x")), ["x"])


@talks
def test_errors_do_not_disturb_a_turn(s):
    client = opened(s)
    request = client.asked("run: touch a\nsay: end")
    for text in ("{", "[]", '{"type":"nope"}', message("cancel"), message("set_model", model="x")):
        client.raw(text)
        client.error()
    client.decide(request, "allow")
    eq(spoken(client.until_end()), ["end"])


@talks
def test_an_error_names_the_message_that_it_answers(s):
    client = opened(s)
    sent = client.send("cancel", target_id="nothing")
    frame = client.recv()
    eq((frame["type"], frame["session_id"], frame.get("client_ref", sent)), ("error", "s1", sent))


@talks
def test_a_session_that_is_not_there_is_nobodys_default(s):
    s.server()
    client = s.unified(session=None)
    client.send("interrupt", session_id="typo")
    client.error()
    client.send("user_message", content="say: x")
    client.error()
    eq(s.sessions(), [], "sessions")


@talks
def test_a_connection_has_so_many_sessions_and_no_more(s):
    s.server()
    client = s.unified(session=None)
    for number in range(32):
        client.send("session_start", session_id=f"s{number}")
        eq(client.recv()["type"], "session_init", f"session {number}")
        eq(client.recv()["type"], "session_info", f"session {number}")
    client.send("session_start", session_id="one-more")
    assert "32" in client.error(), "it names the limit"
    eq(len(s.sessions()), 32, "sessions")
