"""Drives a real `polyloop` with clients that others wrote.

    python run.py --polyloop PATH [--node-modules DIR] [--folder NAME] [--only NAME]

Runs every function named test_* of the files test_*.py beside it, or in a folder beside it, each
with a server of its own.
"""

import argparse
import concurrent.futures
import faulthandler
import importlib
import inspect
import os
import signal
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import harness  # noqa: E402

TOGETHER = 12
# No test takes nearly as long; one that does is stuck, and so would be whoever waits for it.
TEST_SECS_MAX = 300
STDERR_LINES_SHOWN = 40


def find(folder, only):
    """Tests as (name, function), in the order of their files."""
    tests = []
    sys.path.insert(0, str(folder))
    for path in sorted(folder.glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            full = f"{path.stem.removeprefix('test_')}.{name.removeprefix('test_')}"
            if name.startswith("test_") and function.__module__ == path.stem and only in full:
                tests.append((full, function))
    return tests


def run(name, function):
    """None, or what went wrong."""
    test = harness.Test(name)
    try:
        function(test)
        return None
    except BaseException:
        wrong = [traceback.format_exc()]
        for number, server in enumerate(test.servers, 1):
            log = server.stderr().splitlines()[-STDERR_LINES_SHOWN:]
            code = server.process.poll()
            ended = "running" if code is None else f"ended with {code}"
            wrong.append(f"server {number} ({ended}) said:\n" + "\n".join(log) + "\n")
        return "\n".join(wrong)
    finally:
        test.clean()


def timed(test):
    began = time.monotonic()
    wrong = run(*test)
    return wrong, time.monotonic() - began


def leave(code):
    """Ends the runner at once, but leaves no server behind."""
    for test in list(harness.Test.running):
        test.clean()
    sys.stdout.flush()
    os._exit(code)


def stuck(name, passed, left):
    """Says where a test is that does not end."""
    print(f"FAIL  {name} (not within {TEST_SECS_MAX} s)", flush=True)
    faulthandler.dump_traceback(file=sys.stdout)
    print("The tests behind it did not run.")
    print(f"{passed} passed, {left} failed")
    leave(1)


def main():
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: leave(128 + number))
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--polyloop", required=True, help="the program to test")
    words.add_argument("--node-modules", help="a directory that holds the package ws")
    words.add_argument("--folder", default=".", help="where the tests are, beside this file")
    words.add_argument("--only", default="", help="tests whose name contains this")
    words.add_argument("--jobs", type=int, default=TOGETHER, help="tests that run at once")
    words.add_argument("-v", "--verbose", action="store_true", help="what tests tell besides")
    words = words.parse_args()
    harness.Options.verbose = words.verbose
    harness.Options.polyloop = str(Path(words.polyloop).resolve())
    if words.node_modules:
        harness.Options.node_modules = str(Path(words.node_modules).resolve())
    tests = find(HERE / words.folder, words.only)
    if not words.node_modules:
        needing = ("node.", "node_dialects.", "examples.")
        left_out = [name for name, _ in tests if name.startswith(needing)]
        tests = [test for test in tests if test[0] not in left_out]
        for name in left_out:
            print(f"skip  {name} (no --node-modules)")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        futures = [pool.submit(timed, test) for test in tests]
        for at, ((name, _), future) in enumerate(zip(tests, futures)):
            try:
                wrong, secs = future.result(TEST_SECS_MAX)
            except concurrent.futures.TimeoutError:
                stuck(name, at - failed, len(tests) - at + failed)
            print(f"{'FAIL' if wrong else 'ok  '}  {name} ({secs:.1f} s)", flush=True)
            if wrong:
                failed += 1
                print("      " + wrong.replace("\n", "\n      "), flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not tests else 0)


if __name__ == "__main__":
    main()
