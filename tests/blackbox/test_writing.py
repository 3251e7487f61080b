"""What a connection is sent goes out whole and in order, whoever writes it: a session through its
door, the connection's own half from its queue, the protocol its pongs."""

import json
import struct
import threading

from harness import WAIT_SECS, eq, eventually
from test_limits import never_reads
from test_limits_pressure import metric

# More than a socket with a small window takes, less than a queue holds.
CHUNKS = 500
CHUNK_BYTES = 1000
SEGMENT_BYTES = 536
PINGS = 30
MASK = b"\1\2\3\4"
ENDS = {
    "/unified?session_id=s1": "turn_completed",
    "/agentloop?session_id=s1": "agent_finished",
    "/loom?session_id=s1": "run_end",
}


def ping(stream, number):
    payload = struct.pack(">H", number)
    masked = bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))
    stream.sendall(bytes([0x89, 0x80 | len(payload)]) + MASK + masked)


class Reader:
    """Reads a raw socket frame by frame, and minds that there is nothing but whole ones."""

    def __init__(self, stream):
        self.stream = stream
        stream.settimeout(WAIT_SECS)
        self.data = stream.makefile("rb")
        self.texts, self.pongs = [], []

    def frame(self):
        head = self.data.read(2)
        eq(len(head), 2, "bytes of a frame's head")
        length = head[1]
        if length > 125:
            size = 2 if length == 126 else 8
            length = int.from_bytes(self.data.read(size), "big")
        payload = self.data.read(length)
        eq(len(payload), length, "bytes of a frame")
        match head[0]:
            case 0x81:
                self.texts.append(payload.decode())
            case 0x8A:
                self.pongs.append(struct.unpack(">H", payload)[0])
            case 0x89:
                pass
            case other:
                raise AssertionError(f"a frame that begins with {other:#x}")

    def until_end(self, last):
        while not (self.texts and json.loads(self.texts[-1])["type"] == last):
            before = len(self.texts)
            self.frame()
            if len(self.texts) > before and len(self.texts) % 50 == 0:
                ping(self.stream, 1000 + len(self.texts) // 50)
        return self


def in_thread(work):
    done = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()

    def join():
        thread.join(WAIT_SECS)
        assert done, "it did not come to its end"
        return done[0]

    return join


def fills_and_reads(t, path, last):
    """One that stops reading in the middle of a frame, beside one that never does."""
    server = t.server()
    slow, fast = [never_reads(server, path, SEGMENT_BYTES) for _ in range(2)]
    # Both see the same from the beginning.
    speaker = server.client("/ws/s1")
    quick = in_thread(lambda: Reader(fast).until_end(last))
    speaker.say(f"stream: {CHUNKS} {CHUNK_BYTES} 1")
    waits = "polyloop_subscriber_queued_bytes_most"
    eventually(lambda: metric(server, waits) > 0, "something waits")
    for number in range(PINGS):
        ping(slow, number)
    speaker.until_end()
    late = Reader(slow).until_end(last)
    quick = quick()
    eq(len(late.texts), len(quick.texts), f"frames of {path}")
    for at, (one, other) in enumerate(zip(late.texts, quick.texts)):
        eq(one, other, f"frame {at} of {path}")
    while len(late.pongs) < PINGS + len(late.texts) // 50:
        late.frame()
    eq(late.pongs[:PINGS], list(range(PINGS)), "pongs to what was sent while nothing was read")
    eq(late.pongs[PINGS:], [1001 + n for n in range(len(late.texts) // 50)], "later pongs")
    assert len(late.texts) >= CHUNKS // 4, f"{len(late.texts)} frames"
    # It has caught up: what comes now is written as it is made.
    speaker.say("say: and on")
    reader = Reader(slow)
    reader.data = late.data
    assert "and on" in "".join(reader.until_end(last).texts)


def test_one_that_stops_in_mid_frame_gets_every_byte_unified(t):
    path = "/unified?session_id=s1"
    fills_and_reads(t, path, ENDS[path])


def test_one_that_stops_in_mid_frame_gets_every_byte_agentloop(t):
    path = "/agentloop?session_id=s1"
    fills_and_reads(t, path, ENDS[path])


def test_one_that_stops_in_mid_frame_gets_every_byte_loom(t):
    path = "/loom?session_id=s1"
    fills_and_reads(t, path, ENDS[path])
