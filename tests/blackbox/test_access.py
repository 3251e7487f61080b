"""Who may connect, without a token: the rows of the local-server checklist that then apply.

`hooked` in the checklist: a refused request also leaves no trace.
"""

import json
import os
import re
from pathlib import Path

from frames import said
from harness import eq

EVIL = "https://evil.example"


def own(server, name="127.0.0.1"):
    return f"http://{name}:{server.port}"


def other_origins(server):
    return [EVIL, "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example",
            "http://evil.example#127.0.0.1", f"http://127.0.0.1:{server.port}@evil.example",
            f"HTTP://127.0.0.1:{server.port}.", f"http://127.0.0.1:{server.port + 1}",
            "http://127.0.0.1", f"https://evil.example:{server.port}", "file://", " ", "*",
            f"http://127.0.0.1:{server.port}/", f"http://[::1]:{server.port}.evil.example"]


def hooked(server, sessions=()):
    """Nothing was made and nothing ran."""
    eq([s["id"] for s in server.get("/sessions").json["sessions"]], list(sessions), "sessions")
    eq(list(server.test.work.iterdir()), [], "files of commands")


def listening(pid):
    """The addresses that a process listens on, as the kernel tells."""
    sockets = {os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                found.append(words[1])
    return found


def test_L1_it_listens_on_loopback_only(t):
    server = t.server()
    (where,) = listening(server.process.pid)
    eq(where, f"0100007F:{server.port:04X}", "the listening address")


def test_L2_beyond_loopback_a_token_is_needed(t):
    for words in (["--host", "0.0.0.0"], ["--host", "::"], ["--addr", "0.0.0.0:0"]):
        result = t.program("serve", *words, env={"PORT": "0"})
        assert result.returncode > 0, f"{words}: {result}"
        assert "POLYLOOP_TOKEN" in result.stderr, result.stderr
        eq(len(result.stderr.strip().splitlines()), 1, f"lines of {result.stderr!r}")
        assert "http://" not in result.stdout, "it listened"


def test_L8_L9_L10_other_origins_get_no_socket(t):
    server = t.server()
    for path in ("/", "/ws", "/ws/s1", "/agentloop", "/agentloop/s1"):
        for origin in other_origins(server):
            status = server.upgrade(path, [f"Origin: {origin}"])
            eq(status, 403, f"{path} from {origin!r}")
    hooked(server)


def test_L8_other_origins_get_no_data(t):
    server = t.server()
    server.client("/ws/s1").turn("say: canary-text")
    for origin in other_origins(server):
        for path in ("/sessions", "/sessions/s1", "/healthz"):
            answer = server.get(path, Origin=origin)
            eq(answer.status, 403, f"{path} from {origin!r}")
            assert "canary-text" not in answer.text, answer


def test_L11_own_origins(t):
    server = t.server()
    for name in ("127.0.0.1", "localhost"):
        eq(server.upgrade("/ws/s1", [f"Origin: {own(server, name)}"]), 101, name)
        eq(server.get("/sessions", Origin=own(server, name)).status, 200, name)
    client = server.client("/ws/s1", origin=own(server))
    eq(said(client.turn("say: hello")), ["hello"])


def test_L12_more_than_one_origin(t):
    server = t.server()
    good = f"Origin: {own(server)}"
    for headers in ([good, f"Origin: {EVIL}"], [f"Origin: {EVIL}", good],
                    [good, f"origin: {EVIL}"], [f"{good}\r\n {EVIL}"],
                    [f"{good}, {EVIL}"], [f"origin: {EVIL}"], [f"ORIGIN: {EVIL}"]):
        status = server.upgrade("/ws/s1", headers)
        assert status in (400, 403), f"{headers}: {status}"
    hooked(server)


def test_L13_no_origin_at_all(t):
    eq(t.server().upgrade("/ws/s1"), 101, "a client that is no browser")


def test_L14_dns_rebinding(t):
    server = t.server()
    port = server.port
    for host in (f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}",
                 f"localhost.evil.example:{port}", "192.168.0.1", f"0.0.0.0:{port}"):
        for path in ("/", "/sessions", "/sessions/s1", "/healthz"):
            status = server.get(path, Host=host).status
            assert status in (403, 421), f"{path} with Host {host}: {status}"
        for path in ("/", "/ws", "/ws/s1"):
            status = server.upgrade(path, host=host)
            assert status in (403, 421), f"upgrade {path} with Host {host}: {status}"
        origin = f"http://{host}"
        status = server.upgrade("/ws/s1", [f"Origin: {origin}"], host=host)
        assert status in (403, 421), f"upgrade with Host and Origin {host}: {status}"
    hooked(server)


def test_L15_odd_hosts(t):
    server = t.server()
    good = server.address
    requests = {
        "missing": "GET /sessions HTTP/1.1\r\n\r\n",
        "two": f"GET /sessions HTTP/1.1\r\nHost: {good}\r\nHost: evil.example\r\n\r\n",
        "two the other way": f"GET /sessions HTTP/1.1\r\nHost: evil\r\nHost: {good}\r\n\r\n",
        "a list": f"GET /sessions HTTP/1.1\r\nHost: {good}, evil\r\n\r\n",
        "empty": "GET /sessions HTTP/1.1\r\nHost:\r\n\r\n",
        "absolute form": f"GET http://evil/ HTTP/1.1\r\nHost: {good}\r\n\r\n",
        "absolute form of both": "GET http://evil/ HTTP/1.1\r\nHost: evil\r\n\r\n",
        "with a user": f"GET /sessions HTTP/1.1\r\nHost: {good}@evil\r\n\r\n",
        "with a path": f"GET /sessions HTTP/1.1\r\nHost: {good}/evil\r\n\r\n",
    }
    for what, request in requests.items():
        answer = server.raw(request.encode())
        assert answer.status in (400, 403), f"{what}: {answer}"


def test_L16_own_hosts(t):
    server = t.server()
    for host in (f"localhost:{server.port}", f"127.0.0.1:{server.port}", f"[::1]:{server.port}",
                 f"LOCALHOST:{server.port}"):
        eq(server.get("/sessions", Host=host).status, 200, host)


def test_L17_L18_preflights_from_elsewhere_learn_nothing(t):
    server = t.server()
    asks = {"Access-Control-Request-Method": "POST", "Origin": EVIL,
            "Access-Control-Request-Headers": "content-type",
            "Access-Control-Request-Private-Network": "true"}
    for path in ("/", "/sessions", "/sessions/s1", "/sessions/s1:switch", "/ws"):
        answer = server.http("OPTIONS", path, asks)
        found = {k.lower(): v for k, v in answer.headers.items()
                 if k.lower().startswith("access-control-")}
        eq(found, {}, f"CORS headers of {path}")
        answer = server.http("GET", path, {"Origin": EVIL})
        assert "access-control-allow-origin" not in answer.headers, path


def test_L19_L20_simple_requests_from_elsewhere_do_nothing(t):
    server = t.server(todos=True)
    session = server.http("POST", "/sessions").json["id"]
    bodies = [("text/plain", json.dumps({"cwd": "/"})), (None, None),
              ("application/x-www-form-urlencoded", "a=b"),
              ("multipart/form-data; boundary=x", "--x\r\n\r\n1\r\n--x--")]
    for kind, body in bodies:
        for origin in (EVIL, "null"):
            headers = {"Origin": origin, "Cookie": f"polyloop_{server.port}=x",
                       **({"Content-Type": kind} if kind else {})}
            for method, path in (("POST", "/sessions"), ("POST", f"/sessions/{session}:switch"),
                                 ("DELETE", f"/sessions/{session}")):
                answer = server.http(method, path, headers, body)
                assert answer.status in (403, 415), f"{method} {path} {kind}: {answer}"
                assert session not in answer.text, answer
    hooked(server, [session])


def test_L21_requests_that_browsers_call_cross_site(t):
    server = t.server(todos=True)
    session = server.http("POST", "/sessions").json["id"]
    cross = {"Sec-Fetch-Site": "cross-site"}
    for method, path in (("POST", "/sessions"), ("DELETE", f"/sessions/{session}"),
                         ("POST", f"/sessions/{session}:switch"), ("GET", "/sessions"),
                         ("GET", f"/sessions/{session}")):
        for mode in ("no-cors", "cors", "navigate"):
            answer = server.http(method, path, {**cross, "Sec-Fetch-Mode": mode})
            eq(answer.status, 403, f"{method} {path} {mode}")
    eq(server.upgrade("/ws/s1", ["Sec-Fetch-Site: cross-site"]), 403, "an upgrade")
    visit = {**cross, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    eq(server.get("/", **visit).status, 200, "a link to the page")
    hooked(server, [session])


def test_L22_no_state_change_by_get(t):
    server = t.server(todos=True)
    session = server.http("POST", "/sessions").json["id"]
    for path in (f"/sessions/{session}/delete", f"/sessions/{session}:delete",
                 f"/sessions/{session}:switch", "/sessions/new"):
        status = server.get(path).status
        assert status in (400, 404, 405), f"GET {path}: {status}"
    server.get(f"/sessions/{session}?method=DELETE")
    server.get(f"/sessions/{session}?_method=DELETE")
    override = {"X-HTTP-Method-Override": "DELETE"}
    server.http("GET", f"/sessions/{session}", override)
    status = server.http("POST", f"/sessions/{session}", override).status
    assert status in (404, 405), f"POST with an override: {status}"
    hooked(server, [session])


def test_allowed_origins_and_hosts(t):
    server = t.server(env={"ALLOWED_ORIGINS": "https://app.example,http://localhost:3000",
                           "ALLOWED_HOSTS": "agent.example"})
    for origin in ("https://app.example", "http://localhost:3000"):
        eq(server.upgrade("/ws/s1", [f"Origin: {origin}"]), 101, origin)
        answer = server.get("/sessions", Origin=origin)
        eq((answer.status, answer.headers["access-control-allow-origin"]), (200, origin), origin)
        assert "access-control-allow-credentials" not in answer.headers, answer.headers
    for origin in ("https://app.example:444", "http://app.example", "https://x.app.example",
                   "https://app.example.evil", "http://localhost:3001"):
        eq(server.upgrade("/ws/s1", [f"Origin: {origin}"]), 403, origin)
    eq(server.get("/sessions", Host="agent.example").status, 200, "an allowed host")
    eq(server.get("/sessions", Host="x.agent.example").status, 403, "a name below it")


def test_L27_headers_of_the_page(t):
    answer = t.server().get("/")
    policy = answer.headers["content-security-policy"]
    parts = {p.split()[0]: p.split()[1:] for p in policy.split(";") if p.strip()}
    scripts = parts.get("script-src", parts.get("default-src"))
    assert scripts is not None, f"no rule for scripts: {policy}"
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*"} & set(scripts), policy
    eq(parts.get("frame-ancestors"), ["'none'"], "frame-ancestors")
    eq(answer.headers["x-content-type-options"], "nosniff", "x-content-type-options")
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*\S", answer.text), "a script in the page"


def test_L31_ids_that_are_paths(t):
    server = t.server()
    client = server.client()
    client.say("run: touch a")
    client.until("approval_request")
    client.review("yes", requestId="../../etc/passwd")
    client.error()
    client.still_open()
    for path in ("/?session_id=../../etc/passwd", "/ws/..%2f..%2fetc%2fpasswd",
                 "/agentloop?session_id=..%2F..%2Fx"):
        eq(server.upgrade(path), 400, path)
    eq([p for p in t.dir.rglob("*.jsonl") if p.parent != t.store], [], "files outside the store")


def test_L32_approvals_stay_in_their_session(t):
    server = t.server()
    one, two = server.client("/ws/one"), server.client("/ws/two")
    ids = {}
    for name, client in (("one", one), ("two", two)):
        client.say(f"run: echo x >> {name}")
        ids[name] = client.until("approval_request")[-1]["id"]
    one.review("yes", requestId=ids["two"])
    one.error()
    one.review("yes", requestId=ids["one"])
    one.until_end()
    eq((t.work / "one").read_text(), "x\n", "its own ran")
    assert not (t.work / "two").exists(), "another session's command was approved"
    one.review("yes", requestId=ids["one"])
    one.error()
    eq((t.work / "one").read_text(), "x\n", "an old id runs nothing")
    two.review("yes", requestId=ids["two"])
    two.until_end()
    eq((t.work / "two").read_text(), "x\n", "the other is still pending and can be answered")
