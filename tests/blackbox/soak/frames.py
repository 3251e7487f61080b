"""Sends mutated and random frames to a server over real sockets, in all four dialects, while
another session's turn runs. The server must answer each connection to the last, keep the other
session's text whole, and panic never.

Each frame is followed by a request whose answer is known: when that comes, the frame was dealt
with. Run: python frames.py --polyloop PATH --frames 100000 --seed 1
"""

import argparse
import asyncio
import contextlib
import json
import random
import tempfile
import time
from pathlib import Path

import websockets

from server import Server

ANSWER_SECONDS = 60
STREAM_CHUNKS, STREAM_BYTES = 400, 16
CLIENTS_EACH = 2
# Each frame is to be looked at, however fast they come.
NO_RATES = dict.fromkeys(("RATE_MESSAGES_PER_SEC", "RATE_TURNS_PER_MIN",
                          "RATE_CLIENT_MESSAGES_PER_SEC", "RATE_CLIENT_TURNS_PER_MIN"), "0")

AGENTLOOP = [
    {"id": "1", "type": "user_input", "payload": {"input": [
        {"type": "message", "role": "user",
         "content": [{"type": "input_text", "text": "say: x"}]}]}},
    {"id": "2", "type": "approval_response", "payload": {
        "review": "yes", "requestId": "00000000-0000-8000-8003-000000000008",
        "customDenyMessage": "no", "applyPatch": {"patch": "*** Begin Patch\n*** End Patch"}}},
    {"id": "3", "type": "get_context_info"},
    {"id": "4", "type": "manual_compact"},
    {"id": "5", "type": "interrupt", "payload": {"reason": "stop"}},
]
UNIFIED = [
    {"type": "session_start", "id": "1", "session_id": "frames", "permission_mode": "manual",
     "max_turns": 10, "metadata": {"user_id": "u", "deep": [1, {"a": None}]}},
    {"type": "set_permission_mode", "id": "3", "session_id": "frames", "mode": "auto"},
    {"type": "user_message", "id": "4", "session_id": "frames", "content": "say: x",
     "parent_tool_use_id": None},
    {"type": "permission_response", "id": "5", "session_id": "frames", "request_id": "req-8",
     "decision": "allow", "explanation": "fine"},
    {"type": "user_question_response", "id": "6", "session_id": "frames", "tool_id": "req-9",
     "answers": [{"question_index": 0, "selected": ["A"]}]},
    {"type": "plan_approval_response", "id": "7", "session_id": "frames", "tool_id": "req-9",
     "approved": True, "feedback": "good"},
    {"type": "interrupt", "id": "8", "session_id": "frames", "reason": "stop"},
    {"type": "resume", "id": "9", "session_id": "frames"},
    {"type": "cancel", "id": "10", "session_id": "frames", "target_id": "4"},
    {"type": "set_model", "session_id": "frames", "model": "offline"},
    {"type": "compact", "session_id": "frames"},
]
LOOM = [
    {"type": "run", "message": "say: x", "agent": "react", "id": "1", "thread_id": "frames-loom",
     "working_folder": ".", "got_adaptive": False, "verbose": True, "approvals": True},
    {"type": "run", "message": "say: x", "agent": "react"},
    {"type": "tools_list", "id": "2", "working_folder": None, "thread_id": "t"},
    {"type": "tool_show", "id": "3", "name": "bash", "output": "yaml"},
    {"type": "user_messages", "id": "4", "thread_id": "frames-loom", "before": 9, "limit": 5},
    {"type": "ping", "id": "5"},
    {"type": "cancel_run", "id": "6", "run_id": "run-00000000-0000-8000-8005-000000000003"},
    {"type": "tool_approval_response", "id": "7", "call_id": "call_5", "approved": True,
     "run_id": "run-00000000-0000-8000-8005-000000000003", "message": "m"},
]
CHAT = [
    {"type": "chat", "message": "say: x", "session_id": "frames-chat"},
    {"type": "chat", "message": "say: x"},
]

# What a value is replaced by.
HOSTILE = [
    "null", "true", "-1", "0.5", "1e999", "-0", "18446744073709551616", "9" * 400, "[]", "{}",
    '""', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"' + "x" * 5000 + '"', '"\\u202e"',
    "[" * 100 + "]" * 100, "[" * 5000, '{"a":' * 200 + "1" + "}" * 200, '"../../etc/passwd"',
    '"."', '"NaN"', "NaN", "Infinity", "0x10", "'single'", '{"type":"chat"}', '"say: y"',
]


def text_of(value):
    return json.dumps(value, ensure_ascii=False)


def replaced(chance, value, depth=0):
    """The value as JSON text with some part of it replaced."""
    if chance.random() < 0.15 + 0.1 * depth:
        return chance.choice(HOSTILE)
    if isinstance(value, dict):
        fields = [(name, replaced(chance, field, depth + 1)) for name, field in value.items()]
        if fields and chance.random() < 0.2:
            fields.append(chance.choice(fields))  # Twice.
        if fields and chance.random() < 0.1:
            fields.pop(chance.randrange(len(fields)))
        chance.shuffle(fields)
        return "{" + ",".join(f"{json.dumps(name)}:{field}" for name, field in fields) + "}"
    if isinstance(value, list):
        return "[" + ",".join(replaced(chance, one, depth + 1) for one in value) + "]"
    return text_of(value)


def mutated(chance, frames):
    """A frame, as text or as bytes."""
    frame = chance.choice(frames)
    kind = chance.random()
    if kind < 0.45:
        return replaced(chance, frame)
    raw = bytearray(text_of(frame).encode())
    if kind < 0.55:
        return bytes(raw[: chance.randrange(len(raw))]).decode(errors="replace")
    if kind < 0.75:
        for _ in range(chance.randint(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        return bytes(raw)
    if kind < 0.85:
        at, end = sorted(chance.randrange(len(raw) + 1) for _ in range(2))
        return bytes(raw[:at] + raw[end:])
    if kind < 0.93:
        return chance.randbytes(chance.randrange(200))
    return "".join(chr(chance.choice([0, 9, 34, 92, 123, 125, 0x202E, 0x1F980])) for _ in range(20))


class Dialect:
    def __init__(self, name, path, frames, probe, is_answer):
        self.name, self.path, self.frames = name, path, frames
        self.probe, self.is_answer = probe, is_answer


def answers(kind, **fields):
    def check(frame, mark):
        same = all(frame.get(name) == (mark if want is ... else want)
                   for name, want in fields.items())
        return frame.get("type") == kind and same
    return check


DIALECTS = [
    Dialect("agentloop", "/agentloop/frames", AGENTLOOP,
            lambda mark: {"id": mark, "type": f"probe-{mark}"},
            lambda frame, mark: frame.get("type") == "error"
            and frame["payload"]["message"] == f"Unknown message type: probe-{mark}"),
    Dialect("unified", "/unified", UNIFIED,
            lambda mark: {"type": f"probe-{mark}", "session_id": "frames"},
            lambda frame, mark: frame.get("type") == "error"
            and frame["message"].startswith(f"Unknown message type: probe-{mark};")),
    Dialect("loom", "/loom", LOOM, lambda mark: {"type": "ping", "id": mark},
            answers("pong", id=...)),
    Dialect("chat", "/chat", CHAT, lambda mark: {"type": f"probe-{mark}"},
            lambda frame, mark: frame.get("type") == "error"
            and frame["error"] == f"Unknown message type: probe-{mark}"),
]


async def hostile(address, dialect, count, chance, found):
    """One client that sends nonsense; it comes back when a failed run closed its socket."""
    sent = 0
    mark = f"{dialect.name}-{chance.randrange(1 << 30)}"
    while sent < count:
        async with websockets.connect(f"ws://{address}{dialect.path}", max_size=None) as socket:
            try:
                while sent < count:
                    await socket.send(mutated(chance, dialect.frames))
                    sent += 1
                    found[dialect.name] += 1
                    await socket.send(json.dumps(dialect.probe(f"{mark}-{sent}")))
                    await answered(socket, dialect, f"{mark}-{sent}")
            except websockets.ConnectionClosedError as closed:
                code = closed.rcvd.code if closed.rcvd else None
                if code != 1011 or dialect.name != "loom":
                    raise AssertionError(f"{dialect.name}: closed with {code}") from closed


async def answered(socket, dialect, mark):
    async with asyncio.timeout(ANSWER_SECONDS):
        while True:
            frame = json.loads(await socket.recv())
            if dialect.is_answer(frame, mark):
                return


async def quiet(address, done, found):
    """One client that minds its own business; what it is sent is whole."""
    whole = "".join(f"{number:07} " for number in range(STREAM_CHUNKS * STREAM_BYTES // 8))
    text = f"stream: {STREAM_CHUNKS} {STREAM_BYTES} 2"
    ask = {"id": "1", "type": "user_input", "payload": {"input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]}}
    async with websockets.connect(f"ws://{address}/ws/quiet", max_size=None) as socket:
        while not done.is_set():
            await socket.send(json.dumps(ask))
            told = ""
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    frame = json.loads(await socket.recv())
                    if frame["type"] == "response_item":
                        told += frame["payload"]["content"][0]["text"]
                    elif frame["type"] == "agent_finished":
                        break
                    elif frame["type"] != "loading_state":
                        raise AssertionError(f"another's news: {frame}")
            if told != whole:
                raise AssertionError(f"{len(told)} of {len(whole)} characters")
            found["turns"] += 1


async def run(words):
    found = {dialect.name: 0 for dialect in DIALECTS} | {"turns": 0}
    with tempfile.TemporaryDirectory(prefix="polyloop-frames-") as folder:
        server = Server(words.polyloop, Path(folder))
        server.env = NO_RATES
        await server.start()
        try:
            done = asyncio.Event()
            other = asyncio.create_task(quiet(server.address, done, found))
            each = words.frames // (len(DIALECTS) * CLIENTS_EACH)
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for number, dialect in enumerate(DIALECTS * CLIENTS_EACH):
                    chance = random.Random(words.seed * 1000 + number)
                    group.create_task(hostile(server.address, dialect, each, chance, found))
            done.set()
            await other
            found["seconds"] = round(time.monotonic() - began, 1)
        finally:
            with contextlib.suppress(ProcessLookupError):
                await server.stop()
            said = server.said()
    found["panics"] = said.count("panicked")
    print(json.dumps(found, indent=2))
    if found["panics"]:
        print(said[-4000:])
        raise SystemExit("the server panicked")
    if not found["turns"]:
        raise SystemExit("the other session had no turn")


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--polyloop", required=True, help="the program to test")
    words.add_argument("--frames", type=int, default=100_000, help="how many, in all dialects")
    words.add_argument("--seed", type=int, default=1)
    asyncio.run(run(words.parse_args()))


if __name__ == "__main__":
    main()
