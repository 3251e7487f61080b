"""Hostile HTTP: the rows L29, L30 and L36–L38 of the local-server checklist."""

import contextlib
import re
import selectors
import socket
import time

from frames import said
from harness import eq, read_answer

# The checklist's bound for a head that does not come, and some room.
HEADER_SECS_MAX = 30 + 10
SLOW_SOCKETS = 500
SLOW_BYTE_SECS = 5


def ask(server, target, method="GET", headers=()):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {server.address}", "Connection: close",
             *headers]
    return server.raw(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


def test_L29_paths_that_climb(t):
    server = t.server()
    for path in ("/assets/../../../../etc/passwd", "/%2e%2e%2f%2e%2e%2fetc/passwd", "/..%5c..%5cx",
                 "/../etc/passwd", "//etc/passwd", "/assets/%00", "/assets/..;/x", "/.env",
                 "/sessions/../../etc/passwd", "/ws/../../etc/passwd", "/%", "/\\etc\\passwd"):
        answer = ask(server, path)
        assert answer.status in (400, 404), f"{path}: {answer}"
        assert "root:" not in answer.text, f"{path}: {answer}"


def test_L30_ids_in_rest_paths(t):
    server = t.server(todos=True)
    (t.dir / "secret.jsonl").write_text('{"secret":1}\n')
    bad = ["..%2F..%2Fetc%2Fpasswd", "..%2Fsecret", "../secret", "a/b", ".", "..", "%2e", "%2e%2e",
           "x" * 10_000, "%00", "a%00b", "%", "%zz", "%C3%A4", "%F0%9F%98%80", "%2Fetc%2Fpasswd",
           "a%0Ab", "a%0D%0Ab", ".lock", "s1%2Ejsonl%2F..", "%FF", "a%5Cb"]
    for ident in bad:
        for method, suffix in (("GET", ""), ("DELETE", ""), ("POST", ":switch")):
            answer = ask(server, f"/sessions/{ident}{suffix}", method)
            assert answer.status in (400, 404), f"{method} {ident[:40]}: {answer}"
            assert "secret" not in answer.text.replace(ident, ""), answer
    answer = ask(server, "/sessions/")
    assert answer.status in (400, 404), f"an empty id: {answer}"
    eq(server.get("/sessions").json, {"sessions": []}, "sessions")
    eq((t.dir / "secret.jsonl").read_text(), '{"secret":1}\n', "a file beside the store")
    eq(sorted(p.name for p in t.todos.iterdir()), [], "todos")


def test_L36_error_bodies_tell_nothing_of_the_machine(t):
    token = "correct-horse-battery-staple-42"
    server = t.server(env={"POLYLOOP_TOKEN": token})
    bearer = [f"Authorization: Bearer {token}"]
    answers = [ask(server, "/sessions"), ask(server, "/nowhere", headers=bearer),
               ask(server, "/sessions/nobody", headers=bearer),
               ask(server, "/sessions/.x", headers=bearer),
               ask(server, "/sessions/s1", "PUT", bearer),
               ask(server, "/ws/s1", headers=bearer),
               ask(server, "/sessions/s1:switch", "POST", bearer),
               ask(server, "/sessions?limit=x", headers=bearer),
               ask(server, f"/sessions?before=nobody&token={token}"),
               ask(server, "/sessions", headers=["Origin: https://evil.example", *bearer]),
               server.raw(b"nonsense\r\n\r\n")]
    for answer in answers:
        assert 400 <= answer.status < 600, answer
        quiet(t, answer.text, token)


def quiet(t, text, token="?"):
    for word in (token, str(t.dir), "/root", "/home", "panicked", ".rs:", "stack backtrace"):
        assert word not in text, f"{word!r} is in {text!r}"


def test_L36_a_failing_store_tells_nothing_of_the_machine(t):
    server = t.server()
    server.client("/ws/s0").still_open()
    t.store.rename(t.dir / "moved")
    answer = server.http("POST", "/sessions")
    assert answer.status >= 500, answer
    assert answer.json["error"], answer
    quiet(t, answer.text)
    client = server.client("/ws/s1")
    quiet(t, str(client.error()))
    (t.dir / "moved").rename(t.store)
    eq(said(server.client("/ws/s2").turn("say: fine")), ["fine"], "when the store is back")


def refused(server, what, request):
    """Answered with an error, and the connection is closed."""
    with server.socket() as stream:
        with contextlib.suppress(ConnectionError):
            stream.sendall(request)
        answer = read_answer(stream)
        assert answer.status in (400, 413, 414, 431, 501), f"{what}: {answer}"
        try:
            more = stream.recv(65536)
        except ConnectionError:
            more = b""
        eq(more, b"", f"{what}: what follows the error")


def all_refused(server, cases):
    wrong = []
    for what, request in cases.items():
        try:
            refused(server, what, request)
        except AssertionError as error:
            wrong.append(re.sub(r"\s+", " ", str(error))[:120])
    eq(wrong, [], "accepted")


def post(server, headers, body):
    head = f"POST /sessions HTTP/1.1\r\nHost: {server.address}\r\n{headers}\r\n\r\n"
    return head.encode() + body


def test_L37_lengths_that_disagree(t):
    server = t.server()
    inner = f"GET /smuggled HTTP/1.1\r\nHost: {server.address}\r\n\r\n".encode()
    chunked = "Transfer-Encoding: chunked"
    cases = {
        "two lengths": post(server, "Content-Length: 0\r\nContent-Length: 5", b"xxxxx"),
        "a list of lengths": post(server, "Content-Length: 0, 5", b"xxxxx"),
        "a negative length": post(server, "Content-Length: -1", b""),
        "a length with a sign": post(server, "Content-Length: +5", b"xxxxx"),
        "no number": post(server, "Content-Length: 0x5", b"xxxxx"),
        "length and chunks": post(server, f"Content-Length: 5\r\n{chunked}", b"0\r\n\r\n" + inner),
        "chunks and length": post(server, f"{chunked}\r\nContent-Length: 5", b"0\r\n\r\n" + inner),
        "an unknown coding": post(server, "Transfer-Encoding: chunked, nope", b"0\r\n\r\n"),
        "a coding with a blank before the colon": post(server, "Transfer-Encoding : chunked",
                                                       b"0\r\n\r\n"),
    }
    all_refused(server, cases)
    eq(server.get("/sessions").json, {"sessions": []}, "no session was made")


def test_L37_bad_chunks(t):
    server = t.server()
    bodies = {"a bad size": b"zz\r\nabc\r\n0\r\n\r\n", "a huge size": b"f" * 20 + b"\r\n",
              "a negative size": b"-1\r\n\r\n", "no end": b"3\r\nabcdef\r\n0\r\n\r\n"}
    for what, body in bodies.items():
        with server.socket() as stream:
            stream.sendall(post(server, "Transfer-Encoding: chunked", body))
            answers = b""
            with contextlib.suppress(ConnectionError, TimeoutError):
                while part := stream.recv(65536):
                    answers += part
            assert answers.count(b"HTTP/1.1") <= 1, f"{what}: {answers}"
    eq(server.get("/healthz").status, 200, "the server afterwards")


def test_L37_line_ends_and_heads(t):
    server = t.server()
    host = f"Host: {server.address}"
    many = "".join(f"X-{n}: y\r\n" for n in range(1000))
    cases = {
        "a header of 100 kB": f"GET /sessions HTTP/1.1\r\n{host}\r\nX: {'y' * 100_000}\r\n\r\n",
        "a path of 100 kB": f"GET /{'y' * 100_000} HTTP/1.1\r\n{host}\r\n\r\n",
        "1,000 headers": f"GET /sessions HTTP/1.1\r\n{host}\r\n{many}\r\n",
        "a header without a name": f"GET /sessions HTTP/1.1\r\n{host}\r\n: y\r\n\r\n",
        "a folded header": f"GET /sessions HTTP/1.1\r\n{host}\r\nX: y\r\n z\r\n\r\n",
        "a NUL in a header": f"GET /sessions HTTP/1.1\r\n{host}\r\nX: a\0b\r\n\r\n",
        "another protocol": f"GET /sessions HTTP/9.9\r\n{host}\r\n\r\n",
        "no request at all": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    }
    all_refused(server, {what: request.encode("latin-1") for what, request in cases.items()})


def test_L38_slow_heads(t):
    server = t.server()
    slow = selectors.DefaultSelector()
    request = f"GET /sessions HTTP/1.1\r\nHost: {server.address}\r\nX: ".encode()
    sockets = []
    for _ in range(SLOW_SOCKETS):
        stream = server.socket()
        stream.sendall(request)
        stream.setblocking(False)
        slow.register(stream, selectors.EVENT_READ)
        sockets.append(stream)
    eq(server.get("/healthz").status, 200, "a normal client meanwhile")
    eq(said(server.client().turn("say: hello")), ["hello"], "a session meanwhile")
    began = time.monotonic()
    next_byte = began + SLOW_BYTE_SECS
    while slow.get_map():
        now = time.monotonic()
        left = len(slow.get_map())
        assert now < began + HEADER_SECS_MAX, f"{left} slow clients are still connected"
        if now >= next_byte:
            next_byte = now + SLOW_BYTE_SECS
            for key in list(slow.get_map().values()):
                with contextlib.suppress(OSError):
                    key.fileobj.send(b"x")
            eq(server.get("/healthz").status, 200, "a normal client meanwhile")
        for key, _ in slow.select(timeout=next_byte - now):
            try:
                ended = not key.fileobj.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                ended = True
            if ended:
                slow.unregister(key.fileobj)
                key.fileobj.close()
    slow.close()


def test_a_client_that_leaves_in_the_middle(t):
    server = t.server()
    part = post(server, "Content-Length: 9", b"x")
    for request in (b"", b"GET", b"GET /sessions HTTP/1.1\r\n", part):
        with server.socket() as stream:
            stream.sendall(request)
            stream.shutdown(socket.SHUT_RDWR)
    eq(server.get("/healthz").status, 200, "the server afterwards")
