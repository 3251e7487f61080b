"""Loom: every request and every field of its tables, the events of a run, and threads."""

import json
import re

import tiny_yaml
from harness import eq
from loomtalk import (
    all_events, event, events, loom, numbered, reply, text, words,
)
from talk import spoken, talks

RUN_ID = re.compile(r"run-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The names of decisions, in their order; a version need not have them all.
CANONICAL = (
    "bash", "read", "write_file", "edit", "multiedit", "apply_patch", "ls", "glob", "grep",
    "move_file", "delete_file", "create_dir", "web_fetcher", "todo_read", "todo_write", "ask_user",
    "exit_plan_mode", "batch", "skill", "remember", "recall", "search_memories", "list_memories",
)
USAGE = ["prompt_tokens", "completion_tokens", "total_tokens"]


def round_of(node):
    return [f"node_enter {node}", f"node_exit {node}", "values", "updates"]


# Requests with one answer.


@talks
def test_ping(s):
    s.server()
    client = loom(s)
    for name in ("1", "", "Grüße 👋", "x" * 500):
        eq(client.ask("ping", id=name), {"type": "pong", "id": name})


@talks
def test_requests_come_as_text_or_binary_and_answers_as_text(s):
    s.server()
    client = loom(s)
    for message in ('{"type":"ping","id":"ä"}', '{"type":"ping","id":"ä"}'.encode()):
        client.raw(message)
        eq(client.recv(), {"type": "pong", "id": "ä"}, f"answer to {type(message)}")
    client.raw(json.dumps({"type": "run", "message": "say: ö", "agent": "react"}).encode())
    eq(reply(client.until_end()), "ö")
    kinds = {type(step["out"]) for step in client.wire.steps if "out" in step}
    eq(kinds, {str}, "frames of the server")


@talks
def test_tools_list(s):
    s.server()
    frame = loom(s).ask("tools_list")
    eq(sorted(frame), ["id", "tools", "type"], "fields")
    names = [tool["name"] for tool in frame["tools"]]
    eq(names, [name for name in CANONICAL if name in names], "names, in the fixed order")
    assert {"bash", "apply_patch", "ask_user", "exit_plan_mode"} <= set(names), names
    for tool in frame["tools"]:
        eq(sorted(tool), ["description", "input_schema", "name"], "fields of a tool")
        assert isinstance(tool["description"], str) and tool["description"], tool
        schema = tool["input_schema"]
        eq(schema["type"], "object", f"input_schema of {tool['name']}")
        assert set(schema.get("required", [])) <= set(schema["properties"]), schema


@talks
def test_tool_parameters_are_those_that_clients_know(s):
    s.server()
    tools = {tool["name"]: tool["input_schema"] for tool in loom(s).ask("tools_list")["tools"]}
    wanted = {"bash": (["command", "description", "timeout_ms", "workdir"], ["command"]),
              "apply_patch": (["patch"], ["patch"]),
              "ask_user": (["questions"], ["questions"]), "exit_plan_mode": (["plan"], ["plan"]),
              "skill": (["name"], ["name"]), "remember": (["key", "value"], ["key", "value"]),
              "recall": (["key"], ["key"])}
    for name, (fields, required) in wanted.items():
        eq(sorted(tools[name]["properties"]), fields, f"parameters of {name}")
        eq(tools[name]["required"], required, f"required of {name}")


@talks
def test_tools_list_with_every_field(s):
    s.server()
    client = loom(s)
    plain = client.ask("tools_list")["tools"]
    scopes = [{"working_folder": str(s.work)}, {"thread_id": "t"}, {"thread_id": None},
              {"working_folder": None, "thread_id": None},
              {"working_folder": str(s.work), "thread_id": "t", "unknown": 1}]
    for scope in scopes:
        eq(client.ask("tools_list", **scope)["tools"], plain, f"tools of {scope}")
    eq(s.sessions(), [], "a scope makes no session")


@talks
def test_tool_show_as_json(s):
    s.server()
    client = loom(s)
    for tool in client.ask("tools_list")["tools"]:
        frame = client.ask("tool_show", name=tool["name"], output="json")
        eq(sorted(frame), ["id", "tool", "type"], "fields")
        eq(frame["tool"], tool, "the definition of the list")


@talks
def test_tool_show_as_yaml_is_the_default(s):
    s.server()
    client = loom(s)
    for tool in client.ask("tools_list")["tools"]:
        for asked in ({}, {"output": "yaml"}, {"output": None, "thread_id": None},
                      {"working_folder": str(s.work), "thread_id": "t"}):
            frame = client.ask("tool_show", name=tool["name"], **asked)
            eq(sorted(frame), ["id", "tool_yaml", "type"], "fields")
            eq(tiny_yaml.load(frame["tool_yaml"]), tool, f"YAML of {tool['name']}")


@talks
def test_tool_show_of_an_unknown_tool(s):
    s.server()
    client = loom(s)
    for name in ("nope", "Bash", "", "web_fetcher2"):
        for output in ("json", "yaml"):
            frame = client.ask("tool_show", name=name, output=output)
            eq((frame["type"], sorted(frame)), ("error", ["error", "id", "type"]), f"{frame}")
            assert "not found" in frame["error"] and name in frame["error"], frame
    client.still_open()


# Runs.


@talks
def test_a_run_with_nothing_optional(s):
    s.server()
    client = loom(s, "/")
    client.raw('{"type":"run","message":"say: at noon","agent":"react"}')
    frames = client.until_end()
    run = frames[0]["id"]
    assert RUN_ID.fullmatch(run), f"run id {run}"
    eq({frame["id"] for frame in frames}, {run}, "one id")
    eq({event["session_id"] for event in all_events(frames)}, {run}, "session_id without a thread")
    assert not any("request_id" in frame for frame in frames), "nothing to echo"
    start = all_events(frames)[0]
    want = {"type": "run_start", "run_id": run, "message": "say: at noon", "agent": "react"}
    eq({name: start[name] for name in want}, want, "run_start")
    numbered(frames)
    eq(words(frames), ["run_start", "node_enter think", "message_chunk", "usage",
                       "node_exit think", "values", "updates", "run_end"])
    eq(reply(frames), "at noon")
    assert frames[-1]["node_id"] == all_events(frames)[-1]["node_id"], frames[-1]


@talks
def test_a_run_with_every_field(s):
    s.server()
    (s.work / "sub").mkdir()
    client = loom(s)
    frames = client.turn("run: pwd\nsay: x", "t1", id="mine", working_folder=str(s.work / "sub"),
                         got_adaptive=False, verbose=False, approvals=False, unknown=[1])
    eq({frame["request_id"] for frame in frames}, {"mine"}, "request_id")
    eq({event["session_id"] for event in all_events(frames)}, {"t1"}, "session_id of the events")
    eq({frame["session_id"] for frame in frames}, {"t1"}, "session_id of the frames")
    eq(text(frames, "tool_output"), f"{s.work / 'sub'}\n", "where it ran")
    assert RUN_ID.fullmatch(frames[0]["id"]), "the run's id is the server's"
    numbered(frames)


@talks
def test_null_is_as_good_as_left_out(s):
    s.server()
    fields = ("thread_id", "working_folder", "got_adaptive", "verbose", "approvals", "id")
    frames = loom(s).turn("run: pwd\nsay: x", **dict.fromkeys(fields))
    eq(reply(frames), "x")
    assert not any("request_id" in frame for frame in frames), "nothing to echo"
    eq(text(frames, "tool_output"), f"{s.work}\n", "where it ran")
    eq(events(frames, "custom"), [], "not verbose")
    eq(frames[0]["event"]["session_id"], frames[0]["id"], "no thread")


@talks
def test_a_relative_working_folder_is_below_the_working_directory(s):
    s.server()
    (s.work / "a" / "b").mkdir(parents=True)
    frames = loom(s).turn("run: pwd", working_folder="a/b")
    eq(text(frames, "tool_output"), f"{s.work / 'a' / 'b'}\n", "where it ran")


@talks
def test_a_working_folder_in_another_root(s):
    other = s.t.dir / "other"
    other.mkdir()
    s.server("--workspace-roots", str(other))
    frames = loom(s).turn("run: pwd", working_folder=str(other))
    eq(text(frames, "tool_output"), f"{other}\n", "where it ran")


@talks
def test_the_nodes_of_a_tool_round_on_a_thread(s):
    s.server()
    frames = loom(s).turn("think: hm\nsay: looking\nrun: echo hi\nsay: done", "t1")
    eq(words(frames), [
        "run_start", "node_enter think", "thought_chunk", "message_chunk", "tool_call", "usage",
        *round_of("think")[1:], "node_enter act", "tool_start", "tool_output", "tool_end",
        *round_of("act")[1:], *round_of("observe"),
        "node_enter think", "message_chunk", "usage", *round_of("think")[1:], "checkpoint",
        "run_end",
    ])
    spans = [event["node_id"] for event in events(frames, "node_enter")]
    eq(spans, ["run-think-0", "run-act-1", "run-observe-2", "run-think-3"])
    eq(all_events(frames)[0]["node_id"], "run-0", "node_id before any node")
    current = "run-0"
    for one in all_events(frames):
        current = one["node_id"] if one["type"] == "node_enter" else current
        eq(one["node_id"], current, f"node_id of {one['type']}")
    eq((text(frames, "thought_chunk"), reply(frames)), ("hm", "done"))
    numbered(frames)


@talks
def test_the_events_of_a_tool_call(s):
    s.server()
    frames = loom(s).turn("run: echo hi\nsay: done")
    call = event(frames, "tool_call")
    eq((call["name"], call["arguments"]), ("bash", {"command": "echo hi"}), "tool_call")
    chunks = events(frames, "tool_call_chunk")
    eq((chunks[0]["call_id"], chunks[0]["name"]), (call["call_id"], "bash"), "the first chunk")
    written = "".join(chunk["arguments_delta"] for chunk in chunks)
    eq(json.loads(written), call["arguments"], "what the chunks add up to")
    for kind in ("tool_start", "tool_output", "tool_end"):
        one = event(frames, kind)
        eq((one["call_id"], one["name"]), (call["call_id"], "bash"), kind)
    end = event(frames, "tool_end")
    eq((end["result"], end["is_error"]), ("hi\n", False), "tool_end")


@talks
def test_a_command_that_fails_is_an_error_of_the_tool_alone(s):
    s.server()
    frames = loom(s).turn("run: ls nowhere\nsay: well")
    eq(event(frames, "tool_end")["is_error"], True)
    eq({one["result"] for one in events(frames, "node_exit")}, {"Ok"}, "the nodes are well")
    eq(reply(frames), "well")


@talks
def test_a_tool_that_does_not_exist(s):
    s.server()
    frames = loom(s).turn('tool: nope {"a": 1}\nsay: well')
    call, end = event(frames, "tool_call"), event(frames, "tool_end")
    eq((call["name"], call["arguments"]), ("nope", {"a": 1}), "tool_call")
    eq(end["is_error"], True)
    eq(reply(frames), "well")


@talks
def test_usage_of_the_last_call_and_of_all(s):
    s.server()
    frames = loom(s).turn("usage: 100 10\nrun: ls\nusage: 200 20\nsay: x")
    told = [[one[name] for name in USAGE] for one in events(frames, "usage")]
    eq(told, [[100, 10, 110], [200, 20, 220]], "usage events")
    end = frames[-1]
    eq([end["usage"][name] for name in USAGE], [200, 20, 220], "usage of the end")
    eq([end["total_usage"][name] for name in USAGE], [300, 30, 330], "total_usage")
    again = loom(s).turn("usage: 1 2\nsay: x", "t1")
    eq([again[-1]["total_usage"][name] for name in USAGE], [1, 2, 3], "of this run alone")


@talks
def test_the_reply_is_what_this_run_said_last(s):
    s.server()
    client = loom(s)
    frames = client.turn("say: one\nrun: ls\nsay: Grüße 👋, two", "t1")
    eq(reply(frames), "Grüße 👋, two")
    eq(text(frames), "oneGrüße 👋, two", "all texts")
    # Nothing of an earlier run is repeated when this one says nothing.
    silent = reply(client.turn("run: ls", "t1"))
    assert "Grüße" not in silent and silent != "one", f"a stale reply: {silent}"


@talks
def test_a_streamed_text(s):
    s.server()
    frames = loom(s).turn("stream: 60 16 2")
    whole = "".join(f"{number:07} " for number in range(120))
    assert len(events(frames, "message_chunk")) > 1, "pieces"
    eq((text(frames), reply(frames)), (whole, whole), "text")
    eq({one["id"] for one in events(frames, "message_chunk")}, {"think"}, "the node of the chunks")
    numbered(frames)


@talks
def test_long_texts_are_shortened_in_the_state_only(s):
    s.server()
    frames = loom(s).turn("stream: 100 2000 0", "t1")
    eq((len(text(frames)), len(reply(frames))), (200_000, 200_000), "the text itself")
    for kind in ("values", "updates", "checkpoint"):
        size = max(len(json.dumps(one).encode()) for one in events(frames, kind))
        assert size < 64 * 1024, f"{kind} has {size} bytes"


@talks
def test_state_and_what_changed_in_it(s):
    s.server()
    frames = loom(s).turn("say: one\nrun: echo hi\nsay: two", "t1")
    state = {}
    for one in all_events(frames):
        if one["type"] == "values":
            values = one["state"]
        elif one["type"] == "updates":
            state.update(one["state"])
            same = {name: values[name] for name in state}
            eq(same, state, f"what the nodes up to {one['id']} changed")
    checkpoint = event(frames, "checkpoint")
    eq(checkpoint["state"], values, "the state at the end")
    eq((checkpoint["thread_id"], checkpoint["checkpoint_ns"]), ("t1", None), "checkpoint")
    said = [next(iter(message)) for message in values["messages"]]
    eq(said, ["User", "Assistant", "Tool", "Assistant"], "messages of the run")
    eq((values["turn_count"], values["earlier_messages"]), (1, 0), "counters")


@talks
def test_verbose_tells_each_nodes_time(s):
    s.server()
    client = loom(s)
    frames = client.turn("run: ls\nsay: x", verbose=True)
    nodes = [one["id"] for one in events(frames, "node_enter")]
    timings = [one["value"]["timing"] for one in events(frames, "custom")]
    eq([timing["node"] for timing in timings], nodes, "nodes")
    assert all(timing["duration_ms"] >= 0 for timing in timings), timings
    numbered(frames)
    eq(events(client.turn("run: ls"), "custom"), [], "not verbose")


# Threads.


def earlier(frames):
    return events(frames, "values")[0]["state"]["earlier_messages"]


@talks
def test_a_thread_remembers(s):
    s.server()
    client = loom(s)
    eq(earlier(client.turn("say: one", "t1")), 0, "the first run")
    second = client.turn("say: two", "t1")
    eq(earlier(second), 2, "the second run")
    eq(earlier(loom(s).turn("say: three", "t1")), 4, "on another connection")
    eq(earlier(client.turn("say: x", "t2")), 0, "another thread")
    told = [next(iter(one.values())) for one in events(second, "values")[-1]["state"]["messages"]]
    eq(told, ["say: two", "two"], "earlier messages are a count and not repeated")
    eq(sorted(s.sessions()), ["t1", "t2"], "sessions")


@talks
def test_a_run_without_a_thread_leaves_nothing(s):
    s.server()
    client = loom(s)
    for _ in range(2):
        eq(earlier(client.turn("run: ls\nsay: secret-of-mine")), 0, "no memory")
    eq(s.sessions(), [], "sessions")
    holds = [path for path in s.t.dir.rglob("*") if path.is_file() and "stderr" not in path.name
             and b"secret-of-mine" in path.read_bytes()]
    eq(holds, [], "files that hold what was said")
    eq([path.name for path in s.store.iterdir() if path.suffix == ".jsonl"], [], "session files")


@talks
def test_a_thread_goes_on_after_a_restart(s):
    server = s.server()
    loom(s).turn("say: one", "t1")
    server.kill()
    s.server()
    frames = loom(s).turn("say: two", "t1")
    eq((earlier(frames), reply(frames)), (2, "two"))
    numbered(frames)


@talks
def test_a_thread_is_the_session_of_every_dialect(s):
    s.server()
    s.agentloop("s1").turn("say: one")
    s.unified().turn("say: two")
    eq(earlier(loom(s).turn("say: three", "s1")), 4, "messages before")
    eq(spoken(s.unified().turn("say: four")), ["four"])
    eq(s.sessions(), ["s1"], "sessions")


@talks
def test_every_run_has_an_id_of_its_own(s):
    s.server()
    client = loom(s)
    ids = {client.turn("say: x", thread)[0]["id"] for thread in ("t1", "t1", "t2", None, None)}
    eq(len(ids), 5, "ids")
