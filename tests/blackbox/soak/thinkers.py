"""Sessions of a kill run that are worked by dup, tot or got. Their users do what all others do; now
and then one of them has an interrupted search taken up again.
"""

from __future__ import annotations

import json
from typing import Any

from recorder import CONNECT_SECONDS_MAX, NO_SERVER, Return
from user import Session
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

AGENTS = ("dup", "tot", "got")
RESUME_SHARE = 0.5


class ThinkingSession(Session):
    """A session of an agent. The recorders' dialect cannot choose one, so another client does."""

    def __init__(self, agent: str, id: str, seed: int, mark: str, tell: Any) -> None:
        super().__init__(id, seed, mark, tell)
        self.agent = agent
        # A search that is taken up begins a turn too.
        self.queues = True
        self.resumed = 0
        self._is_set = False

    async def connect(self, address: str, ways: list[Return]) -> None:
        await super().connect(address, ways)
        if not self._is_set:
            self._is_set = await self._tell(address, "session_info", "set_agent", agent=self.agent)
        elif self.random.random() < RESUME_SHARE:
            self.resumed += await self._tell(address, "turn_started", "resume")

    async def rest(self, address: str) -> None:
        """What it says last is to be shown as it is said."""
        await self._tell(address, "session_info", "set_agent", agent="react")

    async def _tell(self, address: str, wanted: str, kind: str, **fields: Any) -> bool:
        """Whether it was done; a refusal says that there was nothing to do."""
        url = f"ws://{address}/unified?session_id={self.id}"
        try:
            async with connect(url, proxy=None, open_timeout=CONNECT_SECONDS_MAX,
                               max_size=None) as socket:
                message = {"type": kind, "id": self.name(kind), "session_id": self.id, **fields}
                await socket.send(json.dumps(message))
                async for frame in socket:
                    answer = json.loads(frame)["type"]
                    if answer in (wanted, "error"):
                        return answer == wanted
        except (ConnectionClosed, *NO_SERVER):
            pass  # The server was killed meanwhile.
        return False
