"""Says what is wrong in what a server sent, by the published specification alone.

`check` takes the steps of one connection as dictionaries:

    {"open": {"path": "/ws/s1?since=4", "protocol": null}}     first, and may be left out
    {"in": frame}     what the client sent: parsed JSON, or a raw string
    {"out": frame}    what the server sent: parsed JSON, or the raw string
    {"close": 1000}   the end

`open` may also say `"shared": true` (others act on the same sessions, which chat cannot show) and
`"full_auto": true` (a call may be asked about after it began, to run outside the sandbox).

Never knows how a server is built, and never accuses where the specification leaves a choice.
"""

from .agentloop import Agentloop
from .base import Checker, Transcript
from .chat import Chat
from .loom import Loom
from .unified import Unified

DIALECTS: dict[str, type[Checker]] = {
    "agentloop": Agentloop,
    "unified": Unified,
    "loom": Loom,
    "chat": Chat,
}


def check(dialect: str, transcript: Transcript, *, complete: bool = True) -> list[str]:
    """Problems, each with its step (from 1) and rule; none means that all is well.

    With `complete=False` the transcript may stop in the middle of anything.
    """
    return DIALECTS[dialect](complete).check(transcript)


__all__ = ["DIALECTS", "check"]
