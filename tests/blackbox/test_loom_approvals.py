"""Loom: `tool_approval` and who may answer it; questions and plans."""

from harness import eq
from loomtalk import all_events, event, events, loom, numbered, reply, watch, words
from talk import talks

ONE = "run: touch a\nsay: done"


def refusal(client, asked):
    """The next frame, which must be the refusal of a request; why."""
    frame = client.error()
    assert frame.get("id") in (None, asked), f"of another request than {asked}: {frame}"
    return frame["error"]


# Calls.


@talks
def test_an_approved_call(s):
    s.server()
    client = loom(s)
    for thread in (None, "t1"):
        request = client.asked(ONE, thread)
        asked = request["event"]
        eq((asked["name"], asked["arguments"]), ("bash", {"command": "touch a"}), "what is asked")
        assert not (s.work / "a").exists(), "nothing ran before the answer"
        client.answer(request, True)
        frames = client.until_end()
        eq(words(frames)[:2], ["tool_start", "tool_end"], "then it runs")
        eq((event(frames, "tool_end")["is_error"], reply(frames)), (False, "done"))
        (s.work / "a").unlink()


@talks
def test_where_the_request_stands(s):
    s.server()
    client = loom(s)
    client.run(ONE, approvals=True)
    frames = client.until_event("tool_approval")
    eq(words(frames)[-5:], ["node_exit think", "values", "updates", "node_enter act",
                            "tool_approval"])
    eq(event(frames, "tool_call")["call_id"], frames[-1]["event"]["call_id"], "its call")
    client.answer(frames[-1], True)
    numbered(frames + client.until_end())


@talks
def test_a_denied_call(s):
    s.server()
    client = loom(s)
    for message in ("use banana42", None):
        request = client.asked("run: touch a\nrun: ls\nsay: done", "t1")
        client.answer(request, False, **({"message": message} if message else {}))
        frames = client.until_end()
        eq("tool_start" in words(frames[:8]), False, "it never started")
        denied = events(frames, "tool_end")[0]
        eq(denied["is_error"], True, "tool_end")
        assert denied["result"] and (message or "") in denied["result"], denied
        eq(reply(frames), "done", "the run goes on")
    eq(list(s.work.iterdir()), [], "files")


@talks
def test_a_null_message_is_none(s):
    s.server()
    client = loom(s)
    client.answer(client.asked(ONE), True, message=None)
    eq(reply(client.until_end()), "done")


@talks
def test_an_answer_to_nothing(s):
    s.server()
    client = loom(s)
    request = client.asked(ONE, "t1")
    run, call = request["id"], request["event"]["call_id"]
    wrong = [{"run_id": run, "call_id": "nope"}, {"run_id": run, "call_id": ""},
             {"run_id": run, "call_id": "call_99999"}, {"run_id": run, "call_id": "call_1"},
             {"run_id": run, "call_id": call + "0"}, {"run_id": run, "call_id": call.upper()},
             {"run_id": "run-x", "call_id": call}, {"run_id": "", "call_id": call}]
    for names in wrong:
        asked = client.send("tool_approval_response", approved=True, **names)
        assert refusal(client, asked), f"why {names}"
    assert not (s.work / "a").exists(), "nothing ran"
    client.answer(request, True)
    eq(reply(client.until_end()), "done")


@talks
def test_a_refused_answer_names_its_request(s):
    s.server()
    client = loom(s)
    request = client.asked("ask: Which? | A | B\nsay: done", "t1")
    for call in ("nope", "call_99999"):
        asked = client.send("tool_approval_response", run_id=request["id"], call_id=call,
                            approved=True)
        eq(client.error().get("id"), asked, f"id of the error about {call}")
    asked = client.answer(request, True)
    eq(client.error().get("id"), asked, "id of the error about an answer without words")
    client.answer(request, False)
    client.until_end()


@talks
def test_the_first_answer_counts(s):
    s.server()
    watcher = watch(s, "t1")
    request = watcher.asked("run: touch a\nrun: touch b\nsay: done", "t1")
    watcher.answer(request, True)
    second = watcher.until_event("tool_approval")[-1]
    late = watcher.answer(request, False)
    assert "already" in refusal(watcher, late), "it says so"
    watcher.answer(second, False)
    eq(reply(watcher.until_end()), "done")
    late = watcher.answer(second, True)
    assert "already" in refusal(watcher, late), "it says so when the run has ended"
    eq([path.name for path in s.work.iterdir()], ["a"], "files")


@talks
def test_an_answer_after_the_run_is_told_so(s):
    s.server()
    client = loom(s)
    request = client.asked(ONE)
    client.answer(request, True)
    eq(reply(client.until_end()), "done")
    assert refusal(client, client.answer(request, True)), "why"
    client.still_open()


@talks
def test_two_calls_of_one_reply(s):
    s.server()
    client = loom(s)
    client.run("run: touch a\n& run: touch b\nsay: done", approvals=True)
    first = client.until_event("tool_approval")
    eq(len(events(first, "tool_call")), 2, "calls")
    if len(events(first, "tool_approval")) < 2:
        client.answer(first[-1], True)
        second = client.until_event("tool_approval")[-1]
        client.answer(second, True)
    frames = client.until_end()
    eq(reply(frames), "done")
    eq(sorted(path.name for path in s.work.iterdir()), ["a", "b"], "files")


@talks
def test_a_patch(s):
    s.server()
    client = loom(s)
    patch = "*** Begin Patch\\n*** Add File: f\\n+x\\n*** End Patch\\n"
    request = client.asked(f'tool: apply_patch {{"patch": "{patch}"}}\nsay: done')
    eq(request["event"]["name"], "apply_patch", "tool")
    eq(request["event"]["arguments"], {"patch": patch.replace("\\n", "\n")}, "arguments")
    client.answer(request, True)
    eq(reply(client.until_end()), "done")
    eq((s.work / "f").read_text(), "x\n", "file")


@talks
def test_nobody_answers_in_time(s):
    s.server("--approval-timeout-secs", "1")
    client = loom(s)
    client.asked(ONE)
    frames = client.until_end()
    eq((event(frames, "tool_end")["is_error"], reply(frames)), (True, "done"))


# Who can answer.


def denied(frames):
    end = event(frames, "tool_end")
    eq((events(frames, "tool_approval"), end["is_error"], reply(frames)), ([], True, "done"))
    assert "approv" in end["result"] or "answer" in end["result"], f"why: {end}"


@talks
def test_without_approvals_the_call_is_denied_and_says_why(s):
    s.server()
    client = loom(s)
    for thread in (None, "t1"):
        denied(client.turn(ONE, thread))
        denied(client.turn(ONE, thread, approvals=False))
        denied(client.turn("ask: Which? | A | B\nsay: done", thread))
        denied(client.turn("plan: 1. look\nsay: done", thread))
    eq(list(s.work.iterdir()), [], "files")


@talks
def test_watching_gives_no_power(s):
    s.server()
    watcher = watch(s, "t1")
    watcher.still_open()
    denied(loom(s).turn(ONE, "t1"))
    eq(reply(watcher.until_end()), "done")
    chat = s.chat(session="t1")
    chat.turn("say: x")
    denied(loom(s).turn(ONE, "t1"))


@talks
def test_a_client_that_can_approve_is_asked(s):
    s.server()
    client = loom(s)
    agentloop, unified = s.agentloop("t1"), s.watcher("t2")
    agentloop.still_open()
    client.run(ONE, "t1")
    agentloop.until("approval_request")
    agentloop.review("yes")
    frames = client.until_end()
    eq((event(frames, "tool_end")["is_error"], reply(frames)), (False, "done"), "agentloop")
    agentloop.until("agent_finished")
    client.run(ONE, "t2")
    unified.decide(unified.until("control_request")[-1], "deny")
    frames = client.until_end()
    eq((event(frames, "tool_end")["is_error"], reply(frames)), (True, "done"), "unified")
    unified.until_end()


@talks
def test_whoever_answers_all_learn_of_it(s):
    s.server()
    unified = s.watcher("t1", name="Ada")
    client, watcher = loom(s, name="Bob"), watch(s, "t1")
    watcher.still_open()
    request = client.asked(ONE, "t1")
    unified.decide(unified.until("control_request")[-1], "allow")
    for one in (client, watcher):
        frames = one.until(lambda frame: frame["type"] == "run_end")
        (told,) = [e["value"]["approval"] for e in events(frames, "custom")]
        eq(told["call_id"], request["event"]["call_id"], "which request")
        assert "Ada" in told["by"], f"by whom: {told}"
    late = client.answer(request, False)
    assert refusal(client, late), "too late"
    unified.until_end()
    request = client.asked("run: touch b", "t1")
    client.answer(request, True)
    settled = unified.until("approval_settled")[-1]
    assert "Bob" in settled["by"], f"by whom: {settled}"
    client.until_end()


# Questions and plans.


@talks
def test_a_question(s):
    s.server()
    client = loom(s)
    for thread in (None, "t1"):
        for answer in ("B", "neither of them"):
            request = client.asked("ask: Which one? | A | B\nsay: done", thread)
            asked = request["event"]
            eq(asked["name"], "ask_user", "tool")
            (question,) = asked["arguments"]["questions"]
            eq((question["question"], [o["label"] for o in question["options"]]),
               ("Which one?", ["A", "B"]), "question")
            client.answer(request, True, message=answer)
            frames = client.until_end()
            end = event(frames, "tool_end")
            eq((end["is_error"], reply(frames)), (False, "done"))
            assert answer in end["result"], end


@talks
def test_a_question_that_nobody_wants_to_answer(s):
    s.server()
    client = loom(s)
    request = client.asked("ask: Which? | A | B\nsay: done")
    assert refusal(client, client.answer(request, True)), "an answer is needed"
    client.answer(request, False)
    frames = client.until_end()
    eq((event(frames, "tool_end")["is_error"], reply(frames)), (True, "done"))


@talks
def test_a_plan(s):
    s.server()
    client = loom(s)
    text = "plan: 1. look\\n2. do\nsay: done"
    request = client.asked(text, "t1")
    eq((request["event"]["name"], request["event"]["arguments"]),
       ("exit_plan_mode", {"plan": "1. look\n2. do"}), "what is asked")
    client.answer(request, True)
    frames = client.until_end()
    eq((event(frames, "tool_end")["is_error"], reply(frames)), (False, "done"))
    client.answer(client.asked(text, "t1"), False, message="use banana42")
    frames = client.until_end()
    assert "banana42" in event(frames, "tool_end")["result"], "feedback"
    eq(reply(frames), "done")


@talks
def test_a_question_that_another_dialect_answers(s):
    s.server()
    unified = s.watcher("t1")
    client = loom(s)
    client.run("ask: Which? | A | B\nsay: done", "t1")
    unified.answer(unified.until("ask_user_question")[-1], ["B"])
    frames = client.until_end()
    assert "B" in event(frames, "tool_end")["result"], "answer"
    eq(reply(frames), "done")
    unified.until_end()


@talks
def test_a_question_of_another_dialect_is_shown_to_a_watcher(s):
    s.server()
    watcher, unified = watch(s, "s1"), s.unified()
    watcher.still_open()
    unified.asked("ask: Which? | A | B\nsay: done", "ask_user_question")
    request = watcher.until_event("tool_approval")[-1]
    watcher.answer(request, True, message="A")
    eq(reply(watcher.until_end()), "done")
    eq([one["event_id"] for one in all_events(watcher.seen)][0], 1, "counted from 1")
    unified.until_end()
