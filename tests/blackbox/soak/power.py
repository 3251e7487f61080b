"""Takes the power away again and again while people use the server: what was not flushed is gone.

    python power.py --polyloop PATH [--cycles 200] [--seed 1]

The server runs on a disk that remembers what has reached it (../disk.py). It is killed at a random
moment; then every file is cut to what was flushed, or somewhere behind it, and names that were not
flushed are gone, or not: as a machine that loses its power leaves them. The next server must have
everything that the documents call flushed: sessions, messages that were said a moment ago, answers,
tool results, turn ends; no command may run twice; what is left of streamed text is a beginning of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import processes  # noqa: E402
import record  # noqa: E402
from disk import Disk  # noqa: E402
from recorder import Return  # noqa: E402
from server import Server, ServerFault  # noqa: E402
from user import Session  # noqa: E402

SESSIONS = 6
# A session goes through so many lives before a new one takes its place.
SESSION_LIVES_MAX = 12
LIFE_SECONDS = (0.05, 1.2)
CHECK_SECONDS_MAX = 30
ANSWER_SECONDS_MAX = 60
FAILURES_SHOWN_MAX = 12
# A message is flushed some milliseconds after it was seen to be taken, on a machine that has much to do.
FLUSHED_AFTER_SECONDS = 0.25
# Names in a session's life never come again.
NAMES_A_LIFE = 10_000


@dataclass
class Tally:
    cycles: int = 0
    bytes_lost: int = 0
    names_lost: int = 0
    promised: int = 0
    promised_lost: int = 0
    commands_run_once: int = 0
    commands_run_twice: int = 0
    sessions: int = 0
    sessions_not_resumed: int = 0


class Promised:
    """What a session's users saw that must outlive the machine."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.lives = 0
        self.messages: dict[str, Any] = {}
        self.user_inputs: set[str] = set()
        self.once: list[str] = []

    def take(self, session: Session, killed_at: float) -> None:
        """All of one life. What only reads, or was judged harmless, may begin unflushed."""
        self.lives += 1
        until = killed_at - FLUSHED_AFTER_SECONDS
        self.user_inputs |= {said for said, at in session.accepted_at.items() if at < until}
        self.once += session.once
        for recorder in session.recorders:
            shown = [one.message for visit in recorder.visits for one in visit.shown]
            for message in shown:
                payload = message["payload"]
                kind = payload.get("type") or message["type"]
                ends = kind == "loading_state" and not payload["loading"]
                asked = kind == "function_call" and "sleep " in json.dumps(payload)
                if ends or asked or kind in ("function_call_output", "agent_finished"):
                    self.messages[message["id"]] = payload

    def missing(self, held: record.Record) -> list[str]:
        lost = [f"{id} ({payload.get('type', 'end')})" for id, payload in self.messages.items()
                if id not in held.messages or held.messages[id].payload != payload]
        return lost + sorted(self.user_inputs - held.user_inputs)


class PowerRun:
    def __init__(self, server: Server, disk: Disk, cycles: int, seed: int, forgets: bool) -> None:
        self.server, self.disk, self.cycles = server, disk, cycles
        self.seed, self.random, self.forgets = seed, random.Random(seed), forgets
        self.mark = f"{time.time_ns() % 10**9:09}{seed % 1000:03}"
        self.tally, self.failures = Tally(), []
        self.promised: list[Promised] = []
        self.retired: list[Promised] = []

    def fail(self, what: str) -> None:
        self.failures.append(what)
        if len(self.failures) <= FAILURES_SHOWN_MAX:
            print(f"  FAILED {what}", flush=True)

    async def start(self) -> None:
        self.disk.begin()
        self.server.env = self.disk.env()
        await self.server.start()

    async def run(self) -> None:
        await self.start()
        for cycle in range(self.cycles):
            async with asyncio.timeout(CHECK_SECONDS_MAX + ANSWER_SECONDS_MAX):
                await self.cycle(cycle)
            if len(self.failures) > FAILURES_SHOWN_MAX:
                return
        for promised in self.promised + self.retired:
            await self.answers(promised)
        await self.server.stop()

    async def cycle(self, number: int) -> None:
        while len(self.promised) < SESSIONS:
            self.promised.append(Promised(f"power{self.tally.sessions}"))
            self.tally.sessions += 1
        sessions = [self.session(promised) for promised in self.promised]
        await asyncio.gather(*(s.connect(self.server.address, [Return.NEW]) for s in sessions))
        users = [asyncio.create_task(s.live(number, self.server.address)) for s in sessions]
        await asyncio.sleep(self.random.uniform(*LIFE_SECONDS))
        killed_at = time.monotonic()
        self.server.kill()
        await self.server.gone()
        await asyncio.gather(*users)
        await asyncio.gather(*(r.disconnected() for s in sessions for r in s.recorders))
        processes.end(await processes.survivors(self.mark, set(), CHECK_SECONDS_MAX))
        for promised, session in zip(self.promised, sessions, strict=True):
            promised.take(session, killed_at)
        if self.forgets:
            self.forget()
        lost_bytes, lost_names = self.disk.lose_power(self.random)
        self.tally.bytes_lost += lost_bytes
        self.tally.names_lost += lost_names
        await self.start()
        for promised in self.promised:
            await self.compare(promised)
        old = [one for one in self.promised if one.lives >= SESSION_LIVES_MAX]
        self.retired += old
        self.promised = [one for one in self.promised if one not in old]
        self.tally.cycles += 1
        print(f"cycle {number + 1}/{self.cycles}: {lost_bytes} bytes and {lost_names} names lost",
              flush=True)

    def forget(self) -> None:
        """The check itself: a disk that lies now and then is found out."""
        lines = self.disk.ledger.read_text().splitlines(keepends=True)
        kept = [one for one in lines if one[0] != "F" or self.random.random() < 0.5]
        self.disk.ledger.write_text("".join(kept))

    def session(self, promised: Promised) -> Session:
        session = Session(promised.id, self.seed + promised.lives, self.mark, lambda _: None)
        session._count = promised.lives * NAMES_A_LIFE
        return session

    async def held(self, promised: Promised) -> record.Record | None:
        try:
            answer = await self.server.get(f"/sessions/{promised.id}")
        except OSError as error:
            self.fail(f"{promised.id}: it is gone: {error}")
            return None
        return record.read(answer["events"])

    async def compare(self, promised: Promised) -> None:
        # Whoever comes opens it, which closes what was left open.
        await self.look_in(promised)
        held = await self.held(promised)
        if held is None:
            return
        for problem in held.problems:
            self.fail(f"{promised.id}: {problem}")
        lost = promised.missing(held)
        self.tally.promised += len(promised.messages) + len(promised.user_inputs) - len(lost)
        self.tally.promised_lost += len(lost)
        for one in lost:
            self.fail(f"{promised.id}: {one} was promised and is lost")
        for name in promised.once:
            path = self.server.workspace / name
            runs = len(path.read_text().splitlines()) if path.exists() else 0
            if runs > 1:
                self.tally.commands_run_twice += 1
                self.fail(f"{promised.id}: the command of {name} ran {runs} times")

    async def look_in(self, promised: Promised) -> None:
        session = self.session(promised)
        recorder = session.recorders[0]
        await recorder.connect(self.server.address, Return.NEW)
        await recorder.attached()
        await recorder.drop()

    async def answers(self, promised: Promised) -> None:
        """After all that it is still of use."""
        session = self.session(promised)
        session.recorders = session.recorders[:1]
        speaker = session.recorders[0]
        await speaker.connect(self.server.address, Return.NEW)
        await speaker.attached()
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                await session.say(speaker, "say: the last word")
                while not any(one.text == "the last word" for one in speaker.visits[-1].shown):
                    speaker.news.clear()
                    if (request := speaker.open_request) is not None:
                        await session.answer(speaker, request, "no-continue", 0)
                        speaker.open_request = None
                    await speaker.news.wait()
        except TimeoutError:
            self.tally.sessions_not_resumed += 1
            self.fail(f"{promised.id} does not answer")
        await speaker.drop()
        for name in promised.once:
            path = self.server.workspace / name
            self.tally.commands_run_once += path.exists()


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--polyloop", type=Path, required=True, help="the program to try")
    parser.add_argument("--cycles", type=int, default=200, help="how often [default: 200]")
    parser.add_argument("--seed", type=int, default=1, help="what users do [default: 1]")
    parser.add_argument("--keep", action="store_true", help="keep the store, to look at it")
    parser.add_argument("--forget", action="store_true",
                        help="a disk that forgets what it flushed: the run must fail")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="polyloop-power-")).resolve()
    server = Server(args.polyloop.resolve(), home)
    server.store.mkdir()
    run = PowerRun(server, Disk(home, server.store), args.cycles, args.seed, args.forget)
    began = time.monotonic()
    try:
        await run.run()
    except (ServerFault, TimeoutError, OSError) as fault:
        run.fail(f"the run broke: {type(fault).__name__} {fault}")
    finally:
        await server.end()
        processes.end(processes.marked(run.mark))
        if run.failures:
            print(f"the end of the server's log:\n{server.tail()}")
        if args.keep or run.failures:
            print(f"kept: {home}")
        else:
            shutil.rmtree(home)
    print(json.dumps(vars(run.tally), indent=2))
    verdict = "failed" if run.failures else "passed"
    took = time.monotonic() - began
    print(f"power run {verdict}: seed {args.seed}, {len(run.failures)} problems, {took:.0f} s")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
