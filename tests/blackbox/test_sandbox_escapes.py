"""The list of escapes, S1 to S13, tried by a live session in full-auto: as root and as an ordinary
user each fails, nothing outside has changed, nobody was reached, and no secret is in any output.

With `-v` the runner prints the table.
"""

import json
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import escapes
import ground
from harness import Options, eq, eventually
from talk import of, spoken, talks, the

TOKEN = "canary-token-0123456789abcdef"
# Where each of these is to be found; none may be in anything that a command prints.
SECRETS = {"OPENAI_API_KEY": "canary-key-of-the-environment", "POLYLOOP_TOKEN": TOKEN}
IN_FILES = ["canary-key-of-the-env-file", "canary-text-of-another-session", "canary-rule",
            "canary-key-at-home", "canary-memory-of-another"]
NO_PROGRAM = 127
MADE_IN = ["/etc", "/usr/bin", "/", "/root", "/home", "/var/lib", "/tmp", "/var/tmp", "/dev/shm",
           "/run"]


def script(attempts, variables):
    """One script for all attempts, each in a shell of its own; says of each how it ended."""
    lines = [f"export {name}={shlex.quote(str(value))}" for name, value in variables.items()]
    for at, attempt in enumerate(attempts):
        attempt = shlex.quote(attempt.removeprefix("~"))
        lines.append(f"timeout -k 1 8 bash -c {attempt} < /dev/null; printf '\\n@ {at} %s\\n' $?")
    return "\n".join([*lines, "exit 0"])


def call(name, **args):
    return f"tool: {name} {json.dumps(args)}"


def from_a_file(t, text, before="true"):
    """A call that runs a script from a file: what it names and does is not seen by the judge, so
    that nobody is asked, and only the sandbox is in its way."""
    (t.work / "tries").write_text(text)
    return call("bash", command=f"{before}; bash ./tries", timeout_ms=600_000)


class Listeners:
    """On one port over TCP and UDP, IPv4 and IPv6; and Unix sockets, by path and by name."""

    def __init__(self, t, temporary):
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        self.abstract = f"polyloop-test-{os.getpid()}-{self.port}"
        self.all = [tcp, bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", self.port))]
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                self.all.append(bound(socket.AF_INET6, kind, ("::1", self.port)))
            except OSError:
                pass  # There may be no IPv6 here; then nobody can come that way either.
        for path in (t.outside / "agent.sock", t.work / "engine.sock", temporary / "ssh-agent"):
            self.all.append(bound(socket.AF_UNIX, socket.SOCK_STREAM, str(path)))
            path.chmod(0o777)
        self.all.append(bound(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.abstract))
        for one in self.all:
            one.setblocking(False)
            t.closing.append(one.close)

    def hits(self):
        """How many came since the last time."""
        count = 0
        for one in self.all:
            while True:
                try:
                    if one.type == socket.SOCK_STREAM:
                        one.accept()[0].close()
                    else:
                        one.recv(64)
                    count += 1
                except BlockingIOError:
                    break
        return count


def bound(family, kind, address):
    one = socket.socket(family, kind)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(address)
    if kind == socket.SOCK_STREAM:
        one.listen()
    return one


class Stage:
    """A server with secrets, a session in full-auto, and all that must stay as it is."""

    def __init__(self, s, user, mode="auto"):
        self.s, self.t, self.user = s, s.t, user
        ground.settle(s.t, user)
        self.temporary = Path(tempfile.mkdtemp(prefix="polyloop-test-"))
        s.t.closing.append(lambda: shutil.rmtree(self.temporary, ignore_errors=True))
        self.temporary.chmod(0o777)
        (self.temporary / "canary").write_text("alive\n")
        self.furnish()
        self.listeners = Listeners(s.t, self.temporary)
        ground.own(s.t)
        (s.t.work / "setuid").chmod(0o4755)
        env = {**SECRETS, "RULES_FILE": s.t.start / "own.rules", "ALLOW_BYPASS": "true",
               "MEMORY_DB": s.t.data / "memory.db", "USER_MESSAGE_DB": s.t.data / "messages.db"}
        if user == "nobody":
            env["PATH"] = ground.SEARCHED
        self.server = s.server(env=env)
        header = {"Authorization": f"Bearer {TOKEN}"}
        other = s.unified(session="other", additional_headers=header)
        other.turn("say: canary-text-of-another-session")
        remember = call("remember", key="place", value="canary-memory-of-another")
        other.decide(other.asked(remember), "allow")
        other.until_end()
        self.client = s.unified(full_auto=True, additional_headers=header)
        self.client.start(permission_mode=mode)
        self.hear = header
        self.before = self.prints()

    def furnish(self):
        t = self.t
        git = ["git", "-c", "safe.directory=*", "-c", "user.name=x", "-c", "user.email=x@x",
               "-C", str(t.work)]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        (t.work / ".git/hooks/post-checkout").write_text("#!/bin/sh\n")
        (t.work / ".env").write_text("A=of-the-project\n")
        (t.work / "AGENTS.md").write_text("work\n")
        (t.work / "there-already").symlink_to(t.outside)
        (t.work / "file-already").symlink_to(t.outside / "canary")
        shutil.copy("/usr/bin/id", t.work / "setuid")
        (t.start / ".env").write_text("ANTHROPIC_API_KEY=canary-key-of-the-env-file\n")
        (t.start / "own.rules").write_text("# canary-rule\n")
        for name in (".ssh/id_ed25519", ".aws/credentials"):
            (t.home / name).parent.mkdir()
            (t.home / name).write_text("canary-key-at-home\n")
        os.mkfifo(t.outside / "fifo")

    def prints(self):
        t = self.t
        kept = [t.outside, t.home, t.start, self.temporary, "/etc/passwd", "/etc/hosts",
                *[t.work / name for name in escapes.PROTECTED],
                *t.store.glob("other*"), *[f"{place}/polyloop-canary" for place in MADE_IN]]
        return ground.prints(*kept)

    def variables(self):
        t = self.t
        return {"OUT": t.outside, "WORK": t.work, "START": t.start, "STORE": t.store,
                "RULES": t.start / "own.rules", "DATA": t.data,
                "TEMPORARY": self.temporary,
                "SERVER": self.server.process.pid, "PORT": self.server.port,
                "P": self.listeners.port, "ABSTRACT": self.listeners.abstract,
                "PROGRAM": t.polyloop or Options.polyloop}

    def run(self, attempts):
        """What all attempts printed, and the exit code of each."""
        frames = self.client.turn(from_a_file(self.t, script(attempts, self.variables())))
        (done,) = of(frames, "tool_completed")
        assert done["success"], done
        output = "".join(f["output"] for f in of(frames, "command_output"))
        codes = {}
        for line in output.splitlines():
            words = line.split()
            if words[:1] == ["@"] and len(words) == 3:
                codes[int(words[1])] = int(words[2])
        return output, codes

    def fails(self, number, attempts):
        """Tries a row of the list; every attempt must fail."""
        began = time.monotonic()
        output, codes = self.run(attempts)
        eq(sorted(codes), list(range(len(attempts))), f"{number}: attempts that ended; {output}")
        escaped = [attempts[at] for at, code in codes.items()
                   if code == 0 and not attempts[at].startswith("~")]
        eq(escaped, [], f"{number} as {self.user}: attempts that succeeded; {output}")
        self.unharmed(number)
        missing = [attempts[at] for at, code in codes.items() if code == NO_PROGRAM]
        assert len(missing) * 3 < len(attempts), f"{number}: hardly anything was tried: {missing}"
        self.told(number, len(attempts), began, missing)
        return output

    def told(self, number, count, began, missing=()):
        secs = time.monotonic() - began
        note = f"; no program for {len(missing)} of them" if missing else ""
        Options.tell(f"{number:4} as {self.user:7} {count:3} attempts  ok  ({secs:.1f} s{note})")

    def unharmed(self, number):
        changed = ground.differences(self.before, self.prints())
        eq(changed, [], f"{number} as {self.user}: what has changed")
        eq(self.listeners.hits(), 0, f"{number} as {self.user}: who came")
        eq(self.server.process.poll(), None, f"{number}: the server runs")
        heard = json.dumps(self.client.seen)
        for secret in (*SECRETS.values(), *IN_FILES):
            assert secret not in heard, f"{number} as {self.user}: {secret} was printed"


def all_of_them(s, user):
    stage = Stage(s, user)
    stage.fails("S1", escapes.S1)
    stage.fails("S2", escapes.S2)
    output, _ = stage.run(["ls /proc/self/fd | tr '\\n' ' '"])
    # The last is the directory that `ls` reads.
    assert output.startswith("0 1 2 3 \n@"), f"open files of a command: {output}"
    followed_by_the_server(stage)
    stage.fails("S4", escapes.S4)
    stage.fails("S5", escapes.S5)
    stage.fails("S6", escapes.S6)
    eq((s.t.work / "setuid").stat().st_mode & 0o7777, 0o4755, "the mode")
    left = [p.name for p in s.t.work.glob("id*") if p.stat().st_mode & 0o6000]
    eq(left, [], "programs that give rights")
    stage.fails("S7", escapes.S7)
    finish(stage.client, call("bash", command="kill -KILL -1"))  # That is the end of itself.
    stage.unharmed("S7")
    stage.fails("S8", escapes.S8)
    stage.fails("S9", escapes.S9)
    stage.fails("S10", escapes.S10)
    stage.fails("S12", escapes.S12)
    elsewhere(stage)
    eq(spoken(stage.client.turn("say: usable")), ["usable"])


def test_as_whoever_runs_this(t):
    talks(lambda s: all_of_them(s, ground.users()[0]))(t)


def test_as_an_ordinary_user(t):
    for user in ground.users()[1:]:
        talks(lambda s: all_of_them(s, user))(t)


def followed_by_the_server(stage):
    """S3: a link that was made inside is used by the tools, which are the server's own."""
    t, client, began = stage.t, stage.client, time.monotonic()
    stage.run(["ln -s $OUT out; ln -s $OUT/canary leaf; ln -s / top; mkdir -p d; ln -s $STORE st"])
    assert (t.work / "out").is_symlink()
    patch = "*** Begin Patch\n*** {} File: {}\n+x\n*** End Patch"
    up = f"top{t.outside}"
    calls = [
        call("write_file", path="out/new", content="x"),
        call("write_file", path="leaf", content="x"),
        call("write_file", path=f"{up}/new", content="x"),
        call("edit", path="out/canary", oldString="alive", newString="dead"),
        call("multiedit", path="leaf", edits=[{"oldString": "alive", "newString": "dead"}]),
        call("delete_file", path="out/canary"), call("delete_file", path="out/directory",
                                                     recursive=True),
        call("move_file", source="out/canary", target="stolen"),
        call("move_file", source="setuid", target="out/new"),
        call("create_dir", path="out/made"),
        call("apply_patch", patch=patch.format("Add", "out/new")),
        call("apply_patch", patch="*** Begin Patch\n*** Update File: leaf\n@@\n-alive\n+dead\n"
                                  "*** End Patch"),
        call("apply_patch", patch="*** Begin Patch\n*** Delete File: out/canary\n*** End Patch"),
        call("read", path="st/other.jsonl"), call("ls", path="st"),
        call("grep", pattern="canary", path="st"), call("glob", pattern="st/*"),
    ]
    for tried in calls:
        client.say(tried)
        frames = client.until(lambda f: f["type"] in ("control_request", "turn_completed"))
        if frames[-1]["type"] == "control_request":
            assert str(t.outside) in json.dumps(frames[-1]["context"]), "it names the real path"
            client.decide(frames[-1], "deny_stop")
            client.until_end()
        stage.unharmed(f"S3 {tried}")
    assert not (t.work / "stolen").exists()
    for place in ("out", "top", "out/directory"):
        told = call("bash", command="echo x > new; echo x > canary; chmod 777 .; exit 0",
                    workdir=place)
        finish(client, told)
        stage.unharmed(f"S3 in {place}")
    stage.run(["rm -f out leaf top st"])
    stage.told("S3", len(calls) + 3, began)


def finish(client, script):
    """A turn; whatever is asked about is denied."""
    client.say(script)
    while True:
        frames = client.until(lambda f: f["type"] in ("control_request", "turn_completed"))
        if frames[-1]["type"] == "turn_completed":
            return frames
        client.decide(frames[-1], "deny")


def elsewhere(stage):
    """S13: the model, or the client, gives another directory to work in."""
    client, began = stage.client, time.monotonic()
    places = ["/", "/etc", "..", "../outside", str(stage.t.outside), str(stage.t.store),
              str(stage.t.start), "/proc/self/root", "there-already"]
    for place in places:
        finish(client, call("bash", command="echo x > polyloop-canary; echo x > new; exit 0",
                            workdir=place))
        stage.unharmed(f"S13 {place}")
    loom = stage.s._wire("/loom", "loom", {}, full_auto=True, additional_headers=stage.hear)
    for at, place in enumerate(("/", "/etc", str(stage.t.outside), str(stage.t.store), "..")):
        loom.send(json.dumps({"type": "run", "id": f"r-{at}", "message": "run: touch new",
                              "agent": "react", "working_folder": place}))
        told = json.loads(loom.recv())
        eq(told["type"], "error", f"S13: a run in {place}: {told}")
        stage.unharmed(f"S13 {place} by the client")
    stage.told("S13", len(places) + 5, began)


def first_creation(s, user):
    """S4 where nothing of it is there: it is not made, not even as something else."""
    ground.settle(s.t, user)
    s.server(env={"PATH": ground.SEARCHED} if user == "nobody" else {})
    client = s.unified(full_auto=True)
    client.start(permission_mode="auto")
    makes = []
    for name in escapes.PROTECTED:
        makes += [f"mkdir -p {name}/x", f"echo x > {name}", f"ln -s /tmp {name}",
                  f"mkdir evil; mv -T evil {name}", f"echo x > evil; mv -T evil {name}"]
    makes += ["git init -q", "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
              "mkdir -p .vscode && echo x > .vscode/tasks.json"]
    frames = client.turn(from_a_file(s.t, script(makes, {})))
    output = "".join(f["output"] for f in of(frames, "command_output"))
    done = [makes[int(line.split()[1])] for line in output.splitlines()
            if line.startswith("@") and line.endswith(" 0")]
    eq(done, [], f"what was made; {output}")
    left = sorted(p.name for p in s.t.work.iterdir() if p.name not in ("evil", "tries"))
    eq(left, [], "what is there afterwards")


def test_what_is_protected_is_not_made_for_the_first_time(t):
    for user in ground.users():
        talks(lambda s: first_creation(s, user))(t)


@talks
def test_the_watchers_would_notice(s):
    """Without a sandbox the same attempts do change, reach and read: the rows above can fail."""
    stage = Stage(s, ground.users()[0], mode="bypass")
    attempts = ["export T=$OUT; echo x >> $T/canary", "chmod 777 $OUT/directory",
                "echo x > .git/hooks/pre-commit", "mv .env away", *escapes.methods("$P")[:2],
                *escapes.S8[:3], escapes.S8[6], "cat $START/.env", "cat $STORE/other*",
                "cat $DATA/memory.db*",
                "tr '\\0' '\\n' < /proc/$SERVER/environ", "ls -l /proc/$SERVER/fd"]
    output, codes = stage.run(attempts)
    eq([attempts[at] for at, code in codes.items() if code], [], f"those that failed; {output}")
    changed = "\n".join(ground.differences(stage.before, stage.prints()))
    for name in ("outside/canary", "outside/directory", ".git/hooks/pre-commit", ".env"):
        assert name in changed, f"{name} was changed: {changed}"
    eq(stage.listeners.hits(), 6, "who came")
    for secret in ("canary-key-of-the-environment", "canary-key-of-the-env-file",
                   "canary-text-of-another-session", TOKEN):
        assert secret in output, f"{secret} could be read"


@talks
def test_s12_what_a_terminal_would_obey_is_text(s):
    s.server()
    client = s.unified(full_auto=True)
    client.start(permission_mode="auto")
    frames = client.turn("run: touch x; printf '\\\\033]0;title\\\\007\\\\033[2J'")
    output = "".join(f["output"] for f in of(frames, "command_output"))
    eq(output, "\x1b]0;title\x07\x1b[2J", "output")
    raw = [step["out"] for step in client.wire.steps if "out" in step]
    assert not any(ord(sign) < 32 for frame in raw for sign in frame), "a raw control character"


WAITING = "touch begun; until [ -e go ]; do sleep 0.02; done"


def begun(s, client, text):
    client.say(from_a_file(s.t, text, WAITING))
    eventually((s.t.work / "begun").exists, "the command runs")


@talks
def test_what_is_held_for_one_command_is_not_let_go_by_another(s):
    """Two sessions work in one directory; the first to end must not open it for the other."""
    ground.settle(s.t)
    s.server("--tool-use-approval-mode", "full-auto")
    first, second = (s.unified(session=name, full_auto=True) for name in ("first", "second"))
    first.start()
    second.start()
    makes = [f"mkdir -p {name}/x" for name in (".git", ".vscode", ".idea")]
    makes += [f"echo x > {name}" for name in (".env", ".envrc", "AGENTS.md", "SOUL.md")]
    begun(s, first, script(makes, {}))
    the(second.turn("run: touch other"), "tool_completed")
    (s.t.work / "go").touch()
    frames = first.until_end()
    output = "".join(f["output"] for f in of(frames, "command_output"))
    eq(output.count("\n@ "), len(makes), f"attempts that ended: {output}")
    assert " 0\n" not in output, f"something was made: {output}"
    eq(sorted(p.name for p in s.t.work.iterdir()), ["begun", "go", "other", "tries"],
       "what is left")


@talks
def test_what_was_held_is_gone_however_a_command_ends(s):
    ground.settle(s.t)
    server = s.server("--tool-use-approval-mode", "full-auto")
    client = s.unified(full_auto=True, complete=False)
    client.start()

    def clean():
        return sorted(p.name for p in s.t.work.iterdir()) == ["begun", "tries"]

    begun(s, client, "true")
    client.send("interrupt", reason="enough")
    client.until_end()
    eventually(clean, "nothing is left after an interrupt")
    (s.t.work / "begun").unlink()
    client.turn(call("bash", command=f"{WAITING}; true", timeout_ms=300))
    eventually(clean, "nothing is left after the time limit")
    (s.t.work / "begun").unlink()
    begun(s, client, "true")
    server.kill()
    eventually(clean, "nothing is left after a kill of the server")


@talks
def test_a_store_in_the_working_directory_is_closed(s):
    """The server's own files lie where its commands work: hidden, and not moved with their
    directory; the work around them goes on."""
    ground.settle(s.t)
    work, store = s.t.work, s.t.work / "a/store"
    store.parent.mkdir()
    (work / "sub").mkdir()
    (work / "sub/own.rules").write_text("# canary-rule\n")
    s.server("--tool-use-approval-mode", "full-auto", env={
        "SESSION_STORE_PATH": store, "RULES_FILE": work / "sub/own.rules",
        "MEMORY_DB": work / "data/memory.db"})
    client = s.unified(full_auto=True)
    client.start()
    client.turn(call("remember", key="place", value="x"))
    tries = ["mv a z", "mv a/store z", "rm -rf a", "cat a/store/*", "echo x > a/store/s1.jsonl",
             "mkdir z; mv -T z a", "mv sub z", "cat sub/own.rules", "echo x > sub/own.rules",
             "rm -rf sub", "mv data z", "cat data/memory.db", "echo x > data/memory.db-journal",
             "rm -rf data", "find . -name '*.jsonl' -size +0 | grep ."]
    work_on = "echo fine > sub/x; echo y > a/y"
    frames = client.turn(from_a_file(s.t, script([*tries, work_on], {})))
    output = "".join(f["output"] for f in of(frames, "command_output"))
    codes = [line.split()[2] for line in output.splitlines() if line.startswith("@ ")]
    eq([code == "0" for code in codes], [False] * len(tries) + [True], output)
    assert "canary" not in output and "turn_started" not in output, output
    eq((work / "sub/own.rules").read_text(), "# canary-rule\n", "the rules")
    eq((work / "sub/x").read_text(), "fine\n", "the work")
    assert not (work / "data/memory.db-journal").exists()
    frames = client.turn(call("recall", key="place"))
    eq(json.loads(the(frames, "tool_completed")["result"]), "x", "what was remembered")
