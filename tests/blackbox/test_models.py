"""Conversations with models through each of the four interfaces, seen in every dialect: begun in
one, continued in another, and gone on with after a restart."""

import base64
import itertools
import json
import random

from fakemodel import FakeModel
from frames import items, outputs
from frames import said as agentloop_said
from harness import eq
from loomtalk import all_events, loom, numbered, reply
from sdk_types import ANTHROPIC, APIS, COMPLETIONS, GEMINI, RESPONSES
from talk import of, spoken, talks, the

THINK = "Let me see: ä, 漢, 🙂 and \"quotes\"."
SAY = "I look at both,\none after the other: ä, 漢, 🙂."
MORE = "Now I know."
DONE = "Both ran."


def opaque(number):
    """What only the model can read."""
    return base64.b64encode(f"what was thought, number {number}".encode()).decode()


def use(turn, *words):
    """Calls of one answer; each leaves a trace, so running twice would show."""
    return [{"call": "bash", "args": {"command": f"echo {turn}-{word} | tee -a ran"}}
            for word in words]


def usage(given, output, cached, reasoning=0):
    return {"input": given, "output": output, "cached": cached, "reasoning": reasoning}


def with_tools(turn):
    """The two answers of a turn that uses tools."""
    return [
        {"blocks": [{"think": THINK, "signature": opaque(turn)}, {"say": SAY},
                    *use(turn, "one", "two")],
         "usage": usage(1000 * turn, 70, 800, 20), "pieces": 3},
        {"blocks": [{"think": MORE, "signature": opaque(10 + turn)}, {"say": DONE}],
         "usage": usage(1000 * turn + 100, 30, 900, 10), "pieces": 3},
    ]


def without_tools(turn):
    return [{"blocks": [{"think": THINK, "signature": opaque(turn)}, {"say": SAY}],
             "usage": usage(1000 * turn, 50, 700, 5), "pieces": 2}]


def answer(*blocks, **more):
    return {"blocks": list(blocks), "usage": usage(100, 10, 0), **more}


def bash(command, **more):
    return {"call": "bash", "args": {"command": command}, **more}


def say(text):
    return answer({"say": text})


# What a turn shows, in the form of each dialect's frames.

def joined(frames, kind, field):
    """Texts whose pieces follow each other."""
    groups = itertools.groupby(frames, lambda frame: frame["type"])
    return ["".join(frame[field] for frame in group) for name, group in groups if name == kind]


def by_unified(s, session, text):
    frames = s.watcher(session).turn(text)
    calls = {frame["tool_id"]: frame["arguments"]["command"]
             for frame in of(frames, "tool_started")}
    used = [frame["usage"] for frame in of(frames, "token_usage")]
    sums = the(frames, "turn_completed")["usage"]
    for name in ("input_tokens", "output_tokens", "cached_tokens", "total_tokens"):
        eq(sums[name], sum(one[name] for one in used), f"{name} of the turn")
    return {
        "thoughts": joined(frames, "assistant_reasoning", "text"),
        "said": spoken(frames),
        "ran": [(calls[frame["tool_id"]], frame["result"])
                for frame in of(frames, "tool_completed")],
        "usage": [(one["input_tokens"], one["output_tokens"], one["cached_tokens"])
                  for one in used],
    }


def by_agentloop(s, session, text):
    frames = s.agentloop(session).turn(text)
    calls = [json.loads(item["arguments"])["command"][-1]
             for item in items(frames, "function_call")]
    return {
        "thoughts": ["".join(part["text"] for part in item["content"])
                     for item in items(frames, "reasoning")],
        "said": agentloop_said(frames),
        "ran": list(zip(calls, [one["output"] for one in outputs(frames)], strict=True)),
    }


def by_loom(s, session, text):
    frames = loom(s).turn(text, session)
    numbered(frames)
    told = {"thoughts": {}, "said": {}, "calls": {}, "ran": [], "usage": []}
    for event in all_events(frames):
        match event["type"]:
            case "thought_chunk":
                node = told["thoughts"].setdefault(event["node_id"], [])
                node.append(event["content"])
            case "message_chunk":
                told["said"].setdefault(event["node_id"], []).append(event["content"])
            case "tool_call":
                told["calls"][event["call_id"]] = event["arguments"]["command"]
            case "tool_end":
                told["ran"].append((told["calls"][event["call_id"]], event["result"]))
            case "usage":
                told["usage"].append((event["prompt_tokens"], event["completion_tokens"]))
    said = ["".join(pieces) for pieces in told["said"].values()]
    eq(reply(frames), said[-1], "the reply is what was said last")
    sums = [sum(numbers) for numbers in zip(*told["usage"])]
    total = frames[-1]["total_usage"]
    eq([total["prompt_tokens"], total["completion_tokens"]], sums, "usage of the run")
    thoughts = ["".join(pieces) for pieces in told["thoughts"].values()]
    return {"thoughts": thoughts, "said": said, "ran": told["ran"], "usage": told["usage"]}


def by_chat(s, session, text):
    """Here everything on the way to the answer is thinking."""
    frames = s.chat().turn(text, session)
    eq(the(frames, "user_message")["message"], text, "echo")
    calls = [json.loads(frame["tool_args"])["command"] for frame in of(frames, "tool_call")]
    results = [frame["result"] for frame in of(frames, "tool_result")]
    return {
        "thoughts": [frame["reasoning"] for frame in of(frames, "agent_thinking")],
        "said": [the(frames, "agent_message")["message"]],
        "ran": list(zip(calls, results, strict=True)),
    }


def expected(by, script):
    """What a dialect must show of answers."""
    told = {"thoughts": [], "said": [], "ran": [], "usage": []}
    for at, answer in enumerate(script):
        on_the_way = by is by_chat and at + 1 < len(script)
        for block in answer["blocks"]:
            if "think" in block:
                told["thoughts"].append(block["think"])
            if "say" in block:
                told["thoughts" if on_the_way else "said"].append(block["say"])
            if "call" in block:
                command = block["args"]["command"]
                told["ran"].append((command, command.split()[1] + "\n"))
        used = answer["usage"]
        told["usage"].append((used["input"], used["output"], used["cached"]))
    if by is by_loom:
        told["usage"] = [(given, output) for given, output, _ in told["usage"]]
    if by in (by_agentloop, by_chat):
        del told["usage"]
    return told


def unasked(server, **wish):
    """A session in which nobody is asked, whoever speaks in it."""
    made = server.http("POST", "/sessions", body=json.dumps({"permission_mode": "bypass", **wish}))
    eq(made.status, 201, f"POST /sessions: {made}")
    return made.json["id"]


def converse(s, api, begins, continues):
    """Three turns, each in another dialect than the one before, the last after a restart."""
    model = FakeModel(test=s.t)
    server = s.server(env=api.settings(model.url))
    session = unasked(server)
    turns = [(begins, with_tools(1)), (continues, without_tools(2)), (begins, with_tools(3))]
    for number, (by, script) in enumerate(turns, 1):
        if number == 3:
            server.kill()
            server = s.server(env=api.settings(model.url))
        model.script(script)
        eq(by(s, session, f"Message {number}"), expected(by, script), f"turn {number}")
    eq((s.work / "ran").read_text(), "1-one\n1-two\n3-one\n3-two\n", "each tool ran once")
    kept = [message for message in server.messages(session) if "payload" in message]
    said = agentloop_said(kept)
    eq(said, [SAY, DONE, SAY, SAY, DONE], "what the session's file says was said")
    requests = model.requests()
    eq([request["path"] for request in requests], [api.path] * 5, "requests")
    for request in requests:
        api.check(request)
    eq(model.state(), {"open": 0, "aborted": 0, "queued": 0}, "the model's server")


@talks
def test_responses_in_unified_and_agentloop(s):
    converse(s, RESPONSES, by_unified, by_agentloop)


@talks
def test_chat_completions_in_loom_and_chat(s):
    converse(s, COMPLETIONS, by_loom, by_chat)


@talks
def test_anthropic_in_agentloop_and_unified(s):
    converse(s, ANTHROPIC, by_agentloop, by_unified)


@talks
def test_google_in_chat_and_loom(s):
    converse(s, GEMINI, by_chat, by_loom)


def streamed(api, model, reply):
    """The bytes of a reply to the last request, as if it were made again."""
    request = model.requests()[-1]
    model.script([reply])
    names = ("authorization", "x-api-key", "x-goog-api-key", "anthropic-version")
    headers = {name: request["headers"][name] for name in names if name in request["headers"]}
    status, body = model.http("POST", api.path, json.dumps(request["body"]), headers)
    eq(status, 200, f"{api.name}: {body}")
    return body


def stopping_before(word, api, model, reply):
    """The reply, but what comes from the event with that word on never comes."""
    body = streamed(api, model, reply)
    end = body.rindex(b"\n\n", 0, body.index(word.encode())) + 2
    return {**reply, "hang_bytes": end}


@talks
def test_text_is_shown_while_the_model_speaks(s):
    """The rest of the answer never comes, so what is shown was not kept back for it."""
    reply = {"blocks": [{"think": THINK}, {"say": "begun and more"}], "pieces": 6,
             "usage": usage(10, 10, 0)}
    for api in APIS:
        model = FakeModel(test=s.t)
        server = s.server(env=api.settings(model.url))
        client = s.unified(session=f"s-{api.name}")
        model.script([reply])
        client.turn("Go")
        model.script([stopping_before("and mo", api, model, reply)])
        client.say("Go")
        shown = ""
        while shown != "begun ":
            shown += client.until("assistant_message")[-1]["text"]
        client.send("interrupt", reason="enough")
        client.until_end()
        model.until(lambda state: state["open"] == 0, "the request was given up")
        server.stop()


# A model that was trained on its provider's own shell.

CODEX = {"MODEL": "codex-mini-latest"}


def shell(number, *words, **more):
    return {"blocks": [{"think": THINK, "signature": opaque(number)},
                       {"shell": list(words), **more}]}


@talks
def test_a_models_own_shell(s):
    model = FakeModel(test=s.t)
    server = s.server(env=RESPONSES.settings(model.url, **CODEX))
    model.script([shell(1, "bash", "-lc", "echo shell | tee -a ran", id="call_shell"),
                  {"blocks": [{"say": DONE}]}])
    client = s.agentloop()
    client.checked = False  # The harness knows only what the offline model can cause.
    client.say("Go")
    request = client.until("approval_request")[-1]
    eq(request["payload"]["command"], ["bash", "-lc", "echo shell | tee -a ran"], "asked")
    client.review("yes")
    frames = client.until_end()
    (call,), (output,) = (items(frames, kind) for kind in
                          ("local_shell_call", "local_shell_call_output"))
    eq(call["action"]["command"], ["bash", "-lc", "echo shell | tee -a ran"], "command")
    eq(output["id"].removeprefix("shell_output_"), call["id"].removeprefix("shell_"), "whose")
    eq(json.loads(output["output"])["output"], "shell\n", "output")
    eq((items(frames, "function_call"), agentloop_said(frames)), ([], [DONE]), "and nothing else")
    eq((s.work / "ran").read_text(), "shell\n", "ran once")
    server.kill()
    s.server(env=RESPONSES.settings(model.url, **CODEX))
    # Words that are no script for a shell are quoted for it, each by itself.
    joined = "print join('|', @ARGV, '')"
    model.script([shell(2, "perl", "-e", joined, "a b", "$HOME", "it's"),
                  {"blocks": [{"say": DONE}]}])
    watcher = s.watcher()
    request = watcher.asked("Once more")
    watcher.decide(request, "allow")
    eq(the(watcher.until_end(), "tool_completed")["result"], "a b|$HOME|it's|", "result")
    for request in model.requests():
        RESPONSES.check(request)
        tools = request["body"]["tools"]
        eq([tool for tool in tools if tool["type"] == "local_shell"], [{"type": "local_shell"}])
        assert "bash" not in RESPONSES.tools(request["body"]), "one shell is enough"
    sent = model.requests()[-1]["body"]["input"]
    (first, second) = [item for item in sent if item["type"] == "local_shell_call"]
    eq(first["call_id"], "call_shell", "the call goes back as it came")
    eq(first["action"]["command"], ["bash", "-lc", "echo shell | tee -a ran"])
    eq(second["action"]["command"], ["perl", "-e", joined, "a b", "$HOME", "it's"])
    results = {item["call_id"]: item["output"] for item in sent
               if item["type"] == "local_shell_call_output"}
    eq([results[first["call_id"]], results[second["call_id"]]], ["shell\n", "a b|$HOME|it's|"])


# Pictures.

MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
         "image/gif": b"GIF89a", "image/webp": b"RIFF\0\1\0\0WEBPVP8 "}


def picture(kind, size):
    """Bytes that begin as such a picture does, as base64."""
    return base64.b64encode(MAGIC[kind] + random.Random(size).randbytes(size)).decode()


SMALL, LARGE = picture("image/png", 100), picture("image/jpeg", 150_000)


def send_pictures(s, model, session):
    """A small one by agentloop, a large one by unified."""
    url = f"data:image/png;base64,{SMALL}"
    model.script([{"blocks": [{"say": "Seen."}]}] * 2)
    client = s.agentloop(session)
    content = [{"type": "input_text", "text": "What is this?"},
               {"type": "input_image", "image_url": url}]
    item = {"type": "message", "role": "user", "content": content}
    client.send("user_input", {"input": [item]})
    eq(agentloop_said(client.until_end()), ["Seen."])
    client = s.watcher(session)
    client.say("And this?", images=[{"media_type": "image/jpeg", "data": LARGE}])
    eq(spoken(client.until_end()), ["Seen."])


@talks
def test_pictures_reach_every_provider(s):
    want = [("text", "What is this?"), ("image", f"data:image/png;base64,{SMALL}"),
            ("text", "And this?"), ("image", f"data:image/jpeg;base64,{LARGE}")]
    for api in APIS:
        model = FakeModel(test=s.t)
        server, session = s.server(env=api.settings(model.url)), f"s-{api.name}"
        send_pictures(s, model, session)
        server.kill()
        server = s.server(env=api.settings(model.url))
        model.script([{"blocks": [{"say": "Still there."}]}])
        eq(spoken(s.watcher(session).turn("Once more")), ["Still there."])
        for request, count in zip(model.requests(), (2, 4, 4), strict=True):
            flow = [part for part in api.check(request) if part["role"] == "user"]
            seen = [(part["kind"], part.get("text", part.get("url"))) for part in flow]
            eq(seen[:count], want[:count], f"{api.name}: what the user sent")
        file = (s.store / f"{session}.jsonl").read_text()
        eq((file.count(SMALL), file.count(LARGE)), (1, 0), f"{api.name}: pictures in the file")
        blobs = [blob.read_text() for blob in (s.store / f"{session}.blobs").iterdir()]
        eq(sum(LARGE in blob for blob in blobs), 1, f"{api.name}: the large one beside it")
        assert not any(SMALL in blob for blob in blobs), "the small one too"
        server.stop()


@talks
def test_a_model_that_takes_no_pictures_is_told_of_them(s):
    for api in APIS:
        model = FakeModel(test=s.t)
        rows = s.t.dir / "models.json"
        rows.write_text(json.dumps([{"match": "blind*", "images": False}]))
        settings = api.settings(model.url, MODEL="blind-1", MODELS_FILE=rows)
        server = s.server(env=settings)
        send_pictures(s, model, f"s-{api.name}")
        flow = api.check(model.requests()[-1])
        eq([part for part in flow if part["kind"] == "image"], [], f"{api.name}: pictures")
        texts = "\n".join(part["text"] for part in flow if part["role"] == "user")
        eq(texts.count("[an image was attached, which this model does not take]"), 2, texts)
        assert SMALL not in json.dumps(model.requests()), "the picture went anyway"
        server.stop()


BAD_PICTURES = [
    ({"image_url": "https://example.org/a.png"}, "data URL"),
    ({"image_url": "data:image/svg+xml;base64,aGk="}, "image/svg+xml"),
    ({"image_url": "data:image/png;base64,no base64"}, "base64"),
    ({"media_type": "image/png", "data": ""}, "base64"),
    ({"media_type": "text/html", "data": "aGk="}, "text/html"),
    ({"media_type": "image/png"}, "media_type and data"),
    ({}, "media_type and data"),
]


@talks
def test_bad_pictures_are_refused(s):
    model = FakeModel(test=s.t)
    s.server(env=RESPONSES.settings(model.url))
    client, other = s.watcher(), s.agentloop()
    for picture, word in BAD_PICTURES:
        client.say("Look", images=[{"media_type": "image/png", "data": SMALL}, picture])
        told = client.error()
        assert word in told, f"{picture}: {told}"
        other.send("user_input", {"input": [{"type": "input_image", **picture}]})
        told = other.error()["details"]["error"]
        assert word in told, f"{picture}: {told}"
    client.still_open()
    other.still_open()
    eq(model.requests(), [], "requests")


@talks
def test_what_is_no_picture_is_refused(s):
    """A provider would refuse it, and with it every request of the session from then on."""
    model = FakeModel(test=s.t)
    s.server(env=RESPONSES.settings(model.url))
    client = s.watcher()
    for kind in MAGIC:
        model.script([{"blocks": [{"say": "Seen."}]}])
        client.say("Look", images=[{"media_type": kind, "data": picture(kind, 50)}])
        eq(spoken(client.until_end()), ["Seen."], kind)
    model.clear_requests()
    text = base64.b64encode(b"This is only a text.").decode()
    for kind, data in [("image/png", text), ("image/png", picture("image/jpeg", 50)),
                       ("image/jpeg", picture("image/webp", 50))]:
        client.say("Look", images=[{"media_type": kind, "data": data}])
        assert kind in client.error(), kind
    eq(model.requests(), [], "requests")
