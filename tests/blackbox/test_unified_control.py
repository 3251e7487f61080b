"""Unified: interrupt, resume, cancel, and messages that wait for their turn."""

from harness import eq, eventually
from talk import of, spoken, talks, the, types

LONG = "stream: 100000 10 20"


def files(s):
    return sorted(p.name for p in s.work.iterdir())


@talks
def test_interrupt_says_why_and_pauses(s):
    s.server()
    client = s.unified()
    client.say(f"{LONG}\nsay: AFTER")
    client.until("assistant_message")
    client.send("interrupt", reason="User requested stop")
    frames = client.until_end()
    eq(types(frames)[-2:], ["turn_failed", "session_info"])
    eq(frames[-2]["error"], "Interrupted: User requested stop", "error")
    eq(frames[-1]["status"], "paused", "status")


@talks
def test_interrupt_without_a_reason(s):
    s.server()
    client = s.unified()
    for fields in ({}, {"reason": None}, {"reason": ""}):
        client.say(LONG)
        client.until("assistant_message")
        client.send("interrupt", **fields)
        failed = the(client.until_end(), "turn_failed")
        assert len(failed["error"]) > len("Interrupted: "), f"{fields}: {failed}"


@talks
def test_interrupt_of_nothing_is_an_error(s):
    s.server()
    client = s.unified()
    client.turn("say: x")
    client.send("interrupt", reason="late")
    client.error()
    client.still_open()


@talks
def test_a_message_after_an_interrupt_works_without_resume(s):
    s.server()
    client = s.unified()
    client.say(LONG)
    client.until("assistant_message")
    client.send("interrupt")
    client.until_end()
    frames = client.turn("say: next")
    eq(spoken(frames), ["next"])


@talks
def test_resume_goes_on_with_the_interrupted_work(s):
    s.server()
    client = s.unified()
    client.say("run: touch a\nsay: rest of the work")
    client.until("control_request")
    client.send("interrupt")
    client.until_end()
    client.send("resume")
    frames = client.until_end()
    eq(types(frames, ("token_usage", "session_info")),
       ["turn_started", "assistant_message", "turn_completed"])
    eq(spoken(frames), ["rest of the work"])
    eq([f["status"] for f in of(frames, "session_info")], ["active"], "it is active again")
    eq(files(s), [], "a call that was withdrawn does not run")


@talks
def test_resume_of_nothing_and_during_a_turn_are_errors(s):
    s.server()
    client = s.unified()
    client.turn("say: x")
    client.send("resume")
    client.error()
    request = client.asked("run: touch a")
    client.send("resume")
    client.error()
    client.decide(request, "deny_stop")
    client.until_end()


@talks
def test_what_was_interrupted_can_be_resumed_after_a_restart(s):
    server = s.server()
    client = s.unified(complete=False)
    client.say("run: touch begun; sleep 1000\nsay: rest of the work")
    client.decide(client.until("control_request")[-1], "allow")
    eventually((s.work / "begun").exists, "the command runs")
    server.kill()
    s.server()
    client = s.watcher()
    client.send("resume")
    client.until(lambda frame: frame["type"] == "turn_started")
    eq(spoken(client.until("turn_completed"))[-1:], ["rest of the work"])


@talks
def test_messages_queue_in_order(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: 0")
    for number in range(1, 6):
        client.say(f"say: {number}")
    client.decide(request, "allow")
    frames = [frame for _ in range(6) for frame in client.until_end()]
    eq(spoken(frames), list("012345"), "answers")
    ends = [kind for kind in types(frames) if kind in ("turn_started", "turn_completed")]
    eq(ends, ["turn_completed"] + ["turn_started", "turn_completed"] * 5, "each its own turn")


@talks
def test_messages_of_two_clients_queue_in_order(s):
    s.server()
    one, two = s.unified(name="Ada"), s.watcher(name="Bob")
    request = one.asked("run: touch a\nsay: first")
    two.until("control_request")
    two.say("say: of Bob")
    two.until("message_queued")
    one.say("say: of Ada")
    one.until(lambda frame: frame.get("message") == "say: of Ada")
    two.decide(request, "deny")
    for client in (one, two):
        frames = [frame for _ in range(3) for frame in client.until_end()]
        eq(spoken(frames), ["first", "of Bob", "of Ada"], "answers")


@talks
def test_cancel_removes_a_queued_message(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: 0")
    gone, kept = client.say("say: GONE"), client.say("say: kept")
    client.send("cancel", target_id=gone)
    client.send("cancel", target_id=gone)
    client.until("error")
    client.decide(request, "allow")
    frames = client.until_end() + client.until_end()
    eq(spoken(frames), ["0", "kept"], "answers")
    client.send("cancel", target_id=kept)
    client.error()


@talks
def test_cancel_interrupts_the_turn_that_a_message_began(s):
    s.server()
    client = s.unified()
    running = client.say(f"{LONG}\nsay: AFTER")
    client.until("assistant_message")
    client.say("say: queued")
    client.send("cancel", target_id=running)
    frames = client.until_end()
    assert the(frames, "turn_failed")["error"].startswith("Interrupted: "), frames[-2]
    eq(frames[-1]["status"], "paused")
    client.send("cancel", target_id=running)
    client.error()
    client.say("say: next")
    eq(spoken(client.until_end() + client.until_end()), ["queued", "next"], "then the queue")


@talks
def test_cancel_withdraws_a_pending_request(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: AFTER")
    client.send("cancel", target_id=request["request_id"])
    frames = client.until_end()
    eq(the(frames, "tool_completed")["success"], False, "the call ends")
    settled = the(frames, "approval_settled")
    eq(settled["request_id"], request["request_id"], "everybody is told")
    client.decide(request, "allow")
    client.error()
    eq(files(s), [], "files")


@talks
def test_cancel_withdraws_a_question(s):
    s.server()
    client = s.unified()
    request = client.asked("ask: Which? | a | b\nsay: AFTER", "ask_user_question")
    client.send("cancel", target_id=request["request_id"])
    eq(spoken(client.until_end()), ["AFTER"], "the turn goes on")
    client.answer(request, ["a"])
    client.error()


@talks
def test_cancel_of_what_is_not_there(s):
    s.server()
    client = s.unified()
    client.turn("say: x")
    for target in ("nothing", "", "req-", "req-1", "req-99999999999999999999999", "msg-001",
                   "evt-3-0", "tool-5", "\0", "../x", "x" * 10_000):
        client.send("cancel", target_id=target)
        client.error()
    client.still_open()


@talks
def test_another_client_interrupts(s):
    s.server()
    one, two = s.unified(), s.watcher()
    one.say(LONG)
    two.until("assistant_message")
    two.send("interrupt", reason="enough")
    for client in (one, two):
        eq(the(client.until_end(), "turn_failed")["error"], "Interrupted: enough")


@talks
def test_a_queue_has_an_end(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a")
    sent = 0
    while not of(client.seen, "error"):
        for _ in range(50):
            client.say("say: x")
        sent += 50
        assert sent <= 10_000, "a queue without a limit"
        client.send("get_context")
        client.until("context_info")
    client.decide(request, "deny_stop")
    client.until_end()
    client.send("session_end")
    client.until(lambda frame: frame.get("status") == "completed")
    client.wire.complete = False


@talks
def test_an_interrupt_withdraws_what_is_open(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\n&run: touch b\nsay: AFTER")
    client.send("interrupt", reason="no")
    frames = client.until_end()
    done = of(frames, "tool_completed")
    eq([d["success"] for d in done], [False, False], "open calls end")
    eq(the(frames, "approval_settled")["request_id"], request["request_id"], "withdrawn")
    client.decide(request, "allow")
    client.error()
    eq(files(s), [], "files")
