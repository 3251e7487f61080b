"""A short run of the soak that sends nonsense in all four dialects while another session works."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from harness import WAIT_SECS, Options, eq

FRAMES = 2000
SECS_MAX = 240
SOAK = Path(__file__).resolve().parent / "soak" / "frames.py"


def test_nonsense_in_every_dialect(t):
    words = [sys.executable, str(SOAK), "--polyloop", Options.polyloop, "--frames", str(FRAMES),
             "--seed", "7"]
    process = subprocess.Popen(words, cwd=t.dir, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        told, complaint = process.communicate(timeout=SECS_MAX)
    except subprocess.TimeoutExpired:
        # As Ctrl-C does: then it ends its own server.
        process.send_signal(signal.SIGINT)
        told, complaint = process.communicate(timeout=WAIT_SECS)
    finally:
        process.kill()
    assert process.returncode == 0, f"ended with {process.returncode}: {told}{complaint}"
    found = json.loads(told)
    eq(found["panics"], 0, "panics")
    for dialect in ("agentloop", "unified", "loom", "chat"):
        assert found[dialect] >= FRAMES // 8, f"frames that were answered: {found}"
    assert found["turns"] > 0, f"the other session had turns: {found}"
