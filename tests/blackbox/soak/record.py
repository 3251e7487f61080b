"""What the server says of a session for good: the lines of its file, as REST gives them.

Reads the four fields that the session file's own description names, and `seq`; never the
server's `event`. A record can be judged alone (turns end once, calls have one output) and is what
the screens of clients are compared with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Message:
    """A message to clients, with its place in the record."""

    position: int
    seq: int
    id: str
    type: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class Whole:
    """The whole text of an assistant's item, with its place in the record."""

    position: int
    seq: int
    text: str


@dataclass
class Record:
    messages: dict[str, Message] = field(default_factory=dict)
    texts: dict[str, Whole] = field(default_factory=dict)
    user_inputs: set[str] = field(default_factory=set)
    last_seq: int = 0
    # The approval request that nobody has answered.
    pending: str | None = None
    problems: list[str] = field(default_factory=list)


def shown_text(message: dict[str, Any]) -> tuple[str, str] | None:
    """The item and the characters, if the message carries an assistant's text."""
    payload = message.get("payload")
    if message.get("type") != "response_item" or not isinstance(payload, dict):
        return None
    if payload.get("type") != "message" or payload.get("role") != "assistant":
        return None
    return payload["id"], "".join(part["text"] for part in payload["content"])


def read(lines: list[dict[str, Any]]) -> Record:
    record = Record()
    turns = _Turns(record.problems)
    for position, line in enumerate(lines):
        seq = line.get("seq")
        if not isinstance(seq, int):
            record.problems.append(f"line {position + 1} has no seq")
            continue
        if line.get("audit"):
            continue
        if seq not in (record.last_seq, record.last_seq + 1):
            record.problems.append(f"seq {seq} stands after {record.last_seq}")
        record.last_seq = seq
        message = line.get("message_data")
        if message is None or "type" not in message:
            continue
        if line["direction"] == "incoming":
            _incoming(record, message)
        else:
            _outgoing(record, turns, Message(position, seq, message["id"], message["type"],
                                             message["payload"]))
    turns.end()
    return record


def _incoming(record: Record, message: dict[str, Any]) -> None:
    if message["type"] == "user_input":
        record.user_inputs.add(message["id"])
    if message["type"] == "approval_response":
        if record.pending is None:
            record.problems.append("an approval is answered that nobody asked for")
        record.pending = None


def _outgoing(record: Record, turns: _Turns, message: Message) -> None:
    if message.id in record.messages:
        record.problems.append(f"message {message.id} is recorded twice")
    record.messages[message.id] = message
    shown = shown_text({"type": message.type, "payload": message.payload})
    if shown is not None:
        item, text = shown
        if item in record.texts:
            record.problems.append(f"item {item} is recorded twice")
        record.texts[item] = Whole(message.position, message.seq, text)
    if message.type == "approval_request":
        if record.pending is not None:
            record.problems.append("two approvals are presented at once")
        record.pending = message.id
    if message.type == "loading_state" and not message.payload["loading"]:
        record.pending = None
    turns.take(message)


class _Turns:
    """Every turn ends exactly once, and within it every call gets exactly one output."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        self.running = False
        self.failed = False
        self.finish_due = False
        self.calls: set[str] = set()

    def take(self, message: Message) -> None:
        kind, payload = message.type, message.payload
        if kind == "loading_state":
            self.loading(payload["loading"])
        elif kind == "error":
            self.failed = True
        elif kind == "agent_finished":
            if not self.finish_due:
                self.problems.append(f"{message.id}: agent_finished outside the end of a turn")
            self.finish_due = False
        elif payload.get("type") == "function_call":
            if not self.running or payload["call_id"] in self.calls:
                self.problems.append(f"{payload['call_id']}: called twice or outside a turn")
            self.calls.add(payload["call_id"])
        elif payload.get("type") == "function_call_output":
            if payload["call_id"] not in self.calls:
                self.problems.append(f"{payload['call_id']}: an output without its call")
            self.calls.discard(payload["call_id"])

    def loading(self, loading: bool) -> None:
        if loading == self.running:
            self.problems.append(f"loading_state {loading} twice in a row")
        self.end()
        if not loading and self.calls:
            self.problems.append(f"a turn ends without the outputs of {sorted(self.calls)}")
        self.finish_due = not loading and not self.failed
        self.running, self.failed = loading, False
        self.calls.clear()

    def end(self) -> None:
        if self.finish_due:
            self.problems.append("a turn has ended without agent_finished")


def texts_on_disk(path: Path) -> set[str]:
    """The items whose whole text is in the file, while no server is there to ask."""
    items = set()
    for line in path.read_bytes().splitlines():
        try:
            message = json.loads(line).get("message_data")
        except ValueError:
            continue  # A kill may tear the last line.
        shown = shown_text(message) if isinstance(message, dict) else None
        if shown is not None:
            items.add(shown[0])
    return items
