"""Every tool through two dialects: called by its canonical name, shown by the dialect's own, with
its arguments, its result, and what it did to the files."""

import json

from harness import eq
from loomtalk import event, events, loom
from talk import of, talks, the
from test_web import Site

PATCH = """*** Begin Patch
*** Add File: new.txt
+new
*** Update File: a.txt
@@
-two
+2
*** Delete File: b.txt
*** End Patch"""
TODOS = [{"id": "1", "content": "look", "status": "pending", "priority": "high"}]

START = {"a.txt": "one\ntwo\nthree\n", "b.txt": "needle\n", "d/c.rs": "fn needle() {}\n",
         ".polyloop/skills/greet.md": "Say hello twice.\n"}

# A row: the canonical name, the name in the unified dialect, the arguments, what the result has in
# it, and which files are other than at the start (None: gone). A new tool gets a row here.
TOOLS = [
    ("bash", "Bash", {"command": "echo hi > made; cat made", "description": "tries"}, ["hi"],
     {"made": "hi\n"}),
    ("bash", "Bash", {"command": "echo $PWD > made; basename $PWD", "workdir": "d"}, ["d"],
     {"d/made": None}),
    ("read", "Read", {"path": "a.txt", "offset": 1, "limit": 1}, ["two"], {}),
    ("write_file", "Write", {"path": "sub/x.txt", "content": "x\n"}, [], {"sub/x.txt": "x\n"}),
    ("write_file", "Write", {"path": "a.txt", "content": "four\n", "append": True}, [],
     {"a.txt": "one\ntwo\nthree\nfour\n"}),
    ("edit", "Edit", {"path": "a.txt", "oldString": "two", "newString": "2"}, [],
     {"a.txt": "one\n2\nthree\n"}),
    ("edit", "Edit", {"path": "a.txt", "oldString": "e", "newString": "E", "replaceAll": True}, [],
     {"a.txt": "onE\ntwo\nthrEE\n"}),
    ("multiedit", "MultiEdit", {"path": "a.txt", "edits": [
        {"oldString": "one", "newString": "1"}, {"oldString": "1\ntwo", "newString": "1\n2"}]}, [],
     {"a.txt": "1\n2\nthree\n"}),
    ("apply_patch", "apply_patch", {"patch": PATCH}, [],
     {"new.txt": "new\n", "a.txt": "one\n2\nthree\n", "b.txt": None}),
    ("ls", "LS", {"path": "."}, ["a.txt", "d/", "c.rs"], {}),
    ("glob", "Glob", {"pattern": "**/*.rs"}, ["d/c.rs"], {}),
    ("grep", "Grep", {"pattern": "need.e", "include": "*.rs"}, ["c.rs", "fn needle"], {}),
    ("move_file", "move_file", {"source": "b.txt", "target": "d/moved.txt"}, [],
     {"b.txt": None, "d/moved.txt": "needle\n"}),
    ("delete_file", "delete_file", {"path": "b.txt"}, [], {"b.txt": None}),
    ("delete_file", "delete_file", {"path": "d", "recursive": True}, [], {"d/c.rs": None}),
    ("create_dir", "create_dir", {"path": "e/f"}, [], {"e/f": "a directory"}),
    ("todo_write", "TodoWrite", {"todos": TODOS}, ["look"], {}),
    ("todo_read", "TodoRead", {}, ["look"], {}),
    ("web_fetcher", "WebFetch", {"url": "SITE/page"}, ["# One", "two"], {}),
    ("batch", "batch", {"calls": [
        {"tool": "read", "parameters": {"path": "a.txt"}},
        {"tool": "write_file", "parameters": {"path": "x.txt", "content": "x\n"}}]},
     ["[1] read", "three", "[2] write_file"], {"x.txt": "x\n"}),
    ("skill", "skill", {"name": "greet"}, ["Say hello twice."], {}),
    ("remember", "remember", {"key": "colour", "value": "green"}, ["ok"], {}),
    ("recall", "recall", {"key": "colour"}, ["green"], {}),
    ("search_memories", "search_memories", {"query": "green", "limit": 3}, ["colour"], {}),
    ("list_memories", "list_memories", {}, ["colour"], {}),
]

# Calls that fail, and a word that says why.
FAULTS = [
    ("bash", {}, "command"), ("bash", {"command": "exit 3"}, "3"),
    ("read", {"path": "missing"}, "missing"), ("read", {"path": "d"}, "directory"),
    ("read", {}, "path"), ("write_file", {"path": "a.txt"}, "content"),
    ("write_file", {"path": "d", "content": "x"}, "d"),
    ("edit", {"path": "a.txt", "oldString": "four", "newString": "x"}, "a.txt"),
    ("edit", {"path": "a.txt", "oldString": "e", "newString": "x"}, "a.txt"),
    ("multiedit", {"path": "a.txt", "edits": [{"oldString": "one", "newString": "1"},
                                              {"oldString": "nine", "newString": "9"}]}, "2"),
    ("apply_patch", {"patch": "nonsense"}, "Begin Patch"), ("ls", {"path": "missing"}, "missing"),
    ("glob", {"pattern": "["}, "["), ("grep", {"pattern": "("}, "("),
    ("move_file", {"source": "missing", "target": "x"}, "missing"),
    ("move_file", {"source": "a.txt", "target": "b.txt"}, "b.txt"),
    ("delete_file", {"path": "missing"}, "missing"), ("delete_file", {"path": "d"}, "recursive"),
    ("create_dir", {"path": "d", "exist_ok": False}, "d"), ("todo_write", {"todos": 1}, "todos"),
    ("web_fetcher", {"url": "ftp://x"}, "http"), ("web_fetcher", {}, "url"),
    ("skill", {"name": "../x"}, "greet"), ("skill", {}, "name"),
    ("remember", {"key": "x"}, "value"),
    ("recall", {"key": "missing"}, "missing"), ("search_memories", {"limit": "x"}, "limit"),
    ("batch", {"calls": [{"tool": "read", "parameters": {"path": "missing"}}]}, "missing"),
    ("batch", {"calls": []}, "calls"), ("no_such_tool", {"x": 1}, "no_such_tool"),
    ("read", "not an object", "object"),
]


def call(name, args):
    return f"tool: {name} {json.dumps(args)}"


def furnish(work):
    """The files of the start, and nothing else."""
    for path in sorted(work.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, text in START.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)


def check_files(work, name, changed):
    for path, want in {**START, **changed}.items():
        file = work / path
        if path == "d/made":
            eq(file.read_text(), f"{work}/d\n", f"{name}: {path}")
        elif want is None:
            assert not file.exists(), f"{name}: {path} should be gone"
        elif want == "a directory":
            assert file.is_dir(), f"{name}: {path} should be a directory"
        else:
            eq(file.read_text(), want, f"{name}: {path}")


def allowing(client, script):
    """The frames of a turn; what is asked about, as deleting a whole directory is, is allowed."""
    client.say(script)
    frames = client.until(lambda f: f["type"] in ("control_request", "turn_completed"))
    if frames[-1]["type"] == "control_request":
        client.decide(frames[-1], "allow")
        frames += client.until_end()
    return frames


def allowing_loom(client, script):
    client.run(script, "t1", approvals=True)
    frames = client.until(lambda f: f["type"] in ("run_end", "error")
                          or f.get("event", {}).get("type") == "tool_approval")
    if frames[-1].get("event"):
        client.answer(frames[-1], True)
        frames += client.until_end()
    return frames


def server(s):
    """A server and the rows, with the address of a web server of this machine in them."""
    web = Site()
    s.t.closing += [web.http.shutdown, web.http.server_close]
    s.server("--tool-use-approval-mode", "full-auto", todos=True,
             env={"WEB_PRIVATE_ADDRESSES": "true"})
    at_home = {"SITE/page": web.url("/page")}
    return [(name, shown, {key: at_home.get(str(value), value) for key, value in args.items()},
             told, changed) for name, shown, args, told, changed in TOOLS]


@talks
def test_each_tool_in_unified(s):
    rows = server(s)
    client = s.unified(full_auto=True)
    shown = client.start()["tools"]
    for name, unified, args, told, changed in rows:
        furnish(s.work)
        assert unified in shown, f"{unified} is listed: {shown}"
        frames = allowing(client, call(name, args) + "\nsay: end")
        began, done = the(frames, "tool_started"), the(frames, "tool_completed")
        eq((began["tool_name"], began["arguments"]), (unified, args), "how it is shown")
        eq((done["tool_id"], done["success"], done["error"]), (began["tool_id"], True, None), name)
        for word in told:
            assert word in done["result"], f"{name}: {word} in {done}"
        check_files(s.work, name, changed)
        changes = {f["path"]: f["operation"] for f in of(frames, "file_changed")}
        wanted = {str(s.work / path): operation(path, text) for path, text in changed.items()
                  if text != "a directory"}
        if name == "bash":  # What a script changes is told of where it can be seen in it.
            assert changes.items() <= wanted.items(), f"{name}: {changes}"
        else:
            eq(changes, wanted, f"{name}: changes that were told")


def operation(path, text):
    if text is None and path in START:
        return "delete"
    return "update" if path in START else "create"


@talks
def test_each_tool_in_loom(s):
    rows = server(s)
    client = loom(s, full_auto=True)
    for name, _, args, told, changed in rows:
        furnish(s.work)
        frames = allowing_loom(client, call(name, args) + "\nsay: end")
        asked, done = event(frames, "tool_call"), event(frames, "tool_end")
        eq((asked["name"], asked["arguments"]), (name, args), "how it is shown")
        eq((done["name"], done["is_error"]), (name, False), f"{name}: {done}")
        for word in told:
            assert word in done["result"], f"{name}: {word} in {done}"
        check_files(s.work, name, changed)


@talks
def test_calls_that_fail_say_why_in_both(s):
    s.server("--tool-use-approval-mode", "full-auto", todos=True)
    unified, other = s.unified(full_auto=True), loom(s, full_auto=True)
    unified.start()
    furnish(s.work)
    for name, args, why in FAULTS:
        done = the(unified.turn(call(name, args) + "\nsay: end"), "tool_completed")
        eq(done["success"], False, f"{name} {args}: {done}")
        assert why in (done["error"] or "") + (done["result"] or ""), f"{name} {args}: {done}"
        done = event(other.turn(call(name, args) + "\nsay: end", "t1"), "tool_end")
        eq(done["is_error"], True, f"{name} {args}: {done}")
        assert why in done["result"], f"{name} {args}: {done}"
        check_files(s.work, name, {})
    eq(len(events(other.seen, "tool_end")), len(FAULTS), "every call has a result")


@talks
def test_every_tool_is_tried_here(s):
    """A tool without a row is one that nobody has tried through a dialect."""
    s.server()
    client = loom(s)
    listed = [tool["name"] for tool in client.ask("tools_list")["tools"]]
    # These ask people, and have tests of their own.
    asking = {"ask_user", "exit_plan_mode"}
    tried = {row[0] for row in TOOLS} | asking
    eq([name for name in listed if name not in tried], [], "tools without a row")
    eq(listed, [name for name in ORDER if name in listed], "the order")
    for tool in client.ask("tools_list")["tools"]:
        shown = client.ask("tool_show", name=tool["name"], output="json")["tool"]
        eq(shown["input_schema"], tool["input_schema"], tool["name"])
        schema = shown["input_schema"]
        eq(schema["type"], "object", tool["name"])
        for name in schema.get("required", []):
            assert name in schema["properties"], f"{tool['name']}: {name}"
        rows = [row for row in TOOLS if row[0] == tool["name"]]
        for _, _, args, _, _ in rows:
            unknown = set(args) - set(schema["properties"])
            eq(unknown, set(), f"{tool['name']}: arguments that no schema has")
            missing = set(schema.get("required", [])) - set(args)
            eq(missing, set(), f"{tool['name']}: arguments that are missing")


ORDER = ["bash", "read", "write_file", "edit", "multiedit", "apply_patch", "ls", "glob", "grep",
         "move_file", "delete_file", "create_dir", "web_fetcher", "todo_read", "todo_write",
         "ask_user", "exit_plan_mode", "batch", "skill", "remember", "recall", "search_memories",
         "list_memories"]
