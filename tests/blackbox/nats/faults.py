"""What goes wrong, at random from a seed, and is put right again after some seconds.

At most one NATS node is harmed at a time, so that two of three can agree; only `pause two nodes`
takes that away for a short while, when nothing can be written. A node is killed only while all
three have everything: what the journal holds is in their memories.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field

HOLD_SECS = (1.0, 6.0)
# Also longer than it takes until a silent server counts as fallen.
PAUSE_SECS = (2.0, 10.0)
GAP_SECS = (0.5, 4.0)
# A fault may come while another is not yet over.
OVERLAP_SHARE = 0.3
RATES_KBIT = (256, 512, 1024)
SKEWS_SECS = (-3 * 86_400, -3_600, 3_600, 86_400, 30 * 86_400)
HEAL_SECS_MAX = 90.0

OF_REPLICAS = {"kill replica": 5, "pause replica": 4, "drain replica": 3, "skew clock": 2}
OF_NODES = {"kill node": 3, "pause node": 3, "pause two nodes": 1}
# These need links of the run's own.
OF_LINKS = {"cut replica": 4, "slow replica": 2, "cut node": 3, "part nodes": 2, "slow node": 2}
TAKES_SESSIONS = ("kill replica", "pause replica", "drain replica", "cut replica")


@dataclass
class Fault:
    kind: str
    whom: list
    at: float = 0.0
    over: float = 0.0
    # Sessions that the replica had, with work under way, when it came.
    working: list = field(default_factory=list)

    def __str__(self):
        return f"{self.kind} ({', '.join(one.name for one in self.whom)})"


class Faults:
    def __init__(self, cluster, seed, tell, working=lambda replica: []):
        self.cluster, self.tell, self.working = cluster, tell, working
        self.random = random.Random(f"{seed}/faults")
        self.kinds = {**OF_REPLICAS, **OF_NODES, **(OF_LINKS if cluster.network else {})}
        self.harmed = set()
        self.done = []
        self.problems = []

    def keep_only(self, part):
        self.kinds = {kind: share for kind, share in self.kinds.items() if part in kind}

    # Which.

    def _replicas(self):
        free = [one for one in self.cluster.replicas if one.name not in self.harmed]
        # Somebody has to be there for clients.
        return free if len(free) > 1 else []

    def _nodes(self):
        harmed = any(one.name in self.harmed for one in self.cluster.nodes)
        return [] if harmed else self.cluster.nodes

    def _choose(self):
        kinds = list(self.kinds)
        kind = self.random.choices(kinds, [self.kinds[one] for one in kinds])[0]
        if kind in ("pause two nodes",):
            nodes = self._nodes()
            return Fault(kind, self.random.sample(nodes, 2)) if nodes else None
        if "node" in kind:
            nodes = self._nodes()
            return Fault(kind, [self.random.choice(nodes)]) if nodes else None
        replicas = self._replicas()
        return Fault(kind, [self.random.choice(replicas)]) if replicas else None

    async def run(self, count):
        """So many faults; returns when the last one is over."""
        open_ones = set()
        while len(self.done) < count:
            fault = self._choose()
            if fault is None or (fault.kind == "kill node" and not await self._all_current()):
                await asyncio.sleep(0.1)
                continue
            self.done.append(fault)
            self.harmed.update(one.name for one in fault.whom)
            task = asyncio.create_task(self._perform(fault, len(self.done)))
            open_ones.add(task)
            task.add_done_callback(open_ones.discard)
            if self.random.random() >= OVERLAP_SHARE:
                await asyncio.wait([task])
            await asyncio.sleep(self.random.uniform(*GAP_SECS))
        if open_ones:
            await asyncio.wait(open_ones)

    # How.

    async def _perform(self, fault, number):
        if fault.kind in TAKES_SESSIONS:
            fault.working = await asyncio.to_thread(self.working, fault.whom[0])
        secs = self.random.uniform(*(PAUSE_SECS if "pause" in fault.kind else HOLD_SECS))
        fault.at = time.time()
        self.tell(f"fault {number}: {fault} for {secs:.1f} s, "
                  f"{len(fault.working)} sessions at work there")
        try:
            await asyncio.to_thread(self._begin, fault)
            await asyncio.sleep(secs)
            await asyncio.to_thread(self._end, fault)
        except Exception as error:
            self.problems.append(f"fault {number}: {fault}: {type(error).__name__}: {error}")
        fault.over = time.time()
        self.harmed.difference_update(one.name for one in fault.whom)

    def _begin(self, fault):
        network = self.cluster.network
        for one in fault.whom:
            match fault.kind:
                case "kill replica" | "kill node":
                    one.kill()
                case "pause replica" | "pause node" | "pause two nodes":
                    one.pause()
                case "drain replica":
                    code = one.drain()
                    if code != 0:
                        self.problems.append(f"{one.name}: drain: it ended with {code}")
                case "skew clock":
                    one.clock.wrong_by(self.random.choice(SKEWS_SECS))
                case "cut replica":
                    network.cut(one.host, "store")
                case "cut node":
                    network.cut(one.host, "store")
                    network.cut(one.host, "routes")
                case "part nodes":
                    network.cut(one.host, "routes")
                case "slow replica":
                    network.slow(one.host, "store", self.random.choice(RATES_KBIT))
                case "slow node":
                    rate = self.random.choice(RATES_KBIT)
                    network.slow(one.host, "store", rate)
                    network.slow(one.host, "routes", rate)

    def _end(self, fault):
        for one in fault.whom:
            match fault.kind:
                case "kill replica" | "drain replica":
                    one.start()
                case "kill node":
                    one.start()
                    self._until(one.is_ready, f"{one.name} is ready again")
                case "pause replica" | "pause node" | "pause two nodes":
                    one.resume()
                case "skew clock":
                    one.clock.wrong_by(0)
                case _:
                    for net in one.host.nets:
                        self.cluster.network.mend(one.host, net)

    def _until(self, holds, what):
        end = time.monotonic() + HEAL_SECS_MAX
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"not within {HEAL_SECS_MAX} s: {what}")
            time.sleep(0.1)

    # Healing.

    async def _all_current(self):
        return await asyncio.to_thread(self.cluster.all_current)

    async def healed(self):
        """Everything is as it was in the beginning."""
        await asyncio.to_thread(self._until, self.cluster.all_current, "all nodes have everything")
        for replica in self.cluster.replicas:
            if not replica.is_up():
                code = replica.process.poll()
                self.problems.append(f"{replica.name}: it ended by itself with {code}")
                await asyncio.to_thread(replica.start)
