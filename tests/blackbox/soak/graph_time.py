"""Measures got on a plan of eight sub-tasks in three levels, where each call of the model takes a
while: wall time beside the critical path and beside the sum of all calls.

Run: python graph_time.py --polyloop PATH [--delay-ms 200] [--runs 3]
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from graph import ALL_CALLS, CYCLE, PATH_CALLS, PLAN, Graph, answers, told  # noqa: E402


def timed(work):
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def measure(delay_ms, runs, **env):
    """The quickest of several runs, in milliseconds, and the most calls that were open at once."""
    test = harness.Test("graph")
    try:
        graph = Graph(test, answers(delay_secs=delay_ms / 1000), **env)
        walls = [timed(graph.run) for _ in range(runs)]
        return min(walls), graph.model.open_most, len(graph.model.asked()) // runs
    finally:
        test.clean()


def shown(what, answer, fault=None, **fields):
    test = harness.Test("graph")
    try:
        graph = Graph(test, answer)
        if fault:
            graph.model.fault("task", fault, status=500, times=100)
        wall = timed(lambda: print_told(what, graph.run(**fields)))
        print(f"  {wall:.0f} ms, {len(graph.model.asked())} calls\n")
    finally:
        test.clean()


def print_told(what, frames):
    print(f"{what}:")
    for line in told(frames):
        print(f"  {line}")


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--polyloop", required=True)
    words.add_argument("--delay-ms", type=int, default=200)
    words.add_argument("--runs", type=int, default=3)
    args = words.parse_args()
    harness.Options.polyloop = args.polyloop
    delay = args.delay_ms
    print(f"{len(PLAN)} sub-tasks in 3 levels, {delay} ms a call: the critical path is "
          f"{PATH_CALLS * delay} ms, the sum {ALL_CALLS * delay} ms")
    print(f"{'calls at once':>14} {'most open':>10} {'calls':>6} {'wall ms':>8} {'of path':>8} "
          f"{'of sum':>7}")
    for most in (1, 2, 8):
        wall, at_once, calls = measure(delay, args.runs, MAX_CALLS_AT_ONCE=most)
        of_path, of_sum = wall / (PATH_CALLS * delay), wall / (ALL_CALLS * delay)
        print(f"{most:>14} {at_once:>10} {calls:>6} {wall:>8.0f} {of_path:>8.2f} {of_sum:>7.2f}")
    print()
    secs = delay / 1000
    shown("adaptive: one that is complex", answers(delay_secs=secs, complex_task=PLAN[4]["task"]),
          got_adaptive=True)
    shown("one that fails for good", answers(delay_secs=secs), fault=PLAN[3]["task"])
    shown("a plan with a cycle", answers(CYCLE, delay_secs=secs))


if __name__ == "__main__":
    main()
