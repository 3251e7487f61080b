"""Chat: the document's rules line by line, and what an answer is made of."""

import json

from harness import eq
from talk import of, talks, types, words

EMPTY = "Empty message received"
NOT_TEXT = "Field 'message' must be a string"


def chat(**fields):
    return json.dumps({"type": "chat", **fields})


def one_error_each(client, texts):
    """The errors that texts get, one each."""
    told = []
    for text in texts:
        client.raw(text)
        told.append(client.error())
    return told


# The rules.


@talks
def test_a_conversation(s):
    s.server()
    client = s.chat(session="s1")
    eq(words(client.turn("say: Hi! How can I help?")),
       [("user_message", "say: Hi! How can I help?"), ("agent_message", "Hi! How can I help?")])


@talks
def test_the_echo_is_trimmed(s):
    s.server()
    client = s.chat(session="s1")
    frames = client.turn("  \n\t say: hello \r\n ")
    eq(words(frames), [("user_message", "say: hello"), ("agent_message", "hello")])


@talks
def test_empty_messages(s):
    s.server()
    client = s.chat()
    texts = [chat(message=message) for message in ("", " ", "\n\t\r ", "   ")]
    eq(one_error_each(client, texts), [EMPTY] * len(texts))
    eq(words(client.turn("say: on"))[-1], ("agent_message", "on"), "the connection afterwards")


@talks
def test_the_first_frame_after_a_bad_message_is_its_error(s):
    s.server()
    for path in ("/chat", "/ws?protocol=chat", "/?protocol=chat"):
        client = s.chat(path)
        client.raw(chat(message=" "))
        eq(client.error(), EMPTY, path)
        client.drop()


@talks
def test_unknown_types(s):
    s.server()
    client = s.chat()
    for kind in ("nope", "", "Chat", "chat ", "user_message", "agent_message", "user_input"):
        client.raw(json.dumps({"type": kind, "message": "x"}))
        eq(client.error(), f"Unknown message type: {kind}")
    eq(words(client.turn("say: on"))[-1], ("agent_message", "on"), "the connection afterwards")


@talks
def test_a_type_that_is_missing_or_no_text(s):
    s.server()
    client = s.chat()
    client.raw(json.dumps({"message": "x"}))
    eq(client.error(), "Unknown message type: None")
    for value in (1, None, [], {}, True, ["chat"]):
        client.raw(json.dumps({"type": value, "message": "x"}))
        assert client.error().startswith("Unknown message type: "), value


@talks
def test_a_message_that_is_no_text(s):
    s.server()
    client = s.chat()
    texts = [chat()] + [chat(message=value) for value in (1, None, [], {}, True, 1.5, ["x"])]
    eq(one_error_each(client, texts), [NOT_TEXT] * len(texts))


@talks
def test_what_is_no_json(s):
    s.server()
    client = s.chat()
    texts = ["", "{", "nope", "[1,", '{"type":"chat",}', "\0", "{}x", "{'type':'chat'}",
             '{"type":"chat","message":"\\ud800"}', "[" * 2000 + "]" * 2000]
    for told in one_error_each(client, texts):
        assert told.startswith("Invalid JSON: "), told
    one_error_each(client, ["[]", "1", "null", '"chat"', "true"])
    client.raw(b"\xff\xfe")
    client.error()
    client.raw(chat(message="say: ä").encode())
    eq(words(client.until_answer())[-1], ("agent_message", "ä"), "a binary frame that is JSON")


@talks
def test_session_ids_that_are_refused(s):
    s.server()
    client = s.chat()
    texts = [chat(message="say: x", session_id=value)
             for value in ("a/b", "../x", ".x", "a" * 129, "ä", "a b", "a\0", 1, [], {}, True)]
    for told in one_error_each(client, texts):
        assert "session_id" in told, told
    eq(s.sessions(), [], "sessions")


@talks
def test_a_null_or_blank_session_id_is_none(s):
    s.server()
    client = s.chat()
    used = set()
    for fields in ({}, {"session_id": None}, {"session_id": ""}, {"session_id": "  "}):
        client.raw(chat(message="say: x", **fields))
        frames = client.until_answer()
        eq(words(frames)[-1], ("agent_message", "x"), f"{fields}")
        used |= {frame["session_id"] for frame in frames}
    eq(len(used), 1, "they are all of one conversation")
    eq(s.sessions(), [], "sessions")


@talks
def test_a_session_id_is_trimmed(s):
    s.server()
    client = s.chat()
    client.raw(chat(message="say: x", session_id="  s1\n"))
    client.until_answer()
    eq(s.sessions(), ["s1"], "sessions")


@talks
def test_keys_that_stand_twice_decide_nothing_silently(s):
    s.server()
    client = s.chat()
    client.raw('{"type":"chat","message":"say: a","message":"say: b"}')
    frame = client.recv()
    assert frame["type"] == "error" or frame["message"] in ("say: a", "say: b"), frame
    client.wire.complete = False


# What an answer is made of.


@talks
def test_the_order_of_events(s):
    s.server()
    (s.work / "file").touch()
    client = s.chat(session="s1")
    frames = client.turn("think: planning\nsay: I look\nrun: ls\nrun: cat missing\nsay: Done.")
    eq(types(frames), ["user_message", "agent_thinking", "agent_thinking", "tool_call",
                       "tool_result", "tool_call", "tool_result", "agent_message"])
    eq([f["reasoning"] for f in of(frames, "agent_thinking")], ["planning", "I look"])
    eq([json.loads(c["tool_args"])["command"] for c in of(frames, "tool_call")],
       ["ls", "cat missing"], "tool_args")
    one, two = of(frames, "tool_result")
    eq((one["tool_name"], one["result"], one["success"]), ("bash", "file\n", True))
    eq((two["tool_name"], two["success"]), ("bash", False))
    assert "missing" in two["result"], two
    eq(frames[-1]["message"], "Done.")


@talks
def test_an_answer_is_whole(s):
    s.server()
    client = s.chat(session="s1")
    frames = client.turn("stream: 100 16 2")
    eq(types(frames), ["user_message", "agent_message"])
    eq(frames[-1]["message"], "".join(f"{n:07} " for n in range(200)), "not streamed")


@talks
def test_plain_talk_is_answered(s):
    s.server()
    client = s.chat()
    frames = client.turn("Hello agent")
    eq(types(frames), ["user_message", "agent_message"])
    assert frames[-1]["message"].strip(), frames


@talks
def test_a_failure_is_an_error_in_the_answer_s_place(s):
    s.server()
    client = s.chat(session="s1")
    for failure in ("500", "429", "garbage", "disconnect"):
        frames = client.turn(f"say: begun\nfail: {failure}")
        eq((types(frames)[0], types(frames)[-1]), ("user_message", "error"), failure)
        eq(of(frames, "agent_message"), [], failure)
    eq(words(client.turn("say: on"))[-1], ("agent_message", "on"), "the next is answered")


@talks
def test_an_interrupt_is_an_error(s):
    s.server()
    client, other = s.chat(session="s1"), s.watcher()
    client.say("stream: 100000 10 20")
    other.until("assistant_message")
    other.send("interrupt", reason="enough")
    eq(words(client.until_answer())[-1], ("error", "Interrupted: enough"))
    other.until_end()
    eq(words(client.turn("say: on"))[-1], ("agent_message", "on"))


@talks
def test_chats_are_answered_in_order(s):
    s.server()
    client = s.chat(session="s1")
    for number in range(6):
        client.say(f"stream: 3 8 5\nrun: ls\nsay: {number}")
    frames = [frame for _ in range(6) for frame in client.until_answer()]
    eq([f["message"] for f in of(frames, "agent_message")], list("012345"), "answers")
    eq([f["message"][-1] for f in of(frames, "user_message")], list("012345"), "echoes")
