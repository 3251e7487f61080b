"""How long sessions were without an owner: from a fault to the fence of the next one, as JetStream
noted its time, and to the first event behind it that anybody was shown.
"""

import contextlib
from datetime import datetime

from cluster import SESSION

# A fence that comes later has another reason.
SECS_MAX = 60.0


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


def taken_over(faults, fences, sessions):
    """Seconds to the next fence and to the first new event seen, for each session that was at work;
    and how many were not taken over, since whoever had them came back in time."""
    fenced, seen, none = [], [], 0
    for fault in faults:
        for id in fault.working:
            later = [(seconds(time), seq) for _, seq, time in fences.get(id, [])
                     if fault.at < seconds(time) < fault.at + SECS_MAX]
            if not later:
                none += 1
                continue
            at, behind = later[0]
            fenced.append(at - fault.at)
            first = [time for seq, time in sessions[id].first_seen.items()
                     if seq > behind and time >= at]
            if first:
                seen.append(min(first) - fault.at)
    return fenced, seen, none
