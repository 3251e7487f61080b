"""`polyloop chat` in a real terminal, which tmux is, and in pipes.

A terminal is a tmux server of its own on a socket in the test's directory; it is told to end when
the test does. Nothing here sleeps for a time: what is waited for is something on the screen.
"""

import itertools
import os
import subprocess
import time
from pathlib import Path

from harness import Options, WAIT_SECS

# Looking costs a process each time.
LOOK_SECS = 0.06
# What the program left stays to be seen; the whole screen is its own.
SETTINGS = """
set-option -g remain-on-exit on
set-option -g status off
set-option -g history-limit 50000
set-option -g escape-time 0
"""


def environment(t, server=None, env=None):
    url = {"POLYLOOP_URL": f"http://{server.address}"} if server else {}
    base = {"PATH": os.environ["PATH"], "HOME": str(t.home), "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(t.home / "state"), "SHELL": "/bin/sh"}
    merged = {**base, **url, **(env or {})}
    return {name: str(value) for name, value in merged.items() if value is not None}


class Terminal:
    """A tmux pane in which the program runs, or a shell."""

    # Tests run in threads.
    numbers = itertools.count(1)

    def __init__(self, t, server, *words, env=None, columns=80, rows=24, shell=False):
        number = next(Terminal.numbers)
        self.t, self.status = t, t.dir / f"status-{number}"
        self.socket = t.dir / f"tmux-{number}"
        note = f'"$@"; echo $? > {self.status}.new; mv {self.status}.new {self.status}'
        command = ["sh", "-c", note, "sh", t.polyloop or Options.polyloop, "chat", *words]
        if shell:
            command = ["bash", "--norc", "--noprofile"]
        settings = t.dir / "tmux.conf"
        settings.write_text(SETTINGS)
        t.closing.append(self.end)
        self.tmux("-f", str(settings), "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  *command, env=environment(t, server, env))

    def tmux(self, *words, env=None):
        done = subprocess.run(["tmux", "-u", "-S", str(self.socket), *words],
                              env=env or environment(self.t), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=WAIT_SECS)
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout

    def end(self):
        subprocess.run(["tmux", "-S", str(self.socket), "kill-server"], capture_output=True,
                       timeout=WAIT_SECS)

    def key(self, *keys):
        """Keys by tmux's names: Enter, C-c, M-Enter, Up …"""
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", "--", text)

    def say(self, text):
        """Writes a line and sends it, when what was written is seen."""
        self.type(text)
        self.key("Enter")

    def paste(self, text):
        """As a terminal pastes: marked, if the program asked for that."""
        self.tmux("set-buffer", "--", text)
        self.tmux("paste-buffer", "-p", "-r")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def all(self):
        """The whole history; lines that the terminal wrapped are whole."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    def coloured(self):
        return self.tmux("capture-pane", "-p", "-e", "-S", "-")

    def cursor(self):
        column, row = self.tmux("display-message", "-p", "#{cursor_x} #{cursor_y}").split()
        return int(column), int(row)

    def until(self, accepts, what, look=None):
        look = look or self.screen
        end = time.monotonic() + WAIT_SECS
        while True:
            seen = look()
            if accepts(seen):
                return seen
            if time.monotonic() > end:
                raise AssertionError(f"not within {WAIT_SECS} s: {what}; the screen:\n{self.all()}")
            time.sleep(LOOK_SECS)

    def shows(self, *texts):
        """Waits until all of these are on the screen; the screen."""
        return self.until(lambda seen: all(text in seen for text in texts), texts)

    def shows_no(self, text):
        return self.until(lambda seen: text not in seen, f"no {text!r}")

    def has(self, *texts):
        """Waits until all of these are in the history; the history."""
        return self.until(lambda seen: all(text in seen for text in texts), texts, self.all)

    def ready(self):
        """It listens."""
        self.has("Ctrl-D leaves", "\n›")
        return self

    def turn(self, text):
        """Says something and waits for the end of its turn."""
        ends = self.all().count("✓ ")
        self.say(text)
        return self.until(lambda seen: seen.count("✓ ") > ends, f"the end of {text!r}", self.all)

    def child(self):
        """The process that the pane's shell has started."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def ended(self):
        """The exit status."""
        self.until(lambda _: self.status.exists(), "the program's end")
        return int(self.status.read_text())


def open_terminal(t, *words, **options):
    """A server, and a terminal that talks to it."""
    server = options.pop("server", None) or t.server()
    return Terminal(t, server, *words, **options).ready()


def open_shell(t, server, words="", before=""):
    """A shell in a terminal, in which the program is started."""
    terminal = Terminal(t, server, shell=True)
    terminal.say(f"{before} {t.polyloop or Options.polyloop} chat {words}")
    return terminal.ready()


def input_line(screen):
    """The line that is being written, as it stands on the screen."""
    lines = [line for line in screen.splitlines() if line.startswith("›")]
    return lines[-1].removeprefix("›").strip() if lines else None


class Piped:
    """The program without a terminal."""

    def __init__(self, t, server, *words, stdin=subprocess.DEVNULL, env=None):
        self.process = subprocess.Popen(
            [Piped.program(t), "chat", *words], env=environment(t, server, env), cwd=t.start,
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        t.closing.append(self.process.kill)

    @staticmethod
    def program(t):
        return t.polyloop or Options.polyloop

    def end(self, stdin=None):
        """Waits for its end: exit status, output, errors."""
        out, err = self.process.communicate(stdin, timeout=60)
        assert "panicked" not in err, err
        return self.process.returncode, out, err

    @staticmethod
    def lines(stream, text):
        """Reads up to a line with this text; the lines."""
        lines = []
        while not lines or text not in lines[-1]:
            lines.append(stream.readline())
            assert lines[-1], f"it ended without {text!r}: {lines}"
        return lines

    def rest(self):
        """As `end`, for who has read lines of it: what was read ahead is not lost."""
        out, err = self.process.stdout.read(), self.process.stderr.read()
        assert "panicked" not in err, err
        return self.process.wait(60), out, err


def piped(t, server, *words, stdin=None, **options):
    """Runs it to its end."""
    given = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    return Piped(t, server, *words, stdin=given, **options).end(stdin)


def session_of(err):
    (line,) = [line for line in err.splitlines() if line.startswith("session: ")]
    return line.removeprefix("session: ").split()[0]


def sessions(server):
    return server.get("/sessions").json["sessions"]


def only_session(server):
    (session,) = sessions(server)
    return session["id"]

