"""How long sessions were without an owner: from a fault to the fence of the next one, as JetStream
noted its time, and to the first event behind it that anybody was shown.
"""

import contextlib
from dataclasses import dataclass, field
from datetime import datetime

from cluster import SESSION

# A fence that comes later has another reason.
SECS_MAX = 60.0
AT_ONCE_SECS = 2.0
KILLED = "kill replica"


def sessions_of(cluster, replica):
    """Which sessions a replica has, as far as that can be told just now."""
    if replica.id is None:
        return []
    with contextlib.suppress(OSError, LookupError):
        return [key.removeprefix(SESSION).replace("=", ".")
                for key, owner in cluster.owners().items()
                if key.startswith(SESSION) and owner.get("server") == replica.id]
    return []


def seconds(stamp):
    """A time of NATS as seconds since 1970; its nanoseconds are more than Python reads."""
    whole, _, part = stamp.rstrip("Z").partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float(f"0.{part or 0}")


@dataclass
class TakenOver:
    """Seconds from a fault, for sessions in which something was under way."""

    # To the fence of the next owner, to its first words in the log, to the first time that anybody
    # was shown them.
    fenced: list = field(default_factory=list)
    written: list = field(default_factory=list)
    seen: list = field(default_factory=list)
    # Whoever had them came back in time, or had ended what was under way.
    without: int = 0
    # Whoever had them was killed, and nobody took them over.
    left: int = 0


def taken_over(faults, fences, sessions):
    found = TakenOver()
    for fault in faults:
        for id in fault.working:
            next_one = next((one for one in fences.get(id, [])
                             if fault.at < seconds(one.time) < fault.at + SECS_MAX), None)
            # One that closes or goes on with a turn writes at once; others had nothing to do.
            idle = (next_one is None or next_one.written is None
                    or seconds(next_one.written) - seconds(next_one.time) > AT_ONCE_SECS)
            if fault.kind == KILLED:
                # Nobody comes back: every one of them has to be taken over.
                found.left += next_one is None
            elif idle:
                found.without += 1
                continue
            if next_one is None:
                continue
            found.fenced.append(seconds(next_one.time) - fault.at)
            if idle:
                continue
            found.written.append(seconds(next_one.written) - fault.at)
            first = [time for seq, time in sessions[id].first_seen.items()
                     if seq > next_one.seq and time >= seconds(next_one.time)]
            if first:
                found.seen.append(min(first) - fault.at)
    return found
