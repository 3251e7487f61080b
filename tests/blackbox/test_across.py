"""One session in several dialects at once: begun here, watched there, settled and continued
elsewhere, also after a crash."""

from frames import items, kinds, said
from harness import eq
from talk import merged, of, spoken, talks, the, types, words

SCRIPT = "think: hm\nsay: I do it\nrun: touch made\nsay: Done."


def settled_in(frames):
    """How an AgentLoop client is told who settled: beside the message that tells the outcome."""
    return [frame["settled"] for frame in frames if "settled" in frame]


def everybody(s):
    """A chat member that speaks in s1, and watchers of the other dialects."""
    return (s.chat(session="s1", name="Ada"), s.watcher(name="Bob"),
            s.agentloop("s1", name="Cleo"))


@talks
def test_begun_in_chat_approved_in_agentloop_seen_by_all(s):
    s.server()
    chat, unified, agentloop = everybody(s)
    chat.say(SCRIPT)
    asked = agentloop.until("approval_request")[-1]
    request = unified.until("control_request")[-1]
    eq(asked["payload"]["command"], ["touch", "made"], "command")
    eq(request["input"], {"command": "touch made"}, "input")
    agentloop.review("yes", requestId=asked["id"])

    frames = agentloop.until_end()
    eq(kinds(frames), ["function_call", "function_call_output", "assistant", "idle",
                       "agent_finished"])
    (settled,) = settled_in(frames)
    eq(settled["request_id"], asked["id"], "which")
    assert "Cleo" in settled["by"], settled

    frames = unified.until_end()
    settled = the(frames, "approval_settled")
    eq((settled["request_id"], settled["decision"]), (request["request_id"], "allow"))
    assert "Cleo" in settled["by"], settled
    eq((spoken(frames), types(frames)[-1]), (["Done."], "turn_completed"))

    frames = chat.until_answer()
    eq(types(frames), ["user_message", "agent_thinking", "agent_thinking", "tool_call",
                       "agent_thinking", "tool_result", "agent_message"])
    assert "Cleo" in of(frames, "agent_thinking")[-1]["reasoning"], frames
    eq(frames[-1]["message"], "Done.")
    assert (s.work / "made").exists(), "it ran"


@talks
def test_begun_in_chat_continued_in_unified_then_agentloop(s):
    s.server()
    chat, unified, agentloop = everybody(s)
    chat.say("say: one")
    for speaker, text in ((unified, "two"), (agentloop, "three"), (chat, "four")):
        unified.until_end()
        agentloop.until_end()
        chat.until_answer()
        speaker.say(f"say: {text}")
    eq(spoken(unified.until_end()), ["four"])
    eq(said(agentloop.until_end()), ["four"])
    chat.until_answer()
    eq([f["message"] for f in of(chat.seen, "agent_message")], ["one", "two", "three", "four"])
    eq([f["message"] for f in of(chat.seen, "user_message")],
       ["say: one", "say: two", "say: three", "say: four"], "what was said, whoever said it")
    eq(s.sessions(), ["s1"], "one session")
    eq({f["session_id"] for f in unified.seen + agentloop.seen + chat.seen}, {"s1"}, "its id")
    eq(s.last.get("/sessions/s1").json["id"], "s1", "GET")


@talks
def test_a_denial_in_unified_is_told_to_all(s):
    s.server()
    chat, unified, agentloop = everybody(s)
    chat.say("run: touch made\nsay: AFTER")
    request = unified.until("control_request")[-1]
    asked = agentloop.until("approval_request")[-1]
    unified.decide(request, "deny", explanation="Not now")
    (settled,) = settled_in(agentloop.until_end())
    eq(settled["request_id"], asked["id"], "which")
    assert "Bob" in settled["by"] and "den" in settled["decision"].lower(), settled
    frames = chat.until_answer()
    eq(the(frames, "tool_result")["success"], False)
    assert "Not now" in the(frames, "tool_result")["result"], frames
    assert "Bob" in of(frames, "agent_thinking")[-1]["reasoning"], frames
    assert "Bob" in the(unified.until_end(), "approval_settled")["by"]
    agentloop.review("yes", requestId=asked["id"])
    assert "Bob" in str(agentloop.error()), "a late answer is told who settled"
    eq(list(s.work.iterdir()), [], "files")


@talks
def test_always_in_agentloop_holds_in_unified(s):
    s.server()
    agentloop, unified = s.agentloop(), s.watcher()
    agentloop.say("run: touch a")
    agentloop.until("approval_request")
    agentloop.review("always")
    agentloop.until_end()
    unified.until("turn_completed")
    eq(types(unified.turn("run: touch b")).count("control_request"), 0, "questions")
    unified.decide(unified.asked("run: mkdir c"), "deny_stop")
    unified.until_end()
    eq(sorted(p.name for p in s.work.iterdir()), ["a", "b"], "files")


@talks
def test_an_explanation_asked_in_unified_is_seen_by_all(s):
    s.server()
    agentloop, unified = s.agentloop(), s.watcher()
    agentloop.say("run: touch a\nsay: end")
    asked = agentloop.until("approval_request")[-1]
    request = unified.until("control_request")[-1]
    unified.decide(request, "explain")
    frames = agentloop.until("approval_request")
    eq((kinds(frames), frames[-1]["id"]), (["assistant", "approval_request"], asked["id"]))
    eq(unified.until("control_request")[-1]["request_id"], request["request_id"])
    agentloop.review("yes")
    eq(said(agentloop.until_end()), ["end"])
    unified.until_end()


@talks
def test_two_of_each_see_the_same(s):
    s.server()
    chats = [s.chat(session="s1"), s.chat("/ws")]
    unifieds, agentloops = [s.watcher(), s.watcher()], [s.agentloop(), s.agentloop()]
    chats[0].say("think: hm\nsay: begin\nrun: touch a\nstream: 50 16 5\nask: Which? | a | b")
    agentloops[0].until("approval_request")
    agentloops[0].review("yes")
    request = unifieds[1].until("ask_user_question")[-1]
    unifieds[1].answer(request, ["b"])
    for client in agentloops:
        client.until("agent_finished")
    for client in unifieds:
        client.until("turn_completed")
    for client in chats:
        client.until("agent_message")
        client.until("agent_message")
    eq(chats[0].seen, chats[1].seen, "chat")
    eq(merged(unifieds[0].seen[1:]), merged(unifieds[1].seen[1:]), "unified")
    one, two = ([(f["type"], f["payload"]) for f in client.seen if f["type"] != "response_item"]
                for client in agentloops)
    eq(one, two, "agentloop")
    eq(said(agentloops[0].seen), said(agentloops[1].seen), "agentloop texts")
    eq(items(agentloops[0].seen, "function_call"), items(agentloops[1].seen, "function_call"))


@talks
def test_texts_are_the_same_in_every_dialect(s):
    s.server()
    chat, unified, agentloop = everybody(s)
    text = "Grüße 👩‍👩‍👧‍👦 an alle, 世界! \\ \"quoted\" </script> \u2028"
    chat.say(f"say: {text}")
    (heard,) = spoken(unified.until_end())
    eq((said(agentloop.until_end()), chat.until_answer()[-1]["message"]), ([heard], heard))
    eq(heard, text.strip(), "the text")


@talks
def test_seq_and_cursor_hold_in_another_dialect(s):
    s.server()
    unified = s.unified(complete=False)
    unified.say("say: before\nstream: 200 16 5\nsay: after")
    while len(unified.seen) < 12:
        unified.recv()
    unified.drop()
    back = s.agentloop(since=unified.seen[-1]["seq"])
    whole = "".join(f"{n:07} " for n in range(400))
    eq(said(back.until_end()), [whole, "after"], "from the bare seq")


@talks
def test_a_question_outlives_a_crash_and_is_answered_elsewhere(s):
    server = s.server()
    asker = s.unified(complete=False)
    request = asker.asked("say: begin\nask: Which? | a | b\nsay: end", "ask_user_question")
    server.kill()
    s.server()
    again = s.watcher()
    eq(again.until("ask_user_question")[-1]["request_id"], request["request_id"], "the same id")
    other = s.agentloop(name="Cleo")
    other.until(lambda f: "1. a" in "".join(said([f])))
    other.say("1")
    eq(said(other.until_end()), ["end"])
    settled = again.until("approval_settled")[-1]
    eq(settled["request_id"], request["request_id"])
    assert "Cleo" in settled["by"], settled
    again.until_end()


@talks
def test_an_approval_of_chat_outlives_a_crash(s):
    server = s.server()
    chat, watcher = s.chat(session="s1", complete=False), s.watcher(complete=False)
    chat.say("run: touch a\nsay: end")
    request = watcher.until("control_request")[-1]
    server.kill()
    s.server()
    other = s.agentloop()
    other.until("approval_request")
    again = s.watcher()
    eq(again.until("control_request")[-1]["request_id"], request["request_id"], "the same id")
    other.review("yes")
    eq(said(other.until_end()), ["end"])
    eq(spoken(again.until_end()), ["end"])
    assert (s.work / "a").exists(), "it ran"


@talks
def test_a_chat_question_outlives_a_crash_and_is_answered_in_chat(s):
    server = s.server()
    chat = s.chat(session="s1", complete=False)
    chat.turn("ask: Which? | a | b")
    server.kill()
    s.server()
    again = s.chat(session="s1")
    again.say("2")
    frames = again.until(lambda f: f["type"] == "agent_message" and "b" in f["message"])
    eq(of(frames, "error"), [], f"errors in {words(frames)}")


@talks
def test_an_interrupt_in_agentloop_is_seen_by_all(s):
    s.server()
    chat, unified, agentloop = everybody(s)
    chat.say("stream: 100000 10 20")
    unified.until("assistant_message")
    agentloop.until("response_item")
    agentloop.send("interrupt", {"reason": "enough"})
    agentloop.until_end()
    eq(the(unified.until_end(), "turn_failed")["error"], "Interrupted: enough")
    eq(words(chat.until_answer())[-1], ("error", "Interrupted: enough"))


@talks
def test_a_session_in_use_by_any_dialect_is_not_deleted(s):
    s.server()
    unified = s.unified()
    unified.turn("say: x")
    eq(s.last.http("DELETE", "/sessions/s1").status, 409, "while a client is attached")
    unified.drop()


@talks
def test_a_title_given_by_rest_is_told(s):
    s.server()
    unified = s.unified()
    unified.turn("say: x")
    body = '{"title": "A better name"}'
    answer = s.last.http("PATCH", "/sessions/s1", {"Content-Type": "application/json"}, body)
    eq(answer.status, 200, f"PATCH: {answer}")
    unified.until("session_renamed")
