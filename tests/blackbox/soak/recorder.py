"""A client that writes down what it is shown, and comes back after every fall.

Speaks the AgentLoop protocol. Appends what shares an item id, as that protocol's page says, and
remembers the place of the last message. Judges nothing: that is `check`'s work.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

import record

CONNECT_SECONDS_MAX = 30
CLOSE_SECONDS_MAX = 10
# What connecting to a server raises that is not there, or dies meanwhile.
NO_SERVER = (OSError, EOFError, WebSocketException)


class Return(Enum):
    """How a client comes to a session."""

    NEW = "first of all"
    FROM_THE_START = "to see all of it"
    CURSOR = "with its last cursor"
    SEQ = "with its last seq"
    NO_PLACE = "without a place"
    STAYED = "and stayed"


@dataclass
class Visit:
    """One connection, and everything it was shown, in order."""

    how: Return
    since: int
    shown: list[Shown] = field(default_factory=list)


@dataclass
class Shown:
    """Characters of an item, or a message that stands for itself."""

    item: str | None
    text: str
    message: dict[str, Any]


class Recorder:
    def __init__(self, session: str, name: str) -> None:
        self.session = session
        self.name = name
        self.visits: list[Visit] = []
        # Messages with no place, or with one before the place that the client had already.
        self.misplaced: list[str] = []
        self.seq = 0
        self.cursor: str | None = None
        self.loading = False
        self.open_request: dict[str, Any] | None = None
        # The last message showed characters of an item that streams.
        self.in_text = False
        # Set whenever something was shown; those who wait clear it.
        self.news = asyncio.Event()
        self.watch: Callable[[Recorder, dict[str, Any]], None] = lambda _recorder, _message: None
        # It left by itself, so nobody cut it off.
        self.away = True
        self._attached = asyncio.Event()
        self._last_kind = ""
        self._socket: ClientConnection | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._reading is not None and not self._reading.done()

    async def connect(self, address: str, how: Return, **options: Any) -> None:
        since = {
            Return.FROM_THE_START: "0",
            Return.CURSOR: self.cursor or str(self.seq),
            Return.SEQ: str(self.seq),
        }.get(how)
        query = "" if since is None else f"?since={quote(since, safe='')}"
        url = f"ws://{address}/ws/{self.session}{query}"
        # What is open is told on attaching.
        self.open_request, self.in_text = None, False
        if how is Return.NO_PLACE:
            self.loading = False
        usual = {"compression": None, "proxy": None, "max_size": None, "ping_interval": None,
                 "open_timeout": CONNECT_SECONDS_MAX}
        self._socket = await connect(url, **{**usual, **options})
        self.visits.append(Visit(how, self.seq))
        self.away = False
        self._reading = asyncio.create_task(self._read(self._socket))

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for frame in socket:
                self._take(json.loads(frame))
        except ConnectionClosed:
            pass
        finally:
            self.news.set()

    def _take(self, message: dict[str, Any]) -> None:
        kind, payload = message["type"], message["payload"]
        if "seq" not in message:
            self.misplaced.append(f"it was sent {message} without a place")
            return
        if message["seq"] < self.seq:
            self.misplaced.append(f"its place went back from {self.seq} to {message['seq']}")
        self.seq, self.cursor = message["seq"], message.get("cursor")
        shown = record.shown_text(message)
        item, text = shown if shown is not None else (None, "")
        self.visits[-1].shown.append(Shown(item, text, message))
        self.in_text = item is not None and self.cursor is not None
        if kind == "approval_request":
            self.open_request = message
        elif kind == "loading_state":
            self.loading, self.open_request = payload["loading"], None
        elif kind == "context_info" and self._last_kind != "context_compacted":
            self._attached.set()
        elif payload.get("type") == "function_call":
            self.open_request = None
        self._last_kind = kind
        self.watch(self, message)
        self.news.set()

    async def attached(self) -> None:
        """Returns once all that attaching owes is there: a question is answered after that."""
        self._attached.clear()
        await self.send({"id": f"{self.session}-{self.name}", "type": "get_context_info"})
        await asyncio.wait_for(self._attached.wait(), CONNECT_SECONDS_MAX)

    async def send(self, message: dict[str, Any]) -> bool:
        """False when there is nobody to send to."""
        try:
            await self._socket.send(json.dumps(message, ensure_ascii=False))
        except ConnectionClosed:
            return False
        return True

    async def drop(self) -> None:
        """The line breaks: no closing words, and what was not read is lost."""
        self.away = True
        if self._socket is not None:
            self._socket.transport.abort()
        await self.disconnected()

    async def disconnected(self) -> None:
        if self._reading is not None:
            await asyncio.wait_for(self._reading, CLOSE_SECONDS_MAX)

    def items_shown(self) -> set[str]:
        """Items of which characters were shown since the last check."""
        return {one.item for visit in self.visits for one in visit.shown if one.item and one.text}

    def settle(self, last_seq: int) -> int:
        """All that was shown so far was checked against a record that ends at `last_seq`. Gives
        the number of characters."""
        seen = sum(len(one.text) for visit in self.visits for one in visit.shown)
        if any(visit.how is Return.NO_PLACE for visit in self.visits):
            # Whoever comes without a place reads the record, and has its place from there.
            self.seq, self.cursor = max(self.seq, last_seq), None
        self.visits = [Visit(Return.STAYED, self.seq)]
        self.misplaced = []
        return seen
