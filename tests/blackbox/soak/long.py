"""Measures a session of many events beside a new one, over the socket of a real server: how long
it takes to start, list, attach, answer, read a page, fork and come back after a restart, what a
fork writes, and what memory the server needs, also once the session sleeps.

Run: python long.py --polyloop PATH --maker PATH --entries 100000 --bytes 500000000
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness  # noqa: E402

MAKE_SECS = 1800
# A session that nobody uses leaves memory after a minute.
IDLE_SECS = 65


def memory_kb(server, field):
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise AssertionError(f"no {field}")


def written_kb(server):
    """What the server has written to files and sockets so far."""
    for line in Path(f"/proc/{server.process.pid}/io").read_text().splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1]) / 1000
    raise AssertionError("no wchar")


def timed(work):
    began = time.perf_counter()
    done = work()
    return (time.perf_counter() - began) * 1000, done


def best(count, work):
    """The quickest of several: what else the machine does is not what is measured."""
    return min(timed(work)[0] for _ in range(count))


def measure(test, name, idle):
    """Figures of one session, in a server of its own; milliseconds and kilobytes."""
    figures = {}
    figures["start the server"], server = timed(test.server)
    rest = memory_kb(server, "VmRSS")
    figures["list, the first time"], listed = timed(lambda: server.get("/sessions"))
    assert name in [one["id"] for one in listed.json["sessions"]], listed.json
    figures["list again"] = best(5, lambda: server.get("/sessions"))
    figures["open and attach"], client = timed(lambda: attach(server, name))
    figures["answer"] = best(5, lambda: client.turn("say: here"))
    figures["attach once more"], other = timed(lambda: attach(server, name))
    other.close()
    events = server.get("/sessions").json["sessions"][0]["event_count"]
    last = max(0, events - 20)
    figures["read the last 20 events"] = best(3, lambda: server.get(f"/sessions/{name}?after={last}"))
    figures["memory: at rest (kB)"] = rest
    figures["memory: in use (kB)"] = memory_kb(server, "VmRSS")
    figures["memory: at most (kB)"] = memory_kb(server, "VmHWM")
    client.close()
    if idle:
        time.sleep(IDLE_SECS)
        figures["memory: asleep (kB)"] = memory_kb(server, "VmRSS")
    stop(server)
    server = test.server()
    figures["open after a restart"], client = timed(lambda: attach(server, name))
    before = written_kb(server)
    figures["fork"], forked = timed(lambda: server.http("POST", f"/sessions/{name}:fork"))
    harness.eq(forked.status, 201, f"fork {forked}")
    figures["fork: written (kB)"] = written_kb(server) - before
    figures["memory: after a fork (kB)"] = memory_kb(server, "VmRSS")
    client.close()
    stop(server)
    return figures


def stop(server):
    server.signal(15)
    server.process.wait(harness.WAIT_SECS)


def attach(server, name):
    client = server.client(f"/ws/{name}", checked=False)
    client.send("get_context_info")
    client.until("context_info")
    return client


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--polyloop", required=True)
    words.add_argument("--maker", required=True)
    words.add_argument("--entries", type=int, default=100_000)
    words.add_argument("--bytes", type=int, default=500_000_000)
    words.add_argument("--without-index", action="store_true", help="what it costs without one")
    words.add_argument("--idle", action="store_true", help="wait until the session sleeps, too")
    args = words.parse_args()
    harness.Options.polyloop = args.polyloop
    new, long = harness.Test("new"), harness.Test("long")
    try:
        long.store.mkdir()
        made = subprocess.run(
            [args.maker, str(long.store), "s1", str(args.entries), str(args.bytes)],
            capture_output=True, text=True, timeout=MAKE_SECS, check=True)
        files = [path for path in long.store.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(f"made: {made.stdout.strip()}, {size / 1e6:.0f} MB in {len(files)} files")
        for path in long.store.glob("s1.*"):
            if path.is_file():
                print(f"  {path.name}: {path.stat().st_size / 1e6:.1f} MB")
        if args.without_index:
            (long.store / "s1.index").unlink()
        server = new.server()
        server.client().turn("say: new")
        stop(server)
        fresh, old = measure(new, "s1", args.idle), measure(long, "s1", args.idle)
    finally:
        new.clean()
        long.clean()
    print(f"{'':28} {'new':>10} {'long':>10} {'ratio':>7}")
    for what, figure in fresh.items():
        unit = "" if "kB" in what else " ms"
        ratio = old[what] / figure if figure else 0
        print(f"{what:28} {figure:>10.1f} {old[what]:>10.1f} {ratio:>7.2f}{unit}")


if __name__ == "__main__":
    main()
