"""Kills the server again and again while people use it, and counts what was lost.

    python kill.py --polyloop PATH [--cycles 200] [--seed 1]

Starts the real program with the offline model and a session store on disk, lets several users
of all four dialects talk to it over WebSockets, forks and undoes meanwhile, ends it with SIGKILL at a chosen moment, starts it again on the same
store and compares what every client was shown with what every session's record holds. Passes only
if no character shown was lost, every session goes on, and no command outlived its server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import check
import last_words
import processes
import record
from guests import DIALECTS, GuestSession
from meddler import Meddler
from recorder import NO_SERVER, Return
from server import Server, ServerFault
from thinkers import AGENTS, ThinkingSession
from user import Session

SESSIONS = 10
# A session is left alone at this age and a new one takes its place; all must resume at the end.
SESSION_CYCLES_MAX = 15
# So often it is looked whether forks and undos still hold.
MEDDLED_CYCLES = 5
# How long a promise may take on a busy machine before it counts as broken.
CHECK_SECONDS_MAX = 20
MOMENT_SECONDS_MAX = 4
# How long people use the server before a moment is waited for.
LOAD_SECONDS = (0.05, 0.8)
ORPHAN_SECONDS_MAX = 10
CYCLE_SECONDS_MAX = 40
FAILURES_SHOWN_MAX = 12
# A run that fails this often is not going to say more.
FAILED_SESSIONS_MAX = 6
MID_ITEM_SHARE_MIN = 1 / 3
# How long after its moment a kill falls: at once, while it has effects, or later.
STRIKE_SECONDS = [0, 0, 0.001, 0.002, 0.005, 0.01, 0.05]
# One moment a cycle, each block in its own order.
MOMENTS = ["text", "text", "text", "answer", "send", "finish", "command", "return", "any time"]


@dataclass
class Tally:
    cycles: int = 0
    kills: int = 0
    kills_mid_item: int = 0
    items_open_at_kills: int = 0
    processes_at_kills: int = 0
    approvals_open_at_kills: int = 0
    approvals_answered_in_a_later_life: int = 0
    returns_with_cursor: int = 0
    returns_with_seq: int = 0
    returns_without_place: int = 0
    characters_seen: int = 0
    characters_replayed: int = 0
    characters_lost: int = 0
    characters_missing: int = 0
    commands_run_once: int = 0
    commands_run_twice: int = 0
    sessions: int = 0
    sessions_not_resumed: int = 0
    guests_characters_seen: int = 0
    forks: int = 0
    undos: int = 0
    searches_taken_up: int = 0
    orphans: int = 0


class KillRun:
    def __init__(self, server: Server, cycles: int, seed: int) -> None:
        self.server = server
        self.cycles = cycles
        self.seed = seed
        self.random = random.Random(seed)
        # In no other process's arguments, and a number for `sleep`.
        self.mark = f"{time.time_ns() % 10**9:09}{seed % 1000:03}"
        self.tally = Tally()
        self.failures: list[str] = []
        self.failed_sessions = 0
        self.sessions: list[Session] = []
        self.retired: list[Session] = []
        self.moments = {name: asyncio.Event() for name in ("text", "answer", "send", "finish")}
        self.life = 0
        self.meddler = Meddler(self)

    def fail(self, what: str) -> None:
        self.failures.append(what)
        if len(self.failures) <= FAILURES_SHOWN_MAX:
            print(f"  FAILED {what}", flush=True)

    async def run(self) -> None:
        await self.server.start()
        await self.fill_up()
        block: list[str] = []
        for cycle in range(self.cycles):
            if not block:
                block = self.random.sample(MOMENTS, len(MOMENTS))
            async with asyncio.timeout(CYCLE_SECONDS_MAX + CHECK_SECONDS_MAX):
                await self.cycle(cycle, block.pop())
            if self.failed_sessions >= FAILED_SESSIONS_MAX:
                self.fail(f"given up after {cycle + 1} cycles")
                return
        await self.meddler.check()
        await last_words.all_of(self)
        share = self.tally.kills_mid_item / max(1, self.tally.kills)
        if share < MID_ITEM_SHARE_MIN:
            self.fail(f"only {share:.0%} of the kills fell into an item on a screen")

    async def fill_up(self) -> None:
        """New sessions for those that have retired."""
        while len(self.sessions) < SESSIONS:
            id = f"soak{len(self.sessions) + len(self.retired)}"
            session = self.make(id)
            await session.connect(self.server.address, [Return.NEW])
            self.sessions.append(session)
            self.tally.sessions += 1

    def make(self, id: str) -> Session:
        """There is always one session with a guest of each other dialect, and one of each agent."""
        there = [one.guest.dialect for one in self.sessions if isinstance(one, GuestSession)]
        for dialect in DIALECTS:
            if dialect not in there:
                return GuestSession(dialect, id, self.seed, self.mark, self.tell)
        thinking = [one.agent for one in self.sessions if isinstance(one, ThinkingSession)]
        for agent in AGENTS:
            if agent not in thinking:
                return ThinkingSession(agent, id, self.seed, self.mark, self.tell)
        return Session(id, self.seed, self.mark, self.tell)

    def tell(self, moment: str) -> None:
        self.moments[moment].set()

    async def cycle(self, number: int, moment: str) -> None:
        users = [
            asyncio.create_task(session.live(self.life, self.server.address))
            for session in self.sessions
        ]
        users.append(asyncio.create_task(self.meddler.live()))
        began = time.monotonic()
        born = await self.wait_for(moment)
        lived = time.monotonic() - began
        self.all_there()
        await self.kill(born)
        await asyncio.gather(*users)
        for session in self.sessions:
            # Whoever was just coming back found nobody.
            session.refused.clear()
        items = self.open_items()
        asked = sum(any(r.open_request for r in s.recorders) for s in self.sessions)
        await self.server.start()
        if moment == "return":
            await self.kill_while_they_return()
        await self.come_back()
        seen = await asyncio.gather(*(self.compare(session) for session in self.sessions))
        if number % MEDDLED_CYCLES == 0:
            await self.meddler.check()
        self.retire()
        await self.fill_up()
        tally = self.tally
        tally.forks, tally.undos = self.meddler.made, self.meddler.undos
        thinkers = [one for one in self.sessions + self.retired if isinstance(one, ThinkingSession)]
        tally.searches_taken_up = sum(one.resumed for one in thinkers)
        tally.cycles += 1
        tally.characters_seen += sum(seen)
        tally.kills_mid_item += items > 0
        tally.items_open_at_kills += items
        tally.processes_at_kills += len(born)
        tally.approvals_open_at_kills += asked
        print(
            f"cycle {number + 1}/{self.cycles}: killed at {moment!r} after {lived:.2f} s with "
            f"{items} open items on screens, {asked} approvals open, {len(born)} processes "
            f"started; all checked {time.monotonic() - began - lived:.2f} s later",
            flush=True,
        )

    def all_there(self) -> None:
        """Nobody is cut off or refused while the server lives."""
        for session in self.sessions:
            for recorder in session.recorders:
                if not recorder.connected and not recorder.away:
                    self.fail(f"{session.id}/{recorder.name} was cut off by a living server")
            for refusal in session.refused:
                self.fail(f"{session.id} was refused by a living server: {refusal}")

    async def kill(self, born: set[tuple[int, int]]) -> None:
        self.server.kill()
        self.tally.kills += 1
        self.life += 1
        await self.server.gone()
        for session in self.sessions:
            await asyncio.gather(*(recorder.disconnected() for recorder in session.recorders))
        await self.no_survivors(born)

    async def kill_while_they_return(self) -> None:
        """Recovery itself is cut short."""
        ways = [Return.CURSOR, Return.SEQ]
        returning = [
            asyncio.create_task(session.connect(self.server.address, ways))
            for session in self.sessions
        ]
        await asyncio.sleep(self.random.uniform(0, 0.06))
        await self.kill(processes.children(self.server.pid))
        for ended in await asyncio.gather(*returning, return_exceptions=True):
            if ended is not None and not isinstance(ended, NO_SERVER):
                raise ended
        for session in self.sessions:
            await asyncio.gather(*(recorder.disconnected() for recorder in session.recorders))
        await self.server.start()

    async def wait_for(self, moment: str) -> set[tuple[int, int]]:
        """Waits for the moment to strike; when it does not come, any moment will do. Gives the
        processes that the server has started."""
        await asyncio.sleep(self.random.uniform(*LOAD_SECONDS))
        try:
            async with asyncio.timeout(MOMENT_SECONDS_MAX):
                if moment == "command":
                    while not processes.marked(self.mark):
                        await asyncio.sleep(processes.WAIT_SECONDS)
                elif moment in self.moments:
                    # To look around takes longer than these moments last, so that comes first.
                    born = processes.children(self.server.pid)
                    self.moments[moment].clear()
                    await self.moments[moment].wait()
                    await asyncio.sleep(self.random.choice(STRIKE_SECONDS))
                    return born
        except TimeoutError:
            pass
        return processes.children(self.server.pid)

    def open_items(self) -> int:
        """Items with characters on a screen whose whole text is in no file; the server is dead."""
        count = 0
        for session in self.sessions:
            path = self.server.store / f"{session.id}.jsonl"
            whole = record.texts_on_disk(path) if path.exists() else set()
            shown = set().union(*(recorder.items_shown() for recorder in session.recorders))
            count += len(shown - whole)
        return count

    async def no_survivors(self, born: set[tuple[int, int]]) -> None:
        left = await processes.survivors(self.mark, born, ORPHAN_SECONDS_MAX)
        for pid, words in left.items():
            self.tally.orphans += 1
            self.fail(f"process {pid} outlived its server: {words}")
        processes.end(left)

    async def come_back(self) -> None:
        ways = [Return.CURSOR, Return.CURSOR, Return.SEQ, Return.NO_PLACE]
        await asyncio.gather(*(s.connect(self.server.address, ways) for s in self.sessions))
        # Before that a session may not even have been recovered.
        await asyncio.gather(*(r.attached() for s in self.sessions for r in s.recorders))
        hows = [r.visits[-1].how for s in self.sessions for r in s.recorders]
        self.tally.returns_with_cursor += hows.count(Return.CURSOR)
        self.tally.returns_with_seq += hows.count(Return.SEQ)
        self.tally.returns_without_place += hows.count(Return.NO_PLACE)

    async def compare(self, session: Session) -> int:
        """Waits until all clients agree with the record, or says why they do not. Gives the
        number of characters that they were shown since the last time."""
        deadline = time.monotonic() + CHECK_SECONDS_MAX
        while True:
            answer = await self.server.get(f"/sessions/{session.id}")
            held = record.read(answer["events"])
            found = self.findings(session, held)
            if not found.problems or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.05)
        self.tally.characters_lost += found.characters_lost
        self.tally.characters_missing += found.characters_missing
        self.failed_sessions += bool(found.problems)
        for problem in found.problems:
            self.fail(problem)
        if found.problems:
            self.keep_evidence(session, answer["events"])
        session.baseline = held.last_seq
        session.age_cycles += 1
        self.tally.guests_characters_seen += session.settle()
        return sum(recorder.settle(held.last_seq) for recorder in session.recorders)

    def keep_evidence(self, session: Session, events: list[dict[str, Any]]) -> None:
        """What was shown and what is recorded, for whoever looks into it."""
        shown = {
            recorder.name: [
                [visit.how.value, visit.since, [one.message for one in visit.shown]]
                for visit in recorder.visits
            ]
            for recorder in session.recorders
        }
        evidence = {"baseline": session.baseline, "shown": shown, "recorded": events}
        path = self.server.home / f"{session.id}-life-{self.life}.json"
        path.write_text(json.dumps(evidence, indent=1, ensure_ascii=False))

    def findings(self, session: Session, held: record.Record) -> check.Findings:
        found = check.Findings([f"{session.id}: {problem}" for problem in held.problems])
        for message in session.accepted - held.user_inputs:
            found.problems.append(f"{session.id}: {message} was accepted and is not recorded")
        found.problems += [f"{session.id}: {lost}" for lost in session.lost(held)]
        for recorder in session.recorders:
            found.add(check.compare(recorder, held, session.baseline))
            request = recorder.open_request["id"] if recorder.open_request else None
            if request != held.pending:
                found.problems.append(
                    f"{session.id}/{recorder.name}: the open request is {held.pending}, "
                    f"it was shown {request}"
                )
        for request in session.held.keys() - session.answered.keys():
            if held.pending != request and session.held[request] not in session.broke_off:
                found.problems.append(f"{session.id}: {request} was left open and is not any more")
        return found

    def retire(self) -> None:
        for session in list(self.sessions):
            busy = any(r.loading or r.open_request for r in session.recorders)
            if session.age_cycles >= SESSION_CYCLES_MAX and not busy:
                self.sessions.remove(session)
                self.retired.append(session)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--polyloop", type=Path, required=True, help="the program to kill")
    parser.add_argument("--cycles", type=int, default=200, help="how often [default: 200]")
    parser.add_argument("--seed", type=int, default=1, help="what users do [default: 1]")
    parser.add_argument("--keep", action="store_true", help="keep the store, to look at it")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="polyloop-kill-"))
    run = KillRun(Server(args.polyloop.resolve(), home), args.cycles, args.seed)
    task, began = asyncio.current_task(), time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await run.run()
    except (ServerFault, TimeoutError, OSError) as fault:
        run.fail(f"the run broke: {type(fault).__name__} {fault}")
    except asyncio.CancelledError:
        run.fail("stopped by a signal")
    finally:
        await run.server.end()
        processes.end(processes.marked(run.mark))
        if run.failures:
            print(f"the end of the server's log:\n{run.server.tail()}")
        if args.keep or run.failures:
            print(f"kept: {home}")
        else:
            shutil.rmtree(home)
    print(json.dumps(vars(run.tally), indent=2))
    verdict = "failed" if run.failures else "passed"
    took = time.monotonic() - began
    print(f"kill run {verdict}: seed {args.seed}, {len(run.failures)} problems, {took:.0f} s")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
