"""Commands that try to stay alive: ways to leave somebody behind, and who is left.

Whoever is left is found by a mark, in its words or in its environment, or by where it works.
"""

import itertools
import os
import shlex
from pathlib import Path

from harness import processes_in

IGNORE = "$SIG{$_} = \"IGNORE\" for grep { !/^(CHLD|CLD)$/ } keys %SIG;"


def perl(script):
    return f"perl -MPOSIX -e {shlex.quote(script)} MARK"


def bash(script):
    return f"bash -c {shlex.quote(script)} MARK"


# Who stays.
PAYLOADS = [
    "sleep 1000",
    bash("trap '' TERM INT HUP QUIT; while :; do sleep 1000; done"),
    perl(f"{IGNORE} sleep 1000"),
    bash("kill -STOP $$"),
    bash("while :; do sleep 0.2 & wait; done"),
    perl("POSIX::close($_) for 0..255; chdir '/'; setsid; sleep 1000"),
    perl("for (1..300) { exit if fork; setsid } sleep 1000"),
    perl("$0 = 'kworker/0:0'; sleep 1000"),
    "env -i STAYS=MARK sleep 1000",
    bash("trap 'setsid sleep 1000 &' EXIT TERM; sleep 1000 & wait"),
]

DAEMON = ("exit if fork; setsid; exit if fork; chdir '/'; umask 0; open(STDIN, '</dev/null'); "
          "open(STDOUT, '>/dev/null'); open(STDERR, '>/dev/null'); exec @ARGV")
PYTHON = ("import os, sys\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
          "os.closerange(0, 256)\nos.execvp(sys.argv[1], sys.argv[1:])")

# How it is left behind; each ends at once.
LAUNCHERS = [
    "nohup PAYLOAD >/dev/null 2>&1 &",
    "setsid PAYLOAD &",
    "( PAYLOAD & ) &",
    "PAYLOAD & disown",
    "nohup setsid PAYLOAD >/dev/null 2>&1 & disown -a",
    "setsid -f PAYLOAD",
    "trap '' TERM INT HUP; PAYLOAD &",
    f"perl -MPOSIX -e {shlex.quote(DAEMON)} PAYLOAD",
    f"/usr/bin/python3 -c {shlex.quote(PYTHON)} PAYLOAD",
    "(trap '' HUP; exec setsid -f PAYLOAD)",
    "bash -c 'PAYLOAD_QUOTED & exec setsid -f PAYLOAD_QUOTED'",
    "coproc PAYLOAD",
]

# Against whoever watches over the command; these end the command, too.
AGAINST = [
    "setsid PAYLOAD & kill -KILL $PPID 2>/dev/null || true",
    "(setsid PAYLOAD &); kill -STOP $PPID 2>/dev/null || true",
]


def commands(count, mark):
    """Different commands, as many as asked for, with their marks."""
    # Neighbours differ in both, so that a few are as good as a choice.
    step, pairs = 7, list(itertools.product(LAUNCHERS, PAYLOADS))
    for at in range(count):
        launcher, payload = pairs[at * step % len(pairs)]
        yield marked(f"{mark}-{at:03}", launcher, payload)


def against(mark):
    """All that act against whoever watches over them, with their marks."""
    for at, (launcher, payload) in enumerate(itertools.product(AGAINST, PAYLOADS)):
        yield marked(f"{mark}-against-{at:03}", launcher, payload)


def marked(own, launcher, payload):
    quoted = payload.replace("'", "'\\''")
    script = launcher.replace("PAYLOAD_QUOTED", quoted).replace("PAYLOAD", payload)
    return own, f"export STAYS=MARK\n{script}\n".replace("MARK", own)


def everybody(mark):
    """All ways in one script, which then goes on for ever itself."""
    lines = [script for _, script in commands(len(LAUNCHERS), mark)]
    return "".join(lines) + "touch ready; trap '' TERM INT HUP; while :; do sleep 1000; done"


def left(mark, work):
    """Processes of the commands with a mark, with their words; the dead do not count."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            place = Path("/proc", entry)
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
            words = (place / "cmdline").read_bytes() + b"\n" + (place / "environ").read_bytes()
        except OSError:
            continue
        if state != "Z" and mark.encode() in words:
            found[int(entry)] = words.split(b"\n")[0].replace(b"\0", b" ").decode(errors="replace")
    return found | dict.fromkeys(processes_in(work), "works there")
