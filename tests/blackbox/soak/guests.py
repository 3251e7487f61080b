"""Users of the other dialects in a kill run: sessions in which one of them speaks, answers and comes
back, while a recorder watches.

The recorder's screen is compared with the record to the character; of what the guest itself was
shown, every text must stand in the record, whole if it was told to be.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any
from urllib.parse import quote

import record
from recorder import CONNECT_SECONDS_MAX, Return
from user import HELD_SHARE, WAIT_SECONDS, Session
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

REVIEWS = ("yes", "yes", "no-continue")
DIALECTS = ("unified", "loom", "chat")
# What a script says in one answer of the model, at most.
TEXTS_A_CALL_MAX = 4
# As the room puts them together.
BETWEEN_TEXTS = "\n\n"


class Guest:
    """A client of one dialect, and the texts it was shown."""

    def __init__(self, dialect: str, session: str) -> None:
        self.dialect, self.session = dialect, session
        self.cursor: str | None = None
        self.request: dict[str, Any] | None = None
        self.busy = False
        self.news = asyncio.Event()
        # Texts of which all was shown, and those that are open, by what they belong to.
        self.whole: list[str] = []
        self.open: dict[str, str] = {}
        self.sent = 0
        self._socket: ClientConnection | None = None
        self._reading: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        return self._reading is not None and not self._reading.done()

    async def connect(self, address: str) -> None:
        path = {"unified": f"/unified?session_id={self.session}",
                "loom": f"/loom?thread_id={self.session}", "chat": "/chat"}[self.dialect]
        if self.cursor is not None and self.dialect != "chat":
            path += f"&since={quote(self.cursor, safe='')}"
        self.request, self.busy = None, False
        self._socket = await connect(f"ws://{address}{path}", compression=None, proxy=None,
                                     max_size=None, ping_interval=None,
                                     open_timeout=CONNECT_SECONDS_MAX)
        self._reading = asyncio.create_task(self._read(self._socket))

    async def leave(self) -> None:
        """Else what comes later would be shown twice to one who comes back."""
        if self._socket is not None:
            await self._socket.close()
            await self._reading

    async def _read(self, socket: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for frame in socket:
                self._take(json.loads(frame))
        self.news.set()

    def _take(self, frame: dict[str, Any]) -> None:
        if "seq" in frame:
            self.cursor = str(frame.get("cursor", frame["seq"]))
        getattr(self, f"_{self.dialect}")(frame)
        self.news.set()

    def _unified(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind == "assistant_message":
            self.open["text"] = self.open.get("text", "") + frame["text"]
            if frame["is_final"]:
                self.whole.append(self.open.pop("text"))
        elif kind == "turn_started":
            self.busy = True
        elif kind in ("turn_completed", "turn_failed"):
            self.busy, self.request = False, None
        elif kind == "control_request":
            self.request = frame
        elif kind == "tool_completed":
            self.request = None

    def _loom(self, frame: dict[str, Any]) -> None:
        event = frame.get("event", {})
        if event.get("type") == "message_chunk":
            node = f"{frame['id']}/{event.get('node_id')}"
            self.open[node] = self.open.get(node, "") + event["content"]
        elif event.get("type") == "tool_approval":
            self.request = frame
        elif event.get("type") in ("tool_end", "tool_result"):
            self.request = None
        elif frame["type"] in ("run_end", "error"):
            self.busy, self.request = False, None

    def _chat(self, frame: dict[str, Any]) -> None:
        if frame.get("session_id") != self.session:
            return
        if frame["type"] == "agent_message":
            self.whole.append(frame["message"])
            self.busy = False
        elif frame["type"] == "error":
            self.busy = False

    async def say(self, text: str) -> bool:
        self.sent += 1
        id = f"guest-{self.session}-{self.sent}"
        self.busy = True
        return await self.send({
            "unified": {"type": "user_message", "id": id, "session_id": self.session,
                        "content": text},
            "loom": {"type": "run", "id": id, "message": text, "agent": "react",
                     "thread_id": self.session, "approvals": True},
            "chat": {"type": "chat", "message": text, "session_id": self.session},
        }[self.dialect])

    async def answer(self, yes: bool) -> bool:
        request, self.request = self.request, None
        self.sent += 1
        id = f"answer-{self.session}-{self.sent}"
        if self.dialect == "unified":
            return await self.send({"type": "permission_response", "id": id,
                                    "session_id": self.session,
                                    "request_id": request["request_id"],
                                    "decision": "allow" if yes else "deny"})
        return await self.send({"type": "tool_approval_response", "id": id,
                                "run_id": request["id"], "call_id": request["event"]["call_id"],
                                "approved": yes})

    async def send(self, message: dict[str, Any]) -> bool:
        try:
            await self._socket.send(json.dumps(message, ensure_ascii=False))
        except ConnectionClosed:
            return False
        return True

    def lost(self, held: record.Record) -> list[str]:
        """What was shown and does not stand in the record."""
        rows = [whole.text for whole in sorted(held.texts.values(), key=lambda one: one.position)]
        # The room is told all texts of a call as one, and a node of Loom's shows them so.
        texts = {BETWEEN_TEXTS.join(rows[at:at + count]).strip()
                 for at in range(len(rows)) for count in range(1, TEXTS_A_CALL_MAX + 1)}
        lost = [f"{self.dialect} was shown {text[:60]!r} as whole" for text in self.whole
                if text.strip() and text.strip() not in texts]
        begins = ["".join(rows[at:at + TEXTS_A_CALL_MAX]) for at in range(len(rows))]
        for text in self.open.values():
            if text and not any(one.startswith(text) for one in begins):
                lost.append(f"{self.dialect} was shown {len(text)} characters, {text[:60]!r}")
        return lost

    def settle(self) -> int:
        """All of it was compared; how many characters that were."""
        seen = sum(map(len, self.whole)) + sum(map(len, self.open.values()))
        self.whole = []
        if self.dialect == "loom":
            self.open = {}
        return seen


class GuestSession(Session):
    """A session in which a guest speaks and answers; its recorders look on."""

    def __init__(self, dialect: str, id: str, seed: int, mark: str, tell: Any) -> None:
        super().__init__(id, seed, mark, tell)
        self.recorders = self.recorders[:1]
        self.guest = Guest(dialect, id)
        # Others' messages begin turns.
        self.queues = True

    async def connect(self, address: str, ways: list[Return]) -> None:
        await super().connect(address, ways)
        await self.guest.connect(address)

    async def leave(self) -> None:
        await super().leave()
        await self.guest.leave()

    async def live(self, life: int, address: str) -> None:
        guest = self.guest
        while guest.connected:
            guest.news.clear()
            if not await self._guest_acts(guest, life):
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(guest.news.wait(), WAIT_SECONDS)

    async def _guest_acts(self, guest: Guest, life: int) -> bool:
        if guest.request is not None:
            if self.random.random() < HELD_SHARE:
                return True
            return await guest.answer(self.random.random() < 0.8)
        recorder = self.recorders[0]
        request = recorder.open_request
        if request is not None:
            # The room has no word for an answer, and a guest may have forgotten what it was asked.
            if self.answered.get(request["id"]) == life or self.random.random() < HELD_SHARE:
                return True
            return await self.answer(recorder, request, self.random.choice(REVIEWS), life)
        if guest.busy and recorder.loading:
            return True
        await asyncio.sleep(self.random.uniform(0, 0.2))
        self.tell("send")
        return await guest.say(self.script())

    def lost(self, held: record.Record) -> list[str]:
        return self.guest.lost(held)

    def settle(self) -> int:
        return self.guest.settle()
