"""Keys, passwords and tokens reach their own provider and nobody else: no client, no log, no file,
no command, no page, whoever repeats them to us."""

import base64
import json
import secrets
import subprocess

from fakemodel import FakeModel
from harness import WAIT_SECS, eq
from talk import of, talks
from test_model_cuts import body_of
from test_model_faults import (APIS, FINE, KEY_NAMES, Everyone, Listener, access, constant, echo,
                               has)

# A part of a secret is a secret too: any of 15 characters has one of these in it.
PART_CHARS, STEP_CHARS = 12, 4
# Stands beside every secret that a provider repeats: where it can be seen, so could the secret.
CANARY = "canary-0123456789"


class Secrets:
    """Secrets of one test, each different, and where any part of them must not be."""

    def __init__(self, **named):
        self.named = named

    def __getitem__(self, name):
        return self.named[name]

    def leaks(self, text):
        return [name for name, secret in self.named.items()
                if any(part in text for part in parts(secret))]


def parts(secret):
    places = range(0, len(secret) - PART_CHARS + 1, STEP_CHARS)
    return [secret[at:at + PART_CHARS] for at in places]


def made():
    """The secrets of a server that knows every provider."""
    return Secrets(
        OPENAI_API_KEY=f"sk-proj-{secrets.token_hex(24)}",
        ANTHROPIC_API_KEY=f"sk-ant-api03-{secrets.token_hex(24)}",
        GOOGLE_API_KEY=f"AIza{secrets.token_hex(18)}",
        POLYLOOP_TOKEN=secrets.token_hex(24),
    )


def serve(s, api, url, known, **env):
    """A server that keeps all that it can keep, and logs all that it can log."""
    kept = {"TODOS_STORE_PATH": s.t.todos, "USER_MESSAGE_DB": s.t.dir / "messages.db",
            "LOG_LEVEL": "trace", "ALLOW_BYPASS": "true", "MODEL_RETRIES": 0}
    env = {**access(api, url), **known.named, **kept, **env}
    return s.server(env=env), env


def allowed(known):
    return {"Authorization": f"Bearer {known['POLYLOOP_TOKEN']}"}


def places(s, known, *more):
    """Everything that a server has shown or written, by its place."""
    found = {"stdout": s.last.stdout(), "stderr": s.last.stderr()}
    for wire in s.wires:
        told = "".join(step.get("out", "") for step in wire.steps)
        found[wire.dialect] = found.get(wire.dialect, "") + told
    for path in sorted(s.t.dir.rglob("*")):
        if path.is_file() and path not in more and not path.name.startswith("stderr-"):
            found[str(path.relative_to(s.t.dir))] = path.read_bytes().decode("latin-1")
    for page in ("/", "/sessions", "/sessions/s1", "/health"):
        answer = s.last.http("GET", page, allowed(known))
        found[page] = f"{answer.status} {answer.headers}" + answer.text
        found[page] += s.last.http("GET", f"{page}?token={known['POLYLOOP_TOKEN']}").text
    found["cmdline"] = open(f"/proc/{s.last.process.pid}/cmdline").read()
    return found


def holding(found, word):
    return {place for place, text in found.items() if word in text}


def nothing_leaks(found, known):
    leaks = {place: known.leaks(text) for place, text in found.items() if known.leaks(text)}
    shown = {place: excerpt(found[place], known) for place in leaks}
    assert not leaks, f"{leaks}: {shown}"


def excerpt(text, known):
    found = [text.find(part) for secret in known.named.values() for part in parts(secret)]
    place = min(at for at in found if at >= 0)
    return text[max(0, place - 150):place + 100]


def bypassed(everyone):
    everyone.unified.send("set_permission_mode", mode="bypass")
    everyone.unified.until("session_info")


COMMANDS = ("env", "cat /proc/self/environ", "printenv", "bash -c 'export -p; set'",
            f"echo {CANARY}")


def repeating(api, key):
    """Ways in which a provider repeats a key."""
    yield {"http": {"status": 401, "body": echo(api, 401, f"{CANARY} {key} is wrong, {key}!")}}
    yield {"http": {"status": 403, "body": f"<html>{CANARY} Bearer {key}</html>"}}
    yield {"http": {"status": 400, "body": echo(api, 400, f"{CANARY} unknown header {key}")}}
    yield {"http": {"status": 500, "body": {"error": key, "message": CANARY}}}
    yield {"http": {"status": 429, "body": echo(api, 429, f"{CANARY} {key} is too fast")}}
    yield {"http": {"status": 404, "body": {"detail": {"key": key, "what": CANARY}}}}
    yield {"blocks": [{"say": "Half of"}],
           "error": {"type": "overloaded", "message": f"{CANARY} {key}", "code": key}}


def repeating_at_the_end(api, key):
    """The same where what is told of it may be cut: through the key, which nobody would know
    again then."""
    for most in (200, 500):
        for missing in (1, len(key) // 2, len(key) - 20):
            text = f"{'x' * (most - len(key) + missing - 1)} {key}"
            yield {"http": {"status": 400, "body": echo(api, 400, text)}}
            yield {"http": {"status": 502, "body": text}}
            yield {"blocks": [], "error": {"type": "overloaded", "message": text}}
            # The same from a server that writes no UTF-8.
            page = base64.b64encode(b"\xe9" + text[1:].encode()).decode()
            yield {"http": {"status": 502}, "raw_base64": page}


def talked(api, everyone, model, replies):
    bypassed(everyone)
    calls = [{"call": "bash", "args": {"command": command}} for command in COMMANDS]
    model.script([{"blocks": [{"think": "Let me see."}, {"say": f"I will, {CANARY}."}, *calls],
                   "style": {"unknown_events": True}}, FINE])
    told = everyone.turn(f"show me, {CANARY}")
    eq(told.answer, "Fine.")
    outputs = [result["result"] for result in of(told.unified, "tool_completed")]
    for output in outputs[:4]:
        has(output, "PATH=")
    repeated(everyone, model, replies)
    model.script([FINE])
    eq(everyone.turn("go on").answer, "Fine.")


def repeated(everyone, model, replies):
    for reply in replies:
        model.script([reply])
        assert everyone.turn("go on").fault, "a fault"


def no_leak(s, api):
    known, model = made(), FakeModel(test=s.t)
    serve(s, api, model.url, known)
    everyone = Everyone(s, additional_headers=allowed(known))
    talked(api, everyone, model, repeating(api, known[KEY_NAMES[api]]))
    found = places(s, known)
    nothing_leaks(found, known)
    # The key was sent, and what stood beside it is in every place where a key could be.
    sent = json.dumps([request["headers"] for request in model.requests()])
    eq(known.leaks(sent), [KEY_NAMES[api]], "secrets that the provider was sent")
    for word, wanted in (
        (CANARY, {"unified", "agentloop", "loom", "chat", "/sessions/s1"}),
        ("listens on", {"stdout"}), ("DEBUG", {"stderr"}), ("<html", {"/"}),
    ):
        seen = holding(found, word)
        assert wanted <= seen, f"{word!r} is not in {wanted - seen}, but in {seen}"
    kept = {place.split("/")[0] for place in holding(found, CANARY)}
    assert {"store", "messages.db"} <= {place.removesuffix("-wal") for place in kept}, kept


@talks
def test_a_key_of_responses_is_nowhere(s):
    no_leak(s, "responses")


@talks
def test_a_key_of_chat_is_nowhere(s):
    no_leak(s, "chat")


@talks
def test_a_key_of_anthropic_is_nowhere(s):
    no_leak(s, "anthropic")


@talks
def test_a_key_of_google_is_nowhere(s):
    no_leak(s, "google")


@talks
def test_a_key_in_an_event_that_nobody_knows_is_not_shown(s):
    known = made()
    for api in APIS:
        model = FakeModel(test=s.t)
        s.server(env={**access(api, model.url), **known.named}, store=False)
        everyone = Everyone(s, additional_headers=allowed(known))
        body = body_of(model, api, {"blocks": [{"say": "Fine."}]})
        mystery = {"type": "mystery", "what": CANARY, "key": known[KEY_NAMES[api]]}
        model.script([{"raw": f"event: mystery\ndata: {json.dumps(mystery)}\n\n{body}"}])
        told = everyone.turn("go on")
        eq(told.answer, "Fine.")
        has(json.dumps(of(told.unified, "raw")), CANARY)
        nothing_leaks(places(s, known), known)


@talks
def test_no_part_of_a_key_is_left_where_a_text_is_cut(s):
    known = made()
    for api in APIS:
        model = FakeModel(test=s.t)
        s.server(env={**access(api, model.url), **known.named, "MODEL_RETRIES": 0}, store=False)
        everyone = Everyone(s, additional_headers=allowed(known))
        repeated(everyone, model, repeating_at_the_end(api, known[KEY_NAMES[api]]))
    nothing_leaks(places(s, known), known)


@talks
def test_a_leak_would_be_found(s):
    # The same search, for what a server does show: the model's own words.
    model, known = FakeModel(test=s.t), made()
    serve(s, "chat", model.url, known)
    everyone = Everyone(s, additional_headers=allowed(known))
    told = Secrets(TOLD=secrets.token_hex(24))
    model.script([{"http": {"status": 400, "body": echo("chat", 400, f"see {told['TOLD']}")}}])
    everyone.turn(f"a part of it is {told['TOLD'][5:20]}")
    found = places(s, known)
    leaked = {place for place, text in found.items() if told.leaks(text)}
    wanted = {"unified", "agentloop", "loom", "chat", "/sessions/s1"}
    assert wanted <= leaked, f"not found in {wanted - leaked}"
    assert any(place.startswith("store") for place in leaked), leaked
    try:
        nothing_leaks(found, told)
    except AssertionError:
        return
    raise AssertionError("the search finds nothing")


# What people are shown before anybody asks.


@talks
def test_the_doctor_shows_no_secret(s):
    known = made()
    if "doctor" not in s.t.program("--help").stdout:
        return
    proxy = f"http://somebody:{secrets.token_hex(12)}@127.0.0.1:9"
    shown = ""
    for api in APIS:
        key = known[KEY_NAMES[api]]
        repeats = Listener(s, constant("401 Unauthorized", "content-type: application/json",
                                       body=json.dumps(echo(api, 401, key)).encode()))
        env = {**access(api, f"http://{repeats.host}"), **known.named, "HTTPS_PROXY": proxy,
               "LOG_LEVEL": "trace"}
        for words in (["doctor"], ["doctor", "--json"], ["doctor", "--port", "0"]):
            ran = s.t.program(*words, env=env)
            has(ran.stdout, KEY_NAMES[api])
            shown += ran.stdout + ran.stderr
        assert repeats.asked, "the doctor asked nobody"
    eq(known.leaks(shown), [], "leaked")
    eq(Secrets(PROXY=proxy.partition("somebody:")[2].partition("@")[0]).leaks(shown), [])


@talks
def test_a_key_that_cannot_be_used_is_not_shown(s):
    known = made()
    for api in APIS:
        bad = f"{known[KEY_NAMES[api]]}\nwith a line\x07 too many"
        env = {**access(api, "http://127.0.0.1:9"), **known.named, KEY_NAMES[api]: bad}
        for words in (["serve", "--port", "0"], ["doctor"]):
            ran = s.t.program(*words, env=env)
            assert ran.returncode != 0, f"{words} accepts the key"
            eq(known.leaks(ran.stdout + ran.stderr), [], f"leaked by {words}")


# Service accounts.


def account(s, token_uri):
    """The file of a service account with a key of its own; the file, and the key's text."""
    command = ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
    key = subprocess.run(command, check=True, capture_output=True, text=True,
                         timeout=WAIT_SECS).stdout
    path = s.t.dir / "account.json"
    fields = {"type": "service_account", "project_id": "a-project", "private_key_id": "1",
              "private_key": key, "client_email": "a@b.example", "token_uri": token_uri}
    path.write_text(json.dumps(fields))
    return path, "".join(key.split("\n")[1:-2])


def as_account(s, model_url, path, known, **env):
    more = {"GOOGLE_API_KEY": None, "GOOGLE_APPLICATION_CREDENTIALS": path, **env}
    return serve(s, "google", model_url, known, **more)


def granting(token):
    body = json.dumps({"access_token": token, "expires_in": 3600, "token_type": "Bearer"})
    return constant("200 OK", "content-type: application/json", body=body.encode())


@talks
def test_an_account_s_key_and_token_are_nowhere(s):
    model, token = FakeModel(test=s.t), f"ya29.{secrets.token_hex(32)}"
    tokens = Listener(s, granting(token))
    path, key = account(s, f"http://{tokens.host}/token")
    known = Secrets(**made().named, KEY=key, TOKEN=token)
    del known.named["GOOGLE_API_KEY"]
    shown = Secrets(**{name: value for name, value in known.named.items()
                       if name not in ("KEY", "TOKEN")})
    as_account(s, model.url, path, shown)
    everyone = Everyone(s, additional_headers=allowed(known))
    # What becomes of a token that is refused is another matter.
    replies = [reply for reply in repeating("google", token)
               if reply.get("http", {}).get("status") not in (401, 403)]
    talked("google", everyone, model, replies)
    nothing_leaks(places(s, known, path), known)
    sent = json.dumps([request["headers"] for request in model.requests()])
    eq(known.leaks(sent), ["TOKEN"], "secrets that the provider was sent")
    sent = "".join(body.decode() for _, body in tokens.asked)
    eq(known.leaks(sent), [], "secrets that were sent for a token")


@talks
def test_a_token_that_is_no_longer_good_is_not_shown(s):
    model, token = FakeModel(test=s.t), f"ya29.{secrets.token_hex(32)}"
    tokens = Listener(s, granting(token))
    path, key = account(s, f"http://{tokens.host}/token")
    shown = Secrets(POLYLOOP_TOKEN=secrets.token_hex(24))
    known = Secrets(**shown.named, KEY=key, TOKEN=token)
    as_account(s, model.url, path, shown, MODEL_RETRIES=1)
    everyone = Everyone(s, additional_headers=allowed(known))
    body = echo("google", 401, f"{CANARY} The token {token} has expired.")
    model.script([{"http": {"status": 401, "body": body}, "repeat": 2}])
    has(everyone.turn("go on").fault, CANARY, "GOOGLE_APPLICATION_CREDENTIALS")
    eq(len(tokens.asked), 2, "a new token is fetched, once")
    nothing_leaks(places(s, known, path), known)


@talks
def test_an_assertion_that_is_repeated_is_not_shown(s):
    model = FakeModel(test=s.t)
    asked = []

    def repeat(out, _, body):
        signature = body.decode().rpartition(".")[2]
        asked.append(signature)
        refuse = constant("400 Bad Request", body=f"{CANARY} {signature}".encode())
        refuse(out)

    tokens = Listener(s, repeat)
    path, key = account(s, f"http://{tokens.host}/token")
    known = Secrets(POLYLOOP_TOKEN=secrets.token_hex(24))
    as_account(s, model.url, path, known)
    everyone = Everyone(s, additional_headers=allowed(known))
    has(everyone.turn("go on").fault, "GOOGLE_APPLICATION_CREDENTIALS", tokens.host)
    eq(len(asked), 1, "assertions")
    nothing_leaks(places(s, known, path), Secrets(KEY=key, ASSERTION=asked[0]))


# Proxies.


def by_proxy(s, known, handle, **env):
    proxy = Listener(s, handle)
    url = f"http://somebody:{known['PASSWORD']}@{proxy.host}"
    shown = Secrets(**{name: value for name, value in known.named.items()
                       if name not in ("PASSWORD", "CREDENTIALS")})
    serve(s, "anthropic", "http://model.example", shown, HTTP_PROXY=url, **env)
    return proxy, Everyone(s, additional_headers=allowed(known))


def with_password():
    password = secrets.token_hex(16)
    credentials = base64.b64encode(f"somebody:{password}".encode()).decode()
    return Secrets(**made().named, PASSWORD=password, CREDENTIALS=credentials)


@talks
def test_a_proxy_s_password_is_nowhere(s):
    known = with_password()
    message = "event: message_stop\ndata: {\"type\": \"message_stop\"}\n\n"
    start = {"type": "content_block_start", "index": 0,
             "content_block": {"type": "text", "text": f"Through, {CANARY}."}}
    body = f"event: content_block_start\ndata: {json.dumps(start)}\n\n{message}"
    proxy, everyone = by_proxy(
        s, known, constant("200 OK", "content-type: text/event-stream", body=body.encode()))
    eq(everyone.turn("go on").answer, f"Through, {CANARY}.")
    nothing_leaks(places(s, known), known)
    lines = "\n".join(proxy.asked[0][0])
    eq(sorted(known.leaks(lines)), ["ANTHROPIC_API_KEY", "CREDENTIALS"], "what the proxy sees")


@talks
def test_a_password_that_a_proxy_repeats_is_not_shown(s):
    known = with_password()
    body = f"{CANARY} {known['PASSWORD']} {known['CREDENTIALS']}".encode()
    _, everyone = by_proxy(s, known, constant("407 Proxy Authentication Required", body=body))
    has(everyone.turn("go on").fault, "407")
    nothing_leaks(places(s, known), known)
