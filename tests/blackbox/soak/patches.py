"""Kills the server again and again while it applies patches of many files.

    python patches.py --polyloop PATH [--kills 500] [--seed 1] [--lanes 3]

Each lane is a workspace, a store and a server. A session in auto-edit mode applies a patch that
adds, updates, deletes and moves files in several directories; while it does, the server is ended
with SIGKILL. It is started again, and an independent check compares the files with what they were
and with what they should become: all must be old, or all new, byte for byte, with no file and no
directory besides. The server's journal must be empty, and the session must go on.

What the check would find without the server's second start is counted too (`torn_when_killed`):
a run in which that is 0 has shown nothing and fails.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import urllib.error
from dataclasses import dataclass
from pathlib import Path

import websockets

from server import Server, ServerFault

ANSWER_SECONDS_MAX = 30
# A session is left alone at this age: its prompt would only grow.
SESSION_KILLS_MAX = 20
# Further lines of all new contents of a patch: it must fit into the model's window, twice.
LINES_MAX = 1_500
FAILURES_SHOWN_MAX = 10
FAILURES_MAX = 20
# After how many kills one of them must have fallen between the first and the last renaming.
KILLS_SURE = 60
# When to strike: as soon as a patch is written down, as it changes the first file, or at any time.
MOMENTS = ["renaming", "renaming", "renaming", "renaming", "journal", "any time"]
# How long after that, in seconds.
DELAYS = {
    "renaming": [0, 0, 0, 0.00005, 0.0001, 0.0003],
    "journal": [0, 0.0005, 0.001, 0.002, 0.005],
    "any time": [0.0005, 0.002, 0.005, 0.01, 0.02],
}
DIRECTORIES = ["", "src/", "src/deep/", "doc/", "test/unit/"]
IN_MOVED = 0x40 | 0x80  # IN_MOVED_FROM, IN_MOVED_TO
IN_CREATE = 0x100

Tree = dict[str, bytes]


@dataclass
class Tally:
    kills: int = 0
    journal_when_killed: int = 0
    spares_when_killed: int = 0
    torn_when_killed: int = 0
    all_old: int = 0
    all_new: int = 0
    torn: int = 0
    spares_left: int = 0
    journals_left: int = 0
    told_undone: int = 0
    told_in_place: int = 0
    sessions_not_resumed: int = 0
    false_successes: int = 0


def tree(top: Path) -> Tree:
    """Every file and, with a slash behind it, every directory."""
    found: Tree = {}
    for directory, names, files in os.walk(top):
        relative = os.path.relpath(directory, top)
        below = "" if relative == "." else f"{relative}/"
        found.update((f"{below}{name}/", b"") for name in names)
        for name in files:
            found[below + name] = Path(directory, name).read_bytes()
    return found


def with_directories(files: Tree, kept: Tree) -> Tree:
    """Files with the directories above them; those that were there stay, empty or not."""
    all_of_it = dict(files)
    all_of_it.update((name, b"") for name in kept if name.endswith("/"))
    for name in files:
        parts = name.split("/")[:-1]
        all_of_it.update(("/".join(parts[: n + 1]) + "/", b"") for n in range(len(parts)))
    return all_of_it


def is_spare(name: str) -> bool:
    return name.rsplit("/", 1)[-1].startswith(".polyloop-")


def torn(now: Tree, old: Tree, new: Tree) -> str | None:
    """Why files are neither all old nor all new; None if they are."""
    if now in (old, new):
        return None
    odd = [name for name in now.keys() | old.keys() | new.keys() if now.get(name) != old.get(name)]
    not_new = [name for name in odd if now.get(name) != new.get(name)]
    what = f"{len(odd)} differ from before, {len(not_new)} of them from both: {sorted(odd)[:6]}"
    return what


class Lane:
    """One workspace, and whoever works in it."""

    def __init__(self, run: "Run", number: int) -> None:
        self.run = run
        self.random = random.Random(f"{run.seed}/{number}")
        home = run.home / f"lane{number}"
        home.mkdir()
        self.server = Server(run.program, home, "--tool-use-approval-mode", "auto-edit")
        self.number = number
        self.count = 0
        self.session = ""
        self.had_journal = False
        self.age = SESSION_KILLS_MAX
        for name in ("a.txt", "src/b.txt", "src/deep/c.txt", "doc/d.txt", "test/unit/e.txt"):
            path = self.server.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name}\nfirst\n")

    def fail(self, what: str) -> None:
        self.run.fail(f"lane {self.number}, patch {self.count}: {what}")

    async def work(self) -> None:
        await self.server.start()
        while self.run.more():
            await self.cycle()
        await self.server.stop()

    async def cycle(self) -> None:
        self.count += 1
        self.age += 1
        if self.age > SESSION_KILLS_MAX:
            self.session, self.age = f"patches{self.number}-{self.count}", 0
        old = tree(self.server.workspace)
        patch, new = self.patch(old)
        await self.strike(patch)
        self.look(old, new)
        await self.server.start()
        now = tree(self.server.workspace)
        tally = self.run.tally
        why = torn(now, old, new)
        if why is not None:
            tally.torn += 1
            self.fail(f"torn: {why}")
        tally.all_old += now == old
        tally.all_new += now == new
        if any(map(is_spare, now)):
            tally.spares_left += 1
            self.fail(f"spare files are left: {list(filter(is_spare, now))}")
        if journals := self.journals():
            tally.journals_left += 1
            self.fail(f"journals are left: {journals}")
        await self.resume(now == new)

    def journals(self) -> list[str]:
        folder = self.server.store / "patches"
        return os.listdir(folder) if folder.exists() else []

    def look(self, old: Tree, new: Tree) -> None:
        """What the kill left, before the next start."""
        now = tree(self.server.workspace)
        tally = self.run.tally
        tally.kills += 1
        self.had_journal = bool(self.journals())
        tally.journal_when_killed += self.had_journal
        tally.spares_when_killed += any(map(is_spare, now))
        bare = [
            {name: text for name, text in one.items() if not (name[-1] == "/" or is_spare(name))}
            for one in (now, old, new)
        ]
        tally.torn_when_killed += torn(*bare) is not None

    def patch(self, old: Tree) -> tuple[str, Tree]:
        """A patch of the files there are, and the files after it."""
        roll = self.random
        files = {name: text for name, text in old.items() if not name.endswith("/")}
        new, body = dict(files), []
        names = sorted(files)
        roll.shuffle(names)
        # Enough that the renaming takes a moment, and that files neither die out nor pile up.
        wanted = roll.choice([6, 8, 10, 40])
        room = LINES_MAX
        for index in range(wanted):
            name = names.pop() if names else None
            does = roll.choice(["add", "update", "delete", "move"])
            if name is None or (does == "delete" and len(files) < 12):
                does = "add"
            if does == "add" and len(files) > 80 and name is not None:
                does = "delete"
            fresh = f"{roll.choice([*DIRECTORIES, f'new{self.count}/'])}f{self.count}-{index}.txt"
            line = f"{roll.getrandbits(64):x}"
            lines = min(roll.choice([0, 3, 200, 1000]), room)
            room -= lines
            more = "".join(f"+{line} {n}\n" for n in range(lines))
            added = more.replace("+", "")
            if does == "add":
                body.append(f"*** Add File: {fresh}\n+{line}\n{more}")
                new[fresh] = f"{line}\n{added}".encode()
                continue
            first = files[name].split(b"\n", 1)[0].decode()
            rest = files[name].split(b"\n", 1)[1]
            hunk = f"@@ -1,1 +1,1 @@\n-{first}\n+{line}\n{more}"
            if does == "update":
                body.append(f"*** Update File: {name}\n{hunk}")
                new[name] = f"{line}\n{added}".encode() + rest
            elif does == "delete":
                body.append(f"*** Delete File: {name}\n")
                del new[name]
            else:
                body.append(f"*** Update File: {name}\n*** Move to: {fresh}\n{hunk}")
                new[fresh] = f"{line}\n{added}".encode() + rest
                del new[name]
        text = "*** Begin Patch\n" + "".join(body) + "*** End Patch"
        return text, with_directories(new, old)

    async def strike(self, patch: str) -> None:
        """Lets the session apply the patch, and kills the server at a chosen moment."""
        moment = self.random.choice(MOMENTS)
        delay = self.random.choice(DELAYS[moment])
        watch = Watch(self.server, moment)
        script = f"tool: apply_patch {json.dumps({'patch': patch})}\nsay: end"
        try:
            async with websockets.connect(self.url(), max_size=None, proxy=None) as socket:
                killing = asyncio.create_task(
                    asyncio.to_thread(watch.kill, self.server.pid, delay)
                )
                await socket.send(message(script))
                try:
                    async with asyncio.timeout(ANSWER_SECONDS_MAX):
                        await killing
                finally:
                    watch.close()
        except websockets.WebSocketException:
            pass
        await self.server.gone()

    def url(self) -> str:
        return f"ws://{self.server.address}/ws/{self.session}"

    async def resume(self, applied: bool) -> None:
        """The call has one result, which never claims what is not so; and the session goes on."""
        try:
            await self.server.get(f"/sessions/{self.session}")
        except urllib.error.HTTPError as error:
            # Killed before there was a session.
            if error.code != 404 or applied:
                self.fail(f"the session is not there: {error}")
            return
        if self.age % 4 and not self.had_journal:
            return
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                async with websockets.connect(self.url(), max_size=None, proxy=None) as socket:
                    await socket.send(message("say: still here"))
                    while "still here" not in str(await socket.recv()):
                        pass
                    # The user's own words come back too; the answer ends the turn.
                    while json.loads(await socket.recv())["type"] != "agent_finished":
                        pass
        except (TimeoutError, OSError, websockets.WebSocketException) as fault:
            self.run.tally.sessions_not_resumed += 1
            self.fail(f"the session does not go on: {type(fault).__name__} {fault}")
            return
        # Now that the session was opened, what the kill left open is closed.
        record = await self.server.get(f"/sessions/{self.session}")
        self.results(items_of(record), applied)

    def results(self, items: list[dict], applied: bool) -> None:
        calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
        outputs = {
            item["call_id"]: str(item["output"])
            for item in items
            if item.get("type") == "function_call_output"
        }
        if sorted(set(calls)) != sorted(outputs):
            self.fail(f"{len(set(calls))} calls have {len(outputs)} results")
            return
        # Without a journal it may not have come so far as to be a call.
        if not calls or not self.had_journal:
            return
        text = outputs[calls[-1]]
        tally = self.run.tally
        if not applied and "Done!" in text:
            tally.false_successes += 1
            self.fail("the call is recorded as a success, and its patch is not applied")
        undone, in_place = "was undone" in text, "is in place as a whole" in text
        tally.told_undone += undone
        tally.told_in_place += in_place
        if (undone and applied) or (in_place and not applied):
            self.fail(f"applied: {applied}, and the call says {text[-300:]!r}")


def items_of(record: dict) -> list[dict]:
    """The calls and their results, as they stand in the session."""
    sent = [event.get("message_data") or {} for event in record["events"]]
    return [message["payload"] for message in sent if message.get("type") == "response_item"]


class Watch:
    """Waits for a moment of a patch, by the kernel's word, and strikes."""

    def __init__(self, server: Server, moment: str) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.moment = moment
        self.handle = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if moment == "journal":
            self.add(server.store / "patches", IN_CREATE)
        elif moment == "renaming":
            for directory, _, _ in os.walk(server.workspace):
                self.add(Path(directory), IN_MOVED)

    def add(self, path: Path, mask: int) -> None:
        if self.libc.inotify_add_watch(self.handle, os.fsencode(path), mask) < 0:
            raise OSError(ctypes.get_errno(), f"inotify {path}")

    def kill(self, pid: int, delay: float) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS_MAX / 2
        while self.moment != "any time" and time.monotonic() < deadline:
            try:
                os.read(self.handle, 4096)
                break
            except BlockingIOError:
                # Sleeping would be too slow to hit a renaming.
                time.sleep(0)
        until = time.perf_counter() + delay
        while time.perf_counter() < until:
            pass
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        os.close(self.handle)


def message(text: str) -> str:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return json.dumps({"id": "1", "type": "user_input", "payload": {"input": [item]}})


class Run:
    def __init__(self, program: Path, home: Path, kills: int, seed: int) -> None:
        self.program = program
        self.home = home
        self.kills = kills
        self.seed = seed
        self.begun = 0
        self.tally = Tally()
        self.failures: list[str] = []

    def more(self) -> bool:
        """Whether another kill is due; whoever asks does it."""
        if self.begun >= self.kills or len(self.failures) >= FAILURES_MAX:
            return False
        self.begun += 1
        return True

    def fail(self, what: str) -> None:
        self.failures.append(what)
        if len(self.failures) <= FAILURES_SHOWN_MAX:
            print(f"  FAILED {what}", flush=True)

    async def run(self, lanes: int) -> None:
        working = [Lane(self, number) for number in range(lanes)]
        try:
            async with asyncio.TaskGroup() as group:
                for lane in working:
                    group.create_task(lane.work())
        finally:
            for lane in working:
                await lane.server.end()
        tally = self.tally
        if tally.journal_when_killed == 0:
            self.fail("no kill fell into a patch")
        if self.kills >= KILLS_SURE and tally.torn_when_killed == 0:
            self.fail("no kill fell between two renamings, so nothing is shown")
        if self.kills >= KILLS_SURE and tally.told_undone == 0:
            self.fail("no call was told that its patch was undone")


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--polyloop", type=Path, required=True, help="the program to kill")
    parser.add_argument("--kills", type=int, default=500, help="how often [default: 500]")
    parser.add_argument("--seed", type=int, default=1, help="which patches [default: 1]")
    parser.add_argument("--lanes", type=int, default=3, help="servers at a time [default: 3]")
    parser.add_argument("--keep", action="store_true", help="keep the files, to look at them")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="polyloop-patches-"))
    run = Run(args.polyloop.resolve(), home, args.kills, args.seed)
    task = asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    began = time.monotonic()
    try:
        await run.run(args.lanes)
    except* (ServerFault, TimeoutError, OSError) as faults:
        run.fail(f"the run broke: {faults.exceptions}")
    except* asyncio.CancelledError:
        run.fail("stopped by a signal")
    if args.keep or run.failures:
        print(f"kept: {home}")
    else:
        shutil.rmtree(home)
    print(json.dumps(vars(run.tally), indent=2))
    seconds = time.monotonic() - began
    verdict = "failed" if run.failures else "passed"
    print(f"patches {verdict}: seed {args.seed}, {len(run.failures)} problems, {seconds:.0f} s")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
