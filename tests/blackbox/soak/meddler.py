"""Forks sessions and takes edits back while they are in use and the server is killed.

What was acknowledged must hold: a fork is listed and can be read, and what an undo took away stays
away. What was not acknowledged may have happened or not, but never by half.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import record
from server import _opener

if TYPE_CHECKING:
    from kill import KillRun

REST_SECONDS_MAX = 30
PAUSE_SECONDS = (0.05, 0.4)
# Older ones are archived.
FORKS_MAX = 8


class Meddler:
    def __init__(self, run: KillRun) -> None:
        self.run = run
        self.forks: list[str] = []
        self.removed: set[str] = set()
        self.undos = self.made = 0
        self.archived: set[str] = set()

    async def live(self) -> None:
        """Until the server is gone."""
        run = self.run
        address = run.server.address
        while True:
            await asyncio.sleep(run.random.uniform(*PAUSE_SECONDS))
            session = run.random.choice(run.sessions)
            action = run.random.choice(["fork", "undo", "undo"])
            try:
                path = f"/sessions/{session.id}:{action}"
                status, body = await asyncio.to_thread(ask, address, "POST", path)
            except OSError:
                return
            if status >= 500:
                run.fail(f"{session.id}:{action} gave {status}: {body}")
            elif action == "fork" and status < 300:
                self.forks.append(body["id"])
                self.made += 1
            elif action == "undo" and status < 300:
                self.undos += 1
                gone = [f["path"] for f in body.get("files", []) if f.get("operation") == "delete"]
                self.removed.update(gone)

    async def check(self) -> None:
        """What was acknowledged in any life still holds."""
        run = self.run
        listed = {one["id"] for one in (await run.server.get("/sessions"))["sessions"]}
        for id in self.forks:
            if id not in listed:
                run.fail(f"fork {id} was acknowledged and is not listed")
        for id in self.archived & listed:
            run.fail(f"fork {id} was archived and is listed again")
        for path in self.removed:
            if (run.server.workspace / path).exists():
                run.fail(f"{path} was taken back and is there again")
        while len(self.forks) > FORKS_MAX:
            id = self.forks.pop(0)
            status, body = await asyncio.to_thread(
                ask, run.server.address, "DELETE", f"/sessions/{id}")
            if status != 204:
                run.fail(f"fork {id} could not be archived: {status} {body}")
            self.archived.add(id)
        for id in self.forks:
            held = record.read((await run.server.get(f"/sessions/{id}"))["events"])
            for problem in held.problems:
                run.fail(f"fork {id}: {problem}")


def ask(address: str, method: str, path: str) -> tuple[int, Any]:
    request = urllib.request.Request(f"http://{address}{path}", data=b"", method=method)
    try:
        with _opener.open(request, timeout=REST_SECONDS_MAX) as response:
            body = response.read()
            return response.status, json.loads(body) if body else None
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
