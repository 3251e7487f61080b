"""Who may connect, with a token: the rows of the local-server checklist that then apply."""

from frames import said
from harness import eq, eventually

TOKEN = "correct-horse-battery-staple-42"
WRONG = "wrong-horse-battery-staple-4242"


def guarded(t, **env):
    server = t.server(env={"POLYLOOP_TOKEN": TOKEN, "LOG_LEVEL": "trace", **env})
    server.bearer = {"Authorization": f"Bearer {TOKEN}"}
    return server


def own(server):
    return f"Origin: http://127.0.0.1:{server.port}"


def hooked(server, sessions=()):
    listed = server.http("GET", "/sessions", server.bearer).json["sessions"]
    eq([s["id"] for s in listed], list(sessions), "sessions")


ROUTES = [("GET", "/sessions"), ("POST", "/sessions"), ("GET", "/sessions/s1"),
          ("DELETE", "/sessions/s1"), ("POST", "/sessions/s1:switch"), ("GET", "/ws/s1"),
          ("GET", "/nowhere")]


def test_L3_without_the_token_there_is_nothing(t):
    server = guarded(t)
    client = server.client("/ws/s1", additional_headers=server.bearer)
    client.turn("say: canary-text")
    for method, path in ROUTES:
        answer = server.http(method, path)
        eq(answer.status, 401, f"{method} {path}")
        assert "canary-text" not in answer.text and "s1" not in answer.text, answer
    hooked(server, ["s1"])


def test_L4_wrong_tokens(t):
    server = guarded(t)
    another = t.server(store=False, env={"POLYLOOP_TOKEN": WRONG})
    eq(another.http("GET", "/sessions", {"Authorization": f"Bearer {WRONG}"}).status, 200,
       "the token of another run, there")
    for value in ("Bearer wrong", "", "Bearer", "Bearer ", f"Bearer {'x' * 10_000}",
                  f"Bearer {WRONG}", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", TOKEN,
                  f"Basic {TOKEN}", f"Bearer {TOKEN.upper()}", f"Bearer {TOKEN} {TOKEN}"):
        answer = server.http("GET", "/sessions", {"Authorization": value})
        eq(answer.status, 401, f"Authorization: {value[:60]!r}")
    head = f"GET /sessions HTTP/1.1\r\nHost: {server.address}\r\nAuthorization: Bearer "
    answer = server.raw(f"{head}{TOKEN}\0\r\n\r\n".encode())
    assert answer.status in (400, 401), f"the token with a NUL: {answer}"
    for query in ("token=", "token=wrong", f"token={TOKEN}x", f"Token={TOKEN}"):
        eq(server.get(f"/sessions?{query}").status, 401, query)
    hooked(server)


def test_L4_wrong_tries_do_not_lock_the_right_one_out(t):
    server = guarded(t, LOG_LEVEL="error")
    for _ in range(1000):
        eq(server.http("GET", "/sessions", {"Authorization": f"Bearer {WRONG}"}).status, 401)
    eq(server.http("GET", "/sessions", server.bearer).status, 200, "the right one")


def test_L5_the_right_token(t):
    server = guarded(t)
    eq(server.http("GET", "/sessions", server.bearer).status, 200, "in a header")
    eq(server.http("GET", "/sessions", {"Authorization": f"bearer {TOKEN}"}).status, 200,
       "a scheme in small letters")
    eq(server.get(f"/sessions?token={TOKEN}").status, 200, "in the URL")
    eq(server.http("POST", "/sessions", server.bearer).status, 201, "POST")


def test_L6_no_socket_without_the_token(t):
    server = guarded(t)
    for path in ("/", "/ws", "/ws/s1", "/agentloop", "/agentloop/s1"):
        eq(server.upgrade(path), 401, path)
        eq(server.upgrade(path, [own(server)]), 401, f"{path} from its own page")
        eq(server.upgrade(path, [f"Authorization: Bearer {WRONG}"]), 401, f"{path}, wrong token")
    hooked(server)


def test_L7_L13_a_socket_with_the_token(t):
    server = guarded(t)
    header = f"Authorization: Bearer {TOKEN}"
    for path in ("/", "/ws", "/ws/s1", "/agentloop/s1"):
        eq(server.upgrade(path, [header]), 101, f"{path}, in a header")
        eq(server.upgrade(f"{path}?token={TOKEN}"), 101, f"{path}, in the URL")
        eq(server.upgrade(path, [header, own(server)]), 101, f"{path}, from its own page")
    client = server.client(f"/ws/s1?token={TOKEN}")
    eq(said(client.turn("say: hello")), ["hello"])


def test_L8_L9_L10_the_token_does_not_help_another_origin(t):
    server = guarded(t)
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{server.port + 1}",
                   "http://localhost.evil.example", f"http://127.0.0.1:{server.port}@evil.example"):
        for header in (f"Authorization: Bearer {TOKEN}", f"Cookie: {cookie_name(server)}={TOKEN}"):
            eq(server.upgrade("/ws/s1", [f"Origin: {origin}", header]), 403, origin)
        headers = {"Origin": origin, **server.bearer}
        eq(server.http("GET", "/sessions", headers).status, 403, f"GET from {origin}")
    hooked(server)


def test_L14_the_token_does_not_help_another_host(t):
    server = guarded(t)
    host = f"evil.example:{server.port}"
    for path in ("/", "/sessions"):
        status = server.http("GET", path, {**server.bearer, "Host": host}).status
        assert status in (403, 421), f"{path}: {status}"
    status = server.upgrade("/ws/s1", [f"Authorization: Bearer {TOKEN}"], host=host)
    assert status in (403, 421), f"upgrade: {status}"


def cookie_name(server):
    answer = server.get(f"/?token={TOKEN}")
    return answer.headers["set-cookie"].partition("=")[0]


def test_L19_L20_the_cookie_does_not_help_another_site(t):
    server = guarded(t)
    cookie = f"{cookie_name(server)}={TOKEN}"
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        headers = {"Origin": "https://evil.example", "Cookie": cookie}
        headers |= {"Content-Type": kind} if kind else {}
        answer = server.http("POST", "/sessions", headers, "{}" if kind else None)
        assert answer.status in (403, 415), f"{kind}: {answer}"
    hooked(server)


def test_L23_the_cookie(t):
    server = guarded(t)
    answer = server.get(f"/?token={TOKEN}")
    cookie, *attributes = [part.strip() for part in answer.headers["set-cookie"].split(";")]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(attributes), attributes
    assert not any(a.lower().startswith("domain") for a in attributes), attributes
    assert str(server.port) in cookie.partition("=")[0], f"its name carries the port: {cookie}"
    eq(server.http("GET", "/sessions", {"Cookie": cookie}).status, 200, "REST with the cookie")
    eq(server.http("GET", "/", {"Cookie": cookie}).status, 200, "the page with the cookie")
    eq(server.http("GET", "/sessions", {"Cookie": cookie + "x"}).status, 401, "a wrong cookie")
    header = f"Cookie: {cookie}"
    status = server.upgrade("/ws/s1", [header])
    assert status in (401, 403), f"a socket with the cookie alone: {status}"
    eq(server.upgrade("/ws/s1", [header, own(server)]), 101, "a socket of the page")


def test_L24_the_token_leaves_the_url(t):
    server = guarded(t)
    answer = server.get(f"/?token={TOKEN}")
    assert answer.status in (302, 303, 307), answer
    eq(answer.headers["location"], "/", "location")
    eq(answer.headers["referrer-policy"], "no-referrer", "referrer-policy")
    eq(answer.headers["cache-control"], "no-store", "cache-control")
    assert TOKEN not in answer.text, "the token is in the answer's body"
    client = server.client(f"/ws/s1?token={TOKEN}")
    client.turn("say: hello")
    server.get(f"/sessions?token={TOKEN}")
    server.get("/sessions?token=wrong-but-secret")
    client.close()
    log = server.stderr() + server.stdout()
    for secret in (TOKEN, "wrong-but-secret"):
        assert secret not in log, f"{secret} is in the log"


def test_without_the_token_the_page_asks_for_it(t):
    server = guarded(t)
    answer = server.get("/")
    eq(answer.status, 401, "status")
    assert "html" in answer.headers["content-type"] and "token" in answer.text.lower(), answer
    assert "content-security-policy" in answer.headers, answer.headers
    eq(server.get("/?token=wrong").status, 401, "a wrong token")
    assert "set-cookie" not in server.get("/?token=wrong").headers, "a cookie for a wrong token"
    eq(server.get("/healthz").status, 200, "/healthz needs none")


def test_L2_beyond_loopback_with_a_token(t):
    server = guarded(t, HOST="0.0.0.0")
    server.host = "127.0.0.1"
    host = {"Host": f"127.0.0.1:{server.port}"}
    eq(server.http("GET", "/sessions", {**server.bearer, **host}).status, 200, "status")
    eq(server.http("GET", "/sessions", host).status, 401, "without the token")


def test_who_answered_is_known_by_name(t):
    server = guarded(t)
    client = server.client(f"/ws/s1?token={TOKEN}&name=Ada")
    client.turn("say: hello")
    shown = lambda: "Ada" in server.http("GET", "/sessions/s1", server.bearer).text
    eventually(shown, "the name is in the session's record", secs=5)
