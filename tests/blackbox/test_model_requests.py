"""What is sent to models, by the providers' own SDKs: known fields, every call with its one
result, what a model gave to be kept as it was, and nothing before it changed."""

import copy
import json
import re

from fakemodel import FakeModel
from frames import said as agentloop_said
from harness import eq
from sdk_types import ANTHROPIC, APIS, COMPLETIONS, GEMINI, RESPONSES
from talk import of, spoken, talks, the
from test_model_reach import Proxy
from test_models import DONE, MORE, SAY, THINK, answer, bash, opaque, say, streamed, unasked

TOOLS = ["bash", "read", "write_file", "edit", "multiedit", "apply_patch", "ls", "glob", "grep",
         "move_file", "delete_file", "create_dir", "web_fetcher", "todo_read", "todo_write",
         "ask_user", "exit_plan_mode", "batch", "skill", "remember", "recall", "search_memories",
         "list_memories"]


# Whether the checks can fail at all.

def damaged(body, api):
    """A good request with something wrong, and what is wrong with it."""
    said = api.said_in
    for what, harm in {
        "an unknown field": lambda one: one.update(frobnicate=1),
        "an unknown field inside": lambda one: one[said][1].update(frobnicate=1),
        "no user at the end": lambda one: one[said].pop(),
        "something is lost": lambda one: one[said].pop(-2),
        "twice the same": lambda one: one[said].extend(one[said][-2:]),
        "no instructions": lambda one: one.pop({RESPONSES: "instructions", ANTHROPIC: "system",
                                                GEMINI: "systemInstruction"}.get(api, "messages")),
    }.items():
        copied = copy.deepcopy(body)
        harm(copied)
        yield what, copied


@talks
def test_the_checks_find_what_is_wrong(s):
    for api in APIS:
        model = FakeModel(test=s.t)
        server = s.server(env=api.settings(model.url))
        calls = [bash("echo a", id="call-1"), bash("pwd", id="call-2")]
        model.script([answer({"think": THINK, "signature": opaque(1)}, *calls), say(DONE)])
        s.unified(session=f"s-{api.name}").turn("Go")
        request = model.requests()[-1]
        api.check(request)
        for what, body in damaged(request["body"], api):
            try:
                api.check({**request, "body": body})
            except (AssertionError, KeyError, IndexError):
                continue
            raise AssertionError(f"{api.name}: {what} was not found: {body}")
        server.stop()


# What came goes back.

def kept_blocks(api):
    """Answers with everything that must go back as it was."""
    think = {"think": THINK, "signature": opaque(1)}
    again = {"think": MORE, "signature": opaque(2)}
    hidden = {"redacted": opaque(3)}
    if api is RESPONSES:
        odd = {"id": "rs_odd", "type": "reasoning", "summary": [], "encrypted_content": "gAAA+/=",
               "status": "completed"}
        remark = {"id": "msg_odd", "type": "message", "role": "assistant", "status": "completed",
                  "phase": "commentary",
                  "content": [{"type": "output_text", "text": SAY, "annotations": []}]}
        return [think, hidden, {"item": odd}, {"item": remark}, again]
    if api is COMPLETIONS:
        return [think, {"say": SAY}]
    if api is ANTHROPIC:
        return [think, hidden, {"say": SAY}, again]
    return [think, {"say": SAY, "signature": opaque(4)}, again, hidden]


def kept_calls(api):
    more = {"signature": opaque(5)} if api is GEMINI else {}
    return [bash("echo one", id="call-1", **more), bash("echo two", id="call_2")]


def parts_of(flow, kind):
    return [{name: value for name, value in part.items() if name != "message"}
            for part in flow if part["kind"] == kind]


def gets_back(s, api, then):
    """A turn, one in another dialect, a restart, one more: all of the first is still there."""
    model, proxy = FakeModel(test=s.t), Proxy(s.t)
    settings = api.settings(model.url, HTTP_PROXY=proxy.url)
    server = s.server(env=settings)
    session = unasked(server)
    model.script([answer(*kept_blocks(api), *kept_calls(api)), say(DONE)])
    s.watcher(session).turn("Go")
    first = api.check(model.requests()[-1])
    model.script([say(DONE)])
    then(s, session)
    server.kill()
    s.server(env=settings)
    model.script([answer(bash("pwd")), say(DONE)])
    s.watcher(session).turn("Once more")
    requests = model.requests()
    eq(len(requests), 5, "requests")
    flows = [api.check(request) for request in requests]
    for request in requests:
        eq(api.tools(request["body"]), TOOLS, "tools")
    for before, after in zip(requests, requests[1:]):
        line = api.line(before["body"])
        eq(api.line(after["body"])[:len(line)], line, f"{api.name}: what was there before")
    calls = parts_of(first, "call")
    eq([(call["id"], call["name"]) for call in calls], [("call-1", "bash"), ("call_2", "bash")])
    for flow in flows[2:]:
        eq(parts_of(flow, "call")[:2], calls, f"{api.name}: calls")
        if api is not COMPLETIONS:
            eq(parts_of(flow, "thought"), parts_of(first, "thought"), f"{api.name}: reasoning")
    return flows[1:], proxy.seen


def by_agentloop(s, session):
    eq(agentloop_said(s.agentloop(session).turn("Hello")), [DONE])


def by_chat(s, session):
    eq(the(s.chat().turn("Hello", session), "agent_message")["message"], DONE)


@talks
def test_responses_gets_back_what_it_sent(s):
    flows, seen = gets_back(s, RESPONSES, by_agentloop)
    came = [opaque(1), opaque(3), "gAAA+/=", opaque(2)]
    for flow in flows:
        eq([part["opaque"] for part in flow if part["kind"] == "thought"], came, "encrypted")
        kinds = [part["kind"] for part in flow[1:9]]
        eq(kinds, ["thought"] * 3 + ["text", "thought", "call", "call", "result"], "order")
    remark = [item for item in json.loads(seen[-1]["body"])["input"] if item.get("id") == "msg_odd"]
    eq([item["phase"] for item in remark], ["commentary"], "what else came with a message")


@talks
def test_responses_gets_back_the_very_same_bytes(s):
    model, proxy = FakeModel(test=s.t), Proxy(s.t)
    settings = RESPONSES.settings(model.url, HTTP_PROXY=proxy.url)
    server = s.server(env=settings)
    client = s.unified()
    model.script([say(SAY)])
    client.turn("Go")
    # The same item, but as no program of ours would write it.
    odd = (r'{"type" : "reasoning","summary":[],"id":"rs_1", "\u0065ncrypted_content":"gA\u002b=",'
           r'"z":1.50,"a":{"y":1e2,"x":[ ]}}')
    stream = streamed(RESPONSES, model, answer({"think": THINK}, bash("echo a"))).decode()
    item = re.search(r'"item":(\{"encrypted_content.*?\}),"output_index":0,.*item.done"', stream)
    whole = stream.replace(item[0], item[0].replace(item[1], odd))
    assert whole.count(odd) == 1, whole
    model.script([{"raw": whole, "content_type": "text/event-stream"}, say(DONE)])
    eq(spoken(client.turn("Go on")), [DONE])
    server.kill()
    s.server(env=settings)
    model.script([say(DONE)])
    s.watcher().turn("Once more")
    for seen in proxy.seen[-2:]:
        assert odd.encode() in seen["body"], f"{odd} is not in {seen['body'].decode()}"


@talks
def test_chat_completions_gets_back_what_it_sent(s):
    flows, _ = gets_back(s, COMPLETIONS, by_chat)
    thoughts = [[part["opaque"] for part in flow if part["kind"] == "thought"] for flow in flows]
    eq(thoughts, [[THINK], [], [], []], "reasoning goes back until the user speaks again")


@talks
def test_anthropic_gets_back_what_it_sent(s):
    flows, _ = gets_back(s, ANTHROPIC, by_agentloop)
    for flow in flows:
        thoughts = [part["item"] for part in flow if part["kind"] == "thought"]
        eq(thoughts, [{"type": "thinking", "thinking": THINK, "signature": opaque(1)},
                      {"type": "redacted_thinking", "data": opaque(3)},
                      {"type": "thinking", "thinking": MORE, "signature": opaque(2)}])
        kinds = [part["kind"] for part in flow[1:8]]
        eq(kinds, ["thought", "thought", "text", "thought", "call", "call", "result"], "order")


@talks
def test_google_gets_back_what_it_sent(s):
    _, seen = gets_back(s, GEMINI, by_chat)
    for sent in seen[1:]:
        parts = json.loads(sent["body"])["contents"][1]["parts"]
        signed = [(part.get("text"), part.get("thought"), part.get("thoughtSignature"))
                  for part in parts if "thoughtSignature" in part and "text" in part]
        eq(signed, [("", True, opaque(1)), ("", None, opaque(4)), ("", True, opaque(2)),
                    ("", None, opaque(3))], "signatures, where they came")
        calls = [part for part in parts if "functionCall" in part]
        eq([call.get("thoughtSignature") for call in calls], [opaque(5), None], "of calls")


@talks
def test_the_sdks_would_send_the_same(s):
    for api in APIS:
        model = FakeModel(test=s.t)
        server = s.server(env=api.settings(model.url))
        session = unasked(server)
        model.script([answer(*kept_blocks(api), *kept_calls(api)), say(DONE), say(DONE)])
        s.watcher(session).turn("Go")
        ours = model.requests()[-1]
        api.resend(model.url, ours["body"])
        theirs = model.requests()[-1]
        assert api.same(ours["body"], theirs["body"]), f"{api.name}:\n{ours}\n{theirs}"
        assert ours["path"].split("/")[-1] == theirs["path"].split("/")[-1], theirs["path"]
        server.stop()


@talks
def test_bytes_that_were_sent_are_sent_again(s):
    """A provider finds in its cache only what begins with the very same bytes."""
    for api in APIS:
        model, proxy = FakeModel(test=s.t), Proxy(s.t)
        settings = api.settings(model.url, HTTP_PROXY=proxy.url)
        server = s.server(env=settings)
        session = unasked(server)
        blocks = [block for block in kept_blocks(api)
                  if api is not COMPLETIONS or "think" not in block]
        model.script([answer(*blocks, *kept_calls(api)), say(SAY), say(SAY), say(DONE)])
        s.watcher(session).turn("Go: ä, 漢, 🙂")
        eq(agentloop_said(s.agentloop(session).turn("Hello")), [SAY])
        server.kill()
        server = s.server(env=settings)
        s.watcher(session).turn("Once more")
        mark = rb',"cache_control":{"type":"ephemeral"}|"cache_control":{"type":"ephemeral"},'
        bodies = [re.sub(mark, b"", one["body"]) for one in proxy.seen]
        eq(len(bodies), 4, "requests")
        for before, after in zip(bodies, bodies[1:]):
            begin = before.removesuffix(b"]}")
            assert begin != before, f"{api.name}: the conversation is not the last: {before[-99:]}"
            assert after.startswith(begin), f"{api.name}:\n{before.decode()}\n{after.decode()}"
        server.stop()


# What no provider takes back.

BAD_NAMES = ["functions.bash", "bash<|channel|>commentary", 'view" path="a.txt', "ä", " ",
             "psql " + "x" * 400]


def calls_with(s, api, *names_and_ids):
    """Turns with one call by such a name and id and one more, then a summary; what was asked."""
    model = FakeModel(test=s.t)
    server = s.server(env=api.settings(model.url))
    client = s.watcher(unasked(server))
    for name, call in names_and_ids:
        model.script([answer({"call": name, "args": {"command": "echo a"}, "id": call},
                             bash("echo b", id=f"{call}+")), say(DONE)])
        frames = client.turn("Go")
        eq(spoken(frames), [DONE], f"{api.name}: {name}")
        ran = [frame["success"] for frame in of(frames, "tool_completed")]
        # Some models name the namespace too, and mean the tool.
        eq(ran, [name in ("bash", "functions.bash"), True], f"{api.name}: {name}")
    model.script([say("A summary.")])
    client.send("compact")
    client.until_end()
    server.stop()
    return model.requests()


@talks
def test_names_that_are_refused_do_not_stay(s):
    """Models make up names of tools that no provider takes back, and the session would be lost."""
    for api in APIS:
        for request in calls_with(s, api, *((name, f"c{at}") for at, name in enumerate(BAD_NAMES))):
            api.check(request)


@talks
def test_ids_that_are_too_long_do_not_stay(s):
    """Servers in between make up ids that OpenAI's does not take."""
    long_id = "call_" + "0123456789abcdef" * 8
    for api in (RESPONSES, COMPLETIONS):
        for request in calls_with(s, api, *(("bash", f"{long_id}{at}") for at in range(3))):
            api.check(request)
