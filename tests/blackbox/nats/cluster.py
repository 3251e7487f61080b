"""Three NATS servers that keep everything three times, and three servers of ours on them.

On a network of the run's own if there is one, else on free ports of loopback: then links cannot be
cut or slowed. Every program is ended by its id, when the cluster is.
"""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import harness
from clock import Clock, library
from harness import WAIT_SECS, eventually
from natsserver import PROGRAM
from natswire import Wire

COUNT = 3
CLIENT_PORT, ROUTE_PORT = 4222, 6222
TOKEN = "a-token-of-the-chaos-run"
STORE_NAME = "polyloop"
# What keys of the list of owners begin with.
SERVER, SESSION = "server.", "session."
# A server that cannot reach its store ends, and is started again, as a supervisor would.
START_SECS_MAX = 90.0
START_AGAIN_SECS = 0.5
# Within this a node that is ready answers, or is asked again.
READY_SECS = 1.0
WIRE_SECS = 5.0


def free_ports(count):
    """Ports of loopback that nobody has just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Program:
    """What nodes and replicas have in common: they are killed, paused, and come back."""

    def __init__(self, name, host):
        self.name, self.host = name, host
        self.paused = False

    @property
    def before(self):
        return self.host.before if self.host else []

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """As a power cut would."""
        self.process.kill()
        self.process.wait(WAIT_SECS)
        self.paused = False

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        self.paused = True

    def resume(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGCONT)
        self.paused = False

    def stop(self):
        if self.is_up():
            self.kill()


class Node(Program):
    """A NATS server of the cluster."""

    def __init__(self, name, host, folder, ports):
        super().__init__(name, host)
        self.dir = folder / name
        self.dir.mkdir()
        self.log, self.process = self.dir / "log", None
        self.address = (host.address("store") if host else "127.0.0.1", ports[0])
        self.route = (host.address("routes") if host else "127.0.0.1", ports[1])

    def configure(self, nodes):
        routes = ", ".join(f'"nats://{at}:{port}"' for at, port in (one.route for one in nodes))
        (self.dir / "nats.conf").write_text(
            f"server_name: {self.name}\n"
            f'listen: "{self.address[0]}:{self.address[1]}"\n'
            f'jetstream {{ store_dir: "{self.dir / "store"}", sync_interval: always }}\n'
            f'cluster {{ name: chaos, listen: "{self.route[0]}:{self.route[1]}", '
            f"no_advertise: true, routes: [{routes}] }}\n")

    def start(self):
        with self.log.open("a") as log:
            words = [*self.before, PROGRAM, "-c", self.dir / "nats.conf"]
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def is_ready(self):
        """It takes clients, and its streams have leaders."""
        try:
            with Wire(*self.address, READY_SECS) as wire:
                wire.ask("$JS.API.INFO", {})
            return True
        except (OSError, LookupError):
            return False


class Replica(Program):
    """One of our servers, over all its runs."""

    def __init__(self, name, host, cluster):
        super().__init__(name, host)
        self.test = harness.Test(name)
        self.test.before = self.before
        self.server = None
        self.clock = Clock(cluster.compiled, self.test.dir / "clock")
        at = ",".join(f"{at}:{port}" for at, port in (one.address for one in cluster.nodes))
        self.env = {
            "STORE": f"nats://{at}", "WORKING_DIRECTORY": cluster.work,
            "USER_MESSAGE_DB": self.test.dir / "messages.db", "CHAT_BROADCAST": "session",
            "RATE_CLIENT_REQUESTS_PER_SEC": "0", "RATE_CLIENT_MESSAGES_PER_SEC": "0",
            **self.clock.env(), **cluster.env,
        }
        if host:
            self.env |= {"HOST": host.address("front"), "POLYLOOP_TOKEN": TOKEN}
        self.is_open = False
        self.cluster = cluster
        # The name it has among the servers of its store, which is another one for each run.
        self.id = None

    @property
    def process(self):
        return self.server.process if self.server else None

    def start(self):
        """Returns once clients may come; tries again while its store is not there."""
        end = time.monotonic() + START_SECS_MAX
        while True:
            try:
                # One at a time, so that the new name is this one's.
                with self.cluster.starting:
                    self.server = self.test.server(env=self.env, store=False)
                    self.is_open = True
                    self.id = self.cluster.new_id()
                return
            except AssertionError:
                if time.monotonic() > end:
                    raise
                time.sleep(START_AGAIN_SECS)

    def kill(self):
        self.is_open = False
        super().kill()

    def drain(self):
        """Ends it as a supervisor does that makes room for another version; its exit code."""
        self.is_open = False
        self.server.signal(signal.SIGTERM)
        try:
            return self.process.wait(WAIT_SECS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def url(self, path):
        return self.server.url(path)

    def headers(self):
        return {"Authorization": f"Bearer {TOKEN}"} if self.host else {}

    def get(self, path):
        return self.server.get(path, **self.headers())

    def said(self):
        """What all its runs wrote to standard error."""
        return "".join(server.stderr() for server in self.test.servers)


class Cluster:
    def __init__(self, network=None, env=None):
        self.network, self.env = network, env or {}
        self.test = harness.Test("cluster")
        self.dir, self.work = self.test.dir, self.test.work
        self.compiled = library(self.dir)
        self.nodes, self.replicas = [], []
        self.starting, self.ids = threading.Lock(), set()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self):
        ports = free_ports(2 * COUNT) if self.network is None else [CLIENT_PORT, ROUTE_PORT] * COUNT
        for number in range(COUNT):
            name = f"n{number + 1}"
            host = self.network and self.network.join(name, "store", "routes")
            self.nodes.append(Node(name, host, self.dir, ports[2 * number:2 * number + 2]))
        for node in self.nodes:
            node.configure(self.nodes)
            node.start()
        for node in self.nodes:
            eventually(node.is_ready, f"{node.name} is ready: {node.log}")
        for number in range(COUNT):
            name = f"r{number + 1}"
            host = self.network and self.network.join(name, "front", "store")
            self.replicas.append(Replica(name, host, self))
        for replica in self.replicas:
            replica.start()

    def wire(self):
        """A reader at a node that is up."""
        for node in self.nodes:
            with contextlib.suppress(OSError):
                if node.is_up() and not node.paused:
                    return Wire(*node.address, WIRE_SECS)
        raise ConnectionError("no NATS node takes clients")

    def owners(self):
        """What the store says of servers and of who has which session."""
        with self.wire() as wire:
            return wire.bucket(f"{STORE_NAME}-owners")

    def new_id(self):
        """The only name of a server that was not there before; nothing if that cannot be told."""
        with contextlib.suppress(OSError, LookupError):
            new = {key for key in self.owners() if key.startswith(SERVER)} - self.ids
            self.ids |= new
            if len(new) == 1:
                return new.pop().removeprefix(SERVER)
        return None

    def all_current(self):
        """Whether every node has all that the streams hold."""
        try:
            with self.wire() as wire:
                for stream in wire.ask("$JS.API.STREAM.LIST", {})["streams"]:
                    cluster = stream["cluster"]
                    others = cluster.get("replicas", [])
                    if "leader" not in cluster or len(others) < COUNT - 1:
                        return False
                    if not all(one.get("current") for one in others):
                        return False
            return True
        except (OSError, LookupError):
            return False

    def stop(self):
        for program in (*self.replicas, *self.nodes):
            if program.paused:
                program.resume()
        for replica in self.replicas:
            replica.test.clean()
        for node in self.nodes:
            node.stop()
        self.test.clean()
