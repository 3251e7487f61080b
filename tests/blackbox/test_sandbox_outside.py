"""What the sandbox stopped is asked about: with a yes it runs outside, with a no the model is told;
the request outlives a crash, and whoever can answer may."""

import json
import socket

import ground
from fakemodel import FakeModel
from frames import items, outputs
from harness import eq, eventually
from loomtalk import event, events, loom, reply
from sdk_types import COMPLETIONS
from talk import of, spoken, talks, the
from test_models import DONE, answer, bash, say

FULL_AUTO = ("--tool-use-approval-mode", "full-auto")


def place(s, *flags, **options):
    """A server in full-auto whose commands can see what lies outside."""
    ground.settle(s.t)
    s.work, s.outside, s.store = s.t.work, s.t.outside, s.t.store
    return s.server(*FULL_AUTO, *flags, **options)


def beyond(s, name="made"):
    """Says something, changes what it may, and then tries what it may not."""
    return f"run: echo first; echo x >> runs; touch {s.outside}/{name}\nsay: end"


def customs(frames, kind):
    values = [event["value"] for event in events(frames, "custom")]
    return [value[kind] for value in values if kind in value]


def notices(frames):
    return customs(frames, "notice")


def runs(s):
    file = s.work / "runs"
    return file.read_text().count("x") if file.exists() else 0


@talks
def test_the_request_says_what_was_stopped(s):
    place(s)
    client = s.unified(full_auto=True)
    client.say(beyond(s))
    frames = client.until("control_request")
    notice = the(frames, "notice")
    eq((notice["level"], notice["code"]), ("warning", "sandbox_refused"))
    why = frames[-1]["context"]
    assert "outside the sandbox?" in why["description"], why
    eq(why["risk_level"], "medium", f"risk of {why}")
    assert why["covers"], why
    eq(frames[-1]["input"]["command"], f"echo first; echo x >> runs; touch {s.outside}/made")
    shown = "".join(f["output"] for f in of(frames, "command_output"))
    assert shown.startswith("first\n"), "the output so far was streamed"
    eq((runs(s), (s.outside / "made").exists()), (1, False), "it ran, confined")
    client.decide(frames[-1], "deny_stop")
    client.until_end()


@talks
def test_a_yes_runs_it_outside(s):
    place(s)
    client = s.unified(full_auto=True)
    client.decide(client.asked(beyond(s)), "allow")
    frames = client.until_end()
    done = the(frames, "tool_completed")
    assert done["success"] and done["result"].count("first") >= 1, done
    eq(spoken(frames), ["end"])
    eq((runs(s), (s.outside / "made").exists()), (2, True), "it ran again, outside")


@talks
def test_a_yes_is_for_this_call_only(s):
    place(s)
    client = s.unified(full_auto=True)
    client.decide(client.asked(f"run: touch {s.outside}/a"), "allow")
    client.until_end()
    client.decide(client.asked(f"run: touch {s.outside}/a"), "deny_stop")
    client.until_end()


@talks
def test_a_no_is_told_to_the_model_with_what_it_had(s):
    place(s)
    client = s.unified(full_auto=True)
    client.decide(client.asked(beyond(s)), "deny", explanation="rather use banana42")
    frames = client.until_end()
    told = json.dumps(the(frames, "tool_completed"))
    for words in ("first", "Not run outside the sandbox", "banana42"):
        assert words in told, f"{words}: {told}"
    eq(spoken(frames), ["end"], "the turn goes on")
    eq((runs(s), (s.outside / "made").exists()), (1, False), "it ran once, confined")


@talks
def test_always_runs_the_next_outside_at_once(s):
    place(s)
    client = s.unified(full_auto=True)
    script = f"run: touch {s.outside}/a\nsay: end"
    request = client.asked(script)
    eq(request["context"]["covers"], f"exactly `touch {s.outside}/a`, for this session")
    client.decide(request, "allow_always")
    client.until_end()
    (s.outside / "a").unlink()
    frames = client.turn(script)
    eq(of(frames, "notice"), [], "nothing was stopped")
    assert (s.outside / "a").exists()
    for other in (f"touch {s.outside}/b", f"mkdir {s.outside}/c"):
        client.decide(client.asked(f"run: {other}"), "deny_stop")
        client.until_end()


@talks
def test_the_network_is_reached_only_after_a_yes(s):
    place(s)
    listener = socket.create_server(("127.0.0.1", 0))
    s.t.closing.append(listener.close)
    listener.settimeout(30)
    client = s.unified(full_auto=True)
    port = listener.getsockname()[1]
    request = client.asked(f"run: echo hi > /dev/tcp/127.0.0.1/{port}\nsay: end")
    assert "network" in request["context"]["description"], request
    eq(request["context"]["risk_level"], "high", "risk")
    listener.setblocking(False)
    try:
        raise AssertionError(f"somebody came: {listener.accept()}")
    except BlockingIOError:
        pass
    client.decide(request, "allow")
    listener.settimeout(30)
    stream, _ = listener.accept()
    eq(stream.recv(9), b"hi\n")
    stream.close()
    client.until_end()


@talks
def test_where_nobody_may_be_asked_the_model_gets_what_it_had(s):
    """The session becomes one that does not ask while the command runs."""
    place(s)
    client = s.unified(full_auto=True)
    client.say(f"run: touch begun; until [ -e go ]; do sleep 0.02; done; echo first; "
               f"touch {s.outside}/made\nsay: end")
    eventually((s.work / "begun").exists, "the command runs")
    client.send("set_permission_mode", mode="dontAsk")
    client.until("session_info")
    (s.work / "go").touch()
    frames = client.until_end()
    told = json.dumps(the(frames, "tool_completed"))
    assert "first" in told and "It ran in a sandbox, which may be why" in told, told
    eq(spoken(frames), ["end"], "the turn goes on")
    assert not (s.outside / "made").exists()


@talks
def test_nobody_who_could_answer_is_attached(s):
    place(s)
    client = loom(s, full_auto=True)
    frames = client.turn(beyond(s), "t1")
    done = event(frames, "tool_end")
    assert done["is_error"] and done["result"].startswith("first\n"), done
    assert any(notice["code"] == "sandbox_refused" for notice in notices(frames)), frames
    assert not (s.outside / "made").exists()
    eq(runs(s), 1, "runs")
    eq(reply(client.turn("say: usable", "t1")), "usable")


@talks
def test_what_the_model_is_told(s):
    """With nobody to ask it hears that the sandbox may be why; after a no, the no."""
    ground.settle(s.t)
    s.work, s.outside = s.t.work, s.t.outside
    model = FakeModel(test=s.t)
    s.server(*FULL_AUTO, env=COMPLETIONS.settings(model.url))
    script = beyond(s).removeprefix("run: ").partition("\n")[0]

    def told():
        flow = COMPLETIONS.check(model.requests()[-1])
        return [part["text"] for part in flow if part["kind"] == "result"][-1]

    client = loom(s, full_auto=True)
    model.script([answer(bash(script)), say(DONE)])
    client.turn("Go", "t1")
    for words in ("first\n", "Read-only file system", "Exit code 1.", "It ran in a sandbox"):
        assert words in told(), f"{words}: {told()}"
    model.script([answer(bash(script)), say(DONE)])
    client.answer(client.asked("Go", "t1"), False, message="use banana42")
    client.until_end()
    for words in ("first\n", "It ran in a sandbox", "Not run outside the sandbox", "banana42"):
        assert words in told(), f"{words}: {told()}"
    model.script([answer(bash(script)), say(DONE)])
    client.answer(client.asked("Go", "t1"), True)
    client.until_end()
    assert "run again, outside the sandbox" in told() and told().count("first") == 2, told()
    assert (s.outside / "made").exists()


@talks
def test_the_request_and_the_output_outlive_a_crash(s):
    server = place(s)
    client = s.unified(full_auto=True, complete=False)
    before = client.asked(beyond(s))
    shown = "".join(f["output"] for f in of(client.seen, "command_output"))
    server.kill()
    s.server(*FULL_AUTO)
    client = s.watcher(full_auto=True, since=0)
    # In whatever order: what a client is owed, and what was streamed so far.
    owed = {"control_request", "command_output"}
    frames = client.until(lambda _: owed <= {f["type"] for f in client.seen})
    request = the(frames, "control_request")
    eq(request["request_id"], before["request_id"], "the same request")
    eq(request["context"], before["context"], "what it says")
    again = "".join(f["output"] for f in of(frames, "command_output"))
    assert again.startswith(shown) and again.startswith("first\n"), (shown, again)
    eq((runs(s), (s.outside / "made").exists()), (1, False), "nothing ran again")
    client.decide(request, "allow")
    frames = client.until_end()
    assert the(frames, "tool_completed")["success"], frames
    eq((runs(s), (s.outside / "made").exists()), (2, True), "it ran outside")
    whole = "".join(f["output"] for f in of(client.seen, "command_output"))
    assert whole.startswith(shown), (shown, whole)


@talks
def test_a_crash_while_it_runs_outside_never_runs_it_a_third_time(s):
    server = place(s)
    client = s.unified(full_auto=True, complete=False)
    client.say(f"run: echo x >> runs; touch {s.outside}/made || exit 1; touch out; sleep 1000")
    client.decide(client.until("control_request")[-1], "allow")
    eventually((s.work / "out").exists, "it runs outside")
    count = runs(s)
    server.kill()
    s.t.no_process_left()
    s.server(*FULL_AUTO)
    client = s.watcher(full_auto=True)
    eq(spoken(client.turn("say: usable")), ["usable"])
    eq(runs(s), count, "runs")


@talks
def test_an_interrupt_withdraws_it(s):
    place(s)
    client = s.unified(full_auto=True)
    request = client.asked(beyond(s))
    client.send("interrupt", reason="enough")
    frames = client.until_end()
    told = json.dumps(the(frames, "tool_completed"))
    assert "first" in told, f"what it had is kept: {told}"
    client.decide(request, "allow")
    client.until("error")
    eq((runs(s), (s.outside / "made").exists()), (1, False), "it ran once, confined")
    eq(spoken(client.turn("say: usable")), ["usable"])


@talks
def test_another_dialect_sees_it_and_answers(s):
    place(s)
    client = s.unified(full_auto=True)
    client.start()
    other = s.agentloop(name="Cleo", full_auto=True)
    client.say(beyond(s))
    request = client.until("control_request")[-1]
    frames = other.until("approval_request")
    system = [item for item in items(frames, "message") if item["role"] == "system"]
    assert any("sandbox" in json.dumps(item) for item in system), frames
    eq(frames[-1]["payload"]["command"][-1].split()[-1], f"{s.outside}/made", "the command")
    other.review("yes", requestId=frames[-1]["id"])
    frames = client.until_end()
    settled = the(frames, "approval_settled")
    eq((settled["request_id"], settled["decision"]), (request["request_id"], "allow"))
    assert "Cleo" in settled["by"], settled
    (output,) = outputs(other.until_end())
    eq(output["metadata"]["exit_code"], 0, output)
    assert (s.outside / "made").exists()


@talks
def test_loom_is_asked_too(s):
    place(s)
    client = loom(s, full_auto=True)
    client.run(beyond(s), "t1", approvals=True)
    frames = client.until_event("tool_approval")
    assert any(notice["code"] == "sandbox_refused" for notice in notices(frames)), frames
    client.answer(frames[-1], True)
    frames += client.until_end()
    eq(len(events(frames, "tool_start")), 1, "the call starts once")
    eq(event(frames, "tool_end")["is_error"], False, "tool_end")
    eq((runs(s), (s.outside / "made").exists()), (2, True), "it ran outside")
    request = client.asked(beyond(s, "other"), "t1")
    client.answer(request, False, message="use banana42")
    done = event(client.until_end(), "tool_end")
    assert "banana42" in done["result"] and "first" in done["result"], done
    assert not (s.outside / "other").exists()


@talks
def test_a_watcher_of_a_run_sees_how_it_was_settled(s):
    place(s)
    client = loom(s, full_auto=True)
    request = client.asked(beyond(s), "t1")
    other = s.watcher("t1", full_auto=True)
    seen = other.until("control_request")[-1]
    other.decide(seen, "deny", explanation="no")
    frames = client.until_end()
    settled = customs(frames, "approval")
    eq([one["decision"] for one in settled], ["denied"], "how")
    eq(settled[0]["call_id"], request["event"]["call_id"], "which")
    other.until_end()
