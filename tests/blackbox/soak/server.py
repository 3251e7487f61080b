"""The server under test: a real process, started, killed and stopped by its id.

Knows nothing of what the server says beyond the line that names its address, and REST.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import urllib.request
from pathlib import Path
from typing import Any

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
REST_SECONDS_MAX = 30

# No proxy may stand between us and the server.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerFault(Exception):
    """The server did not do what every run needs: start, answer, stop."""


class Server:
    """One store and workspace, and the process that serves them at the moment."""

    def __init__(self, program: Path, home: Path, *options: str) -> None:
        self.program = program
        self.options = options
        self.store = home / "sessions"
        self.workspace = home / "workspace"
        self.log = home / "server.log"
        self.home = home
        # What it is started with besides.
        self.env: dict[str, str] = {}
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.address = ""
        self._process: asyncio.subprocess.Process | None = None
        self._drain: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ServerFault("the server was never started")
        return self._process.pid

    async def start(self) -> None:
        """Returns once the server has said where it listens."""
        args = ["serve", "--provider", "offline", "--host", "127.0.0.1", "--port", "0"]
        args += ["--session-store-path", str(self.store)]
        args += ["--working-directory", str(self.workspace), *self.options]
        # Nothing of the surroundings: neither settings nor secrets.
        env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.home)}
        env |= self.env
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                str(self.program),
                *args,
                cwd=self.home,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                # A Ctrl-C is for us; we end the server ourselves.
                start_new_session=True,
            )
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), START_SECONDS_MAX)
        except TimeoutError:
            raise ServerFault(f"no address after {START_SECONDS_MAX} s\n{self.tail()}") from None
        found = re.search(rb"http://(\S+)", line)
        if found is None:
            raise ServerFault(f"it said {line!r} and not where it listens\n{self.tail()}")
        self.address = found.group(1).decode()
        self._drain = asyncio.create_task(self._read_on(self._process.stdout))

    async def _read_on(self, stdout: asyncio.StreamReader) -> None:
        while await stdout.read(65536):
            pass

    def kill(self) -> None:
        """SIGKILL, to the server's process alone: whoever it started must notice by itself."""
        os.kill(self.pid, signal.SIGKILL)

    async def gone(self) -> int:
        """Waits for the process and gives its exit code."""
        code = await self._process.wait()
        if self._drain is not None:
            await self._drain
        return code

    def said(self) -> str:
        """What the server wrote to its log so far."""
        return self.log.read_text(errors="replace")

    async def stop(self) -> None:
        """Ends it in good order, as an operator would."""
        os.kill(self.pid, signal.SIGTERM)
        try:
            code = await asyncio.wait_for(self.gone(), STOP_SECONDS_MAX)
        except TimeoutError:
            raise ServerFault(f"still there {STOP_SECONDS_MAX} s after SIGTERM") from None
        if code != 0:
            raise ServerFault(f"exit code {code} after SIGTERM\n{self.tail()}")

    async def end(self) -> None:
        """Whatever happened: no process of ours is left."""
        if self._process is not None and self._process.returncode is None:
            self.kill()
            await self.gone()

    async def get(self, path: str) -> Any:
        url = f"http://{self.address}{path}"

        def fetch() -> Any:
            with _opener.open(url, timeout=REST_SECONDS_MAX) as response:
                return json.load(response)

        return await asyncio.to_thread(fetch)

    def tail(self) -> str:
        """The end of what the server logged, for whoever reads a failure."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-20:])
