"""Streams as providers send them, well formed or not: odd writing makes no difference, odd calls
run once each, and what Polyloop reads in a recorded stream is what the provider's own SDK reads."""

import base64
import json
import shlex
import warnings
from pathlib import Path

from harness import eq
from talk import of, spoken, talks, the
from test_model_cuts import TEXT, body_of
from test_model_faults import (APIS, FINE, PROVIDERS, Everyone, answer, begin, for_each_api,
                               has)

# How events are written.

STYLES = ("crlf", "no_space", "comments", "bom", "split_data", "unknown_events", "done_twice")


@talks
def test_events_may_be_written_in_any_way(s):
    blocks = [{"think": "Let me see."}, {"say": TEXT},
              {"call": "bash", "args": {"command": "echo $((6 * 7))"}}]
    for api, model in for_each_api(s):
        client = s.unified()
        client.start(permission_mode="bypass")
        for style in (*STYLES, None):
            styles = dict.fromkeys(STYLES if style is None else [style], True)
            pieces = {"chunk_bytes": 7} if style is None else {}
            model.script([{"blocks": blocks, "style": styles, **pieces}, FINE])
            frames = client.turn("go on")
            eq(spoken(frames), [TEXT, "Fine."], f"texts of {api} with {styles}")
            told = "".join(frame["text"] for frame in of(frames, "assistant_reasoning"))
            eq(told, "Let me see.", f"reasoning of {api} with {styles}")
            eq(the(frames, "tool_completed")["result"], "42\n", "result")
            eq(of(frames, "notice"), [], "notices")


@talks
def test_the_content_type_may_be_written_in_any_way(s):
    model = begin(s, "chat", MODEL_RETRIES=0)
    client = s.watcher()
    for kind in ("text/event-stream", "text/event-stream;charset=UTF-8", "Text/Event-Stream"):
        model.script([{**FINE, "content_type": kind}])
        eq(answer(client), "Fine.", kind)


def first_event(api, body):
    """Where the first event of a text begins."""
    return body.rindex("data: ", 0, body.index("Alpha"))


@talks
def test_a_line_of_ten_megabytes(s):
    for api, model in for_each_api(s):
        client = s.watcher()
        body = body_of(model, api, {"blocks": [{"say": TEXT}]})
        at = first_event(api, body) + len("data: {")
        padded = body[:at] + f'"padding":"{"x" * 10_000_000}",' + body[at:]
        commented = ": " + "x" * 10_000_000 + "\n" + body
        for raw in (padded, commented):
            model.script([{"raw": raw}])
            eq(answer(client), TEXT, f"answer of {api}")


@talks
def test_an_event_that_is_no_json(s):
    for api, model in for_each_api(s, MODEL_RETRIES=0):
        everyone = Everyone(s)
        body = body_of(model, api, {"blocks": [{"say": TEXT}], "pieces": 10}).encode()
        at = body.index(b"\n\n", first_event(api, body.decode())) + 2
        for bad in (b'data: {"broken": \n\n', b"data: <html>\n\n", b'data: {"x":"\xff\xfe"}\n\n'):
            raw = base64.b64encode(body[:at] + bad + body[at:]).decode()
            model.script([{"raw_base64": raw}])
            told = everyone.turn("go on")
            has(told.fault, PROVIDERS[api], "not JSON")
            eq("".join(spoken(told.unified)), TEXT[:10], "what was shown before")
        model.script([FINE])
        eq(everyone.turn("go on").answer, "Fine.")


@talks
def test_after_an_event_that_is_no_json_it_is_asked_again(s):
    model = begin(s, "google", MODEL_RETRIES=1)
    everyone = Everyone(s)
    model.script([{"raw": "data: {broken\n\n"}, FINE])
    told = everyone.turn("go on")
    eq(told.answer, "Fine.")
    has(told.notices[0], "Google sent an event that is not JSON", "(1/1)")


# Calls.


def calls_and_results(api, body):
    """The ids of a request's calls, and of its results, in order."""
    if api == "responses":
        calls = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
        results = [item["call_id"] for item in body["input"]
                   if item["type"] == "function_call_output"]
    elif api == "chat":
        calls = [call["id"] for message in body["messages"]
                 for call in message.get("tool_calls", [])]
        results = [message["tool_call_id"] for message in body["messages"]
                   if message["role"] == "tool"]
    elif api == "anthropic":
        blocks = [block for message in body["messages"] for block in message["content"]]
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    else:
        parts = [part for content in body["contents"] for part in content["parts"]]
        calls = [part["functionCall"].get("id") for part in parts if "functionCall" in part]
        results = [part["functionResponse"].get("id") for part in parts
                   if "functionResponse" in part]
    return calls, results


def each_has_one_result(api, model, count):
    calls, results = calls_and_results(api, model.requests()[-1]["body"])
    eq(results, calls, f"results and calls sent to {api}")
    eq(len(calls), count, f"calls sent to {api}")
    if api != "google":
        eq(len(set(calls)), count, f"different ids sent to {api}")


def counted(s):
    path = s.work / "count"
    lines = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def counting(name, **more):
    return {"call": "bash", "args": {"command": f"echo {name} >> count"}, **more}


@talks
def test_calls_before_an_error_are_not_run(s):
    for api, model in for_each_api(s, MODEL_RETRIES=1):
        client = s.unified()
        client.start(permission_mode="bypass")
        model.script([{"blocks": [counting("a")], "error": {"type": "overloaded"}},
                      {"blocks": [counting("a")]}, FINE])
        frames = client.turn("go on")
        eq(spoken(frames), ["Fine."], "texts")
        eq(counted(s), ["a"], f"calls of {api} that ran")
        each_has_one_result(api, model, 1)


ODD_CALLS = {
    "duplicated ids": [counting(n, id="call_1") for n in "abc"],
    "ids of an earlier answer": [counting(n, id="call_1") for n in "de"],
    "missing ids": [counting(n, id=None) for n in "fgh"],
    "empty ids": [counting(n, id="") for n in "ij"],
    "some ids missing": [counting("k", id=None), counting("l", id="call_2"),
                         counting("m", id=None)],
    "the same call twice": [counting("n"), counting("n")],
    "objects instead of text": [counting(n, args_object=True) for n in "op"],
}


@talks
def test_odd_calls_run_once_each(s):
    for api, model in for_each_api(s):
        client = s.unified()
        client.start(permission_mode="bypass")
        sent = 0
        for what, calls in ODD_CALLS.items():
            model.script([{"blocks": calls}, FINE])
            frames = client.turn("go on")
            names = [call["args"]["command"].split()[1] for call in calls]
            eq(sorted(counted(s)), sorted(names), f"calls of {api} that ran, {what}")
            eq(frames[-1]["type"], "turn_completed", f"end of the turn, {frames[-1]}")
            started = [frame["tool_id"] for frame in of(frames, "tool_started")]
            eq(len(set(started)), len(calls), f"ids for clients, {what}")
            sent += len(calls)
            each_has_one_result(api, model, sent)


@talks
def test_calls_that_nobody_can_do_get_an_answer(s):
    odd = [{"call": "no_such_tool", "args": {"x": 1}}, {"call": "bash", "args": {}},
           {"call": "bash", "args": {"command": 7}},
           {"call": "Bash ", "args": {"command": "echo x >> count"}}]
    for api, model in for_each_api(s):
        everyone = Everyone(s)
        everyone.unified.send("set_permission_mode", mode="bypass")
        everyone.unified.until("session_info")
        model.script([{"blocks": [*odd, counting("a")]}, FINE])
        told = everyone.turn("go on")
        eq(told.answer, "Fine.")
        results = of(told.unified, "tool_completed")
        eq([result["success"] for result in results], [False] * len(odd) + [True], "results")
        has(results[0]["error"], "no_such_tool")
        eq(counted(s), ["a"], "calls that ran")
        each_has_one_result(api, model, len(odd) + 1)


TORN = ['{"command":"echo x >> cou', "echo x >> count", '{"command":"true"} and more', '"x"']


@talks
def test_arguments_that_are_no_json_get_an_answer(s):
    for api, model in for_each_api(s):
        client = s.unified()
        client.start(permission_mode="bypass")
        model.script([{"blocks": [{"call": "bash", "args": args} for args in TORN]}, FINE])
        frames = client.turn("go on")
        eq(spoken(frames), ["Fine."], "texts")
        results = of(frames, "tool_completed")
        eq([result["success"] for result in results], [False] * len(TORN), "results")
        eq(counted(s), [], "calls that ran")
        each_has_one_result(api, model, len(TORN))


@talks
def test_calls_without_form_are_shown_in_each_dialect_s_form(s):
    # The checker knows what a client may rely on: a name, and arguments that can be read.
    odd = [*({"call": "bash", "args": args} for args in TORN), {"call": "bash", "args": ""},
           {"call": "bash", "args": []}, {"call": "", "args": {}}]
    model = begin(s, "responses")
    model.script([{"blocks": odd}, FINE])
    eq(Everyone(s).turn("go on").answer, "Fine.")


MANY = 200


def many_calls(s, api, **more):
    model = begin(s, api)
    client = s.unified()
    client.start(permission_mode="bypass")
    model.script([{"blocks": [counting(n, **more) for n in range(MANY)]}, FINE])
    frames = client.turn("go on")
    eq(spoken(frames), ["Fine."], "texts")
    eq(len(of(frames, "tool_completed")), MANY, "results")
    eq(sorted(counted(s), key=int), [str(n) for n in range(MANY)], "calls that ran")
    each_has_one_result(api, model, MANY)


@talks
def test_two_hundred_calls_in_one_answer(s):
    many_calls(s, "responses")


@talks
def test_two_hundred_calls_without_ids(s):
    many_calls(s, "google", id=None)


# Answers that say nothing.


@talks
def test_an_empty_answer_is_asked_for_once_more(s):
    empty = [{"blocks": []}, {"blocks": [{"think": "Hm."}]}, {"blocks": [{"say": " \n\t "}]}]
    asked = []
    for api, model in for_each_api(s):
        # All sessions at once: whichever gets which, none is told anything.
        model.script([*empty, *empty])
        everyone = [Everyone(s, f"s{n}") for n in range(len(empty))]
        for clients in everyone:
            clients.unified.say("go on")
        asked.append((api, model, everyone))
    for api, model, everyone in asked:
        for clients in everyone:
            told = clients.rest()
            has(told.fault, "empty answer", "(after 1 retry)")
            (notice,) = told.notices
            has(notice, "empty answer", "retrying in", "(1/1)")
        eq(len(model.requests()), 2 * len(empty), f"requests to {api}")
        model.script([FINE])
        eq(everyone[0].turn("go on").answer, "Fine.")


@talks
def test_after_an_empty_answer_a_better_one_counts(s):
    model = begin(s, "anthropic")
    everyone = Everyone(s)
    model.script([{"blocks": [{"think": "Hm."}]}, FINE])
    eq(everyone.turn("go on").answer, "Fine.")
    eq(len(model.requests()), 2, "requests")


# Recorded streams, read by the providers' own SDKs.

RECORDED = Path(__file__).resolve().parents[2] / "crates/agent/golden/models"
FOLDERS = {"responses": "responses", "chat": "completions", "anthropic": "anthropic",
           "google": "gemini"}
STREAMS_MIN = 20
# Faults, and what the SDKs have no words for: ways of other servers, and answers that were cut
# short, which some of them raise as errors.
LEFT_OUT = {
    "responses": {"content-filter", "cut", "error", "failed", "failed-for-good", "gateway-error",
                  "length", "length-in-a-call", "local", "not-json", "only-the-end", "too-long",
                  "unknown"},
    "chat": {"broken-off", "calls-all-zero", "calls-loose", "content-filter", "content-parts",
             "cut", "error", "error-named", "error-with-a-status", "function-call", "length",
             "length-in-a-call", "no-finish", "not-json", "odd-events"},
    "anthropic": {"cut", "length-in-call", "no-final", "not-json", "overloaded", "terse"},
    "google": {"cut", "list", "malformed-call", "not-json", "unavailable"},
}


def recorded(api):
    streams = sorted((RECORDED / FOLDERS[api] / "answers").glob("*.sse"))
    return [stream for stream in streams if stream.stem not in LEFT_OUT[api]]


def test_there_are_enough_recorded_streams(_):
    counts = {api: len(recorded(api)) for api in APIS}
    assert sum(counts.values()) >= STREAMS_MIN and all(counts.values()), counts


class Heard:
    """What is in an answer, whoever read it. Usage is (input, output, cached)."""

    def __init__(self, text, calls, usage, refused=False):
        self.text, self.calls, self.usage, self.refused = text, calls, usage, refused

    def __repr__(self):
        return f"{self.text!r}, calls {self.calls}, usage {self.usage}, refused {self.refused}"


def arguments(text):
    return json.loads(text) if text else {}


def by_responses(url):
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    with client.responses.stream(model="m", input="x") as stream:
        response = stream.get_final_response()
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    refusal = [part.refusal for part in parts if part.type == "refusal"]
    calls = []
    for item in response.output:
        if item.type == "function_call":
            calls.append((item.name, arguments(item.arguments)))
        elif item.type == "local_shell_call":
            calls.append(("bash", item.action.command))
    usage = response.usage
    used = (usage.input_tokens, usage.output_tokens, usage.input_tokens_details.cached_tokens)
    return Heard("".join(refusal) or response.output_text, calls, used, bool(refusal))


def by_chat(url):
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    asked = {"model": "m", "messages": [{"role": "user", "content": "x"}],
             "stream_options": {"include_usage": True}}
    with client.chat.completions.stream(**asked) as stream:
        stream.until_done()
        completion = stream.get_final_completion()
    message = completion.choices[0].message
    calls = [(call.function.name, arguments(call.function.arguments))
             for call in message.tool_calls or []]
    used = None
    if usage := completion.usage:
        details = usage.prompt_tokens_details
        cached = details.cached_tokens if details else None
        # DeepSeek's own name for it, which the SDK passes on.
        cached = cached or getattr(usage, "prompt_cache_hit_tokens", None)
        used = (usage.prompt_tokens, usage.completion_tokens, cached or 0)
    return Heard(message.refusal or message.content or "", calls, used, bool(message.refusal))


def by_anthropic(url):
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    with client.messages.stream(**asked) as stream:
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    usage = message.usage
    cached = usage.cache_read_input_tokens or 0
    read = usage.input_tokens + cached + (usage.cache_creation_input_tokens or 0)
    return Heard(text, calls, (read, usage.output_tokens, cached),
                 message.stop_reason == "refusal")


def by_google(url):
    from google import genai

    client = genai.Client(api_key="x", http_options={"base_url": url})
    text, calls, usage, refused = "", [], None, False
    for chunk in client.models.generate_content_stream(model="m", contents="x"):
        first = [candidate for candidate in chunk.candidates or [] if not candidate.index]
        for candidate in first:
            parts = candidate.content.parts if candidate.content else None
            text += "".join(p.text for p in parts or [] if p.text and not p.thought)
            refused |= candidate.finish_reason is not None \
                and candidate.finish_reason.name == "SAFETY"
        calls += [(call.name, call.args or {}) for call in chunk.function_calls or []]
        refused |= bool(chunk.prompt_feedback and chunk.prompt_feedback.block_reason)
        usage = chunk.usage_metadata or usage
    used = None
    if usage:
        read = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
        written = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        used = (read, written, usage.cached_content_token_count or 0)
    return Heard(text, calls, used, refused)


SDKS = {"responses": by_responses, "chat": by_chat, "anthropic": by_anthropic,
        "google": by_google}
TOOLS = {"Bash": "bash", "AskUserQuestion": "ask_user", "ExitPlanMode": "exit_plan_mode"}


def by_polyloop(client, model, reply):
    """What a client is shown of a stream. Calls are answered, and the next answer ends it."""
    model.clear_script()
    model.clear_requests()
    model.script([reply, FINE])
    client.say("go on")
    frames = client.until(lambda frame: frame["type"] in
                          ("turn_completed", "turn_failed", "exit_plan_mode"))
    while frames[-1]["type"] == "exit_plan_mode":
        client.approve(frames[-1], False)
        frames += client.until(lambda frame: frame["type"] in
                               ("turn_completed", "turn_failed", "exit_plan_mode"))
    texts, usages = spoken(frames), of(frames, "token_usage")
    if len(model.requests()) == 2:
        eq((texts.pop(), model.state()["queued"]), ("Fine.", 0), "the answer after the calls")
        usages.pop()
    calls = []
    for frame in frames:
        if frame["type"] == "tool_started":
            name, args = frame["tool_name"], frame["arguments"]
            calls.append((TOOLS.get(name, name), args or {}))
        elif frame["type"] == "exit_plan_mode":
            calls.append(("exit_plan_mode", {}))
    used = None
    if usages:
        usage = usages[0]["usage"]
        used = (usage["input_tokens"], usage["output_tokens"], usage["cached_tokens"])
    refused = frames[-1].get("code") == "refused"
    assert refused or frames[-1]["type"] == "turn_completed", frames[-1]
    return Heard("".join(texts), calls, used, refused)


def same(sdk, shown, what):
    eq(shown.text, sdk.text, f"text of {what}")
    eq(shown.refused, sdk.refused, f"refused, {what}")
    eq(len(shown.calls), len(sdk.calls), f"calls of {what}: {shown}, {sdk}")
    # Calls that come mixed are in the order of their beginnings here, of their ends there.
    in_order = sorted(sdk.calls, key=lambda call: place_of(call, shown.calls))
    for (name, args), (wanted, given) in zip(shown.calls, in_order):
        eq(name, wanted, f"tool of {what}")
        if isinstance(given, list):
            same_command(args, given, what)
        else:
            eq(args, given, f"arguments of {what}")
    # Of an answer that was refused nobody is told what it cost.
    if not sdk.refused:
        eq(shown.usage, sdk.usage, f"usage of {what}")


def place_of(call, calls):
    return calls.index(call) if call in calls else len(calls)


def same_command(args, words, what):
    """A call of the provider's own shell: our script does what its words do, or refuses it."""
    if words[:2] == ["bash", "-lc"]:
        eq(args["command"], words[2], f"script of {what}")
    elif "unsupported" not in args:
        eq(shlex.split(args["command"])[-len(words):], words, f"words of {what}")


def read_alike(s, api):
    model = begin(s, api, MODEL="codex-mini-latest") if api == "responses" else begin(s, api)
    for at, stream in enumerate(recorded(api)):
        raw = {"raw_base64": base64.b64encode(stream.read_bytes()).decode()}
        model.clear_script()
        model.script([raw])
        with warnings.catch_warnings(action="ignore"):
            sdk = SDKS[api](model.url)
        for form in ({}, {"chunk_bytes": 1}):
            client = s.unified(session=f"s{at}-{len(form)}")
            client.start(permission_mode="dontAsk")
            what = f"{api} {stream.name} {form}"
            same(sdk, by_polyloop(client, model, {**raw, **form}), what)


@talks
def test_recorded_responses_are_read_as_the_sdk_reads_them(s):
    read_alike(s, "responses")


@talks
def test_recorded_chats_are_read_as_the_sdk_reads_them(s):
    read_alike(s, "chat")


@talks
def test_recorded_messages_are_read_as_the_sdk_reads_them(s):
    read_alike(s, "anthropic")


@talks
def test_recorded_contents_are_read_as_the_sdk_reads_them(s):
    read_alike(s, "google")
