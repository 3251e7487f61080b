"""How providers are reached: by keys and accounts, and through proxies; none of which is shown."""

import base64
import http.client
import json
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from fakemodel import FakeModel
from harness import WAIT_SECS, eq
from sdk_types import ANTHROPIC, COMPLETIONS, GEMINI, RESPONSES
from talk import spoken, talks, the
from test_models import answer, bash, say, unasked
from test_terminal_pipe import certificate

HELLO = say("Hello.")


class Proxy:
    """A forward proxy that keeps every byte of what goes through it."""

    def __init__(self, test):
        self.seen = seen = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                target = urlsplit(self.path)
                one = {"url": self.path, "headers": dict(self.headers), "body": body, "answer": b""}
                seen.append(one)
                there = http.client.HTTPConnection(target.netloc, timeout=WAIT_SECS)
                path = target.path + (f"?{target.query}" if target.query else "")
                headers = {name: value for name, value in self.headers.items()
                           if not name.lower().startswith("proxy-")}
                there.request("POST", path, body, headers)
                answer = there.getresponse()
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers["content-type"])
                self.send_header("connection", "close")
                self.end_headers()
                while part := answer.read1(65536):
                    one["answer"] += part
                    self.wfile.write(part)
                there.close()
                self.close_connection = True

            def do_CONNECT(self):
                seen.append({"url": self.path, "headers": dict(self.headers)})
                host, _, port = self.path.rpartition(":")
                if host.endswith(".invalid"):
                    return self.send_error(502)
                self.send_response(200)
                self.end_headers()
                joined(self.connection, socket.create_connection((host, int(port))))
                self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        test.closing += [self.server.shutdown, self.server.server_close]


def joined(one, other):
    """What comes on either of two connections goes on to the other, until both have ended."""
    def copy(source, target):
        try:
            while part := source.recv(65536):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # Whoever has gone hears nothing more.
    back = threading.Thread(target=copy, args=(other, one), daemon=True)
    back.start()
    copy(one, other)
    back.join(WAIT_SECS)
    other.close()


class Encrypted:
    """A front that speaks TLS before a server that does not; counts its connections."""

    def __init__(self, test, port):
        self.connections = 0
        self.certificate, key = certificate(test.dir)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        front = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{front.getsockname()[1]}"
        test.closing.append(front.close)

        def one(stream):
            try:
                inside = context.wrap_socket(stream, server_side=True)
            except OSError:
                return  # It does not trust us.
            self.connections += 1
            joined(inside, socket.create_connection(("127.0.0.1", port)))

        def serve():
            while True:
                try:
                    stream, _ = front.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(stream,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()


# Google with a service account.

def account(t, model):
    """The file of an account, and its key."""
    made = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt",
                           "rsa_keygen_bits:2048"], capture_output=True, check=True,
                          timeout=WAIT_SECS)
    path = t.dir / "account.json"
    path.write_text(json.dumps({
        "type": "service_account", "project_id": "my-project", "private_key_id": "key-1",
        "private_key": made.stdout.decode(), "client_email": "me@my-project.example",
        "token_uri": f"{model.url}/token"}))
    return path, made.stdout


def verified(assertion, key, t):
    """The claims of a token request, whose signature must be the account's."""
    head, claims, signature = assertion.split(".")
    decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    files = {"key.pem": key, "signed": f"{head}.{claims}".encode(), "sig": decode(signature)}
    for name, content in files.items():
        (t.dir / name).write_bytes(content)
    public = subprocess.run(["openssl", "pkey", "-in", t.dir / "key.pem", "-pubout", "-out",
                             t.dir / "public.pem"], capture_output=True, timeout=WAIT_SECS)
    eq(public.returncode, 0, f"public key: {public}")
    done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", t.dir / "public.pem",
                           "-signature", t.dir / "sig", t.dir / "signed"], capture_output=True,
                          timeout=WAIT_SECS)
    eq(done.returncode, 0, f"signature: {done}")
    eq(json.loads(decode(head)), {"alg": "RS256", "kid": "key-1", "typ": "JWT"}, "header")
    return json.loads(decode(claims))


def by_account(s, *flags):
    model = FakeModel(None, *flags, test=s.t)
    path, key = account(s.t, model)
    env = {**GEMINI.settings(model.url), "GOOGLE_API_KEY": None, "LOG_LEVEL": "trace",
           "GOOGLE_APPLICATION_CREDENTIALS": path}
    return model, key, s.server(env=env)


def bearers(model):
    """What each request was: a token's, or the token it came with."""
    return [request["headers"].get("authorization", "for a token")
            for request in model.requests()]


@talks
def test_google_by_a_service_account(s):
    model, key, server = by_account(s)
    model.script([HELLO] * 4)
    clients = [s.unified(session=f"s-{number}") for number in range(4)]
    for client in clients:
        client.say("Hi")
    for client in clients:
        eq(spoken(client.until_end()), ["Hello."])
    eq(sorted(bearers(model)), ["Bearer fake-token-1"] * 4 + ["for a token"], "one token for all")
    for request in model.requests():
        if request["path"] != "/token":
            assert "x-goog-api-key" not in request["headers"], request["headers"]
            # Only an account that says who pays names somebody: others may not have the right.
            eq(request["headers"].get("x-goog-user-project"), None, "whose project")
    form = parse_qs(model.requests()[0]["body"])
    claims = verified(form["assertion"][0], key, s.t)
    eq((claims["iss"], claims["aud"]), ("me@my-project.example", f"{model.url}/token"), "claims")
    assert 0 < claims["exp"] - claims["iat"] <= 3600, claims
    assert "generative-language" in claims["scope"], claims
    nothing_shown(s, server, key, "fake-token-1", form["assertion"][0])


def nothing_shown(s, server, key, *secrets):
    """Neither said nor kept anywhere."""
    lines = key.decode().splitlines()[1:-1]
    frames = json.dumps([wire.steps for wire in s.wires])
    paths = [path for path in s.store.iterdir() if path.is_file()]
    files = "".join(path.read_text(errors="replace") for path in paths)
    for text in (frames, files, server.stdout(), server.stderr()):
        for secret in [lines[0], lines[-2], *secrets]:
            assert secret not in text, f"{secret[:12]}… is shown"
    assert "Hello." in frames and "Hello." in files, "the search would find it"


@talks
def test_an_old_token_is_made_anew(s):
    """Tokens are renewed a minute before their end, so these are old when they come."""
    model, _, _ = by_account(s, "--token-secs", 60)
    client = s.unified()
    for _ in range(2):
        model.script([HELLO])
        eq(spoken(client.turn("Hi")), ["Hello."])
    eq(bearers(model), ["for a token", "Bearer fake-token-1", "for a token", "Bearer fake-token-2"])


@talks
def test_a_token_that_was_taken_back_is_made_anew(s):
    model, _, _ = by_account(s)
    model.script([HELLO, {"http": {"status": 401}}, HELLO])
    client = s.unified()
    for _ in range(2):
        eq(spoken(client.turn("Hi")), ["Hello."])
    eq(bearers(model), ["for a token", "Bearer fake-token-1", "Bearer fake-token-1",
                        "for a token", "Bearer fake-token-2"])


@talks
def test_an_account_without_a_token_is_told_of(s):
    model, key, server = by_account(s)
    file = s.t.dir / "account.json"
    broken = json.loads(file.read_text())
    broken["token_uri"] = f"{model.url}/nowhere"
    file.write_text(json.dumps(broken))
    server.stop()
    server = s.server(env={**GEMINI.settings(model.url), "GOOGLE_API_KEY": None,
                           "GOOGLE_APPLICATION_CREDENTIALS": file, "MODEL_RETRIES": "0"})
    told = the(s.unified().turn("Hi"), "turn_failed")["error"]
    assert "GOOGLE_APPLICATION_CREDENTIALS" in told and "/nowhere" in told, told
    for name in ("private_key", "client_email"):
        file.write_text(json.dumps({**broken, name: None}))
        program = s.t.program("serve", "--port", "0", env={
            **GEMINI.settings(model.url), "GOOGLE_API_KEY": None,
            "GOOGLE_APPLICATION_CREDENTIALS": file})
        assert program.returncode != 0 and name in program.stderr, program.stderr
        assert key.decode().splitlines()[1] not in program.stderr, "the key is shown"


# Proxies.

@talks
def test_requests_go_through_a_proxy(s):
    proxy, model = Proxy(s.t), FakeModel(test=s.t)
    through = {"HTTP_PROXY": proxy.url}
    aside = ({**through, "NO_PROXY": "127.0.0.1"}, {**through, "NO_PROXY": "example.org,127.0.0.1"},
             {"HTTPS_PROXY": proxy.url}, {})
    for number, settings in enumerate((through, {"http_proxy": proxy.url}, *aside)):
        server = s.server(env=COMPLETIONS.settings(model.url, **settings))
        model.script([HELLO])
        eq(spoken(s.unified(session=f"s-{number}").turn("Hi")), ["Hello."], f"{settings}")
        wanted = [] if settings in aside else [f"{model.url}{COMPLETIONS.path}"]
        eq([one["url"] for one in proxy.seen], wanted, f"{settings}")
        proxy.seen.clear()
        server.stop()


@talks
def test_a_proxy_is_told_who_asks_and_nobody_else_is(s):
    proxy, model = Proxy(s.t), FakeModel(test=s.t)
    password = "pr0xy-pa55word"
    url = proxy.url.replace("//", f"//me:{password}@")
    server = s.server(env=RESPONSES.settings(model.url, HTTP_PROXY=url, LOG_LEVEL="trace"))
    model.script([HELLO])
    s.unified().turn("Hi")
    basic = "Basic " + base64.b64encode(f"me:{password}".encode()).decode()
    (seen,) = proxy.seen
    eq({name.lower(): value for name, value in seen["headers"].items()}["proxy-authorization"],
       basic, "who asks")
    shown = server.stdout() + server.stderr() + json.dumps([wire.steps for wire in s.wires])
    assert password not in shown and basic not in shown, "the password is shown"


@talks
def test_https_goes_through_its_own_proxy(s):
    proxy = Proxy(s.t)
    env = {**RESPONSES.env, "OPENAI_BASE_URL": "https://model.invalid/v1", "MODEL": "gpt-5",
           "HTTPS_PROXY": proxy.url, "MODEL_RETRIES": "0"}
    s.server(env=env)
    told = the(s.unified().turn("Hi"), "turn_failed")["error"]
    assert "model.invalid" in told, told
    eq([one["url"] for one in proxy.seen], ["model.invalid:443"], "what the proxy was asked for")
    assert RESPONSES.env["OPENAI_API_KEY"] not in json.dumps(proxy.seen), "the key is inside"


@talks
def test_a_provider_is_reached_by_tls_straight_and_through_a_tunnel(s):
    proxy, model = Proxy(s.t), FakeModel(test=s.t)
    front = Encrypted(s.t, model.port)
    trusting = {"SSL_CERT_FILE": front.certificate}
    for number, proxied in enumerate(({}, {"HTTPS_PROXY": proxy.url})):
        server = s.server(env=COMPLETIONS.settings(front.url, **trusting, **proxied))
        client = s.unified(session=f"s-{number}")
        for _ in range(2):
            model.script([HELLO])
            eq(spoken(client.turn("Hi")), ["Hello."], f"{proxied}")
        # Whoever asks again asks on the same connection.
        eq(front.connections, number + 1, "connections")
        wanted = [front.url.removeprefix("https://")] if proxied else []
        eq([one["url"] for one in proxy.seen], wanted, "what the proxy was asked for")
        server.stop()
    s.server(env=COMPLETIONS.settings(front.url, MODEL_RETRIES="0"))
    told = the(s.unified(session="s-untrusted").turn("Hi"), "turn_failed")["error"]
    assert "certificate" in told, told
    eq(len(model.requests()), 4, "nothing was sent to one whom nobody vouches for")


# Where keys come from.

@talks
def test_a_key_in_a_file_stays_out_of_the_environment(s):
    model = FakeModel(test=s.t)
    key = ANTHROPIC.env["ANTHROPIC_API_KEY"]
    lines = {**ANTHROPIC.settings(model.url), "PROVIDER": "anthropic"}
    file = "".join(f"{name}={value}\n" for name, value in lines.items())
    (Path(s.t.start) / ".env").write_text(file)
    server = s.server(env={"PROVIDER": None})
    model.script([answer(bash("env; cat /proc/$PPID/environ")), HELLO])
    session = unasked(server)
    frames = s.watcher(session).turn("Hi")
    eq(spoken(frames), ["Hello."])
    ANTHROPIC.check(model.requests()[0])
    environ = Path(f"/proc/{server.process.pid}/environ").read_bytes().decode()
    assert "WORKING_DIRECTORY=" in environ, environ
    assert key not in environ and "ANTHROPIC" not in environ, "the key is in the environment"
    result = the(frames, "tool_completed")
    assert "PATH=" in json.dumps(result), result
    assert key not in json.dumps(s.wires[0].steps), "a command sees the key"
