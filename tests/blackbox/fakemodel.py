"""Starts the scripted model server, gives it replies, and asks what it was sent.

    model = FakeModel(test=t)
    model.script([{"blocks": [{"say": "Hello."}]}])
    ... point a client at model.url ...
    model.requests()

Its program is named by FAKE_MODEL, or is the one that `cargo build` makes; `fake-model --help`
tells the language of the replies.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

WAIT_SECS = 30.0
POLL_SECS = 0.02
BUILT = Path(__file__).resolve().parents[2] / "target/debug/fake-model"


def program():
    return os.environ.get("FAKE_MODEL") or str(BUILT)


class FakeModel:
    """One running `fake-model`; it ends with its test."""

    def __init__(self, path=None, *flags, test=None):
        command = [str(path or program()), *map(str, flags)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if test is not None:
            test.closing.append(self.stop)
        self.url = self._address()
        self.host, _, port = self.url.removeprefix("http://").partition(":")
        self.port = int(port)

    def _address(self):
        # A server that says nothing is ended, and then its output ends too.
        late = threading.Timer(WAIT_SECS, self.process.kill)
        late.start()
        try:
            line = self.process.stdout.readline()
        finally:
            late.cancel()
        found = re.search(r"listens on (http://\S+)", line)
        assert found, f"fake-model said no address: {line!r}, {self.process.poll()}"
        return found[1]

    def http(self, method, path, body=None, headers=None):
        """Status and bytes of an answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=WAIT_SECS)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _control(self, method, path, body=None):
        status, answer = self.http(method, path, body)
        assert status == 200, f"{method} {path}: {status} {answer.decode()}"
        return json.loads(answer)

    def script(self, replies):
        """Appends replies to the queue."""
        return self._control("POST", "/_script", json.dumps(replies))

    def clear_script(self):
        return self._control("DELETE", "/_script")

    def requests(self):
        """What it was sent: n, at_ms, method, path, headers, body."""
        return self._control("GET", "/_requests")

    def clear_requests(self):
        return self._control("DELETE", "/_requests")

    def state(self):
        """How many requests are open, were aborted by a client; how many replies are queued."""
        return self._control("GET", "/_state")

    def until(self, accepts, what, secs=WAIT_SECS):
        """Waits for a state; returns it."""
        end = time.monotonic() + secs
        while not accepts(state := self.state()):
            assert time.monotonic() < end, f"not within {secs} s: {what}; it is {state}"
            time.sleep(POLL_SECS)
        return state

    def stop(self):
        """Ends it as a person would; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(WAIT_SECS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.stdout.close()
        return self.process.wait(WAIT_SECS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
