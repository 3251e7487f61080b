"""The people of a kill run: one a session. They say things, approve some of what is asked, leave
some of it open, break off, and now and then their line breaks.

All of their choices come from a seed; only the moments are the machine's.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from typing import Any

from recorder import NO_SERVER, Recorder, Return

WAIT_SECONDS = 0.25
SLEEP_SECONDS = 300
# What may be open when the server dies.
HELD_SHARE = 0.3
BREAK_OFF_SHARE = 0.06
QUEUE_SHARE = 0.15
COMPACT_SHARE = 0.05
DROP_SHARE = 0.25

UNICODE = "Zwölf Boxkämpfer jagen Viktor 🥊 quer über den großen Sylter Deich — 終わり. "


class Session:
    """A session, its clients, and what its user knows of it."""

    def __init__(self, id: str, seed: int, mark: str, tell: Callable[[str], None]) -> None:
        self.id = id
        self.mark = mark
        self.tell = tell
        self.random = random.Random(f"{seed}/{id}")
        self.recorders = [Recorder(id, f"client{n}") for n in range(self.random.choice([1, 2, 2]))]
        for recorder in self.recorders:
            recorder.watch = self._watch
        # The last seq of the record when the clients were last compared with it.
        self.baseline = 0
        self.age_cycles = 0
        # Messages whose turn this user saw begin.
        self.accepted: set[str] = set()
        # When that was.
        self.accepted_at: dict[str, float] = {}
        # Requests that were answered, by the server's life in which they were.
        self.answered: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self.answered_in_a_later_life = 0
        # Lives in which this user broke a turn off, which withdraws what it asks.
        self.broke_off: set[int] = set()
        # How a server refused a client that came back.
        self.refused: list[str] = []
        # Files that a command writes one line to, each time it runs.
        self.once: list[str] = []
        # Those of them whose output was shown.
        self.ran: set[str] = set()
        self.queues = self.random.random() < QUEUE_SHARE
        self._in_flight: tuple[Recorder, str] | None = None
        self._turns: set[str] = set()
        self._count = 0

    def _watch(self, recorder: Recorder, message: dict[str, Any]) -> None:
        if recorder.in_text:
            self.tell("text")
        if message["payload"].get("type") == "function_call_output":
            output = message["payload"]["output"]
            self.ran.update(name for name in self.once if f"{name}\\n" in output)
        if message["type"] != "loading_state":
            return
        if not message["payload"]["loading"]:
            self.tell("finish")
            return
        is_new = message["id"] not in self._turns
        self._turns.add(message["id"])
        if is_new and self._in_flight is not None and self._in_flight[0] is recorder:
            # Others' messages may begin a turn too, in a session that queues.
            if not self.queues:
                self.accepted.add(self._in_flight[1])
                self.accepted_at[self._in_flight[1]] = time.monotonic()
            self._in_flight = None

    def lost(self, _held: Any) -> list[str]:
        """What others than the recorders were shown that is not recorded."""
        return []

    def settle(self) -> int:
        """All of that was compared; how many characters it was."""
        return 0

    async def leave(self) -> None:
        """All of its clients go."""
        await asyncio.gather(*(recorder.drop() for recorder in self.recorders))

    async def rest(self, _address: str) -> None:
        """Comes before what it says last."""

    def name(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self.id}-{self._count}"

    async def connect(self, address: str, ways: list[Return]) -> None:
        self._in_flight = None
        ways = [self.random.choice(ways) for _ in self.recorders]
        pairs = zip(self.recorders, ways, strict=True)
        await asyncio.gather(*(recorder.connect(address, how) for recorder, how in pairs))

    async def live(self, life: int, address: str) -> None:
        """Uses the session until the server is gone."""
        drop = self.random.random() < DROP_SHARE
        while True:
            speaker = self.recorders[self._count % len(self.recorders)]
            if not speaker.connected:
                return
            if drop and speaker.in_text:
                drop = False
                await speaker.drop()
                ways = [Return.CURSOR, Return.CURSOR, Return.SEQ, Return.NO_PLACE]
                try:
                    await speaker.connect(address, self.random.choice(ways))
                except NO_SERVER as refusal:
                    self.refused.append(repr(refusal))
                    return
                continue
            if not await self._act(speaker, life):
                return
            speaker.news.clear()
            try:
                await asyncio.wait_for(speaker.news.wait(), WAIT_SECONDS)
            except TimeoutError:
                pass

    async def _act(self, speaker: Recorder, life: int) -> bool:
        request = speaker.open_request
        if request is not None:
            return await self._decide(speaker, request, life)
        if speaker.loading:
            if speaker.in_text and self.random.random() < BREAK_OFF_SHARE / 20:
                self.broke_off.add(life)
                return await speaker.send({"id": self.name("stop"), "type": "interrupt"})
            return True
        if self._in_flight is not None:
            return True
        await asyncio.sleep(self.random.uniform(0, 0.2))
        if self.random.random() < COMPACT_SHARE:
            return await speaker.send({"id": self.name("compact"), "type": "manual_compact"})
        sent = await self.say(speaker, self.script())
        if sent and self.queues and self.random.random() < 0.3:
            sent = await self.say(speaker, f"say: queued {self.name('queued')}")
        return sent

    async def _decide(self, speaker: Recorder, request: dict[str, Any], life: int) -> bool:
        id = request["id"]
        if self.answered.get(id) == life or self.held.get(id) == life:
            return True
        if id not in self.held and self.random.random() < HELD_SHARE:
            self.held[id] = life
            return True
        review = self.random.choice(["yes", "yes", "yes", "YES", "no-continue"])
        return await self.answer(speaker, request, review, life)

    async def answer(
        self, speaker: Recorder, request: dict[str, Any], review: str, life: int
    ) -> bool:
        payload = {"review": review}
        if self.random.random() < 0.5:
            payload["requestId"] = request["id"]
        first_seen = min(self.held.get(request["id"], life), self.answered.get(request["id"], life))
        self.answered_in_a_later_life += first_seen < life
        self.answered[request["id"]] = life
        message = {"id": self.name("answer"), "type": "approval_response", "payload": payload}
        sent = await speaker.send(message)
        self.tell("answer")
        return sent

    async def say(self, speaker: Recorder, text: str) -> bool:
        id = self.name("message")
        part = {"type": "input_text", "text": text}
        item = {"type": "message", "role": "user", "content": [part]}
        if self._in_flight is None:
            self._in_flight = (speaker, id)
        sent = await speaker.send({"id": id, "type": "user_input", "payload": {"input": [item]}})
        self.tell("send")
        return sent

    def script(self) -> str:
        """What to say next, in the words of the offline model."""
        kinds = {
            self._stream: 9,
            self._texts: 4,
            self._loop: 3,
            self._once: 3,
            self._long: 3,
            self._two_calls: 1,
            self._safe: 1,
            self._talk: 1,
            self._full: 2,
            self._edit: 3,
        }
        return self.random.choices(list(kinds), list(kinds.values()))[0]()

    def _stream(self) -> str:
        chunks, size = self.random.randint(60, 400), self.random.randint(5, 40)
        return f"stream: {chunks} {size} {self.random.randint(2, 8)}"

    def _texts(self) -> str:
        text = UNICODE * self.random.randint(5, 40)
        return f"think: {self.name('thought')}\nsay: {text}\n{self._stream()}\nsay: {text}"

    def _loop(self) -> str:
        return f"run: for i in 1 2 3; do echo line $i; done\nsay: {self.name('done')}"

    def _once(self) -> str:
        name = self.name("once")
        self.once.append(name)
        return f"run: sleep 0.05; echo ran >> {name}; echo {name}\n{self._stream()}"

    def _long(self) -> str:
        """A command that outlives every cycle, if the server's death does not end it."""
        sleep = f"sleep {SLEEP_SECONDS}.{self.mark}"
        forms = [
            f"{sleep}; true",
            f"{sleep} & wait",
            f"setsid {sleep} & {sleep}; true",
            f"(setsid nohup {sleep} > /dev/null 2>&1 &); {sleep}; true",
            f"trap '' TERM HUP INT; {sleep}; true",
            f"while true; do echo tick; {sleep.replace(str(SLEEP_SECONDS), '0', 1)}; {sleep}; done",
        ]
        return f"say: {self.name('long')}\nrun: {self.random.choice(forms)}"

    def _two_calls(self) -> str:
        one, two = self.name("one"), self.name("two")
        return f"run: echo {one} > /dev/null; true\n&run: echo {two}; true"

    def _safe(self) -> str:
        return f"say: I look around.\nrun: ls\n{self._stream()}"

    def _full(self) -> str:
        """A window that is full between two calls: room is made there."""
        return f"usage: 120000 100\nrun: ls\nsay: {self.name('full')}\n{self._stream()}"

    def _edit(self) -> str:
        """A file that an undo may take away again."""
        name = self.name("edit")
        args = json.dumps({"path": name, "content": f"{name}\n"})
        return f"tool: write_file {args}\nsay: {self.name('edited')}"

    def _talk(self) -> str:
        return f"Hello, this is {self.name('talk')}"
