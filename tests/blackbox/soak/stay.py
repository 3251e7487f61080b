"""Runs commands that try to stay alive through a live server, in the sandbox and approved outside
it, and ends them in every way: by themselves, by an interrupt, by their time limit, by a kill of
the server. Nobody may be left two seconds later.

Run: python stay.py --polyloop PATH --commands 200
"""

import argparse
import collections
import json
import sys
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
import stays  # noqa: E402
import talk  # noqa: E402

# What was promised.
GONE_SECS = 2.0
# Each mode with whether it asks.
MODES = {"auto": False, "manual": True, "bypass": False}
ENDS = ["itself", "itself", "itself", "interrupt", "time limit", "kill"]


class Run:
    """One server after the other on one store, and a session a mode."""

    def __init__(self, scene):
        self.scene, self.test, self.clients = scene, scene.t, {}
        self.restart()

    def restart(self):
        self.server = self.scene.server(env={"ALLOW_BYPASS": "true"})
        self.clients = {}

    def client(self, mode):
        if mode not in self.clients:
            client = self.scene.unified(session=f"s-{mode}", full_auto=True, complete=False)
            client.start(permission_mode=mode)
            self.clients[mode] = client
        return self.clients[mode]

    def play(self, mode, end, own, script):
        """One command to its end; how long somebody was left after it."""
        ready = self.test.work / f"ready-{own}"
        on = f"\ntouch {ready}; trap '' TERM INT HUP; while :; do sleep 1000; done"
        args = {"command": script if end == "itself" else script + on}
        if end == "time limit":
            args["timeout_ms"] = 1000
        client = self.client(mode)
        client.say(f"tool: bash {json.dumps(args)}")
        if MODES[mode]:
            client.decide(client.until("control_request")[-1], "allow")
        if end in ("interrupt", "kill"):
            harness.eventually(ready.exists, f"{own} runs")
        if end == "kill":
            self.server.kill()
        else:
            if end == "interrupt":
                client.send("interrupt", reason="enough")
            client.until_end()
        secs = self.gone(own)
        if end == "kill":
            self.restart()
        return secs

    def gone(self, own):
        began = time.monotonic()
        while left := stays.left(own, self.test.work):
            secs = time.monotonic() - began
            assert secs < GONE_SECS, f"{own}: left after {secs:.1f} s: {left}"
            time.sleep(harness.POLL_SECS)
        return time.monotonic() - began


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--polyloop", required=True, help="the program to test")
    words.add_argument("--commands", type=int, default=200, help="how many are run")
    words = words.parse_args()
    harness.Options.polyloop = str(Path(words.polyloop).resolve())
    test = harness.Test("stay")
    try:
        run, count = Run(talk.Scene(test)), collections.Counter()
        longest, mark = 0.0, uuid.uuid4().hex
        for at, (own, script) in enumerate(stays.commands(words.commands, mark)):
            mode = list(MODES)[at % len(MODES)]
            end = ENDS[at // len(MODES) % len(ENDS)]
            longest = max(longest, run.play(mode, end, own, script))
            count[mode, end] += 1
        for at, (own, script) in enumerate(stays.against(mark)):
            mode, end = list(MODES)[at % len(MODES)], "itself"
            longest = max(longest, run.play(mode, end, own, script))
            count[mode, end] += 1
        # All that the search of a process costs is in it.
        for (mode, end), number in sorted(count.items()):
            print(f"{mode:8} ended by {end:11} {number:4} commands, nobody left")
        print(f"{sum(count.values())} commands, 0 survivors; the longest was gone "
              f"{longest:.2f} s after the end of its call")
    finally:
        test.clean()


if __name__ == "__main__":
    main()
