"""Unified: what commands print while they run, and which files were changed."""

import json

from harness import eq, eventually
from talk import of, spoken, talks, the


def allowed(client, script):
    """Runs a script with everything allowed; its frames."""
    client.say(script)
    frames = []
    while True:
        frames += client.until(
            lambda f: f["type"] in ("control_request", "turn_completed", "turn_failed")
        )
        if frames[-1]["type"] != "control_request":
            return frames
        client.decide(frames[-1], "allow")


def changes(frames, s):
    """The changed files as (name, operation)."""
    found = []
    for frame in of(frames, "file_changed"):
        path = frame["path"]
        assert path.startswith(str(s.work)), f"a path that names the file: {path}"
        found.append((path.removeprefix(f"{s.work}/"), frame["operation"]))
    return sorted(found)


def output(frames):
    return "".join(frame["output"] for frame in of(frames, "command_output"))


def patch(*lines):
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch"])
    return "tool: apply_patch " + json.dumps({"patch": text})


# What commands print.


@talks
def test_output_comes_in_increments(s):
    s.server()
    client = s.unified()
    script = "for i in 1 2 3; do echo $i; while [ ! -e go$i ]; do sleep 0.02; done; done; exit 3"
    client.decide(client.asked(f"run: {script}"), "allow")
    for number in "123":
        frames = client.until("command_output")
        while output(frames) == "":
            frames += client.until("command_output")
        eq(output(frames), f"{number}\n", "an increment, as soon as it is printed")
        eq((frames[-1]["exit_code"], frames[-1]["is_streaming"]), (None, True), "while it runs")
        (s.work / f"go{number}").touch()
    frames = client.until_end()
    last = of(frames, "command_output")[-1]
    eq((last["exit_code"], last["is_streaming"]), (3, False), "the last one")
    done = the(frames, "tool_completed")
    eq((done["success"], done["result"]), (False, None), "a command that failed")
    assert done["error"], done


@talks
def test_a_loop_without_pauses(s):
    s.server()
    client = s.unified()
    frames = allowed(client, "run: for i in 1 2 3; do echo $i; done")
    eq(output(frames), "1\n2\n3\n", "output")
    eq(the(frames, "tool_completed")["result"], "1\n2\n3\n", "result")


@talks
def test_much_output_is_whole_or_says_that_it_is_cut(s):
    s.server()
    client = s.unified()
    frames = allowed(client, "run: seq 1 5000")
    whole = "".join(f"{n}\n" for n in range(1, 5001))
    eq(output(frames), whole, "output")
    frames = allowed(client, "run: yes | head -c 30000000")
    assert len(output(frames)) < 30_000_000, "output has a limit"
    eq(the(frames, "tool_completed")["success"], True, "the command itself")


@talks
def test_characters_are_never_torn(s):
    s.server()
    client = s.unified()
    frames = allowed(client, "run: for i in $(seq 300); do printf 'ä世👩'; done")
    eq(output(frames), "ä世👩" * 300, "output")


@talks
def test_output_that_is_no_text(s):
    s.server()
    client = s.unified()
    frames = allowed(client, "run: printf 'a\\\\377b\\\\000c'")
    assert output(frames).startswith("a") and output(frames).endswith("c"), repr(output(frames))
    eq(spoken(client.turn("say: fine")), ["fine"])


@talks
def test_a_command_that_prints_nothing(s):
    s.server()
    client = s.unified()
    frames = allowed(client, "run: true")
    (last,) = of(frames, "command_output")
    eq((last["output"], last["exit_code"], last["is_streaming"]), ("", 0, False))
    eq(the(frames, "tool_completed")["result"], "", "result")


@talks
def test_output_while_nobody_is_attached_is_kept(s):
    s.server()
    client = s.unified(complete=False)
    script = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; touch done"
    client.decide(client.asked(f"run: {script}\nsay: end"), "allow")
    client.until("command_output")
    place = client.place()
    client.drop()
    (s.work / "go").touch()
    eventually((s.work / "done").exists, "the command goes on")
    back = s.watcher(since=place)
    frames = back.until_end()
    eq(output(client.seen) + output(frames), "one\ntwo\n", "from a cursor: no gap, no repetition")


# Which files were changed.


@talks
def test_files_of_a_patch(s):
    s.server()
    client = s.unified()
    client.start(permission_mode="acceptEdits")
    for name in ("updated", "deleted", "moved"):
        (s.work / name).write_text("old\n")
    frames = allowed(client, patch(
        "*** Add File: sub/created", "+new", "*** Update File: updated", "@@", "-old", "+new",
        "*** Delete File: deleted", "*** Update File: moved", "*** Move to: renamed", "@@",
        "-old", "+new"))
    eq(the(frames, "tool_completed")["success"], True, "the patch")
    eq(changes(frames, s), [("deleted", "delete"), ("moved", "delete"), ("renamed", "create"),
                            ("sub/created", "create"), ("updated", "update")], "file_changed")


@talks
def test_a_patch_that_fails_changes_nothing(s):
    s.server()
    client = s.unified()
    client.start(permission_mode="acceptEdits")
    frames = allowed(client, patch("*** Add File: a", "+x", "*** Delete File: missing"))
    eq(the(frames, "tool_completed")["success"], False, "the patch")
    eq((changes(frames, s), list(s.work.iterdir())), ([], []), "files")


@talks
def test_files_that_a_command_names(s):
    s.server()
    client = s.unified()
    for name in ("updated", "deleted", "source"):
        (s.work / name).write_text("old\n")
    for command, want in {
        "touch created": [("created", "create")],
        "echo new > updated": [("updated", "update")],
        "echo more >> updated": [("updated", "update")],
        "rm deleted": [("deleted", "delete")],
        "mv source target": [("source", "delete"), ("target", "create")],
        "cp target copy": [("copy", "create")],
        "ls": [],
        "cat updated": [],
    }.items():
        eq(changes(allowed(client, f"run: {command}"), s), want, command)


@talks
def test_a_denied_edit_changes_nothing(s):
    s.server()
    client = s.unified()
    client.decide(client.asked(patch("*** Add File: a", "+x") + "\nsay: end"), "deny")
    eq(of(client.until_end(), "file_changed"), [], "file_changed")


@talks
def test_a_request_for_an_edit_shows_the_patch(s):
    s.server()
    client = s.unified()
    line = patch("*** Add File: a", "+x")
    request = client.asked(line)
    eq(request["input"], json.loads(line.partition("apply_patch ")[2]), "input")
    client.decide(request, "allow")
    frames = client.until_end()
    eq(changes(frames, s), [("a", "create")], "file_changed")
