"""A disk that fails where a test says so, and forgets what was not flushed; see disk.c.

The library is compiled once a run with the system's `cc`, and preloaded into the server alone.
"""

import errno
import os
import random
import subprocess
import tempfile
import threading
from pathlib import Path

SOURCE = Path(__file__).with_name("disk.c")
COMPILE_SECS = 60

_lock = threading.Lock()
_built = None


def library():
    """The compiled library."""
    global _built
    with _lock:
        if _built is None:
            folder = tempfile.TemporaryDirectory(prefix="polyloop-disk-")
            path = Path(folder.name) / "disk.so"
            words = ["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", str(path), str(SOURCE), "-ldl"]
            subprocess.run(words, check=True, timeout=COMPILE_SECS)
            # The folder goes with the process.
            _built = (folder, path)
        return _built[1]


class Disk:
    """What lies under a store."""

    def __init__(self, home, store):
        self.store = Path(store).resolve()
        self.rules, self.fired_file = Path(home) / "disk-rules", Path(home) / "disk-fired"
        self.ledger = Path(home) / "disk-ledger"
        self.remembers = False

    def env(self):
        """What the server is started with."""
        env = {"LD_PRELOAD": library(), "DISK_BELOW": self.store, "DISK_RULES": self.rules,
               "DISK_FIRED": self.fired_file}
        if self.remembers:
            env["DISK_LEDGER"] = self.ledger
        return {name: str(value) for name, value in env.items()}

    def break_at(self, *rules):
        """Each rule is (call, error, nth, part of the path); from now on, in place of others."""
        lines = [f"{call} {getattr(errno, error)} {nth} {part}\n" for call, error, nth, part in rules]
        self._rule(lines)

    def slow_down(self, call, ms, *parts):
        """Every write, or every flush, of files whose path holds a part takes so long."""
        self._rule([f"slow-{call} {ms} 0 {part}\n" for part in parts])

    def _rule(self, lines):
        fresh = self.rules.with_suffix(".new")
        fresh.write_text("".join(lines))
        fresh.rename(self.rules)

    def fired(self):
        """Parts of the paths of those that came true, in order."""
        if not self.fired_file.exists():
            return []
        return [line.split()[2] for line in self.fired_file.read_text().splitlines()]

    def begin(self):
        """What is there now is on the disk."""
        self.remembers = True
        self.ledger.write_text("")
        lines = []
        for folder, _, files in os.walk(self.store):
            lines.append(f"D {folder}\n")
            for entry in os.scandir(folder):
                lines.append(f"N {entry.inode()} {entry.name}\n")
            for name in files:
                meta = os.stat(os.path.join(folder, name))
                lines.append(f"F {meta.st_ino} {meta.st_size}\n")
        self.ledger.write_text("".join(lines))

    def lose_power(self, rng=random):
        """What did not reach the disk is gone, or a part of it: nobody knows which. Gives how many
        bytes and names were lost. The server must be dead."""
        flushed, names = {}, {}
        folder = None
        for line in self.ledger.read_text().splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "D":
                folder = names[rest] = {}
            elif kind == "N":
                inode, _, name = rest.partition(" ")
                folder[name] = int(inode)
            else:
                inode, bytes_ = map(int, rest.split())
                # Of two flushes at once the shorter one may be the last to be done.
                which = min if kind == "T" else max
                flushed[inode] = which(flushed.get(inode, 0), bytes_)
        lost_bytes = lost_names = 0
        for folder, folders, files in os.walk(self.store, topdown=False):
            known = names.get(folder, {})
            for name in files:
                path = os.path.join(folder, name)
                meta = os.lstat(path)
                # A name that was never flushed is there or not.
                if known.get(name) != meta.st_ino and rng.random() < 0.5:
                    os.unlink(path)
                    lost_names += 1
                    continue
                kept = min(flushed.get(meta.st_ino, 0), meta.st_size)
                if kept < meta.st_size:
                    kept = rng.choice([kept, kept, rng.randint(kept, meta.st_size)])
                    os.truncate(path, kept)
                    lost_bytes += meta.st_size - kept
            for name in folders:
                path = os.path.join(folder, name)
                if known.get(name) != os.lstat(path).st_ino and not os.listdir(path):
                    os.rmdir(path)
                    lost_names += 1
        return lost_bytes, lost_names
