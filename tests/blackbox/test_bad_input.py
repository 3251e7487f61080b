"""Whatever a client sends, it gets one error that says why, and the connection stays open."""

import contextlib
import json
import struct

from websockets.exceptions import ConnectionClosed

from frames import said
from harness import WAIT_SECS, Client, eq, handshake, read_answer

INPUT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "say: x"}]}


def envelope(**fields):
    return json.dumps({"id": "1", "type": "user_input", **fields})


def refused(client, frame, what=None):
    """One error, nothing else, and the connection goes on."""
    client.ws.send(frame)
    error = client.error()
    shown = what or repr(frame)[:80]
    assert error["details"]["code"], f"no code for {shown}"
    client.still_open()


def all_refused(t, frames):
    server = t.server()
    client = server.client()
    for frame in frames:
        refused(client, frame)
    eq(said(client.turn("say: fine")), ["fine"], "the session afterwards")


def test_what_is_no_json(t):
    all_refused(t, [
        "", " ", "{", "}", "nope", "{'id':1}", '{"id":"1",}', '{"id":"1"} {"id":"2"}', "\ufeff{}",
        '{"id":"1","type":"get_context_info"', "NaN", "[1,2", '"', "\x00", '{"id":"\x00"}',
        '{"id":"1","type":"get_context_info"}\x00', '{"id":"a\nb","type":"get_context_info"}',
    ])


def test_what_is_no_message(t):
    all_refused(t, ["null", "true", "1", '"user_input"', "[]", "[{}]", "{}", "[" * 50 + "]" * 50])


def test_fields_that_are_missing_or_ill_typed(t):
    envelopes = [
        {"id": "1"}, {"type": "user_input"}, {"id": 1, "type": "get_context_info"},
        {"id": None, "type": "get_context_info"}, {"id": "1", "type": None},
        {"id": "1", "type": 7}, {"id": "1", "type": ["user_input"]}, {"type": "get_context_info"},
        {"id": {"a": 1}, "type": "manual_compact"},
    ]
    payloads = [
        None, [], "text", 5, {}, {"input": None}, {"input": "text"}, {"input": {}},
        {"input": [None]}, {"input": ["text"]}, {"input": [{}]}, {"input": [{"type": "message"}]},
        {"input": [{**INPUT, "content": None}]}, {"input": [{**INPUT, "content": 1}]},
        {"input": [{**INPUT, "content": [1]}]}, {"input": [{**INPUT, "content": [{}]}]},
        {"input": [{**INPUT, "content": [{"type": "input_text"}]}]},
        {"input": [{**INPUT, "content": [{"type": "input_text", "text": 1}]}]},
        {"input": [{**INPUT, "content": [{"type": "input_image", "text": "x"}]}]},
        {"input": [{**INPUT, "role": "system"}]}, {"input": [{**INPUT, "role": 1}]},
        {"input": [{**INPUT, "type": "no_such_item"}]}, {"input": [INPUT], "previousResponseId": 1},
        {"input": [INPUT, 1]},
    ]
    frames = [json.dumps(one) for one in envelopes]
    frames += [envelope(payload=payload) for payload in payloads] + [envelope()]
    all_refused(t, frames)


def test_unknown_types(t):
    kinds = ["", "nope", "user_inputs", "USER_INPUT", " user_input", "user_input\0", "error",
             "response_item", "x" * 100_000]
    all_refused(t, [json.dumps({"id": "1", "type": kind, "payload": {}}) for kind in kinds])


def test_empty_and_blank_input(t):
    def texts(*parts):
        content = [{"type": "input_text", "text": part} for part in parts]
        return envelope(payload={"input": [{**INPUT, "content": content}]})

    frames = [envelope(payload={"input": []}), texts(), texts(""), texts("  \n\t "), texts("", " "),
              envelope(payload={"input": [{**INPUT, "content": ""}]}),
              envelope(payload={"input": [{"type": "input_text", "text": " "}]})]
    server = t.server()
    client = server.client()
    client.still_open()
    before = len(server.messages())
    for frame in frames:
        refused(client, frame)
    later = server.messages()[before:]
    eq({m["type"] for m in later}, {"error", "context_info"}, "no turn began")


def test_binary_frames_are_text_too(t):
    client = t.server().client()
    client.ws.send(envelope(payload={"input": [INPUT]}).encode())
    eq(said(client.until_end()), ["x"], "a message in a binary frame")
    for frame in (b"\xff\xfe", b'{"id":"\xff","type":"get_context_info"}', b"\x00\x01\x02",
                  "ä".encode("latin-1"), b"\xed\xa0\x80", b""):
        refused(client, frame)


def test_deep_json(t):
    depth = 100_000
    deep = "[" * depth + "]" * depth
    objects = '{"a":' * depth + "1" + "}" * depth
    all_refused(t, [
        deep, objects, "[" * depth, '{"id":' + deep + "}",
        '{"id":"1","type":"user_input","payload":' + deep + "}",
        '{"id":"1","type":"user_input","payload":{"input":' + deep + "}}",
        '{"id":"1","type":"approval_response","payload":' + objects + "}",
    ])


def test_huge_numbers(t):
    digits = "9" * 100_000
    numbers = ["1e999999", "-1e999999", digits, f"0.{digits}", "1" + "0" * 400]
    frames = [f'{{"id":{n},"type":"get_context_info"}}' for n in numbers]
    frames += [f'{{"id":"1","type":"user_input","payload":{{"input":{n}}}}}' for n in numbers]
    frames += [f'{{"id":"1","type":"approval_response","payload":{{"review":{n}}}}}'
               for n in numbers]
    all_refused(t, frames)


def test_lone_surrogates(t):
    text = '{"id":"1","type":"user_input","payload":{"input":[{"type":"input_text","text":"%s"}]}}'
    all_refused(t, [text % bad for bad in (r"\ud800", r"\udc00", r"a\ud83dx", r"\ude00\ud83d")])
    client = t.servers[0].client("/ws/s2")
    client.ws.send(text % r"say: \ud83d\ude00")
    eq(said(client.until_end()), ["\U0001f600"], "a pair is a character")


def test_a_text_frame_that_is_no_text_closes_with_1007(t):
    client = t.server().client()
    client.ws.send(b"\xff\xfe", text=True)
    eq(client.closed(), 1007, "close code")


def test_a_message_may_be_as_large_as_the_limit_and_no_larger(t):
    server = t.server(env={"MAX_MESSAGE_BYTES": 2048})

    def message(size):
        frame = envelope(payload={"input": [{"type": "input_text", "text": "say: "}]})
        return frame.replace("say: ", "say: " + "x" * (size - len(frame)))

    client = server.client("/ws/s1")
    client.ws.send(message(2048))
    eq(len(said(client.until_end())), 1, "a message of the largest size")
    client.ws.send(message(2049))
    eq(client.closed(), 1009, "close code")
    parts = server.client("/ws/s2")
    parts.ws.send([message(2048)[:1000], message(2048)[1000:]])
    eq(len(said(parts.until_end())), 1, "the same in fragments")
    parts = server.client("/ws/s2")
    with contextlib.suppress(ConnectionClosed):
        parts.ws.send(["x" * 1500] * 4)
    eq(parts.closed(), 1009, "close code of fragments that are too much together")


def test_the_default_limit_lets_large_messages_in(t):
    server = t.server(env={"CONTEXT_STRATEGY": "dummy"})
    client = server.client()
    text = "some words " * 100_000
    eq(said(client.turn(f"say: {text}")), [text.strip()], "a text of a megabyte")
    with contextlib.suppress(ConnectionClosed):
        client.ws.send("y" * (8 * 1024 * 1024 + 1))
    eq(client.closed(), 1009, "close code")


def test_a_long_word_is_no_more_work_than_many_short_ones(t):
    text = "x" * 1_000_000
    client = t.server(env={"CONTEXT_STRATEGY": "dummy"}).client()
    eq(said(client.turn(f"say: {text}")), [text], "a word of a megabyte")


def frame_bytes(first, payload, mask=b"\1\2\3\4"):
    """A WebSocket frame by hand; without a mask when that is empty."""
    size = len(payload)
    length = struct.pack("!BH", 126, size) if size > 125 else struct.pack("!B", size)
    head = bytes([first]) + bytes([length[0] | (0x80 if mask else 0)]) + length[1:] + mask
    if mask:
        payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return head + payload


def test_broken_frames_close_the_connection(t):
    server = t.server()
    wrong = {
        "unmasked": frame_bytes(0x81, b"{}", mask=b""),
        "reserved bit": frame_bytes(0xC1, b"{}"),
        "unknown opcode": frame_bytes(0x83, b"{}"),
        "long ping": frame_bytes(0x89, b"x" * 126),
        "ping in parts": frame_bytes(0x09, b"x"),
        "continuation of nothing": frame_bytes(0x80, b"{}"),
    }
    for what, data in wrong.items():
        with server.socket() as stream:
            stream.sendall(handshake("/ws/s1", server.address))
            eq(read_answer(stream).status, 101, what)
            stream.sendall(data)
            answer = b""
            while part := stream.recv(4096):
                answer += part
            eq((answer[:1], answer[2:4]), (b"\x88", struct.pack("!H", 1002)), f"close: {what}")
    eq(said(server.client().turn("say: fine")), ["fine"], "the server afterwards")


def test_pings_are_answered_also_during_a_turn(t):
    client = t.server().client()
    assert client.ws.ping(b"one").wait(WAIT_SECS), "no pong"
    client.say("run: sleep 1000")
    client.until("approval_request")
    client.review("yes")
    client.until("response_item")
    assert client.ws.ping(b"two").wait(WAIT_SECS), "no pong during a turn"
    client.send("interrupt")
    client.until_end()


def test_a_flood_of_nonsense_is_answered_message_by_message(t):
    server = t.server()
    client = Client(server.url("/ws/s1"))
    t.closing.append(client.drop)
    for _ in range(500):
        client.ws.send("nonsense")
    for _ in range(500):
        client.error()
    client.still_open()
