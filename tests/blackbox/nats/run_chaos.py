"""Three replicas on three NATS servers, many sessions, random faults; then every client's
transcript is compared with every replica's log.

    python run_chaos.py --polyloop PATH --sessions 300 --faults 100 --seed 1

The program must be built with the feature `nats`. Runs in namespaces of its own; where there are
none, or with `--plain`, links are not cut or slowed, and that is said.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import harness  # noqa: E402
import network as net  # noqa: E402
from cluster import Cluster  # noqa: E402
from crowd import Session  # noqa: E402
from evidence import gather  # noqa: E402
from faults import TAKES_SESSIONS, Faults  # noqa: E402
from takeover import sessions_of, taken_over  # noqa: E402

FILES_MAX = 65_536
PROBLEMS_SHOWN = 40
LOG_LINES_SHOWN = 15


def tell(line):
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


class Run:
    def __init__(self, words, cluster):
        self.words, self.cluster = words, cluster
        self.over = False
        pace = words.pace or max(8.0, words.sessions / 10)
        self.sessions = [Session(number, cluster.replicas, words.seed, pace)
                         for number in range(1, words.sessions + 1)]
        self.by_id = {session.id: session for session in self.sessions}
        self.faults = Faults(cluster, words.seed, tell, self._working)
        self.problems = []

    def _working(self, replica):
        """Sessions that a replica has, in which something is under way."""
        return [id for id in sessions_of(self.cluster, replica)
                if id in self.by_id and self.by_id[id].works]

    async def go(self):
        people = [asyncio.create_task(one.live())
                  for session in self.sessions for one in session.people]
        talk = [asyncio.create_task(session.speak(lambda: self.over)) for session in self.sessions]
        tell(f"{len(self.sessions)} sessions, {len(people)} clients")
        await asyncio.sleep(self.words.warm_up)
        await self.faults.run(self.words.faults)
        tell("the last fault is over")
        await self.faults.healed()
        self.over = True
        await asyncio.gather(*talk)
        tell("everything is healed; the last words")
        for found in await asyncio.gather(*(one.come_to_rest() for one in self.sessions)):
            self.problems += found
        for session in self.sessions:
            await session.end()
        await asyncio.gather(*people, return_exceptions=True)
        tell("the checks")
        evidence = await gather(self.cluster, self.sessions)
        self.problems += evidence.problems + self.faults.problems
        self.report(evidence)

    # What it came to.

    def report(self, evidence):
        people = [one for session in self.sessions for one in session.people]
        sent = [one for session in self.sessions for one in session.sent.values()]
        acknowledged = sum(one.acknowledged for one in sent)
        kinds = Counter(fault.kind for fault in self.faults.done)
        print(f"\nsessions {len(self.sessions)}, clients {len(people)}, "
              f"connections {sum(one.visits for one in people)}")
        print(f"faults {len(self.faults.done)}: "
              + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
        print(f"messages {len(sent)}: acknowledged {acknowledged}, "
              f"without an answer {len(sent) - acknowledged}, of those in the log "
              f"{evidence.unanswered_there}")
        print(f"decided at another replica than the one that was seen to ask first: "
              f"{sum(one.decided_elsewhere for one in self.sessions)}")
        for name, count in evidence.counts.items():
            print(f"{name}: {count}")
        errors = Counter()
        for one in people:
            errors.update(getattr(one, "errors", {}))
        if errors:
            print("what clients were told of errors: "
                  + "; ".join(f"{text!r} {count}" for text, count in errors.most_common(8)))
        self._take_over(evidence)
        kinds = Counter(problem.split(": ")[1].split(":")[0] for problem in self.problems)
        print("lost {}, doubled {}, missing {}, diverging {}, two owners {}".format(
            kinds["lost"], kinds["doubled"], kinds["missing"],
            kinds["order"] + kinds["diverged"], kinds["two owners"]))
        if self.problems:
            print(f"{len(self.problems) - kinds['note']} problems; the first:")
            for problem in self.problems[:PROBLEMS_SHOWN]:
                print(f"  {problem}")
            for replica in self.cluster.replicas:
                print(f"{replica.name} said at last:")
                print("  " + "\n  ".join(replica.said().splitlines()[-LOG_LINES_SHOWN:]))
        else:
            print("no problems")

    def _take_over(self, evidence):
        for kind in TAKES_SESSIONS:
            faults = [fault for fault in self.faults.done if fault.kind == kind]
            found = taken_over(faults, evidence.fences, self.by_id)
            if found.fenced:
                print(f"taken over after {kind}: {len(found.fenced)} sessions at work; another "
                      f"owner after {spread(found.fenced)}; wrote after {spread(found.written)}; "
                      f"seen after {spread(found.seen)}; {found.without} had no need, "
                      f"{found.left} were left alone")


def spread(times):
    if not times:
        return "nothing"
    return f"{statistics.median(times):.2f} s (median), {max(times):.2f} s (max)"


def words_of(given):
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--polyloop", required=True, help="the program, with the feature nats")
    words.add_argument("--sessions", type=int, default=300)
    words.add_argument("--faults", type=int, default=100)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--pace", type=float, help="seconds between two messages of a session")
    words.add_argument("--warm-up", type=float, default=5.0, help="seconds before the first fault")
    words.add_argument("--plain", action="store_true", help="on loopback, without namespaces")
    words.add_argument("--unfenced", action="store_true",
                       help="the program lets anybody write: passes if that is noticed")
    words.add_argument("--only", help="faults whose kind contains this")
    return words.parse_args(given)


def main():
    words = words_of(sys.argv[1:])
    network = None
    if not words.plain:
        try:
            if not net.is_inside():
                net.inside([sys.executable, *sys.argv])
            network = net.Network()
        except net.Unavailable as why:
            print(f"no network of its own, so links are neither cut nor slowed: {why}")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES_MAX, most), most))
    harness.Options.polyloop = str(Path(words.polyloop).resolve())
    cluster = Cluster(network)
    try:
        run = Run(words, cluster)
        if words.only:
            run.faults.keep_only(words.only)
        asyncio.run(run.go())
    finally:
        cluster.stop()
    if words.unfenced:
        noticed = any(": two owners: " in problem for problem in run.problems)
        print("two owners were noticed" if noticed else "nobody noticed two owners")
        sys.exit(0 if noticed else 1)
    sys.exit(1 if run.problems else 0)


if __name__ == "__main__":
    main()
