"""What is slow or waits costs those who wait, and nobody else: a disk, a client, a thousand
approvals."""

import contextlib
import os
import socket
import threading
import time

from disk import Disk
from frames import said
from harness import Options, eq, eventually
from talk import spoken, talks
from test_limits import never_reads, read_frames

SLOW_SESSIONS = 12
FLUSH_MS = 1500
APPROVALS = 1000
# Longer than one that takes nothing is kept, and than three pings are waited for.
READING_SECS = 75
SLOW_BYTES = 4096
SLOW_SECS = 0.1
TICKS = os.sysconf("SC_CLK_TCK")


def on_slow_disk(t, call, ms, parts):
    disk = Disk(t.dir, t.store)
    disk.slow_down(call, ms, *parts)
    return t.server(env=disk.env())


def one_after_the_other(server, stop, turns):
    """Turns of a session of its own until it is told to stop; each has its answer."""
    client = server.client("/ws/quick")
    while not stop.is_set():
        eq(said(client.turn(f"say: {len(turns)}")), [str(len(turns))])
        turns.append(time.monotonic())


def beside(server, work):
    """How many turns another session does while some work is done."""
    stop, turns, wrong = threading.Event(), [], []

    def run():
        try:
            one_after_the_other(server, stop, turns)
        except BaseException as error:  # noqa: BLE001 - told where the test can see it
            wrong.append(error)

    quick = threading.Thread(target=run, daemon=True)
    quick.start()
    try:
        work()
    finally:
        stop.set()
        quick.join(60)
    assert not wrong, wrong
    return len(turns)


def test_a_disk_that_flushes_slowly_slows_its_sessions_alone(t):
    """What is said is flushed before it is shown, so each turn there waits at least twice."""
    server = on_slow_disk(t, "flush", FLUSH_MS, ["/slow-"])
    clients = [server.client(f"/ws/slow-{n}") for n in range(SLOW_SESSIONS)]
    took = []

    def work():
        began = time.monotonic()
        for n, client in enumerate(clients):
            client.say(f"say: {n}")
        for n, client in enumerate(clients):
            eq(said(client.until_end()), [str(n)])
        took.append(time.monotonic() - began)

    quick = beside(server, work)
    Options.tell(f"{SLOW_SESSIONS} turns in {took[0]:.1f} s, beside them {quick}")
    assert took[0] >= 2 * FLUSH_MS / 1000, "the disk was not slow at all"
    # One that waited behind a slow flush each time would come to two or three.
    assert quick >= 8, f"{quick} turns in {took[0]:.1f} s"


def test_a_disk_that_writes_slowly_slows_its_session_alone(t):
    server = on_slow_disk(t, "write", 100, ["/slow-"])
    client = server.client("/ws/slow-1")
    quick = beside(server, lambda: eq(said(client.turn("stream: 20 10 0\nsay: end"))[-1], "end"))
    assert quick >= 5, f"{quick} turns"


def cpu_secs(server):
    fields = (f"/proc/{server.process.pid}/stat")
    with open(fields) as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@talks
def test_a_thousand_approvals_that_wait_cost_nothing(s):
    server = s.server(env={"APPROVAL_TIMEOUT_SECS": 86400})
    s.unified(session="warm").turn("say: warm")
    before = resident_bytes(server)
    per_connection = 25
    for first in range(0, APPROVALS, per_connection):
        client = s.unified(session=f"w{first}", complete=False)
        names = [f"w{first + n}" for n in range(per_connection)]
        for name in names:
            client.say("run: rm -f x\nsay: done", session=name)
        waiting = set()
        while len(waiting) < per_connection:
            frame = client.until("control_request")[-1]
            waiting.add(frame["session_id"])
        last = frame
    each = (resident_bytes(server) - before) / APPROVALS
    # Once nothing is under way any more, there is nothing to do.
    eventually(lambda: cpu_over(server, 1.0) < 0.2, "it comes to rest")
    used = cpu_over(server, 2.0)
    Options.tell(f"{each / 1024:.0f} KiB each; {used * 1000:.0f} ms of processor in 2 s")
    assert used < 0.3, f"{used} s of processor time in 2 s, for nothing"
    assert each < 512 * 1024, f"{each / 1024:.0f} KiB for a session that waits"
    eq(spoken(s.unified(session="other").turn("say: quick")), ["quick"], "others are answered")
    client.send("permission_response", session=last["session_id"], request_id=last["request_id"],
                decision="allow")
    eq(spoken(client.until_end(last["session_id"]))[-1], "done", "and any of them goes on")


def cpu_over(server, secs):
    before = cpu_secs(server)
    time.sleep(secs)
    return cpu_secs(server) - before


def test_a_reader_that_comes_late_has_everything_in_fewer_pieces(t):
    """It is not cut off: what it missed comes from the log, what grew meanwhile in one piece."""
    chunks = 24_000
    server = t.server()
    slow = never_reads(server, "/unified?session_id=s1")
    client = server.client("/ws/s1")
    client.turn(f"stream: {chunks} 1000 0")
    frames, _ = read_frames(slow, "turn_completed")
    pieces = [frame["text"] for frame in frames if frame["type"] == "assistant_message"]
    whole = "".join(f"{n:07} " for n in range(chunks * 1000 // 8))
    text = "".join(pieces)
    assert text == whole, f"{len(text)} of {len(whole)} bytes"
    Options.tell(f"{len(pieces)} pieces")
    assert len(pieces) < chunks / 4, f"{len(pieces)} pieces"


def test_a_client_that_takes_nothing_is_let_go(t):
    """In its time; it comes back by its place, and has everything then."""
    server = t.server()
    slow = never_reads(server, "/unified?session_id=s1")
    client = server.client("/ws/s1")
    client.turn("stream: 24000 1000 0")
    count = 'polyloop_connections{dialect="unified"}'
    eq(metric(server, count), 1.0, "connections of unified")
    eventually(lambda: metric(server, count) == 0.0, "it is let go", secs=90)
    frames, _ = read_frames(slow, "turn_completed")
    place = [frame["cursor"] for frame in frames if "cursor" in frame][-1]
    text = "".join(frame["text"] for frame in frames if frame["type"] == "assistant_message")
    back = server.client(f"/unified?session_id=s1&since={place}", checked=False)
    while (frame := back.recv())["type"] != "turn_completed":
        text += frame["text"] if frame["type"] == "assistant_message" else ""
    whole = "".join(f"{n:07} " for n in range(24_000_000 // 8))
    assert text == whole, f"{len(text)} of {len(whole)} bytes"


def slowly(stream, secs):
    """What a socket gets, taken bit by bit for a while, then as it comes."""
    taken, given = socket.socketpair()

    def copy():
        until = time.monotonic() + secs
        with contextlib.closing(given), contextlib.suppress(OSError):
            while data := stream.recv(SLOW_BYTES):
                given.sendall(data)
                if time.monotonic() < until:
                    time.sleep(SLOW_SECS)

    threading.Thread(target=copy, daemon=True).start()
    return taken


def test_a_client_that_reads_slowly_is_not_let_go(t):
    """However long it takes to read one answer, and though it answers no ping before that."""
    server = t.server()
    slow = never_reads(server, "/unified?session_id=s1")
    server.client("/ws/s1").turn("stream: 24000 1000 0")
    frames, _ = read_frames(slowly(slow, READING_SECS), "turn_completed")
    text = "".join(frame["text"] for frame in frames if frame["type"] == "assistant_message")
    whole = "".join(f"{n:07} " for n in range(24_000_000 // 8))
    assert text == whole, f"{len(text)} of {len(whole)} bytes"


def metric(server, name):
    lines = server.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))
