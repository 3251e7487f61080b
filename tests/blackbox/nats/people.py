"""Clients of a session, each with everything it was ever shown, over all its connections.

Whoever loses a connection comes back to any replica by its place, as any client would. Judges
nothing: that is `proof`'s work.
"""

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from urllib.parse import quote

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from kill_run import Recorder, Return

CONNECT_SECS = 5.0
# A server that does not greet within this is left for another one.
GREET_SECS = 8.0
# Whoever is silent for longer is taken for dead.
PING_SECS, PONG_SECS = 4.0, 6.0
AGAIN_SECS = (0.05, 0.4)
# Now and then somebody moves on for no reason.
STAY_SECS = 45.0
NO_SERVER = (OSError, EOFError, WebSocketException, TimeoutError)
# What only this connection is told: answers and heartbeats.
OWN = ("evt-r", "evt-h")


def options(replica):
    return {"additional_headers": replica.headers(), "open_timeout": CONNECT_SECS,
            "ping_interval": PING_SECS, "ping_timeout": PONG_SECS, "close_timeout": 1,
            "compression": None, "proxy": None, "max_size": None}


class Person:
    """Comes, stays, and comes back; what a dialect is, its kinds say."""

    def __init__(self, session, name, replicas, seed):
        self.session, self.name, self.replicas = session, name, replicas
        self.random = random.Random(f"{seed}/{session.id}/{name}")
        self.at = None
        self.visits, self.failures = 0, Counter()
        self.leaving = False
        self._stay = None

    @property
    def place(self):
        raise NotImplementedError

    async def visit(self, replica):
        """Connects, and reads until the connection ends."""
        raise NotImplementedError

    async def leave(self):
        raise NotImplementedError

    async def live(self):
        """Until somebody says that it is over."""
        last = None
        while not self.leaving:
            open_ones = [one for one in self.replicas if one.is_open]
            # Whoever was just failed by one goes to another first.
            others = [one for one in open_ones if one is not last] or open_ones
            if others:
                last = self.at = self.random.choice(others)
                self.visits += 1
                stay = asyncio.create_task(self._move_on())
                try:
                    await self.visit(last)
                except NO_SERVER as error:
                    self.failures[type(error).__name__] += 1
                finally:
                    stay.cancel()
                    self.at = None
            if not self.leaving:
                await asyncio.sleep(self.random.uniform(*AGAIN_SECS))

    async def _move_on(self):
        await asyncio.sleep(self.random.expovariate(1 / STAY_SECS) + 1)
        await self.leave()


class Unified(Person):
    """Follows by its cursor, speaks and decides."""

    def __init__(self, *words):
        super().__init__(*words)
        self.frames = []
        # Each connection: when, where, from which place, and how many frames there were before it.
        self.history = []
        self.errors = Counter()
        self.socket = None

    @property
    def place(self):
        return self.frames[-1].get("cursor", self.frames[-1]["seq"]) if self.frames else 0

    @property
    def seq(self):
        """Everything up to here was shown."""
        last = self.frames[-1] if self.frames else {"seq": 0}
        return last["seq"] - 1 if "cursor" in last else last["seq"]

    async def visit(self, replica):
        where = f"/unified?session_id={self.session.id}&since={quote(str(self.place), safe='')}"
        async with connect(replica.url(where), **options(replica)) as socket:
            async with asyncio.timeout(GREET_SECS):
                self._take(json.loads(await socket.recv()))
            now = time.strftime("%H:%M:%S")
            self.history.append((now, replica.name, self.place, len(self.frames)))
            self.socket = socket
            try:
                async for text in socket:
                    self._take(json.loads(text))
            finally:
                self.socket = None

    async def leave(self):
        if self.socket is not None:
            # The line breaks: no closing words, and what was not read is lost.
            self.socket.transport.abort()

    def _take(self, frame):
        if frame["type"] == "error":
            self.errors[frame["message"][:60]] += 1
        if frame.get("session_id") != self.session.id or frame["id"].startswith(OWN):
            return
        self.frames.append(frame)
        self.session.shown(self, frame, time.time())

    async def send(self, kind, **fields):
        """False when there is nobody to send to."""
        socket = self.socket
        if socket is None:
            return False
        message = {"type": kind, "session_id": self.session.id, **fields}
        try:
            await socket.send(json.dumps(message))
        except ConnectionClosed:
            return False
        return True


class Agentloop(Person):
    """The kill run's recorder, on any replica."""

    def __init__(self, *words):
        super().__init__(*words)
        self.recorder = Recorder(self.session.id, self.name)

    @property
    def place(self):
        return self.recorder.cursor or self.recorder.seq

    @property
    def seq(self):
        return self.recorder.seq - 1 if self.recorder.cursor else self.recorder.seq

    async def visit(self, replica):
        first = not self.recorder.visits
        how = Return.FROM_THE_START if first else self.random.choice([Return.CURSOR, Return.SEQ])
        await self.recorder.connect(replica.server.address, how, **options(replica))
        await self.recorder._reading

    async def leave(self):
        with contextlib.suppress(TimeoutError):
            await self.recorder.drop()


KINDS = {"unified": Unified, "agentloop": Agentloop}
