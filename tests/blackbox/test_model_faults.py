"""What a model's provider does wrong ends in a retry, or in one plain message; the session stays
usable. Every fault is seen by a client of each dialect, and by the provider, who counts.

What the other tests of models share is here too: a server for each of the four interfaces, and
four clients of one session whose tales must agree."""

import base64
import email.utils
import gzip
import http.server
import json
import re
import socket
import threading
import time
from pathlib import Path

from fakemodel import FakeModel
from frames import item_text, items, said
from harness import eq, eventually
from loomtalk import all_events, reply, watch
from talk import of, spoken, talks

APIS = ("responses", "chat", "anthropic", "google")
MODELS = {"responses": "gpt-5", "chat": "gpt-4.1", "anthropic": "claude-sonnet-4-5",
          "google": "gemini-2.5-pro"}
# As faults name it: whose an OpenAI-like server elsewhere is cannot be known.
PROVIDERS = {"responses": "The model server", "chat": "The model server",
             "anthropic": "Anthropic", "google": "Google"}
KEY_NAMES = {"responses": "OPENAI_API_KEY", "chat": "OPENAI_API_KEY",
             "anthropic": "ANTHROPIC_API_KEY", "google": "GOOGLE_API_KEY"}
KEY = "key-of-a-test-0123456789"
FINE = {"blocks": [{"say": "Fine."}]}


def access(api, url):
    """The settings with which a server speaks one of the interfaces to a model at a URL."""
    name = {"responses": "openai", "chat": "openai"}.get(api, api)
    base = f"{url}/v1" if name == "openai" else url
    wire = {"OPENAI_WIRE_API": api} if name == "openai" else {}
    return {"PROVIDER": name, "MODEL": MODELS[api], KEY_NAMES[api]: KEY,
            f"{name.upper()}_BASE_URL": base, **wire}


def begin(s, api, url=None, store=True, **env):
    """A model, and a server that asks it, or whatever is at a URL."""
    model = FakeModel(test=s.t)
    s.server(env={**access(api, url or model.url), "ALLOW_BYPASS": "true", **env}, store=store)
    return model


def for_each_api(s, **env):
    """One interface after the other, each with a model and a server of its own."""
    for api in APIS:
        yield api, begin(s, api, store=False, **env)


class Everyone:
    """Four clients of one session, each of another dialect."""

    def __init__(self, s, session="s1", **options):
        self.unified = s.watcher(session, **options)
        self.agentloop = s.agentloop(session, **options)
        self.loom = watch(s, session, **options)
        self.chat = s.chat(f"/chat?session_id={session}", session, **options)
        for wire in (self.agentloop.ws, self.loom.wire, self.chat.wire):
            wire.attached()

    def turn(self, text):
        self.unified.say(text)
        return self.rest()

    def rest(self):
        """What all of them are told up to the end of the turn."""
        return Told(self.unified.until_end(), self.agentloop.until_end(), self.loom.until_end(),
                    self.chat.until_answer())


class Told:
    """A turn as four clients were told of it. Whatever is asked of it, they must agree."""

    def __init__(self, unified, agentloop, loom, chat):
        self.unified, self.agentloop, self.loom, self.chat = unified, agentloop, loom, chat

    @property
    def notices(self):
        told = [frame["text"] for frame in of(self.unified, "notice")]
        system = [item for item in items(self.agentloop, "message") if item["role"] == "system"]
        texts = [item_text(item).removeprefix("⚠️ ") for item in system]
        eq(texts, told, "notices to agentloop")
        values = [event["value"] for event in all_events(self.loom) if event["type"] == "custom"]
        texts = [value["notice"]["text"] for value in values if "notice" in value]
        eq(texts, told, "notices to Loom")
        thoughts = [frame["reasoning"] for frame in of(self.chat, "agent_thinking")]
        eq([text for text in thoughts if text in told], told, "notices to chat")
        return told

    @property
    def answer(self):
        """The last text of a turn that went well."""
        eq(self.unified[-1]["type"], "turn_completed", f"end of the turn, {self.unified[-1]}")
        answer = spoken(self.unified)[-1]
        eq(said(self.agentloop)[-1], answer, "answer to agentloop")
        eq(reply(self.loom), answer, "reply to Loom")
        eq((self.chat[-1]["type"], self.chat[-1].get("message")), ("agent_message", answer))
        return answer

    @property
    def fault(self):
        """Why the turn failed."""
        eq(self.unified[-1]["type"], "turn_failed", f"end of the turn, {self.unified[-1]}")
        fault = self.unified[-1]["error"]
        eq(self.agentloop[-2]["payload"]["details"]["error"], fault, "fault to agentloop")
        eq(self.loom[-1].get("error"), fault, "fault to Loom")
        eq(self.chat[-1].get("error"), fault, "fault to chat")
        return fault


def has(text, *words):
    for word in words:
        assert word in text, f"no {word!r} in {text!r}"


def failure(client, text="go on"):
    """Why a unified client's turn failed."""
    frames = client.turn(text)
    eq(frames[-1]["type"], "turn_failed", f"end of the turn, {frames[-1]}")
    return frames[-1]["error"]


def answer(client, text="go on"):
    frames = client.turn(text)
    eq(frames[-1]["type"], "turn_completed", f"end of the turn, {frames[-1]}")
    return spoken(frames)[-1]


def failing(word):
    """A reply that fails as the model server's script says it by a word."""
    status = {"context": 400, "quota": 429}.get(word)
    return {"http": {"status": status or int(word)}, "error": {"type": word}}


def waits_ms(model):
    """How long after one request the next came."""
    times = [request["at_ms"] for request in model.requests()]
    return [later - earlier for earlier, later in zip(times, times[1:])]


def told_wait_ms(notice):
    """The wait that a notice tells of, in which tenths of a second are cut off."""
    found = re.search(r"retrying in (\d+(?:\.\d)?) s \(\d+/\d+\)$", notice)
    assert found, notice
    return float(found[1]) * 1000


# A provider that wants time.

LATE_TRIES = 3
# The provider's wait, what the server adds to spread its sessions, and some time to get there.
SPREAD_MS, WAY_MS = 400, 500


def wait_is_kept(s, api, limited, wait_ms):
    """A busy machine may be late, but not every time; too early it never is."""
    model = begin(s, api, MODEL_RETRIES=4)
    everyone = Everyone(s)
    for _ in range(LATE_TRIES):
        model.clear_requests()
        model.script([limited, FINE])
        told = everyone.turn("go on")
        eq(told.answer, "Fine.")
        (notice,) = told.notices
        has(notice, PROVIDERS[api], "rate limiting", MODELS[api], "(1/4)")
        wait = told_wait_ms(notice)
        assert wait_ms - 100 <= wait <= wait_ms + SPREAD_MS, f"{wait} of {wait_ms}: {notice}"
        (took,) = waits_ms(model)
        assert took + 1 >= wait_ms, f"asked again after {took} of {wait_ms} ms"
        if took <= wait_ms + SPREAD_MS + WAY_MS:
            return
    raise AssertionError(f"asked again after {took} ms, when {wait_ms} were to wait")


@talks
def test_retry_after_in_seconds(s):
    wait_is_kept(s, "responses", {"http": {"status": 429, "headers": {"retry-after": "3"}}}, 3000)


@talks
def test_retry_after_in_milliseconds(s):
    headers = {"retry-after-ms": "1250", "retry-after": "9"}
    wait_is_kept(s, "anthropic", {"http": {"status": 429, "headers": headers}}, 1250)


@talks
def test_retry_after_in_words(s):
    error = {"message": "Rate limit reached. Please try again in 1.2s.", "type": "requests",
             "code": "rate_limit_exceeded"}
    wait_is_kept(s, "chat", {"http": {"status": 429, "body": {"error": error}}}, 1200)


@talks
def test_retry_after_in_an_error_s_details(s):
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}
    error = {"code": 429, "message": "Too many.", "status": "RESOURCE_EXHAUSTED",
             "details": [info]}
    wait_is_kept(s, "google", {"http": {"status": 429, "body": {"error": error}}}, 1500)


@talks
def test_retry_after_as_a_date(s):
    model = begin(s, "google")
    everyone = Everyone(s)
    # Without the detail in Google's own error, which would win.
    date = int(time.time()) + 4
    headers = {"retry-after": email.utils.formatdate(date, usegmt=True)}
    model.script([{"http": {"status": 429, "headers": headers, "body": "slow down"}}, FINE])
    everyone.unified.say("go on")
    asked = eventually(lambda: len(model.requests()) == 2 and time.time(), "a second request")
    assert date <= asked, f"asked again {date - asked} s before the time"
    told = everyone.rest()
    eq(told.answer, "Fine.")
    wait = told_wait_ms(told.notices[0])
    assert 1000 <= wait <= 4000 + SPREAD_MS, told.notices


@talks
def test_who_asks_for_a_day_is_not_waited_for(s):
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        model.script([{"http": {"status": 429, "headers": {"retry-after": "86400"}}}])
        if api == "google":
            # Its error has a wait of its own inside.
            model.clear_script()
            error = {"code": 429, "message": "Not today.", "status": "RESOURCE_EXHAUSTED"}
            model.script([{"http": {"status": 429, "headers": {"retry-after": "86400"},
                                    "body": {"error": error}}}])
        told = everyone.turn("go on")
        has(told.fault, PROVIDERS[api], "rate limiting", "429")
        eq(told.notices, [], "notices")
        eq(len(model.requests()), 1, f"requests to {api}")
        eq(everyone.turn("say: back").answer, "back")


@talks
def test_a_quota_that_is_used_up_is_no_matter_of_time(s):
    words = {"anthropic": "Your credit balance is too low."}
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        model.script([{**failing("quota"), "http": {"status": 402 if api == "anthropic" else 429}},
                      FINE])
        told = everyone.turn("go on")
        has(told.fault, PROVIDERS[api], "quota", "billing",
            words.get(api, "You exceeded your current quota"))
        eq(told.notices, [], "notices")
        eq(len(model.requests()), 1, f"requests to {api}")
        eq(everyone.turn("go on").answer, "Fine.")


# A provider in trouble.

TROUBLES = (500, 502, 503, 529)


@talks
def test_trouble_is_waited_out_but_not_for_ever(s):
    model = begin(s, "anthropic", MODEL_RETRIES=2)
    everyone = Everyone(s)
    model.script([{"http": {"status": 529}, "repeat": 3}])
    told = everyone.turn("go on")
    has(told.fault, "Anthropic", "529", "overloaded", "(after 2 retries)")
    first, second = told.notices
    has(first, "Anthropic", "(1/2)")
    has(second, "Anthropic", "(2/2)")
    waits = waits_ms(model)
    eq(len(waits), 2, "requests after the first")
    # Half of a second, then half of two: what is added to it is chance.
    for least, wait, notice in zip((500, 1000), waits, told.notices):
        assert least <= told_wait_ms(notice) <= 3 * least, notice
        assert told_wait_ms(notice) <= wait, f"{wait} ms: {notice}"
    eq(everyone.turn("say: back").answer, "back")


@talks
def test_every_status_of_a_server_in_trouble(s):
    asked = []
    for api, model in for_each_api(s, MODEL_RETRIES=1):
        # All sessions at once; whichever gets which, all of them are refused.
        model.script([{"http": {"status": status}} for status in TROUBLES * 2])
        clients = [s.watcher(f"s{status}") for status in TROUBLES]
        for client in clients:
            client.say("go on")
        asked.append((api, model, clients))
    for api, model, clients in asked:
        for client in clients:
            frames = client.until_end()
            (notice,) = of(frames, "notice")
            has(notice["text"], PROVIDERS[api], "retrying in", "(1/1)")
            has(frames[-1]["error"], PROVIDERS[api], "(after 1 retry)")
        eq((len(model.requests()), model.state()["queued"]), (8, 0), f"requests to {api}")


@talks
def test_every_call_of_a_turn_may_be_tried_again(s):
    model = begin(s, "chat", MODEL_RETRIES=1)
    everyone = Everyone(s)
    call = {"blocks": [{"call": "bash", "args": {"command": "ls"}}]}
    model.script([failing("500"), call, failing("500"), FINE])
    told = everyone.turn("go on")
    eq(told.answer, "Fine.")
    eq(len(told.notices), 2, "notices")
    eq(len(model.requests()), 4, "requests")


SESSIONS = 40
WINDOW_MS, TOGETHER_MAX = 10, 5


def together(times):
    """The most that fall into one window."""
    return max(sum(start <= time < start + WINDOW_MS for time in times) for start in times)


@talks
def test_many_sessions_do_not_come_back_at_once(s):
    model = begin(s, "anthropic", store=False, MODEL_RETRIES=1)
    clients = [s.watcher(f"s{n}") for n in range(SESSIONS)]
    for _ in range(LATE_TRIES):
        model.clear_requests()
        for n, client in enumerate(clients):
            client.say(f"say: session {n};\nfail: 500")
        for client in clients:
            eq(client.until_end()[-1]["type"], "turn_failed")
        asked = {}
        for request in model.requests():
            text = request["body"]["messages"][-1]["content"][-1]["text"]
            asked.setdefault(text, []).append(request["at_ms"])
        eq({len(times) for times in asked.values()}, {2}, "requests of a session")
        eq(len(asked), SESSIONS, "sessions that asked")
        # When they came, and how long each had waited, wherever it began.
        crowds = [together([second for _, second in asked.values()]),
                  together([second - first for first, second in asked.values()])]
        if max(crowds) <= TOGETHER_MAX:
            return
    raise AssertionError(f"{crowds} of {SESSIONS} sessions came back within {WINDOW_MS} ms")


# A provider that will not have the request.


def echo(api, status, message):
    """An error in the provider's own form."""
    if api == "anthropic":
        return {"type": "error", "error": {"type": "authentication_error", "message": message}}
    if api == "google":
        return {"error": {"code": status, "message": message, "status": "UNAUTHENTICATED"}}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None,
                      "code": "invalid_api_key"}}


@talks
def test_a_refused_key_is_named_but_not_shown(s):
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        for status in (401, 403):
            model.clear_requests()
            body = echo(api, status, f"Incorrect API key provided: {KEY}. {KEY} is unknown.")
            model.script([{"http": {"status": status, "body": body}}])
            told = everyone.turn("go on")
            has(told.fault, PROVIDERS[api], str(status), "key", KEY_NAMES[api], "Incorrect API")
            eq(told.notices, [], "notices")
            eq(len(model.requests()), 1, f"requests to {api}")
        eq(everyone.turn("say: back").answer, "back")
        for wire in s.wires:
            assert KEY not in "".join(step.get("out", "") for step in wire.steps), "a key"
        assert KEY not in s.last.stderr(), "a key in the log"


@talks
def test_google_s_way_to_refuse_a_key(s):
    model = begin(s, "google")
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    error = {"code": 400, "message": f"API key not valid: {KEY}", "status": "INVALID_ARGUMENT",
             "details": [info]}
    model.script([{"http": {"status": 400, "body": {"error": error}}}])
    told = Everyone(s).turn("go on")
    has(told.fault, "Google did not accept the key", "check GOOGLE_API_KEY", "***")
    assert KEY not in told.fault, told.fault
    eq(len(model.requests()), 1, "requests")


@talks
def test_what_would_fail_again_is_not_asked_again(s):
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        base = access(api, model.url)[f"{access(api, '')['PROVIDER'].upper()}_BASE_URL"]
        wanted = {404: (MODELS[api], "MODEL", base), 400: ("The request is not valid.",),
                  413: ("The request is too large.",), 422: ()}
        for status, words in wanted.items():
            model.clear_requests()
            model.script([{"http": {"status": status}}])
            told = everyone.turn("go on")
            has(told.fault, PROVIDERS[api], str(status), *words)
            eq(told.notices, [], "notices")
            eq(len(model.requests()), 1, f"requests to {api} after {status}")
        eq(everyone.turn("say: back").answer, "back")


# A conversation that does not fit.

LONG = {"blocks": [{"say": "a long answer, " * 100}]}


@talks
def test_a_conversation_that_is_too_long_is_summarised_once(s):
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        model.script([LONG, failing("context"), {"blocks": [{"say": "They talked."}]}, FINE])
        everyone.turn("first")
        told = everyone.turn("second")
        eq(told.answer, "Fine.")
        (notice,) = told.notices
        has(notice, "too long", MODELS[api], "summaris")
        eq(len(of(told.unified, "context_compaction")), 1, "compactions")
        requests = [str(request["body"]) for request in model.requests()]
        eq(len(requests), 4, f"requests to {api}")
        has(requests[3], "They talked.", "second")
        assert "a long answer" not in requests[3], "what was summarised is asked again"


@talks
def test_one_that_is_still_too_long_is_said_so(s):
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        model.script([LONG, failing("context"), {"blocks": [{"say": "They talked."}]},
                      failing("context"), FINE])
        everyone.turn("first")
        told = everyone.turn("second")
        has(told.fault, "too long", MODELS[api])
        eq(len(model.requests()), 4, f"requests to {api}")
        eq(everyone.turn("short").answer, "Fine.")
        # What to do about it is a part of the message.
        has(told.fault, "send a shorter one")


WINDOW_CHARS = 40_000


def window(out, _, body):
    """A small model of OpenAI's: what is too long for it, it refuses; it talks or summarises."""
    messages = json.loads(body)["messages"]
    if sum(len(str(message.get("content"))) for message in messages) > WINDOW_CHARS:
        error = {"message": "Your input exceeds the context window of this model.",
                 "type": "invalid_request_error", "code": "context_length_exceeded"}
        refuse = constant("400 Bad Request", "content-type: application/json",
                          body=json.dumps({"error": error}).encode())
        return refuse(out)
    said = "They talked." if "Summarise" in str(messages[-1]["content"]) else "Fine."
    choice = {"index": 0, "delta": {"content": said}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [json.dumps({"id": "x", "choices": [choice]}) for choice in (choice, last)]
    body = "".join(f"data: {data}\n\n" for data in [*chunks, "[DONE]"]).encode()
    return constant("200 OK", "content-type: text/event-stream", body=body)(out)


@talks
def test_a_conversation_that_grows_beyond_the_window(s):
    model = Listener(s, window)
    begin(s, "chat", f"http://{model.host}", store=False)
    everyone = Everyone(s)
    notices = 0
    for _ in range(6):
        told = everyone.turn("a long message " * 1000)
        eq(told.answer, "Fine.")
        notices += len(told.notices)
    assert notices, "it never grew that much"


@talks
def test_after_a_message_beyond_the_window_a_short_one_works(s):
    model = Listener(s, window)
    begin(s, "chat", f"http://{model.host}", store=False)
    for session, earlier in (("s1", []), ("s2", ["hello", "a long message " * 1000])):
        everyone = Everyone(s, session)
        for text in earlier:
            eq(everyone.turn(text).answer, "Fine.")
        told = everyone.turn("a very long message " * 5000)
        has(told.fault, "too long", MODELS["chat"], "send a shorter one")
        eq(everyone.turn("short").answer, "Fine.")


# A provider that refuses to answer.


@talks
def test_a_refusal_is_no_empty_answer(s):
    google = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
              "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9}}
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        refusals = [{"blocks": [{"say": "I will not."}], "stop": "refusal"},
                    {"blocks": [{"say": "So far"}], "stop": "content_filter"},
                    {"stop": "content_filter"}]
        if api == "google":
            refusals.append({"raw": f"data: {json.dumps(google)}\n\n"})
        for refusal in refusals:
            model.clear_requests()
            model.script([refusal])
            told = everyone.turn("go on")
            has(told.fault, PROVIDERS[api], "refused to answer")
            eq(told.notices, [], "notices")
            eq(len(model.requests()), 1, f"requests to {api}")
            text = "".join(block["say"] for block in refusal.get("blocks", []))
            eq("".join(spoken(told.unified)), text, "what was shown before")
        eq(everyone.turn("say: back").answer, "back")


@talks
def test_a_prompt_that_is_refused(s):
    model = begin(s, "chat")
    error = {"message": "The response was filtered.", "type": None, "code": "content_filter"}
    model.script([{"http": {"status": 400, "body": {"error": error}}}])
    told = Everyone(s).turn("go on")
    has(told.fault, "The model server refused", "The response was filtered.")
    eq(len(model.requests()), 1, "requests")


# Nobody there.


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def unreachable(s, api, url, host, **env):
    begin(s, api, url, MODEL_RETRIES=1, **env)
    told = Everyone(s).turn("go on")
    has(told.fault, host, "cannot be reached", "(after 1 retry)")
    (notice,) = told.notices
    has(notice, host, "retrying in", "(1/1)")
    return told.fault


@talks
def test_a_closed_port(s):
    host = f"127.0.0.1:{free_port()}"
    has(unreachable(s, "responses", f"http://{host}", host), "refused")


@talks
def test_a_name_that_nobody_has(s):
    host = "no-such-host.invalid"
    has(unreachable(s, "chat", f"http://{host}", host), "dns")


@talks
def test_https_to_who_speaks_none(s):
    host = FakeModel(test=s.t).url.removeprefix("http://")
    unreachable(s, "anthropic", f"https://{host}", host)


class Listener:
    """A server of a test's own, which answers every request with the same bytes."""

    def __init__(self, s, handle):
        self.asked = []
        listener = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_one_request(self):
                lines = []
                while (line := self.rfile.readline()) not in (b"\r\n", b"\n", b""):
                    lines.append(line.decode("latin-1").strip())
                length = [int(line.split(":")[1]) for line in lines
                          if line.lower().startswith("content-length:")]
                body = self.rfile.read(length[0]) if length else b""
                self.close_connection = True
                if lines:
                    listener.asked.append((lines, body))
                    handle(self.wfile, lines, body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # Who goes in the middle is no error.
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        s.t.closing.append(self._close)

    def _close(self):
        self.server.shutdown()
        self.server.server_close()


def constant(status, *headers, body=b""):
    head = [f"HTTP/1.1 {status}", *headers, f"content-length: {len(body)}", "connection: close"]
    answer = "\r\n".join(head).encode() + b"\r\n\r\n" + body
    return lambda out, *_: out.write(answer)


PASSWORD = "proxy-password-0123456789"
WANTS_TO_KNOW = constant("407 Proxy Authentication Required",
                         'proxy-authenticate: Basic realm="x"', body=b"who are you?")


@talks
def test_a_proxy_that_does_not_know_us(s):
    proxy = Listener(s, WANTS_TO_KNOW)
    url = f"http://somebody:{PASSWORD}@{proxy.host}"
    fault = unreachable(s, "google", "https://model.example", "model.example", HTTPS_PROXY=url)
    has(fault, "proxy")
    assert PASSWORD not in fault, fault
    eq([asked[0][0] for asked in proxy.asked], ["CONNECT model.example:443 HTTP/1.1"] * 2)


@talks
def test_a_proxy_that_does_not_know_us_on_the_way_to_plain_http(s):
    proxy = Listener(s, WANTS_TO_KNOW)
    url = f"http://somebody:{PASSWORD}@{proxy.host}"
    begin(s, "chat", "http://model.example", MODEL_RETRIES=1, HTTP_PROXY=url)
    fault = Everyone(s).turn("go on").fault
    has(fault, "407", "proxy")
    assert PASSWORD not in fault, fault
    assert proxy.host in fault or "model.example" in fault, f"no host is named: {fault}"


# Answers that are none.


@talks
def test_a_page_instead_of_an_answer(s):
    page = "<html><head><title>Welcome</title></head><body>It works</body></html>"
    packed = base64.b64encode(gzip.compress(page.encode())).decode()
    for api, model in for_each_api(s, MODEL_RETRIES=0):
        everyone = Everyone(s)
        for page_instead, words in (
            ({"raw": page, "content_type": "text/html"}, ("text/html", "base URL", model.url)),
            ({"raw": "{}", "content_type": "application/json"}, ("application/json", model.url)),
            ({"raw_base64": packed, "http": {"headers": {"content-encoding": "gzip"}}},
             ("gzip", model.url)),
            ({"raw_base64": packed}, ("broke off",)),
            ({"http": {"status": 502, "body": page}}, ("502", "It works")),
            ({"disconnect": True}, (model.url.removeprefix("http://"), "cannot be reached")),
        ):
            model.script([page_instead])
            fault = everyone.turn("go on").fault
            has(fault, *words)
            assert len(fault) < 500 and "<" not in fault, f"no short text: {fault}"
        eq(everyone.turn("say: back").answer, "back")


@talks
def test_a_redirect_is_not_followed(s):
    other = Listener(s, constant("200 OK"))
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        for status in (301, 302, 307, 308):
            model.clear_requests()
            headers = {"location": f"http://{other.host}/v1"}
            model.script([{"http": {"status": status, "headers": headers, "body": ""}}])
            has(everyone.turn("go on").fault, PROVIDERS[api], str(status), "redirect", model.url)
            eq(len(model.requests()), 1, f"requests to {api}")
    eq(other.asked, [], "what somebody else was asked")


# Answers without end.

RSS_RISE_KIB_MAX = 32 * 1024
ENDLESS_BYTES = 200 * 1024 * 1024
MIB = 1024 * 1024


def memory_kib(server, name="VmRSS"):
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status)[1])


def is_unpacking(server):
    """Whether it still unpacks its vocabulary, which takes memory of its own."""
    for name in Path(f"/proc/{server.process.pid}/task").glob("*/comm"):
        try:
            if name.read_text().strip() == "vocabulary":
                return True
        except OSError:
            pass  # That thread has just ended.
    return False


def endless(s, api, head, piece, words, first=b"", most=ENDLESS_BYTES, peak=True):
    """A server that sends 200 MB, or as much of it as anybody takes."""
    sent = []

    def handle(out, *_):
        out.write(head.encode() + b"\r\nconnection: close\r\n\r\n" + first)
        count = 0
        try:
            while count < most:
                out.write(piece)
                count += len(piece)
        finally:
            sent.append(count)

    listener = Listener(s, handle)
    begin(s, api, f"http://{listener.host}", MODEL_RETRIES=0)
    client = s.watcher()
    name = "VmHWM" if peak else "VmRSS"
    eventually(lambda: not is_unpacking(s.last), "the vocabulary is unpacked")
    before = memory_kib(s.last, name)
    has(failure(client), *words)
    rise = memory_kib(s.last, name) - before
    assert rise < RSS_RISE_KIB_MAX, f"memory ({name}) rose by {rise} KiB"
    client.still_open()
    eventually(lambda: sent, "the connection ended")
    return sent[0]


EVENTS = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream"


@talks
def test_a_line_without_end(s):
    taken = endless(s, "anthropic", EVENTS, b"x" * 65536, ("event without end", "Anthropic"),
                    first=b"data: ")
    assert taken < ENDLESS_BYTES, "all of it was read"


@talks
def test_comments_without_end(s):
    # They are nothing, however many: when the answer ends there was none.
    endless(s, "google", EVENTS, b": comment\n" * 6553, ("broke off",), most=64 * MIB)


@talks
def test_a_page_without_end(s):
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/html"
    taken = endless(s, "responses", head, b"<p>more</p>\n" * 5000, ("text/html",))
    assert taken < ENDLESS_BYTES, "all of it was read"


@talks
def test_an_error_without_end(s):
    head = "HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain"
    taken = endless(s, "chat", head, b"sorry " * 10000, ("500", "sorry"))
    assert taken < ENDLESS_BYTES, "all of it was read"


@talks
def test_text_without_end(s):
    delta = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % (b"word " * 200)
    # What is taken of it is shown and kept, so that only what is left of it then is counted.
    taken = endless(s, "chat", EVENTS, delta * 50, ("more than", "bytes"), peak=False)
    assert taken < ENDLESS_BYTES, "all of it was read"
