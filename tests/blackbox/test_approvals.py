"""What each decision on an approval does."""

import json
import subprocess

from frames import items, kinds, outputs, said
from harness import WAIT_SECS, eq


def asked(client, script):
    """Sends a script and returns the approval request that it causes."""
    client.say(script)
    return client.until("approval_request")[-1]


def test_yes_runs_this_command_only(t):
    client = t.server().client()
    asked(client, "run: touch a\nrun: touch b")
    client.review("yes")
    request = client.until("approval_request")[-1]
    eq(request["payload"]["command"], ["touch", "b"], "asked again")
    assert (t.work / "a").exists()
    client.review("yes", customDenyMessage=None, explanation=None, applyPatch=None)
    eq(kinds(client.until_end())[:2], ["function_call", "function_call_output"])


def test_no_exit_ends_the_turn_without_another_call(t):
    client = t.server().client()
    asked(client, "run: touch a\nsay: AFTER")
    client.review("no-exit")
    frames = client.until_end()
    eq(kinds(frames), ["function_call", "function_call_output", "idle", "agent_finished"])
    assert outputs(frames)[0]["metadata"]["exit_code"] != 0, outputs(frames)
    assert not (t.work / "a").exists(), "a denied command ran"
    eq(said(client.turn("say: next")), ["next"], "the session is usable")


def test_no_exit_withdraws_the_other_requests_of_the_turn(t):
    client = t.server().client()
    asked(client, "run: touch a\n&run: touch b\nsay: AFTER")
    client.review("no-exit")
    frames = client.until_end()
    assert "approval_request" not in kinds(frames) and not said(frames), kinds(frames)
    eq(len(items(frames, "function_call_output")), 2, "every call has a result")
    eq(list(t.work.iterdir()), [], "files")


def test_no_continue_goes_on(t):
    client = t.server().client()
    asked(client, "run: touch a\nsay: AFTER")
    client.review("no-continue")
    frames = client.until_end()
    want = ["function_call", "function_call_output", "assistant", "idle", "agent_finished"]
    eq(kinds(frames), want)
    eq(said(frames), ["AFTER"])
    assert outputs(frames)[0]["output"], "a denial says something to the model"
    assert not (t.work / "a").exists(), "a denied command ran"


def test_the_custom_deny_message_reaches_the_model(t):
    client = t.server().client()
    asked(client, "run: touch a")
    client.review("no-continue", customDenyMessage="rather use banana42")
    frames = client.until_end()
    assert "banana42" in outputs(frames)[0]["output"], outputs(frames)
    # The offline model's last reply tells the result it was given.
    assert "banana42" in said(frames)[-1], said(frames)


def test_always_covers_the_same_program_and_no_other(t):
    server = t.server()
    client = server.client()
    asked(client, "run: touch a\nrun: touch b\nrun: mkdir c")
    client.review("always")
    frames = client.until("approval_request")
    eq(frames[-1]["payload"]["command"], ["mkdir", "c"], "the next that is asked")
    assert (t.work / "b").exists(), "touch b is covered"
    client.review("no-continue")
    client.until_end()
    frames = client.turn("run: touch d")
    assert "approval_request" not in kinds(frames), "it holds for the whole session"
    request = asked(server.client("/ws/s2"), "run: touch e")
    eq(request["payload"]["command"], ["touch", "e"], "another session asks")


def test_always_outlives_the_server(t):
    server = t.server()
    client = server.client()
    asked(client, "run: touch a")
    client.review("always")
    client.until_end()
    server.kill()
    frames = t.server().client().turn("run: touch b")
    assert "approval_request" not in kinds(frames) and (t.work / "b").exists(), kinds(frames)


def test_always_covers_only_the_exact_command_where_that_is_dangerous(t):
    client = t.server().client()
    for name in "abc":
        (t.work / name).touch()
    asked(client, "run: rm -f a\nrun: rm -f a\nrun: rm -f b")
    client.review("always")
    request = client.until("approval_request")[-1]
    eq(request["payload"]["command"], ["rm", "-f", "b"], "the next that is asked")
    client.review("no-exit")
    client.until_end()


def test_explain_then_the_same_request_again(t):
    client = t.server().client()
    request = asked(client, "run: touch a\nsay: AFTER")
    client.review("explain")
    frames = client.until("approval_request")
    eq(kinds(frames), ["assistant", "approval_request"])
    assert "touch" in said(frames)[0], said(frames)
    eq((frames[-1]["id"], frames[-1]["payload"]), (request["id"], request["payload"]), "request")
    assert not (t.work / "a").exists(), "explaining ran it"
    client.review("explain")
    eq(kinds(client.until("approval_request")), ["assistant", "approval_request"], "once more")
    client.review("yes", requestId=request["id"])
    frames = client.until_end()
    want = ["function_call", "function_call_output", "assistant", "idle", "agent_finished"]
    eq(kinds(frames), want)


def test_the_readme_s_values(t):
    client = t.server().client()
    asked(client, "run: touch yes\nrun: touch no_continue\nrun: touch no")
    client.review("EXPLAIN")
    eq(kinds(client.until("approval_request")), ["assistant", "approval_request"], "EXPLAIN")
    client.review("YES")
    client.until("approval_request")
    client.review("NO_CONTINUE")
    client.until("approval_request")
    client.review("NO")
    eq(kinds(client.until_end())[-3:], ["function_call_output", "idle", "agent_finished"], "NO")
    asked(client, "run: touch always\nrun: touch always2")
    client.review("ALWAYS")
    assert "approval_request" not in kinds(client.until_end()), "ALWAYS"
    asked(client, "run: mkdir x")
    client.review("yEs")
    client.until_end()
    eq(sorted(p.name for p in t.work.iterdir()), ["always", "always2", "x", "yes"], "files")


def test_a_wrong_review_leaves_the_request_pending(t):
    client = t.server().client()
    asked(client, "run: touch a")
    for review in ("maybe", "", "yes please", "no-", "\0"):
        client.review(review)
        client.error()
    for payload in ({}, {"review": 1}, {"review": None}, {"review": ["yes"]}, [], "yes", None):
        client.send("approval_response", payload)
        client.error()
    client.send("approval_response", {"review": "yes", "requestId": 7})
    client.error()
    client.review("yes")
    client.until_end()
    assert (t.work / "a").exists(), "the right answer still counts"


def test_a_request_id_names_the_request(t):
    server = t.server()
    client = server.client()
    request = asked(client, "run: touch a")
    for wrong in ("", "nonsense", request["id"][:-1] + "f", "../../etc/passwd"):
        client.review("yes", requestId=wrong)
        client.error()
    client.review("yes", requestId=request["id"])
    client.until_end()
    assert (t.work / "a").exists()
    client.review("yes", requestId=request["id"])
    client.error()
    eq(said(client.turn("say: fine")), ["fine"])


def test_an_answer_with_nothing_pending(t):
    client = t.server().client()
    client.review("yes")
    eq(client.error()["message"], "No pending approval request", "message")
    client.turn("say: x")
    client.review("no-exit")
    eq(client.error()["message"], "No pending approval request", "message after a turn")


def test_the_first_answer_wins_and_the_second_is_told(t):
    server = t.server()
    one, two = server.client("/ws/s1?name=Ada"), server.client("/ws/s1?name=Bob")
    request = asked(one, "run: echo x >> runs\nrun: touch later")
    eq(two.until("approval_request")[-1]["id"], request["id"], "both are asked")
    one.review("no-continue", requestId=request["id"])
    assert "function_call" in kinds(two.until("approval_request")), "both learn the outcome"
    two.review("yes", requestId=request["id"])
    told = json.dumps(two.error())
    assert "settled" in told and "Ada" in told, f"it says that it was settled, and by whom: {told}"
    two.review("no-exit")
    two.until_end()
    two.review("yes", requestId=request["id"])
    two.error()
    eq(list(t.work.iterdir()), [], "files: the late answers ran nothing")


def test_racing_answers_run_it_once(t):
    server = t.server()
    clients = [server.client() for _ in range(8)]
    request = asked(clients[0], "run: echo x >> runs")
    for client in clients[1:]:
        client.until("approval_request")
    for client in clients:
        client.review("yes", requestId=request["id"])
    for client in clients:
        client.until("agent_finished")
        # Answers to one client keep their order, so its error comes before this.
        client.send("get_context_info")
        client.until("context_info")
    told = [[f for f in client.seen if f["type"] == "error"] for client in clients]
    eq(sorted(map(len, told)), [0] + [1] * 7, "errors: all but one are told")
    eq((t.work / "runs").read_text(), "x\n", "it ran once")


def test_nobody_answers_in_time(t):
    client = t.server(env={"APPROVAL_TIMEOUT_SECS": 1}).client()
    asked(client, "run: touch a\nsay: AFTER")
    frames = client.until_end()
    want = ["function_call", "function_call_output", "assistant", "idle", "agent_finished"]
    eq(kinds(frames), want)
    assert not (t.work / "a").exists(), "it ran"


def test_commands_that_write_are_asked_for(t):
    client = t.server().client()
    (t.work / "f").write_text("x")
    for command in ("rm f", "ls > g", "find . -delete", "cat f | sh", "ls; touch g", "$(ls)"):
        asked(client, f"run: {command}")
        client.review("no-exit")
        client.until_end()
    eq([p.name for p in t.work.iterdir()], ["f"], "files")


def test_plain_reading_commands_are_not_asked_for(t):
    client = t.server(env={"TOOL_USE_APPROVAL_MODE": "suggest"}).client()
    (t.work / "f").write_text("x")
    wrongly = []
    for command in ("ls", "cat f", "pwd", "echo hi", "head -n 1 f", "wc -l f"):
        client.say(f"run: {command}")
        frames = client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
        if frames[-1]["type"] == "approval_request":
            wrongly.append(command)
            client.review("no-exit")
            client.until_end()
    eq(wrongly, [], "asked for")
