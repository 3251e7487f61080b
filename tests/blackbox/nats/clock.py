"""A clock of a server's own, which a test sets; see clock.c.

The library is compiled once a run with the system's `cc`, and preloaded into servers alone.
"""

import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
COMPILE_SECS = 60


def library(folder):
    """The compiled library, in a folder that goes with the run."""
    path = Path(folder) / "clock.so"
    words = ["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", str(path), str(SOURCE), "-ldl"]
    subprocess.run(words, check=True, timeout=COMPILE_SECS)
    return path


class Clock:
    def __init__(self, compiled, path):
        self.compiled, self.path = compiled, Path(path)
        self.wrong_by(0)

    def wrong_by(self, secs):
        """From now on, also in a server that runs: it reads the same bytes."""
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.write(struct.pack("=q", secs))

    def env(self):
        return {"LD_PRELOAD": str(self.compiled), "CLOCK_OFFSET": str(self.path)}
