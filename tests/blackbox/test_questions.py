"""Questions and plans: asked in one dialect, answered in any, by label, number or own words."""

import json
from pathlib import Path

from frames import items, said
from harness import eq
from talk import of, spoken, talks, the, types, words

ASK = "ask: Which colour? | red | green | blue"


def ask(*questions):
    """A script line that asks: each question is (text, labels, whether several may be chosen)."""
    asked = [{"header": f"Q{at}", "question": text, "multiSelect": several,
              "options": [{"label": label, "description": f"it is {label}"} for label in labels]}
             for at, (text, labels, several) in enumerate(questions)]
    return "tool: ask_user " + json.dumps({"questions": asked})


def told(frames):
    """What the offline model says it was told: it repeats the last result, script over."""
    (text,) = spoken(frames)
    return text


# Unified.


@talks
def test_unified_by_label(s):
    s.server()
    client = s.unified()
    request = client.asked(ASK, "ask_user_question")
    eq(request["tool_id"], request["request_id"], "both keys hold the same")
    client.answer(request, ["green"])
    settled = client.until("approval_settled")[-1]
    eq((settled["request_id"], settled["decision"]), (request["request_id"], "answered"))
    assert "green" in told(client.until_end()), "the model learns the answer"


@talks
def test_unified_by_either_key(s):
    s.server()
    client = s.unified()
    for key in ("tool_id", "request_id"):
        client.answer(client.asked(ASK, "ask_user_question"), ["blue"], key=key)
        assert "blue" in told(client.until_end()), key


@talks
def test_unified_in_own_words(s):
    s.server()
    client = s.unified()
    client.answer(client.asked(ASK, "ask_user_question"), ["a dark turquoise"])
    assert "a dark turquoise" in told(client.until_end()), "free text is passed on"


@talks
def test_unified_several(s):
    s.server()
    client = s.unified()
    line = ask(("Which ones?", ["red", "green", "blue"], True), ("And?", ["yes", "no"], False))
    request = client.asked(line, "ask_user_question")
    eq([q["multiSelect"] for q in request["questions"]], [True, False], "multiSelect")
    eq(request["questions"][0]["options"][1],
       {"label": "green", "description": "it is green"}, "an option")
    client.answer(request, ["red", "blue"], ["no"])
    message = client.until("approval_settled")[-1]["message"]
    assert all(word in message for word in ("red", "blue", "no")), message
    client.until_end()


@talks
def test_unified_answers_that_do_not_fit(s):
    s.server()
    client = s.unified()
    request = client.asked(ASK, "ask_user_question")
    for answers in ([{"question_index": 7, "selected": ["red"]}],
                    [{"question_index": 0, "selected": ["red", "green"]}],
                    [{"question_index": 18446744073709551615, "selected": ["red"]}]):
        client.send("user_question_response", tool_id=request["tool_id"], answers=answers)
        client.error()
    client.send("plan_approval_response", tool_id=request["tool_id"], approved=True)
    client.error()
    client.decide(request, "allow")
    client.error()
    client.answer(request, ["red"])
    assert "red" in told(client.until_end()), "the question stayed open"
    client.answer(request, ["green"])
    client.error()


@talks
def test_unified_a_message_that_names_the_question(s):
    s.server()
    client = s.unified()
    request = client.asked(ASK, "ask_user_question")
    client.say("blue", parent_tool_use_id=request["tool_id"])
    assert "blue" in told(client.until_end()), "it answers the question"


@talks
def test_unified_a_plain_message_waits_for_its_turn(s):
    s.server()
    client = s.unified()
    request = client.asked(f"{ASK}\nsay: one", "ask_user_question")
    client.say("say: two")
    client.answer(request, ["red"])
    eq(spoken(client.until_end() + client.until_end()), ["one", "two"], "answers")


@talks
def test_unified_a_plan_sent_back_then_approved(s):
    s.server()
    client = s.unified()
    plan = client.asked("plan: # Plan\\n1. look\nplan: # Plan\\n2. act\nsay: acting",
                        "exit_plan_mode")
    path = Path(plan["plan_file_path"])
    assert path.is_absolute() and path.read_text().strip() == "# Plan\n1. look", path
    client.approve(plan, False, feedback="Say what you will act on")
    frames = client.until("exit_plan_mode")
    settled = the(frames, "approval_settled")
    eq((settled["decision"], settled["message"]), ("deny", "Say what you will act on"))
    again = frames[-1]
    assert again["request_id"] != plan["request_id"], "a new request"
    eq(Path(again["plan_file_path"]).read_text().strip(), "# Plan\n2. act", "the new plan's file")
    client.approve(again, feedback="Looks good, proceed with implementation")
    frames = client.until_end()
    eq((the(frames, "approval_settled")["decision"], spoken(frames)), ("allow", ["acting"]))
    eq([k for k in types(client.seen) if k.startswith("tool_")], [], "no tool events")


@talks
def test_unified_the_model_sees_the_feedback(s):
    s.server()
    client = s.unified()
    client.approve(client.asked("plan: do it", "exit_plan_mode"), False, feedback="Use less paint")
    assert "Use less paint" in told(client.until_end()), "the model is told"


@talks
def test_a_question_that_cannot_be_asked_fails_as_a_call(s):
    s.server()
    client = s.unified()
    for args in ("{}", '{"questions":[]}', '{"questions":"x"}', "x", '{"questions":[{}]}'):
        frames = client.turn(f"tool: ask_user {args}\nsay: AFTER")
        eq((the(frames, "tool_completed")["success"], spoken(frames)), (False, ["AFTER"]), args)


# AgentLoop.


def agentloop_asks(s, script=ASK):
    s.server()
    client = s.agentloop()
    client.say(script)
    frames = client.until(lambda f: f["type"] == "response_item")
    return client, said(frames)[-1]


@talks
def test_agentloop_lists_numbered_options(s):
    client, text = agentloop_asks(s)
    assert "Which colour?" in text, text
    for option in ("1. red", "2. green", "3. blue"):
        assert option in text, f"{option} in {text!r}"
    client.say("2")
    assert "green" in said(client.until_end())[-1], "a number is an answer"


@talks
def test_agentloop_by_label_and_in_own_words(s):
    client, _ = agentloop_asks(s, f"{ASK}\n{ASK}")
    client.say("Blue")
    client.until(lambda f: "Which colour?" in "".join(said([f])))
    client.say("rather a dark turquoise")
    assert "rather a dark turquoise" in said(client.until_end())[-1], "the model is told"


@talks
def test_agentloop_several_by_number(s):
    client, text = agentloop_asks(s, ask(("Which ones?", ["red", "green", "blue"], True)))
    assert "1. red" in text, text
    client.say("1, 3")
    told = said(client.until_end())[-1]
    assert "red" in told and "blue" in told and "green" not in told, told


@talks
def test_agentloop_a_plan(s):
    s.server()
    client = s.agentloop()
    client.say("plan: first\nplan: second\nsay: acting")
    frames = client.until("approval_request")
    eq((said(frames), frames[-1]["payload"]["command"]), (["first"], ["exit_plan_mode"]))
    client.review("no-continue", customDenyMessage="Say more")
    frames = client.until("approval_request")
    eq(said(frames), ["second"], "it is sent back")
    client.review("yes")
    eq(said(client.until_end()), ["acting"])
    eq(items(client.seen, "function_call"), [], "no calls")


# Chat.


@talks
def test_chat_a_question(s):
    s.server()
    client = s.chat(session="s1")
    frames = client.turn(f"{ASK}\n{ASK}")
    eq([kind for kind, *_ in words(frames)], ["user_message", "agent_message"])
    for option in ("Which colour?", "1. red", "2. green", "3. blue"):
        assert option in frames[-1]["message"], f"{option} in {frames[-1]}"
    frames = client.turn("3")
    assert "Which colour?" in frames[-1]["message"], "the second question"
    frames = client.turn("a dark turquoise")
    assert "a dark turquoise" in frames[-1]["message"], f"the model was told: {frames}"


@talks
def test_chat_a_plan(s):
    s.server()
    client = s.chat(session="s1")
    for yes in ("yes", "OK", "approve", "Go ahead!"):
        frames = client.turn("plan: first\nplan: second\nsay: acting")
        eq(words(frames)[-1], ("agent_message", "first"), "the plan")
        eq(words(client.turn("not like this"))[-1], ("agent_message", "second"), "feedback")
        eq(words(client.turn(yes))[-1], ("agent_message", "acting"), yes)


# Across.


@talks
def test_asked_in_unified_answered_in_agentloop(s):
    s.server()
    asker, other = s.unified(name="Ada"), s.agentloop(name="Bob")
    request = asker.asked(ASK, "ask_user_question")
    other.until(lambda f: "3. blue" in "".join(said([f])))
    other.say("3")
    settled = asker.until("approval_settled")[-1]
    eq(settled["request_id"], request["request_id"])
    assert "Bob" in settled["by"], settled
    assert "blue" in told(asker.until_end())
    other.until_end()


@talks
def test_asked_in_agentloop_answered_in_chat(s):
    s.server()
    member = s.chat(session="s1", name="Bob")
    member.turn("say: I am here")
    asker = s.agentloop(name="Ada")
    asker.say(ASK)
    assert "1. red" in member.until("agent_message")[-1]["message"], "the room is asked"
    asker.until(lambda f: "1. red" in "".join(said([f])))
    member.say("1")
    assert "red" in said(asker.until_end())[-1]
    assert "red" in member.until("agent_message")[-1]["message"]


@talks
def test_asked_in_chat_answered_in_unified(s):
    s.server()
    member, other = s.chat(session="s1", name="Ada"), s.watcher(name="Bob")
    member.turn(ASK)
    request = other.until("ask_user_question")[-1]
    other.answer(request, ["green"])
    frames = member.until("agent_message")
    assert "green" in frames[-1]["message"], frames
    assert "green" in told(other.until_end())


@talks
def test_a_plan_of_chat_approved_in_agentloop(s):
    s.server()
    member, other = s.chat(session="s1"), s.agentloop()
    member.turn("plan: do it\nsay: acting")
    request = other.until("approval_request")[-1]
    eq(request["payload"]["command"], ["exit_plan_mode"])
    other.review("yes", requestId=request["id"])
    eq(said(other.until_end()), ["acting"])
    eq(words(member.until("agent_message"))[-1], ("agent_message", "acting"))


@talks
def test_a_plan_of_agentloop_approved_in_unified_and_sent_back_in_chat(s):
    s.server()
    member = s.chat(session="s1")
    member.turn("say: I am here")
    asker, other = s.agentloop(), s.watcher()
    asker.say("plan: first\nplan: second\nsay: acting")
    eq(member.until("agent_message")[-1]["message"], "first", "the room sees the plan")
    other.until("exit_plan_mode")
    member.say("not like this")
    second = other.until("exit_plan_mode")[-1]
    other.approve(second)
    eq(spoken(other.until_end()), ["acting"])
    asker.until("agent_finished")
    eq(of(member.until(lambda f: f.get("message") == "acting"), "error"), [], "errors")
