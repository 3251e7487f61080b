"""Stopping a turn: it ends soon and in the normal form, leaves nothing running, and the session
can be used. How long it took is printed, since only a person can judge it on a busy machine."""

import os
import time
import uuid
from pathlib import Path

from frames import kinds, outputs, said, texts
from harness import eq, eventually, processes_in
from talk import of, spoken, talks, the


def test_while_text_streams(t):
    server = t.server()
    client = server.client()
    client.say("stream: 100000 10 20\nsay: AFTER")
    client.until("response_item")
    client.send("interrupt", {"reason": "enough"})
    client.until_end()
    eq(kinds(client.seen), ["loading", "assistant", "idle", "agent_finished"])
    (shown,) = texts(client.seen).values()
    whole = [m["payload"] for m in server.messages() if m.get("type") == "response_item"]
    eq([i["content"][0]["text"] for i in whole], [shown], "what was shown is kept, and no more")
    eq(said(client.turn("say: next")), ["next"])


def test_while_a_command_runs(t):
    client = t.server().client()
    client.say("run: sleep 1000 & sleep 2000 & touch begun; wait\nsay: AFTER")
    client.until("approval_request")
    client.review("yes")
    eventually((t.work / "begun").exists, "the command runs")
    assert processes_in(t.work), "there is a process to end"
    client.send("interrupt")
    frames = client.until_end()
    eq(kinds(frames), ["function_call", "function_call_output", "idle", "agent_finished"])
    assert outputs(frames)[0]["metadata"]["exit_code"] != 0, outputs(frames)
    t.no_process_left()
    eq(said(client.turn("say: next")), ["next"])


def test_a_command_that_will_not_listen(t):
    client = t.server().client()
    client.say("run: trap '' TERM INT HUP; touch begun; (setsid sleep 1000 &) ; sleep 1000")
    client.until("approval_request")
    client.review("yes")
    eventually((t.work / "begun").exists, "the command runs")
    client.send("interrupt")
    eq(kinds(client.until_end())[-2:], ["idle", "agent_finished"])
    t.no_process_left()


def test_while_an_approval_waits(t):
    client = t.server().client()
    client.say("run: touch a\nsay: AFTER")
    client.until("approval_request")
    client.send("interrupt")
    frames = client.until_end()
    eq(kinds(frames), ["function_call", "function_call_output", "idle", "agent_finished"])
    client.review("yes")
    eq(client.error()["message"], "No pending approval request", "a late answer")
    eq(list(t.work.iterdir()), [], "files")


def test_while_the_model_hangs(t):
    client = t.server().client()
    client.say("say: begun\nfail: hang")
    client.until("response_item")
    client.send("interrupt")
    eq(kinds(client.until_end())[-2:], ["idle", "agent_finished"])
    eq(said(client.turn("say: next")), ["next"])


def test_another_client_may_do_it(t):
    server = t.server()
    one, two = server.client(), server.client()
    one.say("stream: 100000 10 20")
    two.until("response_item")
    two.send("interrupt")
    for client in (one, two):
        eq(client.until("agent_finished")[-1]["type"], "agent_finished")


def test_with_nothing_running_it_is_an_error(t):
    client = t.server().client()
    client.send("interrupt")
    client.error()
    client.turn("say: x")
    client.send("interrupt", {"reason": "late"})
    client.error()
    client.still_open()


def test_a_reason_must_be_a_text(t):
    client = t.server().client()
    client.say("stream: 100000 10 20")
    client.until("response_item")
    client.send("interrupt", {"reason": 7})
    client.until("error")
    client.send("interrupt", {})
    client.until("agent_finished")


def running(mark):
    """Ids of the processes whose arguments hold a mark."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in words and int(entry) != os.getpid():
            found.append(int(entry))
    return found


def stopped(client, what):
    """Interrupts a unified client's turn, and prints how long its end took."""
    began = time.monotonic()
    client.send("interrupt", reason="enough")
    frames = client.until_end()
    print(f"      interrupt while {what}: {(time.monotonic() - began) * 1000:.0f} ms", flush=True)
    eq(the(frames, "turn_failed")["error"], "Interrupted: enough", "the turn's end")
    eq(frames[-1]["status"], "paused", "the session")
    return frames


def usable(s, client):
    s.t.no_process_left()
    eq(spoken(client.turn("say: next")), ["next"], "the session afterwards")


@talks
def test_unified_while_the_model_hangs(s):
    s.server()
    client = s.unified()
    client.say("say: begun\nfail: hang")
    client.until("assistant_message")
    stopped(client, "the model hangs")
    usable(s, client)


@talks
def test_unified_while_the_model_hangs_before_a_word(s):
    s.server()
    client = s.unified()
    client.say("fail: hang")
    client.until("turn_started")
    stopped(client, "the model has said nothing")
    usable(s, client)


@talks
def test_unified_while_a_command_sleeps(s):
    s.server()
    client = s.unified()
    mark = f"mark-{uuid.uuid4().hex}"
    request = client.asked(f"run: bash -c 'echo begun; sleep 300; true' {mark}\nsay: AFTER")
    client.decide(request, "allow")
    client.until("command_output")
    assert running(mark), "there is a process to end"
    frames = stopped(client, "a command sleeps")
    done = the(frames, "tool_completed")
    eq((done["success"], done["result"]), (False, None), "the call")
    assert "nterrupt" in done["error"] or "stop" in done["error"], done
    eventually(lambda: not running(mark), "the process is gone")
    usable(s, client)


@talks
def test_unified_while_a_command_s_children_will_not_listen(s):
    s.server()
    client = s.unified()
    mark = f"mark-{uuid.uuid4().hex}"
    script = f"trap '' TERM INT HUP; (exec -a {mark} sleep 300) & (setsid bash -c 'trap \"\" TERM; "
    script += f"exec -a {mark} sleep 300' &); echo begun; wait"
    client.decide(client.asked(f"run: {script}"), "allow")
    client.until("command_output")
    eventually(lambda: len(running(mark)) >= 2, "its children run")
    stopped(client, "its children ignore signals")
    eventually(lambda: not running(mark), "the processes are gone")
    usable(s, client)


@talks
def test_unified_while_an_approval_is_open(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: AFTER")
    frames = stopped(client, "an approval is open")
    eq(the(frames, "tool_completed")["success"], False, "the call")
    client.decide(request, "allow")
    client.error()
    eq(list(s.work.iterdir()), [], "files")
    usable(s, client)


@talks
def test_unified_while_a_question_or_a_plan_is_open(s):
    s.server()
    client = s.unified()
    question = client.asked("ask: Which? | a | b\nsay: AFTER", "ask_user_question")
    frames = stopped(client, "a question is open")
    eq(of(frames, "tool_completed"), [], "a question has no tool events")
    client.answer(question, ["a"])
    client.error()
    plan = client.asked("plan: do it\nsay: AFTER", "exit_plan_mode")
    stopped(client, "a plan is open")
    client.approve(plan)
    client.error()
    usable(s, client)


@talks
def test_unified_while_a_request_is_explained(s):
    s.server()
    client = s.unified()
    client.decide(client.asked("run: touch a\nsay: AFTER"), "explain")
    client.until("assistant_message")
    client.send("interrupt", reason="enough")
    # The request may have come again before.
    eq(client.until("turn_failed")[-1]["error"], "Interrupted: enough", "the turn's end")
    client.until(lambda frame: frame.get("status") == "paused")
    eq(list(s.work.iterdir()), [], "files")
    usable(s, client)


@talks
def test_a_chat_turn_while_a_command_sleeps(s):
    s.server()
    member, other = s.chat(session="s1"), s.watcher()
    mark = f"mark-{uuid.uuid4().hex}"
    member.say(f"run: bash -c 'echo begun; sleep 300; true' {mark}")
    other.decide(other.until("control_request")[-1], "allow")
    other.until("command_output")
    stopped(other, "a command of a chat sleeps")
    frames = member.until_answer()
    eq((the(frames, "tool_result")["success"], frames[-1]["error"]), (False, "Interrupted: enough"))
    eventually(lambda: not running(mark), "the process is gone")
    usable(s, other)
