"""Where a layer of the sandbox cannot be had: the start, `doctor` and the session say so, full-auto
asks, and nothing runs bare."""

import errno
import json
import platform
import subprocess
import sys
from pathlib import Path

import ground
from frames import outputs
from harness import WAIT_SECS, eq, eventually
from talk import of, talks, the

DENY = [sys.executable, str(Path(__file__).with_name("deny.py"))]
NO_NAMESPACES = ["unshare", "-Ur", "bash", "-c",
                 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"']
NEWUSER, NEWNET, NEWPID = 0x10000000, 0x40000000, 0x20000000
# System calls by their numbers on x86-64, and how another kernel refuses them.
LAYERS = {
    "user namespaces": f"56={NEWUSER}:{errno.EPERM}",
    "network namespaces": f"56={NEWNET}:{errno.EPERM}",
    "process namespaces": f"56={NEWPID}:{errno.ENOSPC}",
    "mounts": f"165:{errno.EPERM}",
    "new mounts": f"430:{errno.EPERM}",
    "read-only mounts": f"442:{errno.ENOSYS}",
    "Landlock": f"444:{errno.ENOSYS}",
    "Landlock that is off": f"444:{errno.EOPNOTSUPP}",
    "Landlock's rules": f"446:{errno.EPERM}",
    "seccomp": f"317:{errno.ENOSYS}",
    "capabilities": f"126:{errno.EPERM}",
}
COMMAND = "echo ran; touch ran"


def without(layer):
    """The words before a program that take a layer away."""
    if layer == "max_user_namespaces":
        return NO_NAMESPACES
    return [*DENY, LAYERS[layer], "--"]


def layers():
    """All that can be taken away here."""
    found = list(LAYERS) if platform.machine() == "x86_64" else []
    tried = subprocess.run([*NO_NAMESPACES, "true"], capture_output=True, timeout=WAIT_SECS)
    return ["max_user_namespaces", *found] if tried.returncode == 0 else found


def said_at_start(server):
    """The line about the sandbox that the server prints when it starts."""
    def line():
        lines = [" ".join(line.split()) for line in server.stdout().splitlines()]
        return [line for line in lines if line.startswith("sandbox ")]

    return eventually(line, "the start says whether there is a sandbox")[0]


def asks_and_says_so(s, layer):
    s.t.before = without(layer)
    server = s.server()
    told = said_at_start(server)
    assert told.startswith("sandbox none: "), f"{layer}: the start says so: {told}"
    eventually(lambda: "also in full-auto" in server.stdout(), "the start says what follows")
    assert "no sandbox: " in server.stderr(), f"{layer}: the log says so: {server.stderr()}"
    client = s.unified(full_auto=True)
    client.start()
    client.send("set_permission_mode", mode="auto")
    frames = client.until("notice")
    eq((frames[-1]["level"], frames[-1]["code"]), ("warning", "no_sandbox"), layer)
    assert "full-auto asks" in frames[-1]["text"], frames[-1]
    request = client.asked(f"run: {COMMAND}\nsay: end")
    eq(of(client.seen, "command_output"), [], f"{layer}: nothing ran")
    assert not (s.work / "ran").exists(), f"{layer}: it ran bare"
    client.decide(request, "deny_stop")
    client.until_end()
    # What needs no sandbox runs as ever.
    done = the(client.turn("run: cat a.txt\nsay: end"), "tool_completed")
    eq((done["success"], done["result"].strip()), (True, "needle"), f"{layer}: reading")
    client.decide(client.asked(f"run: {COMMAND}\nsay: end"), "allow")
    assert the(client.until_end(), "tool_completed")["success"], layer
    (s.work / "ran").unlink()
    server.stop()


def test_a_server_without_a_layer_asks(t):
    (t.work / "a.txt").write_text("needle\n")
    assert layers(), "no layer can be taken away here"
    for layer in ("max_user_namespaces", "Landlock", "seccomp", "mounts"):
        if layer in layers():
            talks(lambda s: asks_and_says_so(s, layer))(t)


def test_doctor_says_which_layer_is_missing(t):
    for layer in layers():
        t.before = without(layer)
        result = t.program("doctor", "--json", env={"PORT": "0"})
        checks = json.loads(result.stdout)["checks"]
        (line,) = [check for check in checks if check["thing"] == "sandbox"]
        eq(line["status"], "warn", f"{layer}: {line}")
        assert "ask" in line["text"], f"{layer}: it says what follows: {line}"


def test_with_every_layer_doctor_says_that_it_works(t):
    result = t.program("doctor", "--json", env={"PORT": "0"})
    checks = json.loads(result.stdout)["checks"]
    (line,) = [check for check in checks if check["thing"] == "sandbox"]
    eq(line["status"], "ok", line)
    eq(said_at_start(t.server()), "sandbox works", "at start")


def test_without_anyone_to_ask_nothing_runs(t):
    if "max_user_namespaces" not in layers():
        return
    t.before = NO_NAMESPACES
    server = t.server("--tool-use-approval-mode", "full-auto")
    client = server.client()
    client.say(f"run: {COMMAND}\nsay: end")
    client.until("approval_request")
    client.review("no-continue")
    (output,) = outputs(client.until_end())
    assert output["metadata"]["exit_code"] != 0 and "ran" not in output["output"].split(), output
    assert not (t.work / "ran").exists(), "it ran bare"


@talks
def test_a_layer_that_goes_while_the_server_runs(s):
    """What was there at the start is gone when a command is to run: it does not run, and somebody
    is asked."""
    if not ground.is_root():
        return
    t = s.t
    # The limit is that of the server's own namespace, so it can be changed from outside.
    t.before = ["unshare", "-Ur"]
    server = s.server()
    client = s.unified(full_auto=True)
    client.start(permission_mode="auto")
    assert the(client.turn("run: touch before"), "tool_completed")["success"]
    inside = ["nsenter", "-t", str(server.process.pid), "-U", "--preserve-credentials",
              "bash", "-c", "echo 0 > /proc/sys/user/max_user_namespaces"]
    subprocess.run(inside, check=True, timeout=WAIT_SECS)
    # A helper that waited already has its sandbox; the one after it has none to have.
    client.say("run: touch still\nsay: end")
    ended = client.until(lambda frame: frame["type"] in ("control_request", "turn_completed"))[-1]
    if ended["type"] == "control_request":
        request = ended
    else:
        request = client.asked(f"run: {COMMAND}\nsay: end")
    assert "could not be set up" in request["context"]["description"], request
    assert not (s.work / "ran").exists(), "it ran bare"
    client.decide(request, "deny")
    told = json.dumps(the(client.until_end(), "tool_completed"))
    assert "Not run outside the sandbox" in told, told
    eq(told.count("could not be set up"), 1, f"how often it is said: {told}")
    assert "It ran" not in told, f"it did not run: {told}"
    assert not (s.work / "ran").exists(), "it ran bare"
