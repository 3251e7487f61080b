"""Unified: what each decision on a request does, and who may still decide."""

from harness import eq, eventually
from talk import of, spoken, talks, the, types


def files(s):
    return sorted(p.name for p in s.work.iterdir())


def is_asked(client, command):
    """Whether a command is asked for; it is then denied."""
    client.say(f"run: {command}")
    frames = client.until(lambda f: f["type"] in ("control_request", "turn_completed"))
    if frames[-1]["type"] == "turn_completed":
        return False
    client.decide(frames[-1], "deny_stop")
    client.until_end()
    return True


@talks
def test_allow_is_for_this_call_only(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nrun: touch b\nsay: end")
    client.decide(request, "allow")
    again = client.until("control_request")[-1]
    eq(again["input"], {"command": "touch b"}, "the second is asked for too")
    client.decide(again, "allow")
    eq(spoken(client.until_end()), ["end"])
    eq(files(s), ["a", "b"], "files")


@talks
def test_allow_always_covers_what_was_shown(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a")
    assert "touch" in request["context"]["covers"], f"it says what it covers: {request}"
    client.decide(request, "allow_always")
    client.until_end()
    assert not is_asked(client, "touch b"), "the same program"
    assert is_asked(client, "mkdir c"), "another program of the same tool"
    assert is_asked(client, "touch c; mkdir d"), "more than one command"
    assert is_asked(client, "touch $(mkdir d)"), "a command in a command"
    assert is_asked(client, "touch -r a d"), "another option"
    other = s.unified(session="s2")
    assert is_asked(other, "touch e"), "another session"
    eq(files(s), ["a", "b"], "files")


@talks
def test_allow_always_covers_a_subcommand(s):
    s.server()
    client = s.unified()
    request = client.asked("run: git tag one")
    assert "git tag" in request["context"]["covers"], request
    client.decide(request, "allow_always")
    client.until_end()
    assert not is_asked(client, "git tag two"), "the same subcommand"
    assert is_asked(client, "git branch three"), "another subcommand"
    assert is_asked(client, "git push"), "another subcommand"


@talks
def test_allow_always_of_what_deletes_is_exact(s):
    s.server()
    for name in ("a", "b"):
        (s.work / name).touch()
    client = s.unified()
    client.decide(client.asked("run: rm a"), "allow_always")
    client.until_end()
    assert is_asked(client, "rm b"), "another file"
    assert not is_asked(client, "rm a"), "the very command"
    eq(files(s), ["b"], "files")


@talks
def test_allow_always_outlives_a_restart(s):
    server = s.server()
    client = s.unified(complete=False)
    client.decide(client.asked("run: touch a"), "allow_always")
    client.until_end()
    server.kill()
    s.server()
    client = s.unified()
    assert not is_asked(client, "touch b"), "the same session"
    assert is_asked(client, "mkdir c"), "another program"


@talks
def test_deny_with_an_explanation_goes_on(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: AFTER")
    client.decide(request, "deny", explanation="Not in this directory")
    frames = client.until_end()
    done = the(frames, "tool_completed")
    eq((done["tool_id"], done["success"], done["result"]), (request["tool_use_id"], False, None))
    assert "Not in this directory" in done["error"], f"the explanation: {done}"
    eq(spoken(frames), ["AFTER"])
    eq(types(frames)[-1], "turn_completed")
    eq((of(frames, "command_output"), files(s)), ([], []), "nothing ran")


@talks
def test_the_model_sees_the_explanation(s):
    s.server()
    client = s.unified()
    # When its script is over, the offline model repeats the last result that it was given.
    client.decide(client.asked("run: touch a"), "deny", explanation="Not in this directory")
    (said,) = spoken(client.until_end())
    assert "Not in this directory" in said, said


@talks
def test_deny_without_an_explanation(s):
    s.server()
    client = s.unified()
    for fields in ({}, {"explanation": None}, {"explanation": ""}):
        client.decide(client.asked("run: touch a\nsay: AFTER"), "deny", **fields)
        frames = client.until_end()
        assert the(frames, "tool_completed")["error"].strip(), f"{fields}: it says something"
        eq(spoken(frames), ["AFTER"], f"{fields}")


@talks
def test_deny_stop_completes_the_turn_without_another_call(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\n&run: touch b\nsay: AFTER")
    client.decide(request, "deny_stop", explanation="Stop here")
    frames = client.until_end()
    eq(types(frames)[-1], "turn_completed")
    eq((spoken(frames), of(frames, "token_usage")), ([], []), "no other model call")
    eq([d["success"] for d in of(frames, "tool_completed")], [False, False], "both calls end")
    eq(files(s), [], "files")
    eq(spoken(client.turn("say: next")), ["next"])


@talks
def test_explain_then_the_same_request_again(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: AFTER")
    for _ in range(2):
        client.decide(request, "explain")
        frames = client.until("control_request")
        eq(types(frames), ["assistant_message", "control_request"])
        assert "touch" in spoken(frames)[0], spoken(frames)
        same = ("request_id", "tool_use_id", "tool_name", "input", "context")
        eq({k: frames[-1][k] for k in same}, {k: request[k] for k in same}, "the request")
        eq(files(s), [], "explaining runs nothing")
    client.decide(request, "allow")
    eq(spoken(client.until_end()), ["AFTER"])
    eq(files(s), ["a"], "files")


@talks
def test_a_late_answer_is_told_who_settled(s):
    s.server()
    one, two = s.unified(name="Ada"), s.watcher(name="Bob")
    request = one.asked("run: touch a\nsay: end")
    eq(two.until("control_request")[-1]["request_id"], request["request_id"], "both are asked")
    one.decide(request, "allow")
    for each in (one, two):
        settled = each.until("approval_settled")[-1]
        eq((settled["request_id"], settled["decision"]), (request["request_id"], "allow"))
        assert "Ada" in settled["by"], settled
        each.until_end()
    two.decide(request, "deny")
    told = two.error()
    assert "Ada" in told and "settled" in told, f"who settled it: {told}"
    eq(spoken(two.turn("say: next")), ["next"])


@talks
def test_racing_answers_run_it_once(s):
    s.server()
    clients = [s.watcher() for _ in range(6)]
    request = clients[0].asked("run: echo x >> runs\nsay: end")
    for client in clients[1:]:
        client.until("control_request")
    for client in clients:
        client.decide(request, "allow")
    for client in clients:
        client.until_end()
        client.send("get_context")
        client.until("context_info")
    told = sorted(len(of(client.seen, "error")) for client in clients)
    eq(told, [0] + [1] * 5, "errors: all but one are told")
    eq((s.work / "runs").read_text(), "x\n", "it ran once")


@talks
def test_the_user_id_is_the_name_in_by(s):
    s.server()
    client = s.unified()
    client.start(metadata={"user_id": "user-123", "project": "my-project"})
    client.decide(client.asked("run: touch a"), "allow")
    assert "user-123" in client.until("approval_settled")[-1]["by"], client.seen[-1]
    client.until_end()
    assert "user-123" in of(client.seen, "turn_started")[-1].get("by", "user-123"), "who spoke"


@talks
def test_a_wrong_answer_leaves_the_request_open(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: end")
    for decision in ("yes", "", "ALLOW", "allow ", "always", "\0", "allow\0"):
        client.decide(request, decision)
        client.error()
    for wrong in ("", "req-", "req-0", "req-999", "tool-999", "req-18446744073709551616", "x",
                  "../../etc/passwd", request["request_id"] + " ", "req--1", "req-+8"):
        client.send("permission_response", request_id=wrong, decision="allow")
        client.error()
    client.send("user_question_response", request_id=request["request_id"],
                answers=[{"question_index": 0, "selected": ["yes"]}])
    client.error()
    eq(files(s), [], "nothing ran")
    client.decide(request, "allow")
    eq(spoken(client.until_end()), ["end"])
    client.decide(request, "allow")
    client.error()


@talks
def test_a_message_is_no_approval(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: end")
    client.say("yes", parent_tool_use_id=request["tool_use_id"])
    client.error()
    eq(files(s), [], "files")
    client.decide(request, "deny_stop")
    client.until_end()


@talks
def test_several_calls_of_one_reply_are_asked_for_in_turn(s):
    s.server()
    client = s.unified()
    client.say("run: touch a\n&run: touch b\n&run: touch c\nsay: end")
    for decision in ("allow", "deny", "allow"):
        client.decide(client.until("control_request")[-1], decision)
    client.until_end()
    eq([t["arguments"]["command"][-1] for t in of(client.seen, "tool_started")], ["a", "b", "c"])
    eq([d["success"] for d in of(client.seen, "tool_completed")], [True, False, True])
    eq(files(s), ["a", "c"], "files")


@talks
def test_risk_levels(s):
    s.server()
    client = s.unified()
    for command, level in {
        "touch a": "medium", "rm -rf /tmp/cache": "medium", "rm -rf /": "high",
        "sudo ls": "high", "curl http://127.0.0.1:9/x | sh": "high", "rm -rf ~": "high",
        "git push --force": "high",
    }.items():
        request = client.asked(f"run: {command}")
        client.decide(request, "deny_stop")
        client.until_end()
        eq(request["context"]["risk_level"], level, command)
        assert request["context"]["description"], request


@talks
def test_nobody_answers_in_time(s):
    s.server(env={"APPROVAL_TIMEOUT_SECS": 1})
    client = s.unified()
    client.asked("run: touch a\nsay: AFTER")
    frames = client.until_end()
    eq(the(frames, "tool_completed")["success"], False, "it is denied")
    eq((spoken(frames), types(frames)[-1]), (["AFTER"], "turn_completed"), "the turn goes on")
    eq(files(s), [], "files")


@talks
def test_it_waits_though_everybody_left(s):
    server = s.server()
    client = s.unified(complete=False)
    request = client.asked("run: touch a\nsay: end")
    client.drop()
    eventually(lambda: "s1" in s.sessions(), "the session is there")
    client = s.watcher()
    eq(client.until("control_request")[-1]["request_id"], request["request_id"], "still asked")
    client.decide(request, "allow")
    eq(spoken(client.until_end()), ["end"])
    eq(server.process.poll(), None, "the server runs")
