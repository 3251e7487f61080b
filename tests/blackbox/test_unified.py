"""Unified: the four scenarios of its document in their order, sessions, usage, ways to connect."""

import json

from harness import eq
from talk import of, spoken, talks, the, types


# The scenarios.


@talks
def test_scenario_1_a_simple_query(s):
    s.server()
    client = s.unified()
    text = "Let me help you with that, in a few more words than one piece holds."
    frames = client.turn(f"usage: 1000 500\nsay: {text}")
    eq(types(frames), ["turn_started", "assistant_message", "turn_completed"])
    pieces = of(frames, "assistant_message")
    eq([piece["is_final"] for piece in pieces], [False] * (len(pieces) - 1) + [True], "is_final")
    eq("".join(piece["text"] for piece in pieces), text, "the pieces are increments")
    eq(pieces[-1]["text"], "", "text of the final piece")
    usage = {"input_tokens": 1000, "output_tokens": 500, "cached_tokens": 0, "total_tokens": 1500}
    eq(frames[-1]["usage"], usage, "usage")


@talks
def test_scenario_2_a_tool_that_needs_permission(s):
    s.server()
    client = s.unified()
    command = "perl -le 'print for @ARGV' one two"
    client.say(f"say: I will look\nrun: {command}\nsay: There.")
    frames = client.until("control_request")
    eq(types(frames), ["turn_started", "assistant_message", "tool_started", "control_request"])
    started, request = the(frames, "tool_started"), frames[-1]
    eq((started["tool_name"], started["arguments"]), ("Bash", {"command": command}))
    eq((request["tool_name"], request["tool_use_id"], request["input"]),
       ("Bash", started["tool_id"], started["arguments"]), "the request names its call")
    client.decide(request, "allow", explanation="This operation is safe")
    frames = client.until_end()
    eq(types(frames, ("token_usage", "approval_settled")),
       ["command_output", "tool_completed", "assistant_message", "turn_completed"])
    outputs, done = of(frames, "command_output"), the(frames, "tool_completed")
    eq("".join(o["output"] for o in outputs), "one\ntwo\n", "output")
    eq({o["tool_id"] for o in outputs}, {started["tool_id"]}, "tool_id")
    eq({o["command"] for o in outputs}, {command}, "command")
    eq([o["is_streaming"] for o in outputs], [True] * (len(outputs) - 1) + [False], "is_streaming")
    eq([o["exit_code"] for o in outputs], [None] * (len(outputs) - 1) + [0], "exit_code")
    eq((done["tool_id"], done["success"], done["result"], done["error"]),
       (started["tool_id"], True, "one\ntwo\n", None), "tool_completed")
    eq(spoken(frames), ["There."])


@talks
def test_scenario_3_a_question(s):
    s.server()
    client = s.unified()
    client.say("think: which one is it\nask: Which approach? | Fast | Flexible\nsay: Good.")
    frames = client.until("ask_user_question")
    eq(types(frames), ["turn_started", "assistant_reasoning", "ask_user_question"])
    eq("".join(f["text"] for f in of(frames, "assistant_reasoning")), "which one is it")
    (question,) = frames[-1]["questions"]
    eq((question["question"], [o["label"] for o in question["options"]], question["multiSelect"]),
       ("Which approach?", ["Fast", "Flexible"], False), "question")
    client.answer(frames[-1], ["Fast"])
    frames = client.until_end()
    eq(types(frames, ("token_usage", "approval_settled")), ["assistant_message", "turn_completed"])


@talks
def test_scenario_4_compaction(s):
    s.server()
    client = s.unified()
    client.turn("say: " + "some words " * 200)
    frames = client.turn("usage: 117760 0\nsay: much")
    eq(the(frames, "token_usage")["usage_percent"], 0.92, "before")
    client.send("compact")
    frames = client.until_end()
    told = types(frames, ())
    eq(told[-3:], ["context_compaction", "token_usage", "turn_completed"], "order")
    compacted, after = the(frames, "context_compaction"), of(frames, "token_usage")[-1]
    assert compacted["reason"], compacted
    assert compacted["tokens_after"] < compacted["tokens_before"], compacted
    eq(after["usage"]["total_tokens"], compacted["tokens_after"], "what is left")
    eq(client.turn("say: next")[-1]["type"], "turn_completed", "the session afterwards")


@talks
def test_compacting_nothing_and_during_a_turn_are_errors(s):
    s.server()
    client = s.unified()
    client.start()
    client.send("compact")
    client.error()
    request = client.asked("run: touch a")
    client.send("compact")
    client.error()
    client.decide(request, "deny_stop")
    client.until_end()


# Sessions.


@talks
def test_a_session_is_started(s):
    s.server()
    client = s.unified()
    init = client.start(permission_mode="manual", max_turns=10,
                        metadata={"user_id": "user-123", "project": "my-project"})
    eq((init["session_id"], init["cwd"], init["permission_mode"]),
       ("s1", str(s.work), "manual"), "session_init")
    assert init["model"] and "Bash" in init["tools"] and "AskUserQuestion" in init["tools"], init
    eq(s.sessions(), ["s1"], "sessions")
    eq(types(client.turn("say: x")), ["turn_started", "assistant_message", "turn_completed"])


@talks
def test_a_message_to_a_session_never_started_starts_it_silently(s):
    s.server()
    client = s.unified(session="s-new")
    eq(client.turn("say: x")[0]["type"], "turn_started", "the first event")
    eq(s.sessions(), ["s-new"], "sessions")


@talks
def test_a_session_is_ended_and_started_again(s):
    s.server()
    client = s.unified()
    client.turn("say: one")
    client.send("get_context")
    before = client.recv()["transcript_length"]
    client.send("session_end")
    info = client.recv()
    eq((info["type"], info["status"]), ("session_info", "completed"))
    client.send("session_end")
    client.error()
    client.send("session_start")
    eq(client.until("session_init")[-1]["success"], True, "it is opened again")
    eq(client.until("session_info")[-1]["status"], "active", "and active")
    client.send("get_context")
    eq(client.recv()["transcript_length"], before, "what was said is still there")
    eq(spoken(client.turn("say: two")), ["two"])


@talks
def test_speaking_to_an_ended_session_goes_on(s):
    s.server()
    client = s.unified()
    client.turn("say: one")
    client.send("session_end")
    client.until("session_info")
    frames = client.turn("say: two")
    eq(spoken(frames), ["two"])
    eq([f["status"] for f in of(frames, "session_info")], ["active"], "it is active again")


@talks
def test_ending_a_session_stops_its_turn_and_drops_its_queue(s):
    s.server()
    client = s.unified()
    client.asked("run: touch a\nsay: AFTER")
    client.say("say: queued")
    client.send("session_end")
    frames = client.until(lambda frame: frame.get("status") == "completed")
    failed = the(client.until("turn_failed") if not of(frames, "turn_failed") else frames,
                 "turn_failed")
    assert failed["error"].startswith("Interrupted: "), failed
    eq(spoken(client.turn("say: next")), ["next"], "nothing of the queue is left")
    eq(list(s.work.iterdir()), [], "files")


@talks
def test_what_was_said_outlives_a_restart(s):
    server = s.server()
    client = s.unified(complete=False)
    client.turn("say: one")
    client.send("get_context")
    before = client.recv()["transcript_length"]
    server.kill()
    s.server()
    client = s.unified()
    client.start()
    client.send("get_context")
    eq(client.recv()["transcript_length"], before, "pieces of the transcript")
    eq(spoken(client.turn("say: two")), ["two"])


@talks
def test_several_sessions_on_one_connection(s):
    s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: of s1")
    eq(spoken(client.turn("say: of s2", session="s2")), ["of s2"])
    client.start(session="s3")
    client.decide(request, "allow")
    eq(spoken(client.until_end()), ["of s1"])
    eq({f["session_id"] for f in client.seen}, {"s1", "s2", "s3"}, "sessions of the events")
    eq(sorted(s.sessions()), ["s1", "s2", "s3"], "sessions")
    client.decide(request, "allow", session="s2")
    client.error()
    eq([p.name for p in s.work.iterdir()], ["a"], "files")


@talks
def test_nothing_is_asked_of_a_session_that_is_not_there(s):
    s.server()
    client = s.unified(session="nobody")
    for kind, fields in {
        "interrupt": {"reason": "x"}, "resume": {}, "cancel": {"target_id": "msg-001"},
        "session_end": {}, "set_permission_mode": {"mode": "manual"}, "compact": {},
        "get_context": {}, "set_model": {"model": "offline"}, "set_agent": {"agent": "react"},
        "permission_response": {"request_id": "req-1", "decision": "allow"},
        "user_question_response": {"tool_id": "req-1", "answers": []},
        "plan_approval_response": {"tool_id": "req-1", "approved": True},
    }.items():
        client.send(kind, **fields)
        client.error()
    eq(s.sessions(), [], "sessions")
    eq([p.name for p in s.store.glob("*.jsonl")], [], "session files")
    eq(spoken(client.turn("say: now")), ["now"], "the connection afterwards")


# Usage.


@talks
def test_usage_adds_up(s):
    s.server()
    client = s.unified()
    frames = client.turn("usage: 100 20\nrun: ls\nusage: 6300 700\nsay: x")
    told = of(frames, "token_usage")
    eq([u["usage"]["total_tokens"] for u in told], [120, 7000], "a call")
    for each in told:
        want = each["usage"]["total_tokens"] / each["context_window"]
        assert abs(each["usage_percent"] - want) < 1e-6, f"a fraction: {each}"
    usage = {"input_tokens": 6400, "output_tokens": 720, "cached_tokens": 0, "total_tokens": 7120}
    eq(frames[-1]["usage"], usage, "of the turn")


@talks
def test_usage_percent_is_a_plain_decimal(s):
    s.server()
    client = s.unified()
    client.turn("usage: 1 0\nsay: x")
    raw = [step["out"] for step in client.wire.steps if "out" in step]
    (line,) = [text for text in raw if '"token_usage"' in text]
    number = line.partition('"usage_percent":')[2].split(",")[0]
    assert "e" not in number.lower() and float(number) > 0, number


@talks
def test_a_turn_has_a_bound(s):
    s.server()
    client = s.unified()
    client.start(max_turns=2)
    frames = client.turn("run: ls\nrun: pwd\nrun: ls\nsay: AFTER")
    eq(types(frames)[-1], "turn_failed")
    eq(len(of(frames, "token_usage")), 2, "model calls")
    assert "2" in frames[-1]["error"], f"it says which bound: {frames[-1]}"
    eq(types(client.turn("run: ls\nsay: x"))[-1], "turn_completed", "within the bound")


@talks
def test_a_failed_turn_ends_once(s):
    s.server()
    client = s.unified()
    for failure in ("500", "429", "disconnect", "garbage"):
        frames = client.turn(f"say: begun\nfail: {failure}")
        eq(types(frames)[-1], "turn_failed", failure)
        assert frames[-1]["error"], f"{failure}: {frames[-1]}"
        eq(of(frames, "error"), [], f"{failure}: no error beside it")
    eq(spoken(client.turn("say: fine")), ["fine"])


# Ways to connect.


@talks
def test_the_first_message_decides_on_bare_paths(s):
    s.server()
    for path in ("/", "/ws"):
        client = s.unified(path)
        eq(spoken(client.turn("say: x")), ["x"], path)
        client.raw(json.dumps({"type": "chat", "message": "x"}))
        assert "chat" in client.error(), "the dialect sticks"


@talks
def test_a_dialect_that_was_named(s):
    s.server()
    for path, options in (("/unified", {}), ("/?protocol=unified", {}),
                          ("/ws", {"subprotocols": ["unified.v1"]}),
                          ("/ws?protocol=unified", {})):
        client = s.unified(path, **options)
        client.raw("{")
        client.error()
        eq(spoken(client.turn("say: x")), ["x"], path)


@talks
def test_who_names_a_session_is_greeted(s):
    s.server()
    for path in ("/ws?session_id=s1", "/unified?session_id=s1", "/?protocol=unified&session_id=s1"):
        client = s.unified(path)
        init = client.recv()
        eq((init["type"], init["session_id"]), ("session_init", "s1"), path)
        eq(spoken(client.turn("say: x")), ["x"], path)
        client.drop()


@talks
def test_a_session_id_in_the_address_is_the_default(s):
    s.server()
    client = s.watcher("s7")
    client.raw(json.dumps({"type": "user_message", "content": "say: x"}))
    eq(spoken(client.until_end()), ["x"])
    eq(client.seen[-1]["session_id"], "s7")


@talks
def test_addresses_that_are_refused(s):
    server = s.server()
    for path in ("/ws?session_id=../x", "/unified?session_id=a/b", "/unified?session_id=",
                 "/ws?protocol=nope", "/unified?session_id=%00"):
        eq(server.upgrade(path), 400, path)
    eq(s.sessions(), [], "sessions")


@talks
def test_the_model_and_the_agent_can_be_set(s):
    s.server()
    client = s.unified()
    model = client.start()["model"]
    client.send("set_model", model=model)
    eq(client.recv()["type"], "session_info", "the model is confirmed")
    client.send("set_agent", agent="react")
    eq(client.recv()["type"], "session_info", "the agent is confirmed")
    for kind, fields in (("set_model", {"model": "no-such-model"}), ("set_agent", {"agent": "x"})):
        client.send(kind, **fields)
        client.error()
    eq(spoken(client.turn("say: x")), ["x"])
