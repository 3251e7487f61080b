"""Stopping a turn: it ends soon and in the normal form, leaves nothing running, and the session
can be used."""

from frames import kinds, outputs, said, texts
from harness import eq, eventually, processes_in


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
