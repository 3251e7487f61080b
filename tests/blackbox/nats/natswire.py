"""Speaks just enough of NATS to read what a stream holds: no library of ours or of theirs.

Reads only. What a stream holds is asked of any node that has it, and compared with what its leader
says it has, so that a node which is behind is found out.
"""

import json
import socket
from dataclasses import dataclass

ANSWER_SECS = 20.0
BATCH = 500


@dataclass(frozen=True)
class Stored:
    """A message of a stream."""

    number: int
    subject: str
    headers: dict[str, str]
    payload: bytes


class Wire:
    def __init__(self, host, port, secs=ANSWER_SECS):
        self.socket = socket.create_connection((host, port), secs)
        self.file = self.socket.makefile("rb")
        self.file.readline()  # INFO
        hello = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True}
        self._send(f"CONNECT {json.dumps(hello)}\r\nSUB _INBOX.reader.* 1\r\nPING\r\n".encode())
        while self.file.readline().strip() != b"PONG":
            pass
        self.asked = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def _send(self, data):
        self.socket.sendall(data)

    def _ask(self, subject, body):
        self.asked += 1
        payload = json.dumps(body).encode()
        to = f"_INBOX.reader.{self.asked}"
        self._send(f"PUB {subject} {to} {len(payload)}\r\n".encode() + payload + b"\r\n")
        return to

    def _answer(self, to):
        """Headers and payload of the next answer to a question."""
        while True:
            line = self.file.readline()
            if not line:
                raise ConnectionError("NATS has closed the connection")
            words = line.split()
            if words[0] == b"PING":
                self._send(b"PONG\r\n")
            elif words[0] == b"MSG":
                payload = self.file.read(int(words[-1]) + 2)[:-2]
                if words[1].decode() == to:
                    return {}, payload
            elif words[0] == b"HMSG":
                head, whole = int(words[-2]), int(words[-1])
                data = self.file.read(whole + 2)[:-2]
                if words[1].decode() == to:
                    return headers_of(data[:head]), data[head:]
            elif words[0] == b"-ERR":
                raise ConnectionError(f"NATS says {line.decode().strip()}")

    def ask(self, subject, body):
        headers, payload = self._answer(self._ask(subject, body))
        if headers.get("status"):
            raise ConnectionError(f"{subject}: {headers['status']}")
        answer = json.loads(payload)
        if "error" in answer:
            raise LookupError(f"{subject}: {answer['error'].get('description')}")
        return answer

    def state(self, stream):
        """What its leader says of a stream: how many messages, the first and the last number."""
        return self.ask(f"$JS.API.STREAM.INFO.{stream}", {})["state"]

    def messages(self, stream, subject=">"):
        """All messages of a stream, in order, a batch at a time."""
        number = 1
        while True:
            body = {"seq": number, "batch": BATCH, "next_by_subj": subject}
            to = self._ask(f"$JS.API.DIRECT.GET.{stream}", body)
            found = 0
            while True:
                headers, payload = self._answer(to)
                if headers.get("status"):
                    break  # The batch ends, or there is nothing more.
                found, number = found + 1, int(headers["Nats-Sequence"]) + 1
                yield Stored(number - 1, headers["Nats-Subject"], headers, payload)
            if not found:
                return

    def whole(self, stream):
        """All messages of a stream: as many as its leader has, or an error."""
        state = self.state(stream)
        found = list(self.messages(stream))
        if len(found) < state["messages"]:
            raise LookupError(f"{stream}: {len(found)} of {state['messages']} messages were read")
        return found

    def bucket(self, name):
        """The newest value of each key, without what was deleted."""
        prefix, found = f"$KV.{name}.", {}
        for one in self.messages(f"KV_{name}"):
            key = one.subject.removeprefix(prefix)
            if "KV-Operation" in one.headers or "Nats-Marker-Reason" in one.headers:
                found.pop(key, None)
            else:
                found[key] = json.loads(one.payload)
        return found


def headers_of(data):
    lines = data.decode("utf-8", "replace").split("\r\n")
    found = {"status": lines[0].removeprefix("NATS/1.0").strip()}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found[name] = value.strip()
    return found
