"""S11: what a command in the sandbox may use up. Each limit ends it with words that say so, and the
server and its other sessions do not notice."""

import json
import time
from pathlib import Path

import ground
from harness import Options, eq
from talk import of, spoken, talks, the

SERVER_BYTES_MAX = 64 * 1024 * 1024
ANSWER_SECS = 20.0

FORKS = """perl -e 'my $n = 0; while ($n < 5000) { my $p = fork; last unless defined $p;
if (!$p) { sleep 100; exit } $n++ } print "processes: $n\\n"; exit($n < 5000 ? 3 : 0)'"""

# A script, whether the sandbox stopped it (and so somebody is asked), and what is said of it.
ROWS = {
    "processes": (FORKS, False, ["Exit code 3."]),
    "memory": ("/usr/bin/python3 -c 'x = bytearray(64 << 30)'", True, ["limit of the sandbox"]),
    "a long file": ("truncate -s 5G large", True, ["limit of the sandbox"]),
    "temporary space": ("fallocate -l 2G /tmp/large", True, ["limit of the sandbox"]),
    "many files": ("perl -e 'for (1..3000000) { open(F, \">\", \"/tmp/$_\") or die $! }'", True,
                   ["limit of the sandbox"]),
    "open files": ("perl -e 'for (1..9000) { open($f[$_], \"<\", \"/dev/null\") or exit 3 }'",
                   False, ["Exit code 3."]),
    "output": ("touch x; yes 0123456789", False,
               ["time limit of 1500 ms", "more bytes of output are not shown"]),
    "a fork bomb": ("bomb() { bomb | bomb & }; bomb; sleep 100", False, ["time limit of 1500 ms"]),
    "time": ("touch x; while :; do :; done", False, ["time limit of 1500 ms"]),
}

# Takes its time, and is the same for everybody.
ONCE = ["many files"]


def resident(process):
    """Bytes of memory that a process holds."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no VmRSS of {process}")


def limits(s, user):
    ground.settle(s.t, user)
    server = s.server(env={"PATH": ground.SEARCHED} if user == "nobody" else {})
    client, other = s.unified(full_auto=True), s.unified(session="other")
    client.start(permission_mode="auto")
    other.start()
    for name, (script, stopped, told) in ROWS.items():
        if name in ONCE and user == "nobody":
            continue
        began, before = time.monotonic(), resident(server.process.pid)
        timed = any("time limit" in words for words in told)
        args = {"command": script, **({"timeout_ms": 1500} if timed else {})}
        client.say(f"tool: bash {json.dumps(args)}\nsay: end")
        asked = time.monotonic()
        eq(spoken(other.turn("say: I am fine")), ["I am fine"], f"{name}: another session")
        assert time.monotonic() - asked < ANSWER_SECS, f"{name}: the other session had to wait"
        frames = client.until(lambda f: f["type"] in ("control_request", "turn_completed"))
        if frames[-1]["type"] == "control_request":
            eq(stopped, True, f"{name}: {frames[-1]['context']}")
            heard = frames[-1]["context"]["description"]
            client.decide(frames[-1], "deny")
            frames += client.until_end()
        else:
            eq(stopped, False, f"{name}: nobody was asked: {the(frames, 'tool_completed')}")
            heard = json.dumps(of(frames, "command_output") + of(frames, "tool_completed"))
        for words in told:
            assert words in heard, f"{name} as {user}: {words!r} in {heard[-600:]}"
        grown = resident(server.process.pid) - before
        assert grown < SERVER_BYTES_MAX, f"{name}: the server grew by {grown} bytes"
        eq(server.process.poll(), None, f"{name}: the server runs")
        Options.tell(f"S11  as {user:7} {name:16} ok  ({time.monotonic() - began:.1f} s)")
    (counted,) = [line.split()[1] for f in of(client.seen, "command_output")
                  for line in f["output"].splitlines() if line.startswith("processes: ")]
    assert 100 < int(counted) < 5000, f"processes at a time: {counted}"
    s.t.no_process_left()


def test_as_whoever_runs_this(t):
    talks(lambda s: limits(s, ground.users()[0]))(t)


def test_as_an_ordinary_user(t):
    for user in ground.users()[1:]:
        talks(lambda s: limits(s, user))(t)
