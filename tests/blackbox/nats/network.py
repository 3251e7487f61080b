"""A network of a run's own: every program in a namespace, with links that can be cut and slowed.

The whole run is started again inside namespaces of its own (`inside`), so the machine's interfaces
and routes are not even in sight, and everything ends with the run: its programs, because its
processes are a namespace too, and its network, because nobody is left in it.

Three nets, each a bridge: `front` joins clients and replicas, `store` replicas and NATS nodes,
`routes` the NATS nodes among themselves. The run itself is .1 in each.

    network = Network()
    host = network.join("replica-1", "front", "store")
    host.run(["program"]); host.address("store")
    network.cut(host, "store"); network.slow(host, "store", 256); network.mend(host, "store")
"""

import os
import shutil
import subprocess
import sys
import threading

NETS = {"front": "10.201.1", "store": "10.201.2", "routes": "10.201.3"}
MARK = "POLYLOOP_CHAOS_INSIDE"
TOOLS = ("ip", "tc", "nsenter", "unshare", "mount")
SETUP_SECS = 30
# Shorter names would be cut by the kernel.
NAME_CHARS_MAX = 15
# What one packet may take, and how long one may wait before it is dropped.
BURST_BYTES = 1_600
WAIT_MS_MAX = 400


class Unavailable(Exception):
    """This machine gives no namespaces, or lacks a tool."""


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=SETUP_SECS)
    if done.returncode:
        raise Unavailable(f"`{' '.join(words)}`: {done.stderr.strip() or done.returncode}")
    return done.stdout


def is_inside():
    return os.environ.get(MARK) == "yes"


def unshared():
    """The words that put a program into namespaces of its own, without a user of root if need be."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise Unavailable(f"{', '.join(missing)} is missing")
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid():
        words += ["--user", "--map-root-user"]
    call(*words, "true")
    return words


def inside(words):
    """Becomes the same program in namespaces of its own; returns only if they cannot be had."""
    before = unshared()
    os.environ[MARK] = "yes"
    sys.stdout.flush()
    os.execvp(before[0], [*before, *words])


class Host:
    """A namespace with an address in some of the nets."""

    def __init__(self, name, number, nets):
        self.name, self.number, self.nets = name, number, nets
        # Words that a program is started with: they become it.
        self.before = ["nsenter", f"--net=/run/netns/{name}", "--"]

    def address(self, net):
        return f"{NETS[net]}.{self.number}"

    def link(self, net):
        """The bridge's end of its link."""
        return f"{net[0]}-{self.name}"[:NAME_CHARS_MAX]


class Network:
    def __init__(self):
        # The names of namespaces are mounts below /run: in ours, not in the machine's.
        call("mount", "-t", "tmpfs", "tmpfs", "/run")
        call("ip", "link", "set", "lo", "up")
        self.count = 10
        self.lock = threading.Lock()
        for net, prefix in NETS.items():
            call("ip", "link", "add", "name", net, "type", "bridge")
            call("ip", "address", "add", f"{prefix}.1/24", "dev", net)
            call("ip", "link", "set", net, "up")

    def join(self, name, *nets):
        self.count += 1
        host = Host(name, self.count, nets)
        call("ip", "netns", "add", name)
        call("ip", "-n", name, "link", "set", "lo", "up")
        for net in nets:
            link = host.link(net)
            call("ip", "link", "add", "name", link, "type", "veth",
                 "peer", "name", net, "netns", name)
            call("ip", "-n", name, "address", "add", f"{host.address(net)}/24", "dev", net)
            call("ip", "-n", name, "link", "set", net, "up")
            call("ip", "link", "set", link, "master", net, "up")
        return host

    def cut(self, host, net):
        """Packets vanish; nobody is told."""
        with self.lock:
            call("ip", "link", "set", host.link(net), "nomaster")

    def slow(self, host, net, kbits):
        """So many kilobits a second, in each direction: what is sent waits in a queue."""
        limits = ["root", "tbf", "rate", f"{kbits}kbit", "burst", str(BURST_BYTES),
                  "latency", f"{WAIT_MS_MAX}ms"]
        with self.lock:
            call("tc", "qdisc", "replace", "dev", host.link(net), *limits)
            call("tc", "-n", host.name, "qdisc", "replace", "dev", net, *limits)

    def mend(self, host, net):
        """As it was in the beginning."""
        with self.lock:
            call("ip", "link", "set", host.link(net), "master", net)
            for words in (["dev", host.link(net)], ["-n", host.name, "dev", net]):
                before = words[:2] if words[0] == "-n" else []
                shown = call("tc", *before, "qdisc", "show", *words[len(before):])
                if "tbf" in shown:
                    call("tc", *before, "qdisc", "delete", *words[len(before):], "root")
