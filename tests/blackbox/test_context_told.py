"""What is told of the context is true: after restarts, with models nobody knows, with todos and
instructions that change; and over HTTP."""

import json

from fakemodel import FakeModel
from harness import eq
from sdk_types import ANTHROPIC, APIS, COMPLETIONS
from talk import of, spoken, talks
from test_context_full import FULL, SUMMARY, Case, reply, say
from test_models import bash, unasked


@talks
def test_a_window_nobody_knows_is_asked_about(s):
    """More than the family's window: the provider says whether it fits."""
    for api in APIS:
        model = FakeModel(test=s.t)
        env = api.settings(model.url, MODEL="nobody-knows-1", MODEL_RETRIES="0")
        server = s.server(env=env)
        client = s.watcher(unasked(server))
        model.script([say("Read.")])
        long = "word " * (1_100_000 if api.name == "gemini" else 250_000)
        eq(spoken(client.turn(long)), ["Read."], api.name)
        model.script([{"error": {"type": "context"}}])
        failed = s.watcher(unasked(server)).turn(long)[-1]
        eq((failed["type"], failed["code"]), ("turn_failed", "context_length_exceeded"), api.name)
        server.stop()


@talks
def test_an_unknown_price_is_not_told_again(s):
    model = FakeModel(test=s.t)
    env = COMPLETIONS.settings(model.url, MODEL="nobody-knows-1", MAX_SESSION_COST_USD="0.01")
    server = s.server(env=env)
    session = unasked(server)

    def told(text):
        model.script([say("Fine.")])
        return [notice["code"] for notice in of(s.watcher(session).turn(text), "notice")]

    eq(told("One"), ["price_unknown"])
    server.stop()
    server = s.server(env=env)
    eq(told("Two"), [], "after a restart")
    server.kill()
    s.server(env={**env, "MODEL": "nobody-knows-2"})
    eq(told("Three"), [], "of the same model")


@talks
def test_a_window_that_is_known_better_by_now_counts(s):
    case = Case(s, COMPLETIONS, window=60_000)
    case.turn("One", say("Fine.", usage=FULL))
    case.server.stop()
    row = {"match": "*", "context": 200_000, "output": 1_000}
    (s.t.dir / "models.json").write_text(json.dumps([row]))
    case.server = s.server(env=case.env)
    case.client = s.watcher(case.session)
    case.turn("Two", say("Fine.", usage=FULL))
    eq(of(case.frames, "token_usage")[-1]["context_window"], 200_000, "the window")


@talks
def test_todos_that_a_batch_wrote_stay(s):
    case = Case(s, COMPLETIONS)
    case.begin()
    first = {"todos": [{"content": "Paint the door"}]}
    then = {"todos": [{"content": "Paint the door", "status": "completed"},
                      {"content": "Tell the heron"}]}
    calls = [{"tool": "todo_write", "parameters": then},
             {"tool": "read", "parameters": {"path": "nothing-here"}}]
    case.turn("Plan", reply({"call": "todo_write", "args": first}),
              reply({"call": "batch", "args": {"calls": calls}}),
              say("Planned." + " Well." * 400, usage=FULL))
    case.turn("More", say(SUMMARY), say("Fine.", usage=FULL))
    text = json.dumps(case.requests()[-1]["body"])
    assert "Open todos:\\n- Tell the heron" in text and "- Paint the door" not in text, text


@talks
def test_todos_that_a_person_changed_are_those_that_were_read(s):
    todos = s.t.dir / "todos"
    case = Case(s, COMPLETIONS, TODOS_STORE_PATH=todos)
    case.begin()
    written = {"todos": [{"content": "Paint the door"}]}
    case.turn("Plan", reply({"call": "todo_write", "args": written}), say("Planned."))
    file = todos / f"{case.session}.md"
    text = file.read_text()
    assert "- [ ] Paint the door" in text, text
    file.write_text(text.replace("- [ ] Paint the door", "- [ ] Wash the heron"))
    case.turn("Look", reply({"call": "todo_read", "args": {}}),
              say("Seen." + " Well." * 400, usage=FULL))
    case.turn("More", say(SUMMARY), say("Fine.", usage=FULL))
    told = json.dumps(case.requests()[-1]["body"])
    assert "Open todos:\\n- Wash the heron" in told and "- Paint the door" not in told, told


@talks
def test_instructions_that_grow_in_the_middle_count(s):
    case = Case(s, ANTHROPIC)
    case.begin()
    case.turn("One", say("Fine.", usage={"input": 40_000, "output": 100}))
    # With this the window is over its threshold, though no message was long.
    (s.work / "AGENTS.md").write_text("Always be brief, kind and exact. " * 1_500)
    case.turn("Two", say(SUMMARY), say("Still fine.", usage={"input": 20_000, "output": 100}))
    (one,) = case.compactions()
    assert one["tokens_before"] > 48_000, f"the instructions were not counted: {one}"
    (s.work / "AGENTS.md").unlink()
    case.turn("Three", say("Fine again."))
    eq(case.compactions(), [], "compactions, without them")


def usage(**more):
    return {"cached_tokens": 0, "cache_written_tokens": 0, "reasoning_tokens": 0, **more}


@talks
def test_totals_over_http(s):
    case = Case(s, COMPLETIONS)

    def listed():
        (one,) = [one for one in case.server.get("/sessions").json["sessions"]
                  if one["id"] == case.session]
        return one

    assert "usage" not in listed(), "no model was asked"
    case.turn("One", reply(bash("echo x"), usage={"input": 900, "output": 100, "cached": 300}),
              say("Fine.", usage={"input": 1_900, "output": 100, "reasoning": 40}))
    want = usage(model_calls=2, input_tokens=2_800, output_tokens=200, cached_tokens=300,
                 reasoning_tokens=40, total_tokens=3_000, cost_usd=0.0032)
    want = {**want, "cost_usd": listed()["usage"]["cost_usd"]}
    assert 0.002 < want["cost_usd"] < 0.0033, want
    for again in range(3):
        eq(listed()["usage"], want, "in the list")
        whole = case.server.get(f"/sessions/{case.session}").json
        eq(whole["usage"], want, "of one")
        assert whole["events"], whole.keys()
        eq(case.server.get(f"/sessions/{case.session}?after=2&limit=1").json["usage"], want)
        told = case.server.get(f"/sessions/{case.session}:context").json
        eq(told["usage"], want, "with the context")
        eq((told["token_count"], told["max_tokens"], told["warning_level"], told["strategy"]),
           (2_000, 60_000, "normal", "threshold"))
        filled = told["filled_by"]
        eq((filled["summary"], filled["reasoning"]), (0, 0), f"{filled}")
        for part in ("instructions_and_tools", "user_messages", "answers", "tool_calls",
                     "tool_results"):
            assert filled[part] > 0, f"{part}: {filled}"
        if again < 2:
            [case.server.stop, case.server.kill][again]()
            case.server = s.server(env=case.env)
    eq(case.server.get("/sessions/nobody:context").status, 404)
    eq(case.server.get("/sessions/a%20b:context").status, 400)
    fork = case.server.http("POST", f"/sessions/{case.session}:fork").json
    eq(fork["usage"], want, "a fork has cost what it was copied from")

