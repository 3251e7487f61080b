"""The message sequences of the protocol document, in their exact order, and what the items hold."""

import json

from frames import item_text, items, kinds, outputs, said, texts
from harness import eq

UNICODE = "Grüße, 世界 👩‍👩‍👧‍👦 — a\u0301 and \u200d, \"quotes\" \\ back, tab\there, <b>&amp;</b>"


def test_basic_query(t):
    client = t.server().client()
    frames = client.turn("say: I look around first.\nrun: ls\nsay: That was all.")
    want = ["loading", "assistant", "function_call", "function_call_output", "assistant",
            "idle", "agent_finished"]
    eq(kinds(frames), want)
    eq(said(frames), ["I look around first.", "That was all."])


def test_query_requiring_approval(t):
    client = t.server().client()
    client.say("say: I need a file.\nrun: touch new.txt\nsay: There it is.")
    frames = client.until("approval_request")
    eq(kinds(frames), ["loading", "assistant", "approval_request"])
    eq(frames[-1]["payload"], {"command": ["touch", "new.txt"]}, "request")
    assert not (t.work / "new.txt").exists(), "it ran before it was approved"
    client.review("yes")
    frames = client.until_end()
    want = ["function_call", "function_call_output", "assistant", "idle", "agent_finished"]
    eq(kinds(frames), want)
    assert (t.work / "new.txt").exists(), "it was approved and did not run"


def test_error_scenario(t):
    client = t.server().client()
    frames = client.turn("fail: 429")
    eq(kinds(frames), ["loading", "error", "idle"])
    error = frames[1]["payload"]
    eq(error["message"], "Failed to process user input", "message")
    eq(error["details"]["code"], 429, "code")
    # No agent_finished follows: the next thing that happens is the next turn.
    frames = client.turn("say: I am back.")
    eq(kinds(frames), ["loading", "assistant", "idle", "agent_finished"])
    eq(said(frames), ["I am back."])


def test_every_failure_of_a_model_ends_as_the_error_scenario(t):
    client = t.server().client()
    for script in ("fail: 500", "fail: disconnect", "fail: garbage", "cut:\nrun: touch never"):
        eq(kinds(client.turn(script)), ["loading", "error", "idle"], script)
    eq(kinds(client.turn("say: half\nfail: disconnect")), ["loading", "assistant", "error", "idle"])
    eq(kinds(client.turn("say: fine")), ["loading", "assistant", "idle", "agent_finished"])
    assert not (t.work / "never").exists(), "a call that was never whole ran"


def test_function_call_and_its_output(t):
    client = t.server().client()
    (t.work / "a.txt").write_text("hello\n")
    frames = client.turn("run: cat a.txt")
    (call,), (result,) = items(frames, "function_call"), items(frames, "function_call_output")
    eq(call["name"], "shell", "name")
    eq(json.loads(call["arguments"])["command"], ["cat", "a.txt"], "command")
    eq(result["call_id"], call["call_id"], "call_id")
    (output,) = outputs(frames)
    eq((output["output"], output["metadata"]["exit_code"]), ("hello\n", 0), "output")


def test_a_failing_command_tells_its_code_and_errors(t):
    client = t.server().client()
    client.say("run: echo out; echo err >&2; trap - INT; exit 7")
    request = client.until("approval_request")[-1]
    script = "echo out; echo err >&2; trap - INT; exit 7"
    eq(request["payload"]["command"], ["bash", "-lc", script], "command of a script")
    client.review("yes")
    (output,) = outputs(client.until_end())
    eq(output["metadata"]["exit_code"], 7, "exit code")
    assert "out" in output["output"] and "err" in output["output"], output


def test_the_working_directory_is_the_one_configured(t):
    (output,) = outputs(t.server().client().turn("run: pwd"))
    eq(output["output"], f"{t.work}\n", "pwd")


def test_an_unknown_tool_gets_a_result_and_the_turn_goes_on(t):
    frames = t.server().client().turn('tool: no_such_tool {"a":1}\nsay: on we go')
    want = ["loading", "function_call", "function_call_output", "assistant", "idle",
            "agent_finished"]
    eq(kinds(frames), want)
    assert outputs(frames)[0]["metadata"]["exit_code"] != 0, outputs(frames)


def test_reasoning_is_one_whole_item(t):
    frames = t.server().client().turn("think: First I look around.\nsay: Done.")
    eq(kinds(frames), ["loading", "reasoning", "assistant", "idle", "agent_finished"])
    eq(item_text(items(frames, "reasoning")[0]), "First I look around.", "reasoning")


def test_streamed_text_equals_the_whole_in_the_session(t):
    server = t.server()
    client = server.client()
    frames = client.turn(f"say: {UNICODE}\nstream: 100 37 1\nsay: {'long text ' * 2000}")
    streamed = texts(frames)
    whole = [m["payload"] for m in server.messages() if m.get("type") == "response_item"]
    kept = {item["id"]: item_text(item) for item in whole if item["type"] == "message"}
    eq(kept, streamed, "texts by item id")
    eq(len([i for i in whole if i["type"] == "message"]), 3, "one whole message an item")
    eq(list(streamed.values())[0], UNICODE, "text")
    numbers = list(streamed.values())[1]
    eq(numbers, "".join(f"{n:07} " for n in range(463))[:3700], "streamed text")
    pieces = [f for f in frames if f["type"] == "response_item"
              and f["payload"]["id"] == list(streamed)[1]]
    assert len(pieces) > 3, f"a slow stream comes in pieces, not in {len(pieces)}"


def test_a_reply_with_several_calls_presents_approvals_one_at_a_time(t):
    client = t.server().client()
    client.say("run: touch a\n&run: touch b\nsay: both")
    first = client.until("approval_request")
    eq(first[-1]["payload"]["command"], ["touch", "a"], "first request")
    client.review("yes")
    second = client.until("approval_request")
    eq(second[-1]["payload"]["command"], ["touch", "b"], "second request")
    client.review("no-continue")
    rest = client.until_end()
    calls = items(second + rest, "function_call")
    eq([json.loads(c["arguments"])["command"][1] for c in calls], ["a", "b"], "calls")
    done = [o["metadata"]["exit_code"] for o in outputs(second + rest)]
    assert done[0] == 0 and done[1] != 0, done
    eq(sorted(p.name for p in t.work.iterdir()), ["a"], "files")
    eq(said(rest), ["both"])


def test_every_documented_form_of_input(t):
    client = t.server().client()
    message = {"type": "message", "role": "user"}
    forms = [
        [{**message, "content": [{"type": "input_text", "text": "say: one"}]}],
        [{**message, "content": [{"type": "output_text", "text": "say: one"}]}],
        [{**message, "content": "say: one"}],
        [{"type": "input_text", "text": "say: one"}],
    ]
    for form in forms:
        client.send("user_input", {"input": form, "previousResponseId": "resp_123"})
        eq(said(client.until_end()), ["one"], f"reply to {form}")
    parts = [{"type": "input_text", "text": "say: one"}, {"type": "input_text", "text": "say: two"}]
    client.send("user_input", {"input": [{**message, "content": parts}]})
    eq(said(client.until_end()), ["one", "two"], "reply to two parts")


def test_turns_have_their_own_response_ids(t):
    client = t.server().client()
    finished = [client.turn("say: x")[-1]["payload"]["responseId"] for _ in range(3)]
    eq(len(set(finished)), 3, f"different ids of {finished}")


def test_nul_in_a_command_is_a_failed_call(t):
    client = t.server().client()
    client.say('tool: bash {"command":"echo a\\u0000b"}\nsay: still here')
    frames = client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
    if frames[-1]["type"] == "approval_request":
        client.review("yes")
        frames += client.until_end()
    assert outputs(frames)[0]["metadata"]["exit_code"] != 0, outputs(frames)
    eq(said(frames)[-1], "still here")


def test_nul_in_a_text_is_kept(t):
    frames = t.server().client().turn("say: a\0b")
    eq(said(frames), ["a\0b"])
