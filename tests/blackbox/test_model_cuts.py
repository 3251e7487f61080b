"""Answers that break off, stall or are called off: what was shown stays once, what did not come
whole is never run, and nobody waits for ever."""

import base64
import json
import time

from frames import said
from harness import eq
from loomtalk import events
from talk import of, spoken, talks, the
from test_model_faults import (APIS, FINE, PROVIDERS, Everyone, begin, for_each_api, has)

PATHS = {"responses": "/v1/responses", "chat": "/v1/chat/completions",
         "anthropic": "/v1/messages",
         "google": "/v1beta/models/m:streamGenerateContent?alt=sse"}
# A request so short that nothing of it is worth repeating in an answer.
ASKED = {"model": "m", "stream": True, "input": "x", "tools": [{"type": "local_shell"}],
         "messages": [{"role": "user", "content": "x"}],
         "contents": [{"role": "user", "parts": [{"text": "x"}]}]}
KEYS = {"authorization": "Bearer x", "x-api-key": "x", "x-goog-api-key": "x"}


def body_of(model, api, answer):
    """The bytes of an answer's stream."""
    model.script([answer])
    status, body = model.http("POST", PATHS[api], json.dumps(ASKED), KEYS)
    eq(status, 200, f"status, {body}")
    model.clear_requests()
    return body.decode()


def spread(start, end, count):
    """So many places from start up to the last before the end."""
    return [start + (end - 1 - start) * at // (count - 1) for at in range(count)]


# Cuts in the middle of a text.

TEXT = "Alpha, bravo, charlie: " + " ".join(f"word {n} äöü 漢字" for n in range(20)) + ". Zulu."
MARK = "Alpha, bravo"
CUTS = 50


def begun_anew(s, api):
    """An answer that breaks off is asked for again; its parts are not mixed."""
    model = begin(s, api, store=False, MODEL_RETRIES=4)
    body = body_of(model, api, {"blocks": [{"say": TEXT}]})
    cuts = spread(1, len(body.encode()), CUTS)
    model.script([{"raw": body, "cut_bytes": cut} for cut in cuts])
    model.script([{"raw": body, "repeat": 2 * CUTS}])
    clients = [(s.watcher(f"s{n}"), s.agentloop(f"s{n}")) for n in range(CUTS)]
    for n, (client, _) in enumerate(clients):
        client.say(f"session {n}")
    parts, retries = set(), 0
    for client, other in clients:
        frames = client.until_end()
        eq(frames[-1]["type"], "turn_completed", f"end of the turn, {frames[-1]}")
        *shown, whole = spoken(frames)
        eq(whole, TEXT, "the answer")
        assert all(TEXT.startswith(part) for part in shown), f"not what was sent: {shown}"
        eq(said(other.until_end()), [*shown, whole], "items of agentloop")
        notices = of(frames, "notice")
        assert notices, "nobody is told of the cut"
        for notice in notices:
            has(notice["text"], "broke off", "retrying in")
        retries += len(notices)
        parts.update(shown)
        # A part that was shown is closed before anything is said of it.
        kinds = [frame["type"] for frame in frames if frame["type"] in ("assistant_message",
                                                                        "notice")]
        eq(kinds.count("notice"), len(notices))
        eq([frame["is_final"] for frame in of(frames, "assistant_message")].count(True),
           len(shown) + 1, "ends of texts")
    eq(retries, CUTS, "cuts that were told")
    eq(len(model.requests()), 2 * CUTS, "requests")
    assert len(parts) > CUTS // 4, f"too few different parts were shown: {len(parts)}"
    model.clear_requests()
    for client, _ in clients:
        eq(spoken(client.turn("and now?"))[-1], TEXT)
    for request in model.requests():
        eq(json.dumps(request["body"], ensure_ascii=False).count(MARK), 1, "answers in a prompt")


@talks
def test_a_cut_responses_answer_is_begun_anew(s):
    begun_anew(s, "responses")


@talks
def test_a_cut_chat_answer_is_begun_anew(s):
    begun_anew(s, "chat")


@talks
def test_a_cut_anthropic_answer_is_begun_anew(s):
    begun_anew(s, "anthropic")


@talks
def test_a_cut_google_answer_is_begun_anew(s):
    begun_anew(s, "google")


@talks
def test_a_part_that_nothing_follows_is_kept_once(s):
    for api, model in for_each_api(s, MODEL_RETRIES=0):
        body = body_of(model, api, {"blocks": [{"say": TEXT}]})
        everyone = Everyone(s)
        for chars in (0, 1, 25, 200, len(TEXT)):
            answer = {"blocks": [{"say": TEXT}], "cut_block": [0, chars]}
            model.script([answer])
            told = everyone.turn("go on")
            has(told.fault, "broke off")
            eq("".join(spoken(told.unified)), TEXT[:chars], "shown to unified")
            eq("".join(said(told.agentloop)), TEXT[:chars], "shown to agentloop")
            shown = "".join(e["content"] for e in events(told.loom, "message_chunk"))
            eq(shown, TEXT[:chars], "shown to Loom")
        model.script([{"raw": body}])
        eq(everyone.turn("go on").answer, TEXT)


@talks
def test_a_stream_that_ends_without_its_end_is_no_success(s):
    for api, model in for_each_api(s, MODEL_RETRIES=1):
        everyone = Everyone(s)
        model.script([{"blocks": [{"say": "Half of"}], "no_final": True},
                      {"blocks": [{"say": "Half of it, and the rest."}]}])
        told = everyone.turn("go on")
        eq(told.answer, "Half of it, and the rest.")
        eq(spoken(told.unified), ["Half of", "Half of it, and the rest."], "texts")
        has(told.notices[0], "broke off before its end", "(1/1)")
        eq(len(model.requests()), 2, "requests")


# An error in the middle.


@talks
def test_an_error_in_the_middle_counts_as_what_it_is(s):
    part = {"blocks": [{"say": "Half of"}]}
    for api, model in for_each_api(s, MODEL_RETRIES=1):
        everyone = Everyone(s)
        model.script([{**part, "error": {"type": "overloaded"}}, FINE])
        told = everyone.turn("go on")
        eq(told.answer, "Fine.")
        eq(spoken(told.unified), ["Half of", "Fine."], "texts")
        has(told.notices[0], PROVIDERS[api], "overloaded", "retrying in")
        # What would fail again is not asked again, where the provider says so.
        model.clear_requests()
        model.script([{**part, "error": {"type": "quota", "form": "nested"}}])
        has(everyone.turn("go on").fault, PROVIDERS[api], "quota")
        eq(len(model.requests()), 1, f"requests to {api}")


@talks
def test_every_form_of_a_failed_response(s):
    model = begin(s, "responses", MODEL_RETRIES=0)
    everyone = Everyone(s)
    for form in ("flat", "nested", "failed"):
        model.script([{"error": {"type": "overloaded", "form": form, "message": "Too busy."}}])
        has(everyone.turn("go on").fault, "The model server", "overloaded", "Too busy.")


# Cuts in the middle of a tool call.

# Of each tool in each interface: 200 of a tool in all.
CLOSED, ENDED = 50, 30
PATCH = "*** Begin Patch\n*** Add File: ran-patch\n+It was applied.\n*** End Patch"
QUESTION = {"questions": [{"question": "Shall I?", "options": [{"label": "yes"}]}]}
BASH = {"call": "bash", "args": {"command": "echo it ran >> ran-bash"}}
APPLY = {"call": "apply_patch", "args": {"patch": PATCH}}
ASK = {"call": "ask_user", "args": QUESTION}
SHELL = {"shell": ["bash", "-lc", "echo it ran >> ran-shell"]}
# What a client must not be told of a call that did not come whole.
DONE = ("tool_started", "tool_completed", "command_output", "file_changed", "control_request",
        "ask_user_question", "exit_plan_mode")


NOT_RUN = "cut off, not run"


def ran(s):
    return sorted(path.name for path in s.work.iterdir())


def last_event(api, body):
    """Where the event begins without which an answer is not whole."""
    if api == "chat":
        return body.rindex("data: ", 0, body.index('"finish_reason":"tool_calls"'))
    return body.rstrip().rindex("\n\n") + 2


def cut_calls(s, api, tools, **env):
    """Each tool's share of the cuts: the socket is closed, or the stream ends as if it were
    whole. Nobody is asked, so anything that is proposed would be done."""
    model = begin(s, api, store=False, MODEL_RETRIES=0, **env)
    client = s.unified()
    for at, tool in enumerate(tools):
        client.start(f"s{at}", permission_mode="bypass")
        text = body_of(model, api, {"blocks": [{"say": "I will."}, tool]})
        body = text.encode()
        cuts = spread(1, len(body), CLOSED)
        ends = spread(1, last_event(api, text), ENDED)
        model.script([{"raw": text, "cut_bytes": cut} for cut in cuts])
        model.script([{"raw_base64": base64.b64encode(body[:end]).decode()} for end in ends])
        for place in [*cuts, *ends]:
            frames = client.turn("go on", f"s{at}")
            told = f"{tool} cut at {place} of {len(body)}: {frames}"
            assert "broke off" in frames[-1].get("error", ""), told
            assert not [frame for frame in frames if frame["type"] in DONE], told
        eq(len(model.requests()), CLOSED + ENDED, "requests")
        eq(model.state()["queued"], 0, "answers left")
    eq(ran(s), [], "files")
    client.session = "s0"
    whole(s, api, model, client, tools)


def whole(s, api, model, client, tools):
    """The same calls are done when nothing is cut: what was looked for can be found."""
    for tool in tools:
        body = body_of(model, api, {"blocks": [{"say": "I will."}, tool]})
        model.script([{"raw": body}, FINE])
        if tool is ASK:
            client.answer(client.asked("go on", "ask_user_question"), ["yes"])
            frames = client.until_end()
        else:
            frames = client.turn("go on")
        eq(frames[-1]["type"], "turn_completed", f"end of the turn, {frames[-1]}")
    files = {"bash": "ran-bash", "apply_patch": "ran-patch", None: "ran-shell"}
    done = [files[tool.get("call")] for tool in tools if tool is not ASK]
    eq(ran(s), sorted(done), "files")


@talks
def test_a_cut_call_of_responses_is_never_run(s):
    cut_calls(s, "responses", [BASH, APPLY, SHELL], MODEL="codex-mini-latest")


@talks
def test_a_cut_call_of_chat_is_never_run(s):
    cut_calls(s, "chat", [BASH, APPLY, ASK])


@talks
def test_a_cut_call_of_anthropic_is_never_run(s):
    cut_calls(s, "anthropic", [BASH, APPLY, ASK])


@talks
def test_a_cut_call_of_google_is_never_run(s):
    cut_calls(s, "google", [BASH, APPLY, ASK])


@talks
def test_a_call_at_the_limit_of_output_is_never_run(s):
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        everyone.unified.send("set_permission_mode", mode="bypass")
        everyone.unified.until("session_info")
        refused = 0
        for calls in ([BASH], [BASH, APPLY]):
            model.clear_requests()
            model.script([{"blocks": [{"say": "I will."}, *calls], "stop": "length"}, FINE])
            told = everyone.turn("go on")
            eq(told.answer, "Fine.")
            has(told.notices[0], "limit of output")
            results = of(told.unified, "tool_completed")
            eq(len(results), len(calls), f"results of {calls}")
            for result in results:
                has(result["error"], NOT_RUN)
            for frames in (told.agentloop, told.loom, told.chat):
                has(json.dumps(frames), NOT_RUN)
            refused += len(calls)
            eq(json.dumps(model.requests()[1]["body"]).count(NOT_RUN), refused, "results sent")
    eq(ran(s), [], "files")


@talks
def test_a_torn_call_at_the_limit_of_output_is_never_run(s):
    torn = {"call": "bash", "args": '{"command":"echo it ran >> ran-ba'}
    for api, model in for_each_api(s):
        if api == "google":
            continue  # Its calls come whole or not at all.
        client = s.unified()
        client.start(permission_mode="bypass")
        model.script([{"blocks": [APPLY, torn], "stop": "length"}, FINE])
        frames = client.turn("go on")
        eq(spoken(frames), ["Fine."], "texts")
        results = of(frames, "tool_completed")
        eq(len(results), 2, "results")
        for result in results:
            has(result["error"], NOT_RUN)
        eq(json.dumps(model.requests()[1]["body"]).count(NOT_RUN), 2, "results sent")
    eq(ran(s), [], "files")


# Too slow.

@talks
def test_a_trickle_is_waited_for(s):
    model = begin(s, "anthropic", MODEL_IDLE_TIMEOUT_SECS=2, MODEL_RETRIES=0)
    body = body_of(model, "anthropic", {"blocks": [{"say": TEXT}]})
    everyone = Everyone(s)
    # Ten pieces, of which each comes in time, while all of them take longer than the limit.
    model.script([{"raw": body, "chunk_bytes": len(body.encode()) // 10 + 1, "delay_ms": 500}])
    began = time.monotonic()
    told = everyone.turn("go on")
    eq((told.answer, told.notices), (TEXT, []))
    assert time.monotonic() - began > 4, "it was no trickle"


@talks
def test_silence_is_not_waited_for(s):
    for api in ("responses", "google"):
        model = begin(s, api, store=False, MODEL_IDLE_TIMEOUT_SECS=1, MODEL_RETRIES=1)
        everyone = Everyone(s)
        host = model.url.removeprefix("http://")
        body = body_of(model, api, {"blocks": [{"say": TEXT}]})
        silent = [{"hang": True}] if api == "responses" else [
            {"raw": body, "hang_bytes": len(body.encode()) // 2}]
        model.script([*silent, FINE])
        told = everyone.turn("go on")
        eq(told.answer, "Fine.")
        has(told.notices[0], f"No answer of {host} for 1 s", "retrying in", "(1/1)")
        eq(len(model.requests()), 2, "requests")
        model.until(lambda state: state["open"] == 0, "the silent request is closed")


# Called off.

STOPPED_SECS_MAX = 2.0


def call_off(s, model, everyone, by):
    """Ends a turn; how it ends, and that soon and for good."""
    began = time.monotonic()
    if by == "unified":
        everyone.unified.send("interrupt", reason="enough")
        frames = everyone.unified.until_end()
        has(the(frames, "turn_failed")["error"], "Interrupted", "enough")
    else:
        everyone.agentloop.send("interrupt", {"reason": "enough"})
        eq(everyone.agentloop.until("agent_finished")[-1]["type"], "agent_finished")
    took = time.monotonic() - began
    assert took < STOPPED_SECS_MAX, f"the turn ended {took:.1f} s later"
    model.until(lambda state: state["open"] == 0, "the request is closed")
    eq(model.state()["queued"], 1, "answers that nobody asked for")


@talks
def test_a_turn_is_called_off_whatever_it_waits_for(s):
    waits = {
        "no answer": {"hang": True},
        "the rest of an answer": {"blocks": [{"say": TEXT}], "hang_bytes": 2000},
        "a slow answer": {"blocks": [{"say": TEXT}], "pieces": 1, "delay_ms": 200},
        "its time": {"http": {"status": 429, "headers": {"retry-after-ms": "50000"},
                              "body": "slow down"}},
    }
    for at, api in enumerate(APIS):
        model = begin(s, api, store=False)
        for session, (what, wait) in enumerate(waits.items()):
            by = ("unified", "agentloop")[(at + session) % 2]
            everyone = Everyone(s, f"s{session}")
            model.clear_requests()
            model.script([wait, FINE])
            everyone.unified.say("go on")
            if what == "its time":
                everyone.unified.until("notice")
                everyone.agentloop.until("response_item")
            else:
                model.until(lambda state: state["open"] == 1, "the model is asked")
            call_off(s, model, everyone, by)
            eq(len(model.requests()), 1, "requests")
            # The next one gets the next answer: nothing is left of the first.
            (everyone.unified if by == "unified" else everyone.agentloop).say("and now?")
            model.until(lambda state: state["queued"] == 0, "the next turn")
            everyone.unified.until("turn_completed")
            eq(len(model.requests()), 2, "requests")


@talks
def test_a_client_that_goes_does_not_stop_the_turn(s):
    for api, model in for_each_api(s):
        client = s.watcher(complete=False)
        model.script([{"blocks": [{"say": TEXT}], "pieces": 16, "delay_ms": 20}])
        client.say("go on")
        client.until("assistant_message")
        place = client.place()
        text = "".join(spoken(client.seen))
        client.drop()
        state = model.until(lambda state: state["open"] == 0, "the answer's end")
        eq((state["aborted"], len(model.requests())), (0, 1), f"requests to {api}")
        again = s.unified("/unified?session_id=s1", since=place)
        rest = again.until("turn_completed")
        eq(text + "".join(spoken(rest)), TEXT, "what was shown before and after")
