"""Which model a session has, whose it is, and what it is like."""

import json

from fakemodel import FakeModel
from harness import eq
from sdk_types import ANTHROPIC, COMPLETIONS, GEMINI, RESPONSES
from talk import of, spoken, talks, the
from test_models import DONE, SAY, THINK, answer, bash, opaque, say, unasked, usage

KEYS = {**RESPONSES.env, **ANTHROPIC.env, **GEMINI.env, "PROVIDER": None, "OPENAI_WIRE_API": None}


def places(model):
    """Every provider is there."""
    return {**RESPONSES.at(model.url), **ANTHROPIC.at(model.url), **GEMINI.at(model.url)}


def reply(**more):
    return {"blocks": [{"say": "Hello."}], **more}


def asked(model):
    """Whom the last request went to: the kind of path, and the model."""
    request = model.requests()[-1]
    if ":" in (last := request["path"].split("/")[-1]):
        return "google", last.split(":")[0]
    kinds = {"responses": "responses", "completions": "chat", "messages": "anthropic"}
    return kinds[last], request["body"]["model"]


# Settings, and whom a turn then asks.
CHOICES = [
    ({}, ("responses", "codex-mini-latest")),
    ({"MODEL": "gpt-5"}, ("responses", "gpt-5")),
    ({"MODEL": "gpt-5", "OPENAI_WIRE_API": "chat"}, ("chat", "gpt-5")),
    ({"MODEL": "claude-sonnet-4-5"}, ("anthropic", "claude-sonnet-4-5")),
    ({"MODEL": "eu.anthropic.some-model"}, ("anthropic", "eu.anthropic.some-model")),
    ({"MODEL": "gemini-2.5-pro"}, ("google", "gemini-2.5-pro")),
    # Whoever names the provider knows better than the name.
    ({"PROVIDER": "openai", "MODEL": "claude-sonnet-4-5"}, ("responses", "claude-sonnet-4-5")),
    ({"PROVIDER": "Anthropic", "MODEL": "my-own"}, ("anthropic", "my-own")),
    ({"PROVIDER": "google", "MODEL": "my-own"}, ("google", "my-own")),
]


@talks
def test_the_provider_is_told_from_the_model_unless_it_is_named(s):
    model = FakeModel(test=s.t)
    for number, (settings, want) in enumerate(CHOICES):
        server = s.server(env={**KEYS, **places(model), **settings})
        model.script([reply()])
        client = s.unified(session=f"s-{number}")
        eq(spoken(client.turn("Hi")), ["Hello."], f"{settings}")
        eq(asked(model), want, f"{settings}")
        server.stop()


@talks
def test_every_provider_has_a_model_of_its_own(s):
    model = FakeModel(test=s.t)
    for provider, kind in (("openai", "responses"), ("anthropic", "anthropic"),
                           ("google", "google")):
        server = s.server(env={**KEYS, **places(model), "PROVIDER": provider})
        model.script([reply()])
        client = s.unified(session=f"s-{provider}")
        name = client.start()["model"]
        eq(spoken(client.turn("Hi")), ["Hello."], provider)
        eq(asked(model), (kind, name), provider)
        server.stop()


def window(frames):
    return the(frames, "token_usage")["context_window"]


@talks
def test_a_session_changes_its_model(s):
    """Also to one of another provider whose key is there, and for this session alone."""
    model = FakeModel(test=s.t)
    s.server(env={**KEYS, **places(model), "MODEL": "gpt-5"})
    client = s.unified()
    model.script([reply()])
    eq(window(client.turn("Hi")), 400_000, "window of gpt-5")
    for name, whose, tokens in (("gpt-4.1", "responses", 1_047_576),
                                ("claude-sonnet-4-5", "anthropic", 200_000),
                                ("gemini-2.5-pro", "google", 1_048_576),
                                ("gpt-99-unheard-of", "responses", 128_000),
                                ("claude-unheard-of", "anthropic", 200_000),
                                ("gemini-unheard-of", "google", 1_000_000)):
        client.send("set_model", model=name)
        model.script([reply()])
        eq(window(client.turn("Hi")), tokens, f"window of {name}")
        eq(asked(model), (whose, name), "asked")
    client.send("get_context")
    eq(client.until("context_info")[-1]["max_tokens"], 1_000_000, "window of the session")
    model.script([reply()])
    s.unified(session="s2").turn("Hi")
    eq(asked(model), ("responses", "gpt-5"), "another session")


@talks
def test_a_model_whose_key_is_missing_is_refused_by_its_name(s):
    model = FakeModel(test=s.t)
    server = s.server(env=ANTHROPIC.settings(model.url, PROVIDER=None))
    client = s.unified()
    model.script([reply()] * 2)
    client.turn("Hi")
    for name, variable in (("gemini-2.5-pro", "GOOGLE_API_KEY"), ("gpt-5", "OPENAI_API_KEY")):
        client.send("set_model", model=name)
        told = client.error()
        assert variable in told and name in told, told
        answer = server.http("POST", "/sessions", body=json.dumps({"model": name}))
        eq(answer.status, 400, f"POST /sessions: {answer}")
        assert variable in answer.json["error"], answer
    for name in ("", "two words", "x" * 300, "offline"):
        client.send("set_model", model=name)
        client.error()
        answer = server.http("POST", "/sessions", body=json.dumps({"model": name}))
        eq(answer.status, 400, f"POST /sessions {name!r}: {answer}")
    eq(spoken(client.turn("Hi")), ["Hello."], "the session has the model it had")
    eq(asked(model), ("anthropic", ANTHROPIC.model), "asked")


@talks
def test_a_session_is_made_with_a_model(s):
    model = FakeModel(test=s.t)
    server = s.server(env={**KEYS, **places(model), "MODEL": "gpt-5"})
    for name, whose in (("claude-sonnet-4-5", "anthropic"), ("gpt-99-unheard-of", "responses")):
        made = server.http("POST", "/sessions", body=json.dumps({"model": name}))
        eq(made.status, 201, f"{made}")
        client = s.unified(session=made.json["id"])
        eq(client.start()["model"], name, "model")
        model.script([reply()])
        client.turn("Hi")
        eq(asked(model), (whose, name), "asked")


PRICED = {"match": "gpt-5", "context": 12_345, "input_usd": 1, "output_usd": 10, "cached_usd": 0.1}
HOME = {"match": "home-*", "context": 4_096, "output": 1_000}
# 600,000 at a dollar, 400,000 at ten cents, 2,000 at ten dollars a million.
USED, COST_USD = usage(1_000_000, 2_000, 400_000), 0.66


def with_file(s, model):
    rows = s.t.dir / "models.json"
    rows.write_text(json.dumps([PRICED, HOME]))
    # What they say was used is no window's.
    settings = RESPONSES.settings(model.url, MODELS_FILE=rows, CONTEXT_STRATEGY="dummy")
    return s.server(env=settings)


@talks
def test_a_file_says_what_a_model_is_like(s):
    model = FakeModel(test=s.t)
    server = with_file(s, model)
    client = s.unified()
    model.script([reply(usage=USED)])
    eq(window(client.turn("Hi")), 12_345, "window")
    costs = [event["event"]["usage"]["cost_micros"] for event in server.events()
             if event.get("event", {}).get("usage")]
    eq(set(costs), {COST_USD * 1_000_000}, "cost in the file")
    client.send("set_model", model="home-made")
    model.script([reply()])
    eq(window(client.turn("Hi")), 4_096, "window")


@talks
def test_what_a_turn_costs_is_shown_where_it_is_known(s):
    model = FakeModel(test=s.t)
    with_file(s, model)
    client = s.unified()
    model.script([reply(usage=USED)])
    frames = client.turn("Hi")
    for kind in ("token_usage", "turn_completed"):
        eq(the(frames, kind)["usage"].get("cost_usd"), COST_USD, f"cost in {kind}")
    client.send("set_model", model="home-made")
    model.script([reply(usage=USED)])
    frames = client.turn("Hi")
    for kind in ("token_usage", "turn_completed"):
        eq(the(frames, kind)["usage"].get("cost_usd"), None, f"cost in {kind}, not known")


@talks
def test_a_session_whose_model_is_gone_goes_on_with_the_servers_own(s):
    model = FakeModel(test=s.t)
    server = s.server(env=RESPONSES.settings(model.url))
    model.script([reply()])
    s.unified().turn("Hi")
    server.kill()
    s.server(env=ANTHROPIC.settings(model.url, PROVIDER=None))
    model.script([reply()] * 2)
    client = s.watcher()
    frames = client.turn("Hi again")
    eq(spoken(frames), ["Hello."])
    told = the(frames, "notice")
    for word in (RESPONSES.model, ANTHROPIC.model, "OPENAI_API_KEY"):
        assert word in told["text"], told
    eq(window(frames), 200_000, "window")
    eq(asked(model), ("anthropic", ANTHROPIC.model), "asked")
    ANTHROPIC.check(model.requests()[-1])
    eq(of(client.turn("And again"), "notice"), [], "it is said once")


# Models of several providers in one conversation, and every kind of model.

@talks
def test_a_conversation_goes_from_provider_to_provider(s):
    """What one gave to be kept means nothing to another, but comes back to its own."""
    model = FakeModel(test=s.t)
    settings = {**KEYS, **places(model), "ALLOW_BYPASS": "true", "MODEL": "gpt-5"}
    server = s.server(env=settings)
    session = unasked(server)
    stages = [RESPONSES, ANTHROPIC, GEMINI, COMPLETIONS, RESPONSES, ANTHROPIC, GEMINI]
    for number, api in enumerate(stages):
        if COMPLETIONS in (api, stages[number - 1]):
            # Which of OpenAI's interfaces is spoken is the server's choice.
            server.kill()
            server = s.server(env={**settings, **api.env, "PROVIDER": None})
        client = s.watcher(session)
        client.send("set_model", model=api.model)
        # Ids that others would refuse, and one that is used twice.
        calls = [bash("echo a", id=f"odd:id/{number} ä"), bash("echo b", id="the-same")]
        model.script([answer({"think": THINK, "signature": opaque(number)}, {"say": SAY}, *calls),
                      say(f"{DONE} {number}")])
        eq(spoken(client.turn("Go")), [SAY, f"{DONE} {number}"], f"stage {number}")
        client.drop()
    requests = model.requests()
    eq(len(requests), 2 * len(stages), "requests")
    for number, request in enumerate(requests):
        api = stages[number // 2]
        flow = api.check(request)
        eq(len([part for part in flow if part["kind"] == "call"]), 2 * ((number + 1) // 2), "calls")
        own = [at for at, one in enumerate(stages) if one is api and 2 * at < number]
        if api is not COMPLETIONS:
            kept = [part["opaque"] for part in flow
                    if part["kind"] == "thought" and part["opaque"]]
            eq(kept, [opaque(at) for at in own], f"request {number}: what came from {api.name}")


@talks
def test_a_model_is_changed_in_the_middle_of_a_turn(s):
    """The next one goes on with calls that it did not make."""
    model = FakeModel(test=s.t)
    s.server(env={**KEYS, **places(model), "MODEL": "gpt-5"})
    client = s.unified()
    for number, api in enumerate((ANTHROPIC, RESPONSES, GEMINI, ANTHROPIC)):
        thought = {"think": THINK, "signature": opaque(number)}
        model.script([answer(thought, bash(f"touch {number}")), say(DONE)])
        request = client.asked("Go")
        client.send("set_model", model=api.model)
        client.decide(request, "allow")
        eq(spoken(client.until_end()), [DONE], f"to {api.name}")
        eq(asked(model), (api.name, api.model), "asked")
        api.check(model.requests()[-1])


MODELS = {
    RESPONSES: ["gpt-5.1", "gpt-4o", "o3", "o4-mini", "codex-mini-latest", "gpt-99-unheard-of"],
    COMPLETIONS: ["gpt-5", "llama3:8b", "deepseek-reasoner", "org/model-x"],
    ANTHROPIC: ["claude-3-5-haiku-latest", "claude-opus-4-1", "claude-opus-4-8",
                "claude-sonnet-5-5", "claude-unheard-of"],
    GEMINI: ["gemini-2.0-flash", "gemini-2.5-flash", "gemini-3.8-flash", "gemini-unheard-of"],
}


@talks
def test_every_kind_of_model_is_asked_in_known_words(s):
    for api, names in MODELS.items():
        model = FakeModel(test=s.t)
        server = s.server(env=api.settings(model.url))
        for name in names:
            session = unasked(server, model=name)
            model.script([answer({"think": THINK, "signature": opaque(1)}, bash("echo a")),
                          say(DONE), say(DONE)])
            client = s.watcher(session)
            eq(spoken(client.turn("Go")), [DONE], name)
            eq(spoken(client.turn("Go on")), [DONE], name)
            requests = model.requests()
            eq(len(requests), 3, "requests")
            for request in requests:
                api.check(request)
                asked = request["body"].get("model", request["path"])
                assert name in asked, f"{name}: {asked}"
            model.clear_requests()
        server.stop()
