"""How long sessions were without an owner: from a fault to the fence of the next one, as JetStream
noted its time, and to the first event behind it that anybody was shown.
"""

import contextlib
from datetime import datetime

from cluster import STORE_NAME

# A fence that comes later has another reason.
SECS_MAX = 60.0


class Owners:
    """Which replica has which sessions."""

    def __init__(self, cluster):
        self.cluster = cluster

    def of(self, replica):
        with contextlib.suppress(OSError, LookupError):
            with self.cluster.wire() as wire:
                owners = wire.bucket(f"{STORE_NAME}-owners")
            server = self.server_of(replica)
            return [key.replace("=", ".") for key, owner in owners.items()
                    if owner.get("server") == server]
        return []

    def server_of(self, replica):
        return None


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
