"""A place to try to get out of: seen by commands in a sandbox, and watched.

Temporary directories are replaced by empty ones in the sandbox, so a test about what lies outside
the working directory needs a place elsewhere. `settle` moves a test there, as root or as an
ordinary user; what it made is gone with the test.
"""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from harness import Options

# Replaced by empty ones in the sandbox.
OUT_OF_SIGHT = ("/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys")
# Everybody can come into these, where they are.
OPEN_TO_ALL = ("/srv", "/opt", "/usr/local", "/home")
NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
SEARCHED = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


def is_root():
    return os.geteuid() == 0


def users():
    """As whom a test can run: as whoever runs it, and for root as an ordinary user too."""
    return ["root", "nobody"] if is_root() else ["user"]


def base():
    """A directory that commands in the sandbox can see, and that this user may write to."""
    for place in (*OPEN_TO_ALL, Path.home(), Path.cwd()):
        place = Path(place).resolve()
        hidden = any(place.is_relative_to(other) for other in OUT_OF_SIGHT)
        if place.is_dir() and os.access(place, os.W_OK) and not hidden:
            return place
    raise AssertionError("no directory outside the temporary ones that can be written to")


def settle(t, user="root"):
    """Moves a test into a place of its own, and starts its servers as that user."""
    place = Path(tempfile.mkdtemp(prefix="polyloop-ground-", dir=base()))
    t.closing.append(lambda: shutil.rmtree(place, ignore_errors=True))
    place.chmod(0o755)
    t.work, t.start, t.home = place / "work", place / "start", place / "home"
    t.outside, t.store, t.todos = place / "outside", place / "store", place / "todos"
    t.data = place / "data"
    for made in (t.work, t.start, t.home, t.outside, t.data):
        made.mkdir()
    (t.outside / "canary").write_text("alive\n")
    (t.outside / "directory").mkdir()
    (t.outside / "directory" / "canary").write_text("alive\n")
    t.ground = place
    if user == "nobody":
        # Where the program lies that user may not come.
        t.polyloop = str(place / "polyloop")
        shutil.copy(Options.polyloop, t.polyloop)
        t.before = list(AS_NOBODY)
        own(t)
        os.chown(place, NOBODY, NOBODY)
    return place


def own(t):
    """Gives what was made in the place to the user of the test's servers."""
    if t.before != AS_NOBODY:
        return
    for made in (t.work, t.start, t.home, t.outside, t.data):
        for path in (made, *made.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def prints(*places):
    """All that can be known of files: kind and mode, owner, length, times, content."""
    found = {}
    for place in places:
        place = Path(place)
        below = sorted(place.rglob("*")) if place.is_dir() and not place.is_symlink() else []
        for path in (place, *below):
            found[str(path)] = print_of(path)
    return found


def print_of(path):
    try:
        one = path.lstat()
    except FileNotFoundError:
        return None
    content = path.read_bytes() if stat.S_ISREG(one.st_mode) else b""
    link = os.readlink(path) if stat.S_ISLNK(one.st_mode) else ""
    return (one.st_mode, one.st_uid, one.st_nlink, one.st_size, one.st_mtime_ns, one.st_ctime_ns,
            content, link)


def differences(before, after):
    """The paths at which two looks at places differ."""
    return sorted(path for path in before | after if before.get(path) != after.get(path))
