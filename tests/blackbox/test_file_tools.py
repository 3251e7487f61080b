"""The file tools through the server: shown as each dialect shows tools, asked about, confined."""

import json

from frames import items, outputs
from harness import eq
from loomtalk import loom
from talk import of, talks, the

UNIFIED = ["Bash", "Read", "Write", "Edit", "MultiEdit", "apply_patch", "LS", "Glob", "Grep",
           "move_file", "delete_file", "create_dir", "WebFetch", "TodoRead", "TodoWrite",
           "AskUserQuestion", "ExitPlanMode", "batch", "skill", "remember", "recall",
           "search_memories", "list_memories"]
CANONICAL = ["bash", "read", "write_file", "edit", "multiedit", "apply_patch", "ls", "glob", "grep",
             "move_file", "delete_file", "create_dir", "web_fetcher", "todo_read", "todo_write",
             "ask_user", "exit_plan_mode", "batch", "skill", "remember", "recall",
             "search_memories", "list_memories"]


def call(name, **args):
    return f"tool: {name} {json.dumps(args)}"


@talks
def test_each_dialect_lists_the_tools_by_its_names(s):
    s.server()
    init = s.unified().start()
    eq(init["tools"], UNIFIED, "unified")
    listed = loom(s).ask("tools_list")["tools"]
    eq([tool["name"] for tool in listed], CANONICAL, "loom")
    assert all(tool["input_schema"]["type"] == "object" for tool in listed), listed


@talks
def test_an_edit_is_asked_about_with_its_change_and_told_as_a_changed_file(s):
    s.server()
    (s.t.work / "a.txt").write_text("one\ntwo\nthree\n")
    client = s.unified()
    client.say(call("edit", path="a.txt", oldString="two", newString="2") + "\nsay: end")
    request = client.until("control_request")[-1]
    eq((request["tool_name"], request["context"]["description"]), ("Edit", "edits a.txt"))
    assert "-two\n+2\n" in request["context"]["command"][1], request
    eq((s.t.work / "a.txt").read_text(), "one\ntwo\nthree\n", "before the answer")
    client.decide(request, "allow")
    frames = client.until_end()
    changed = the(frames, "file_changed")
    eq((changed["path"], changed["operation"]), (str(s.t.work / "a.txt"), "update"))
    assert the(frames, "tool_completed")["success"], frames
    eq((s.t.work / "a.txt").read_text(), "one\n2\nthree\n", "after it")


@talks
def test_reading_is_not_asked_about_inside_and_is_outside(s):
    s.server()
    (s.t.work / "a.txt").write_text("needle\n")
    client = s.unified()
    script = [call("read", path="a.txt"), call("grep", pattern="need"), call("ls"),
              call("glob", pattern="*.txt")]
    frames = client.turn("\n".join([*script, "say: end"]))
    results = [done["result"] for done in of(frames, "tool_completed")]
    eq(len(results), 4, "results")
    assert all("needle" in result or "a.txt" in result for result in results), results
    outside = s.t.work.parent / "outside.txt"
    outside.write_text("secret\n")
    request = client.asked(call("read", path="../outside.txt") + "\nsay: end")
    assert str(outside.resolve()) in request["context"]["description"], request
    client.decide(request, "deny")
    assert "secret" not in json.dumps(client.until_end()), "told though it was denied"


def test_agentloop_shows_an_edit_as_a_patch_that_can_be_replaced(t):
    client = t.server().client()
    client.say(call("write_file", path="a.txt", content="hi\n") + "\nsay: end")
    payload = client.until("approval_request")[-1]["payload"]
    text = "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch\n"
    eq(payload, {"command": ["apply_patch", text], "applyPatch": {"patch": text}}, "request")
    client.review("yes", applyPatch={"patch": text})
    frames = client.until_end()
    eq(items(frames, "function_call")[0]["name"], "write_file", "name")
    eq(outputs(frames)[0]["metadata"]["exit_code"], 0, "exit code")
    eq((t.work / "a.txt").read_text(), "hi\n", "the file")
    client.say(call("edit", path="a.txt", oldString="hi", newString="ho") + "\nsay: end")
    client.until("approval_request")
    client.review("yes", applyPatch={"patch": text.replace("a.txt", "b.txt")})
    client.until_end()
    eq((t.work / "a.txt").read_text(), "hi\n", "what was not approved")
    eq((t.work / "b.txt").read_text(), "hi\n", "what was approved in its place")


def test_the_servers_own_files_are_neither_read_nor_written(t):
    client = t.server("--tool-use-approval-mode", "full-auto").client()
    store = str(t.store)
    for name, args in [("read", {"path": f"{store}/s1.jsonl"}), ("ls", {"path": store}),
                       ("write_file", {"path": f"{store}/x", "content": "x"}),
                       ("delete_file", {"path": store, "recursive": True})]:
        output = outputs(client.turn(call(name, **args) + "\nsay: end"))[0]
        assert "server's own files" in output["output"], (name, output)
        eq(output["metadata"]["exit_code"], 1, name)


def test_todos_are_kept_in_the_sessions_file(t):
    client = t.server(todos=True).client()
    todos = [{"id": "1", "content": "look", "status": "in_progress", "priority": "high"}]
    output = outputs(client.turn(call("todo_write", todos=todos) + "\nsay: end"))[0]["output"]
    assert output.startswith("1 todos\n"), output
    output = outputs(client.turn(call("todo_read") + "\nsay: end"))[0]["output"]
    eq(json.loads(output.split("\n", 1)[1]), todos, "read")
