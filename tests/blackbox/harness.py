"""Starts the real server, speaks to it, and cleans up.

Never imports anything of the server: all it knows is the program's path, its standard output, its
files and its sockets. Every wait has a deadline; every process is ended by its id.
"""

import contextlib
import http.client
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import shapes
from frames import is_idle

# Generous: a busy machine must not fail a test.
WAIT_SECS = 30.0
# For all frames of a turn together: a server that only trickles is stuck too.
TURN_SECS = 60.0
POLL_SECS = 0.02


class Options:
    """What the runner was told."""

    polyloop = "polyloop"
    node_modules = None
    verbose = False

    @classmethod
    def tell(cls, line):
        """For who wants to see more than whether a test passed."""
        if cls.verbose:
            print(f"      {line}", flush=True)


def eq(got, want, what="value"):
    assert got == want, f"{what}:\n  got  {got!r}\n  want {want!r}"


def eventually(probe, what, secs=WAIT_SECS):
    """Waits until the probe gives something true, and returns that."""
    end = time.monotonic() + secs
    while True:
        found = probe()
        if found:
            return found
        assert time.monotonic() < end, f"not within {secs} s: {what}"
        time.sleep(POLL_SECS)


def processes_in(directory):
    """Ids of the processes that work below a directory."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            place = os.readlink(f"/proc/{entry}/cwd").removesuffix(" (deleted)")
            state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z" and Path(place).is_relative_to(directory):
            found.append(int(entry))
    return found


class Answer:
    """The answer to an HTTP request."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def __repr__(self):
        return f"<{self.status} {self.text[:300]!r}>"


class Server:
    """One running `polyloop serve`."""

    def __init__(self, test, flags, env, cwd):
        self.test = test
        self.log = tempfile.NamedTemporaryFile(dir=test.dir, prefix="stderr-", delete=False)
        command = [*test.before, test.polyloop or Options.polyloop, "serve", "--port", "0", *flags]
        self.process = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.log, text=True,
        )
        # From here on it is ended with the test, whatever happens.
        test.servers.append(self)
        self.lines = queue.Queue()
        self.told = []
        threading.Thread(target=self._read, daemon=True).start()
        self.host, self.port = self._address()
        self.address = f"{self.host}:{self.port}"

    def _read(self):
        for line in self.process.stdout:
            self.told.append(line)
            self.lines.put(line)
        self.lines.put(None)

    def _address(self):
        end = time.monotonic() + WAIT_SECS
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError("the server said no address in time") from None
            if line is None:
                code = self.process.wait(WAIT_SECS)
                raise AssertionError(f"the server ended with {code}: {self.stderr()}")
            if found := re.search(r"http://(\[[^\]]+\]|[^:/\s]+):(\d+)", line):
                return found[1], int(found[2])

    def stdout(self):
        return "".join(self.told)

    def stderr(self):
        return Path(self.log.name).read_text(errors="replace")

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        """As a power cut would."""
        self.process.kill()
        self.process.wait(WAIT_SECS)

    def stop(self):
        if self.process.poll() is None:
            self.kill()
        self.process.stdout.close()
        self.log.close()

    def url(self, path="/"):
        return f"ws://{self.address}{path}"

    def client(self, path="/ws/s1", **options):
        client = Client(self.url(path), **options)
        self.test.closing.append(client.drop)
        return client

    def watcher(self, path="/ws/s1"):
        """A client that surely is attached: nothing is read from a socket before it is."""
        client = self.client(path)
        assert client.ws.ping().wait(WAIT_SECS), "a ping is not answered"
        return client

    def http(self, method, path, headers=None, body=None):
        connection = http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=WAIT_SECS)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.http("GET", path, headers)

    def raw(self, request, secs=WAIT_SECS):
        """Sends bytes, returns what comes until the server closes or a whole answer is there."""
        with self.socket() as stream:
            stream.settimeout(secs)
            with contextlib.suppress(ConnectionError):
                stream.sendall(request)
            return read_answer(stream)

    def socket(self, receive_bytes=None, segment_bytes=None):
        stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_bytes:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if segment_bytes:
            # With short segments the server's kernel holds little, too.
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, segment_bytes)
        stream.settimeout(WAIT_SECS)
        stream.connect((self.host, self.port))
        return stream

    def upgrade(self, path, headers=(), host=None):
        """The status that a WebSocket handshake gets, by hand."""
        return self.raw(handshake(path, host or self.address, headers)).status

    def events(self, session="s1"):
        answer = self.get(f"/sessions/{session}")
        eq(answer.status, 200, f"GET /sessions/{session}")
        return answer.json["events"]

    def messages(self, session="s1"):
        """The protocol messages that the session's events hold, in order."""
        return [e["message_data"] for e in self.events(session) if e["message_data"]]


def handshake(path, host, headers=()):
    lines = [
        f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def read_answer(stream):
    """Reads one HTTP answer from a socket; status 0 when there was none."""
    data = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        while b"\r\n\r\n" not in data:
            if not (part := stream.recv(65536)):
                break
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if not (found := re.match(r"HTTP/1\.[01] (\d{3})", lines[0])):
        return Answer(0, {}, data)
    headers = http.client.HTTPMessage()
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip()] = value.strip()
    length = int(headers.get("content-length") or 0)
    with contextlib.suppress(ConnectionError, TimeoutError):
        while len(body) < length and (part := stream.recv(65536)):
            body += part
    return Answer(int(found[1]), headers, body)


class Client:
    """An AgentLoop client. Checks the form of everything it is sent."""

    def __init__(self, url, checked=True, **options):
        options = {"proxy": None, "open_timeout": WAIT_SECS, "close_timeout": 2, **options}
        self.ws = connect(url, max_size=None, ping_interval=None, **options)
        self.checked = checked
        self.seen = []
        self.ids = set()
        self.seq = 0
        self.sent = 0

    def send(self, kind, payload=None, **fields):
        self.sent += 1
        message = {"id": f"c-{self.sent}", "type": kind, **fields}
        if payload is not None:
            message["payload"] = payload
        self.ws.send(json.dumps(message))
        return message["id"]

    def say(self, text, **fields):
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        return self.send("user_input", {"input": [item]}, **fields)

    def review(self, review, **payload):
        return self.send("approval_response", {"review": review, **payload})

    def recv(self, secs=WAIT_SECS):
        frame = json.loads(self.ws.recv(timeout=secs))
        if self.checked:
            self._check(frame)
        self.seen.append(frame)
        return frame

    def _check(self, frame):
        shapes.check(frame)
        known = frame["id"] in self.ids
        assert not known or frame["type"] == "approval_request", f"id sent twice: {frame}"
        self.ids.add(frame["id"])
        if "seq" in frame:
            assert self.seq <= frame["seq"], f"seq goes back: {frame}"
            self.seq = frame["seq"]

    def until(self, wanted):
        """Frames up to and with the first of a type, or that a function accepts."""
        accepts = (lambda frame: frame["type"] == wanted) if isinstance(wanted, str) else wanted
        frames, end = [self.recv()], time.monotonic() + TURN_SECS
        while not accepts(frames[-1]):
            assert time.monotonic() < end, f"not within {TURN_SECS} s: {wanted}"
            frames.append(self.recv())
        return frames

    def until_end(self):
        """Frames up to the end of a turn: `agent_finished`, or what ends a failed one."""
        frames, end = [], time.monotonic() + TURN_SECS
        while True:
            assert time.monotonic() < end, f"the turn does not end within {TURN_SECS} s"
            frames.append(self.recv())
            asked = frames[-1]["type"] == "approval_request"
            assert not asked, f"nobody expected to be asked: {frames[-1]['payload']}"
            failed = len(frames) > 1 and frames[-2]["type"] == "error" and is_idle(frames[-1])
            if frames[-1]["type"] == "agent_finished" or failed:
                return frames

    def turn(self, text):
        self.say(text)
        return self.until_end()

    def error(self):
        """The next frame, which must be an error; its payload."""
        frame = self.recv()
        eq(frame["type"], "error", f"type of {frame}")
        return frame["payload"]

    def still_open(self):
        """The connection answers, and in the right order, so nothing else was under way."""
        self.send("get_context_info")
        eq(self.recv()["type"], "context_info", "answer of a connection that must be open")

    def closed(self):
        """Waits for the end of the connection; the close code."""
        try:
            while True:
                self.seen.append(json.loads(self.ws.recv(timeout=WAIT_SECS)))
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None

    def place(self):
        """Where this client stands: the cursor or else the seq of its last frame."""
        frame = [frame for frame in self.seen if "seq" in frame][-1]
        return frame.get("cursor", frame["seq"])

    def close(self):
        self.ws.close()

    def drop(self):
        """Ends the connection without a word."""
        with contextlib.suppress(OSError):
            self.ws.socket.shutdown(socket.SHUT_RDWR)
        self.ws.close()


class Test:
    """What one test has: a place of its own, and servers that end with it."""

    running = set()

    def __init__(self, name):
        self.name = name
        Test.running.add(self)
        self.dir = Path(tempfile.mkdtemp(prefix="polyloop-test-")).resolve()
        self.work, self.start, self.home = self.dir / "work", self.dir / "start", self.dir / "home"
        self.store, self.todos = self.dir / "store", self.dir / "todos"
        for place in (self.work, self.start, self.home):
            place.mkdir()
        self.servers, self.closing = [], []
        # Words that the program is started with, as `setpriv` and its options, and another copy
        # of it. They become the program: the process keeps its id.
        self.before, self.polyloop = [], None

    def environment(self, env=None):
        base = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8",
                "PROVIDER": "offline", "WORKING_DIRECTORY": str(self.work)}
        merged = {**base, **(env or {})}
        return {name: str(value) for name, value in merged.items() if value is not None}

    def server(self, *flags, env=None, store=True, todos=False):
        env = {**({"SESSION_STORE_PATH": self.store} if store else {}),
               **({"TODOS_STORE_PATH": self.todos} if todos else {}), **(env or {})}
        return Server(self, flags, self.environment(env), self.start)

    def program(self, *words, env=None, cwd=None):
        """Runs the program to its end."""
        return subprocess.run(
            [*self.before, self.polyloop or Options.polyloop, *words],
            cwd=cwd or self.start, env=self.environment(env),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_SECS,
        )

    def no_process_left(self):
        eventually(lambda: not processes_in(self.work), "commands of the agent have ended")

    def clean(self):
        for server in self.servers:
            server.stop()
        for close in self.closing:
            with contextlib.suppress(Exception):
                close()
        for process in processes_in(self.work):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)
        Test.running.discard(self)
