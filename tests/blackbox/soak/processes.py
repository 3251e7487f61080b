"""Finds processes by what only a command of this run has in its arguments.

Reads /proc; ends nothing but what it is told to end, by id.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

WAIT_SECONDS = 0.05


def marked(mark: str) -> dict[int, str]:
    """Process ids whose arguments contain the mark, with these arguments."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # It ended while we looked.
        if mark.encode() in words and state != "Z":
            found[int(entry.name)] = words.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def children(pid: int) -> set[tuple[int, int]]:
    """All descendants of a process, as (id, start time): an id alone may be given out again."""
    parents: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        found = _parent_and_start(int(entry.name))
        if found is not None:
            parents.setdefault(found[0], []).append((int(entry.name), found[1]))
    all_of_them: set[tuple[int, int]] = set()
    open_ids = [pid]
    while open_ids:
        for child in parents.get(open_ids.pop(), []):
            if child not in all_of_them:
                all_of_them.add(child)
                open_ids.append(child[0])
    return all_of_them


def _parent_and_start(pid: int) -> tuple[int, int] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[1]), int(fields[19]))


def _alive(child: tuple[int, int]) -> bool:
    found = _parent_and_start(child[0])
    return found is not None and found[1] == child[1]


async def survivors(mark: str, born: set[tuple[int, int]], seconds_max: float) -> dict[int, str]:
    """Who is still there when the time is up: nobody, if all is well."""
    deadline = asyncio.get_running_loop().time() + seconds_max
    while True:
        left = {child[0]: "a process that it started" for child in born if _alive(child)}
        left.update(marked(mark))
        if not left or asyncio.get_running_loop().time() > deadline:
            return left
        await asyncio.sleep(WAIT_SECONDS)


def end(pids: dict[int, str]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
