"""Conversations driven over the limit of a small window: room is made before a call would not
fit, what the model needs to go on is there, calls keep their results, and nothing goes in rings."""

import json

from fakemodel import FakeModel
from harness import Options, eq, eventually
from sdk_types import ANTHROPIC, COMPLETIONS, GEMINI, RESPONSES
from talk import of, spoken, talks, the
from test_models import SMALL, bash, opaque, unasked

WINDOW = 60_000
# More than four fifths of it, as the model's server counts.
FULL = {"input": 50_000, "output": 100}
FACT = "heron-417"
ORIGINAL = "Keep this in mind, word for word: the code word of the door in the north is"
SUMMARY = f"They talked of a door. Its code word is {FACT}. Next: answer what is asked."
REQUEST = "Summarise the conversation above"


def reply(*blocks, **more):
    return {"blocks": list(blocks), **more}


def say(text, **more):
    return reply({"say": text}, **more)


def shown(part):
    """A part of a request in a line."""
    what = {"call": lambda: f"{part['name']} {part['args']}", "thought": lambda: "(signed)",
            "image": lambda: "(a picture)"}.get(part["kind"], lambda: part.get("text"))()
    line = " ".join(str(what).split())
    return f"{part['role']:5} {part['kind']:7} {line[:80]}{'…' if len(line) > 80 else ''}"


class Case:
    """A session with a model of a small window, nobody asked."""

    def __init__(self, s, api, window=WINDOW, **env):
        self.s, self.api, self.model = s, api, FakeModel(test=s.t)
        rows = s.t.dir / "models.json"
        row = {"match": "*", "context": window, "output": 1_000, "images": True,
               "input_usd": 1, "output_usd": 2}
        rows.write_text(json.dumps([row]))
        self.env = api.settings(self.model.url, MODELS_FILE=rows, MODEL_RETRIES="0", **env)
        self.server = s.server(env=self.env)
        self.session = unasked(self.server)
        self.client = s.watcher(self.session)

    def turn(self, text, *script):
        self.model.script(script)
        self.frames = self.client.turn(text)
        self.show(text)
        eq(self.model.state()["queued"], 0, "replies that nobody asked for")
        return self.frames

    def show(self, text):
        """With `-v`: what the model is asked after a compaction, or why it is not asked."""
        failed = of(self.frames, "turn_failed")
        made = of(self.frames, "context_compaction")
        lines = [f"{self.s.t.name} ({self.api.name}), {text[:40]!r}:"]
        lines += [f"  compacted from {one['tokens_before']} tokens to {one['tokens_after']}"
                  for one in made]
        lines += [f"  {one['code']}: {one['error']}" for one in failed]
        if made and self.requests():
            body = self.requests()[-1]["body"]
            lines += ["  the next request says, after the instructions:"]
            lines += [f"    {shown(part)}" for part in self.api.flow(body)]
        if made or failed:
            Options.tell("\n      ".join(lines))

    def begin(self, **more):
        """The fact is said, and a few words more."""
        self.turn(f"{ORIGINAL} {FACT}.", say("I will." + " Surely." * 300))
        for number in range(4):
            self.turn(f"Small talk, number {number}", say(f"Yes, {number}." + " Well." * 300))

    def requests(self):
        return self.model.requests()

    def is_summary(self, request):
        return REQUEST in json.dumps(request["body"])

    def summaries(self):
        return [request for request in self.requests() if self.is_summary(request)]

    def flow(self, at=-1):
        """The parts of a request, in which every call must have its result."""
        return self.api.check(self.requests()[at])

    def checked(self):
        """Every request of the conversation is one that the provider takes."""
        for request in self.requests():
            if not self.is_summary(request):
                self.api.check(request)

    def told_from_the_summary(self):
        text = json.dumps(self.requests()[-1]["body"])
        assert FACT in text, "the model is not told the fact"
        assert ORIGINAL not in text, "what was summarised is still told"

    def compactions(self):
        told = of(self.frames, "context_compaction")
        for one in told:
            assert 0 < one["tokens_after"] < one["tokens_before"], one
        return told

    def asks_for_the_fact(self):
        """The turn in which the window is over its limit."""
        self.turn("What is the code word?", say(SUMMARY), say(f"It is {FACT}."))
        eq(len(self.compactions()), 1, "compactions")
        eq(spoken(self.frames), [f"It is {FACT}."])
        eq(len(self.summaries()), 1, "requests for a summary")
        self.told_from_the_summary()
        self.checked()


def result(flow):
    return [part["text"] for part in flow if part["kind"] == "result"]


@talks
def test_many_small_messages(s):
    case = Case(s, COMPLETIONS)
    case.begin()
    case.turn("One more", say("The last small answer.", usage=FULL))
    usage = of(case.frames, "token_usage")[-1]
    eq((usage["context_window"], usage["usage"]["total_tokens"]), (WINDOW, 50_100), "usage")
    case.asks_for_the_fact()
    assert "The last small answer." in json.dumps(case.requests()[-1]["body"]), "newest stay"
    after = of(case.frames, "token_usage")
    compacted = case.compactions()[0]
    eq(compacted["tokens_before"] > 50_100, True, "the provider's count and what came after it")
    left = [one for one in after if one["usage"]["total_tokens"] == compacted["tokens_after"]]
    eq(len(left), 1, f"how full it is then, of {after}")


@talks
def test_a_large_output_gives_way_to_a_stub(s):
    case = Case(s, RESPONSES)
    (s.work / "large").write_text("".join(f"line {n} of a large file\n" for n in range(3_000)))
    case.turn("Read it", reply(bash("head -c 25000 large")), say("Seen."))
    small = [reply(bash(f"echo small {n}")) for n in range(4)]
    case.turn("And on", *small, say("Done.", usage=FULL))
    before = len(case.requests())
    case.turn("What now?", say("This."))
    eq(len(case.requests()), before + 1, "no summary is asked for")
    eq(len(case.compactions()), 1, "told once")
    results = result(case.flow())
    assert "left out to save room" in results[0] and "line 1 " not in results[0], results[0]
    eq([text.split("\n")[0] for text in results[1:]], [f"small {n}" for n in range(4)], "newest")
    case.checked()


@talks
def test_an_output_larger_than_the_window_is_told_to_the_model(s):
    case = Case(s, COMPLETIONS, window=16_000)
    (s.work / "huge").write_text("".join(f"{n * 7919} % {n}\n" for n in range(20_000)))
    case.turn("Read it", reply(bash("cat huge")), say("Too long, so I ask for less."))
    eq(spoken(case.frames), ["Too long, so I ask for less."])
    assert "too long for the model's window" in result(case.flow())[0], result(case.flow())
    eq(case.summaries(), [], "a summary would not help")


@talks
def test_many_calls_in_one_turn(s):
    case = Case(s, ANTHROPIC)
    case.begin()
    steps = [reply({"think": f"Step {n}", "signature": opaque(n)},
                   {"say": f"Step {n}: " + "I look at this and that. " * 60},
                   bash(f"echo out {n}", id=f"call-{n}"), bash(f"echo more {n}", id=f"also-{n}"))
             for n in range(7)]
    steps[-1]["usage"] = FULL
    case.turn("Work", *steps, say(SUMMARY), say(f"Done, and it is {FACT}."))
    eq(len(case.compactions()), 1, "compactions in the middle of a turn")
    eq(spoken(case.frames)[-1], f"Done, and it is {FACT}.")
    case.told_from_the_summary()
    flow = case.flow()
    eq(result(flow)[-2:], ["out 6\n", "more 6\n"], "the newest step is there, with its results")
    assert len(result(flow)) % 2 == 0, f"a step was split: {result(flow)}"
    thoughts = [part for part in flow if part["kind"] == "thought"]
    eq(len(thoughts), len(result(flow)) // 2, "each step has its signed reasoning")
    assert any("Work" == part.get("text") for part in flow), "what the turn is about stays"
    case.checked()


def reasons(s, api):
    """A turn with signed reasoning, over its limit between two steps."""
    case = Case(s, api)
    case.begin()
    more = {"signature": opaque(9)} if api is GEMINI else {}
    first = reply({"think": "One", "signature": opaque(1)}, bash("echo one", id="call-1", **more))
    second = reply({"think": "Two", "signature": opaque(2)}, bash("echo two", id="call-2", **more),
                   usage=FULL)
    case.turn("Go", first, second, say(SUMMARY), say(f"It is {FACT}."))
    eq(len(case.compactions()), 1, "compactions")
    case.told_from_the_summary()
    flow = case.flow()
    eq(result(flow)[-1], "two\n", "the newest result")
    eq(len([part for part in flow if part["kind"] == "call"]), len(result(flow)), "pairs")
    case.checked()
    case.turn("Again", say("Fine."))
    case.checked()
    eq(len(case.summaries()), 1, "no second one")


@talks
def test_reasoning_of_responses(s):
    reasons(s, RESPONSES)


@talks
def test_reasoning_of_gemini(s):
    reasons(s, GEMINI)


@talks
def test_pictures(s):
    case = Case(s, GEMINI)
    case.model.script([say("Three pictures." + " Nice." * 900)])
    case.client.say(f"{ORIGINAL} {FACT}.", images=[{"media_type": "image/png", "data": SMALL}] * 3)
    case.client.until_end()
    case.turn("And?", say("Full.", usage=FULL))
    case.asks_for_the_fact()
    told = json.dumps(case.summaries()[0]["body"])
    assert "[image: image/png]" in told and SMALL not in told, "a summary is told of pictures"
    assert SMALL not in json.dumps(case.requests()[-1]["body"]), "they are gone then"


@talks
def test_instructions_that_fill_the_window(s):
    (s.work / "AGENTS.md").write_text("Always be brief, kind and exact in all that you say. " * 1_100)
    case = Case(s, COMPLETIONS, window=12_000)
    for _ in range(2):
        failed = case.turn("Hello")[-1]
        eq((failed["type"], failed["code"]), ("turn_failed", "context_floor"))
        for word in ("12000 tokens", "instructions 1", "tools ", "newest message ", "larger window"):
            assert word in failed["error"], failed
    eq(case.requests(), [], "no model was asked")
    # With just enough of a window the work goes on, and nothing is summarised in vain.
    case.server.stop()
    near = Case(s, COMPLETIONS, window=25_000)
    for number in range(3):
        near.turn(f"Hello {number}", say("Hello."))
    eq(len(near.requests()), 3, "one request a turn")


@talks
def test_a_message_larger_than_the_window(s):
    case = Case(s, ANTHROPIC)
    case.turn(f"{ORIGINAL} {FACT}.", say("I will."))
    failed = case.turn("A very long message. " * 40_000)[-1]
    eq((failed["type"], failed["code"]), ("turn_failed", "context_floor"))
    assert "newest message 2" in failed["error"], failed
    eq(len(case.requests()), 1, "no model was asked")
    case.turn("Short", say("Fine."))
    assert "very long" not in json.dumps(case.requests()[-1]["body"]), "it was left out"
    assert ORIGINAL in json.dumps(case.requests()[-1]["body"]), "and nothing else"


@talks
def test_a_summary_that_fails_stops_nothing(s):
    case = Case(s, COMPLETIONS)
    case.begin()
    case.turn("Fill", say("Full.", usage=FULL))
    fails = {"http": {"status": 400}}
    case.turn("First", fails, say("On.", usage=FULL))
    eq(spoken(case.frames), ["On."], "the work goes on")
    (notice,) = of(case.frames, "notice")
    assert "goes on without" in notice["text"], notice
    # Nothing is tried again before more has come.
    case.turn("Second", say("Still.", usage=FULL))
    eq(len(case.summaries()), 1, "no second attempt")
    case.turn("Third", say("Fuller.", usage={"input": 57_000, "output": 100}))
    case.turn("Fourth", fails, say("On again.", usage={"input": 57_100, "output": 100}))
    eq(len(case.summaries()), 2, "one more attempt")
    case.turn("Fifth", say("Fine."))
    assert ORIGINAL in json.dumps(case.requests()[-1]["body"]), "nothing was lost"
    case.checked()


@talks
def test_a_summary_without_gain_is_given_up(s):
    case = Case(s, COMPLETIONS)
    case.begin()
    case.turn("Fill", say("Full.", usage=FULL))
    case.turn("First", say("long " * 9_000), say("On.", usage=FULL))
    eq(spoken(case.frames), ["On."], "the work goes on")
    eq(case.compactions(), [], "compactions")
    notice = the(case.frames, "notice")
    eq(notice["code"], "context_floor", notice)
    assert "no gain" in notice["text"] and "tools " in notice["text"], notice
    case.turn("Second", say("Still."))
    eq(len(case.summaries()), 1, "no second attempt")


@talks
def test_one_compaction_at_a_time(s):
    case = Case(s, COMPLETIONS)
    case.begin()
    case.turn("Fill", say("Full.", usage=FULL))
    case.model.script([say(SUMMARY, delay_ms=200), say("On.")])
    case.client.say("Go")
    eventually(lambda: case.summaries(), "the request for a summary")
    case.client.send("compact")
    error = case.client.until("error")[-1]
    assert "turn is running" in error["message"], error
    case.frames = case.client.until_end()
    eq((len(case.compactions()), len(case.summaries())), (1, 1), "compactions")
    other = s.watcher(case.session)
    case.model.script([say("Shorter still.", delay_ms=200, pieces=1)])
    case.client.send("compact")
    eventually(lambda: len(case.summaries()) == 2, "the request that was asked for")
    other.send("compact")
    assert "turn is running" in other.until("error")[-1]["message"]
    case.frames = case.client.until_end()
    eq(len(case.summaries()), 2, "requests for a summary")


@talks
def test_open_todos_stay(s):
    case = Case(s, COMPLETIONS)
    case.begin()
    todos = [{"content": "Paint the door", "status": "in_progress"},
             {"content": "Buy paint", "status": "completed"}, {"content": "Tell the heron"}]
    case.turn("Plan", reply({"call": "todo_write", "args": {"todos": todos}}),
              say("Planned." + " Well." * 400, usage=FULL))
    case.turn("More", say(SUMMARY), say("Fine.", usage=FULL))
    text = json.dumps(case.requests()[-1]["body"])
    assert "Open todos:\\n- Paint the door (in progress)\\n- Tell the heron" in text, text
    assert "- Buy paint" not in text, "what is done is not told"


@talks
def test_the_dummy_strategy_leaves_it_to_the_provider(s):
    case = Case(s, COMPLETIONS, CONTEXT_STRATEGY="dummy")
    case.begin()
    case.turn("Fill", say("Full.", usage=FULL))
    case.turn("On", say("Fine."))
    eq(case.summaries(), [], "requests for a summary")
    case.turn("A very long message. " * 15_000, say("Read."))
    eq(spoken(case.frames), ["Read."])


@talks
def test_a_kill_during_a_compaction_loses_nothing(s):
    case = Case(s, COMPLETIONS)
    case.begin()
    case.turn("Fill", say("Full.", usage=FULL))
    case.model.script([{"hang": True}])
    case.client.say("What is the code word?")
    eventually(lambda: case.summaries(), "the request for a summary")
    case.client.wire.complete = False
    case.server.kill()
    case.model.clear_requests()
    case.server = s.server(env=case.env)
    client = case.client = s.watcher(case.session)
    case.model.script([say(SUMMARY), say(f"It is {FACT}.")])
    client.send("resume")
    frames = client.until_end()
    eq(spoken(frames), [f"It is {FACT}."])
    eq(len(of(frames, "context_compaction")), 1, "compactions")
    case.told_from_the_summary()
    case.checked()


@talks
def test_a_session_over_its_budget_goes_on_when_it_is_raised(s):
    case = Case(s, COMPLETIONS, MAX_SESSION_TOKENS="1000", MAX_SESSION_COST_USD="5")
    completed = case.turn("One", say("Fine.", usage={"input": 900, "output": 100}))[-1]
    eq(completed["usage"]["cost_usd"], 0.0011, f"cost in {completed}")
    failed = case.turn("Two")[-1]
    eq((failed["type"], failed["code"]), ("turn_failed", "budget_exceeded"))
    for word in ("1000 of the 1000 tokens", "MAX_SESSION_TOKENS", "Raise"):
        assert word in failed["error"], failed
    case.client.send("compact")
    eq(case.client.until_end()[-1]["code"], "budget_exceeded")
    case.client.send("get_context")
    info = case.client.until("context_info")[-1]
    assert info["token_count"] > 0, info
    eq(len(case.requests()), 1, "no model was asked")
    case.server.stop()
    case.server = s.server(env={**case.env, "MAX_SESSION_TOKENS": "1000000",
                                "MAX_SESSION_COST_USD": "0.002"})
    case.client = s.watcher(case.session)
    case.turn("Three", say("On.", usage={"input": 900, "output": 100}))
    failed = case.turn("Four")[-1]
    assert "$0.0022 of the $0.0020" in failed["error"], failed


@talks
def test_an_unknown_price_is_told_once(s):
    model = FakeModel(test=s.t)
    s.server(env=COMPLETIONS.settings(model.url, MODEL="nobody-knows-1",
                                      MAX_SESSION_COST_USD="0.01"))
    client = s.unified()
    model.script([say("Fine.")] * 2)
    (notice,) = of(client.turn("One"), "notice")
    eq(notice["code"], "price_unknown")
    eq(of(client.turn("Two"), "notice"), [], "notices")
