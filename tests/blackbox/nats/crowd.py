"""Sessions under load: somebody speaks in each, others watch and decide, all on any replica.

What is said is numbered and unlike anything else, so that it can be found again. A message is sent
once: whether it arrived is for the log to say, if no answer came.
"""

import asyncio
import contextlib
import random
import time
from dataclasses import dataclass

from people import Agentloop, Unified
from talk import ASKS, ENDS

ANSWER_SECS = (0.1, 1.5)
ANSWER_AGAIN_SECS = 4.0
TURN_SECS_MAX = 25.0
QUIET_SECS_MAX = 180.0


@dataclass
class Sent:
    """A message, and whether anybody was shown that it is there."""

    ref: str
    text: str
    acknowledged: bool = False


class Session:
    def __init__(self, number, replicas, seed, pace):
        self.id, self.pace = f"s{number}", pace
        self.random = random.Random(f"{seed}/{self.id}")
        self.people = [Unified(self, f"u{n}", replicas, seed) for n in (1, 2)]
        self.people.append(Agentloop(self, "a1", replicas, seed))
        self.speakers = self.people[:2]
        self.sent = {}
        # The time at which anybody was first shown each number.
        self.first_seen = {}
        self.seq, self.running, self.open_requests = 0, False, {}
        self.tasks = set()
        self.news = asyncio.Event()
        self.last_seq = None
        self.decided_elsewhere = 0

    # What is seen.

    def shown(self, person, frame, now):
        ref, seq, kind = frame.get("client_ref"), frame["seq"], frame["type"]
        if ref in self.sent and kind in ("turn_started", "message_queued"):
            self.sent[ref].acknowledged = True
        if "cursor" in frame or seq < self.seq:
            return
        self.first_seen.setdefault(seq, now)
        self.seq = seq
        if kind == "turn_started":
            self.running = True
        elif kind in ENDS:
            self.running = False
            self.open_requests.clear()
        elif kind == "approval_settled":
            self.open_requests.pop(frame["request_id"], None)
        elif kind in ASKS and frame["request_id"] not in self.open_requests:
            self.open_requests[frame["request_id"]] = frame
            self._begin(self._decide(frame, person.at))
        self.news.set()

    @property
    def works(self):
        """Something is under way that needs nobody."""
        return self.running and not self.open_requests

    def _begin(self, work):
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _decide(self, frame, seen_at):
        """Somebody answers; if nothing comes of it, somebody else does."""
        await asyncio.sleep(self.random.uniform(*ANSWER_SECS))
        while frame["request_id"] in self.open_requests:
            one = self.random.choice(self.speakers)
            at = one.at
            if await self._answer(one, frame) and at is not seen_at:
                self.decided_elsewhere += 1
            await asyncio.sleep(ANSWER_AGAIN_SECS)

    async def _answer(self, one, frame):
        if frame["type"] == "ask_user_question":
            answers = [{"question_index": 0, "selected": ["a"]}]
            return await one.send(
                "user_question_response", tool_id=frame["tool_id"], answers=answers)
        return await one.send(
            "permission_response", request_id=frame["request_id"], decision="allow")

    # What is said.

    def _script(self, mark):
        return self.random.choices([
            f"say: {mark} and nothing else",
            f"stream: {self.random.randint(6, 30)} 16 150\nsay: {mark} was streamed",
            f"run: echo {mark} >> ran-{self.id}\nsay: {mark} was run",
            f"ask: Which of {mark}? | a | b\nsay: {mark} was asked",
        ], [4, 4, 2, 1])[0]

    async def say(self, text=None):
        mark = f"{self.id}-{len(self.sent) + 1}"
        text = text or self._script(mark)
        sent = Sent(mark, text)
        self.sent[mark] = sent
        if not await self.random.choice(self.speakers).send("user_message", id=mark, content=text):
            del self.sent[mark]
            return None
        return sent

    async def _until(self, holds, secs):
        """Whether it came true in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(secs):
                while not holds():
                    self.news.clear()
                    await self.news.wait()
                return True
        return False

    async def speak(self, is_over):
        await asyncio.sleep(self.random.uniform(0, self.pace))
        while not is_over():
            if sent := await self.say():
                await self._until(
                    lambda: sent.acknowledged and not self.running, TURN_SECS_MAX)
            await asyncio.sleep(self.random.uniform(self.pace / 2, self.pace * 1.5))

    async def come_to_rest(self):
        """Says a last word until it is answered; what is wrong if that never happens."""
        end = time.monotonic() + QUIET_SECS_MAX
        while time.monotonic() < end:
            last = await self.say(f"say: the last of {self.id}, {len(self.sent) + 1}")
            if last is None:
                await asyncio.sleep(0.5)
                continue
            if await self._until(
                    lambda: last.acknowledged and not self.running, TURN_SECS_MAX):
                break
        else:
            return [f"{self.id}: stuck: no answer within {QUIET_SECS_MAX} s of quiet"]
        # What was said before and not answered may still be queued.
        await self._until(lambda: not self.running, TURN_SECS_MAX)
        await asyncio.sleep(1.0)
        await self._until(lambda: not self.running, TURN_SECS_MAX)
        self.last_seq = self.seq
        late = []
        while time.monotonic() < end:
            late = [one.name for one in self.people if one.seq < self.last_seq]
            if not late:
                return []
            await asyncio.sleep(0.1)
        places = {one.name: one.place for one in self.people}
        return [f"{self.id}: behind: {', '.join(late)} was not shown {self.last_seq}: {places}"]

    async def end(self):
        for one in self.people:
            one.leaving = True
            await one.leave()
