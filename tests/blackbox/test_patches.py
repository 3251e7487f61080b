"""Edits: the approval request shows the patch, and what is approved is what is applied."""

import json

from frames import items, kinds, outputs, said
from harness import eq


def patch(name, *lines):
    body = "".join(f"+{line}\n" for line in lines)
    return f"*** Begin Patch\n*** Add File: {name}\n{body}*** End Patch"


def script(text, after="say: end"):
    return f"tool: apply_patch {json.dumps({'patch': text})}\n{after}"


def asked(client, text):
    client.say(script(text))
    return client.until("approval_request")[-1]


def test_the_request_shows_the_patch_and_yes_writes_the_file(t):
    client = t.server().client()
    text = patch("a.txt", "hi", "there")
    request = asked(client, text)
    want = {"command": ["apply_patch", text], "applyPatch": {"patch": text}}
    eq(request["payload"], want, "request")
    assert not (t.work / "a.txt").exists(), "written before it was approved"
    client.review("yes")
    frames = client.until_end()
    want = ["function_call", "function_call_output", "assistant", "idle", "agent_finished"]
    eq(kinds(frames), want)
    eq(items(frames, "function_call")[0]["name"], "apply_patch", "name")
    eq(outputs(frames)[0]["metadata"]["exit_code"], 0, "exit code")
    eq((t.work / "a.txt").read_text(), "hi\nthere\n", "the file")


def test_a_denied_patch_changes_nothing(t):
    client = t.server().client()
    asked(client, patch("a.txt", "hi"))
    client.review("no-continue", customDenyMessage="not this file")
    frames = client.until_end()
    assert "not this file" in outputs(frames)[0]["output"], outputs(frames)
    eq(list(t.work.iterdir()), [], "files")
    eq(said(frames), ["end"])


def test_another_patch_in_the_approval_is_applied_instead(t):
    client = t.server().client()
    asked(client, patch("a.txt", "theirs"))
    mine = patch("b.txt", "mine")
    client.review("yes", applyPatch={"patch": mine})
    frames = client.until_end()
    eq([p.name for p in t.work.iterdir()], ["b.txt"], "files")
    eq((t.work / "b.txt").read_text(), "mine\n", "the file")
    (call,) = items(frames, "function_call")
    eq(json.loads(call["arguments"])["patch"], mine, "the call that clients see")


def test_another_patch_counts_with_always_too(t):
    client = t.server().client()
    asked(client, patch("a.txt", "theirs"))
    client.review("always", applyPatch={"patch": patch("b.txt", "mine")})
    client.until_end()
    eq([p.name for p in t.work.iterdir()], ["b.txt"], "files")


def test_another_patch_that_does_not_apply_leaves_the_request_open(t):
    client = t.server().client()
    asked(client, patch("a.txt", "hi"))
    broken = "*** Begin Patch\n*** Update File: none.txt\n@@\n-x\n+y\n*** End Patch"
    for wrong in ("no patch at all", "", broken):
        client.review("yes", applyPatch={"patch": wrong})
        client.error()
    client.send("approval_response", {"review": "yes", "applyPatch": {"patch": 7}})
    client.error()
    eq(list(t.work.iterdir()), [], "files")
    client.review("yes")
    client.until_end()
    eq((t.work / "a.txt").read_text(), "hi\n", "the file")


def test_a_patch_cannot_take_the_place_of_a_command(t):
    client = t.server().client()
    client.say("run: touch x\nsay: end")
    client.until("approval_request")
    client.review("yes", applyPatch={"patch": patch("a.txt", "hi")})
    client.error()
    eq(list(t.work.iterdir()), [], "files")
    client.review("yes")
    client.until_end()
    eq([p.name for p in t.work.iterdir()], ["x"], "files")


def test_updates_and_deletions(t):
    client = t.server().client()
    (t.work / "src").mkdir()
    (t.work / "src/app.ts").write_text("import express from 'express';\nconst app = express();\n")
    (t.work / "old").write_text("old\n")
    text = ("*** Begin Patch\n*** Update File: src/app.ts\n@@\n import express from 'express';\n"
            "+import cors from 'cors';\n const app = express();\n*** Delete File: old\n"
            "*** End Patch")
    asked(client, text)
    client.review("yes")
    client.until_end()
    want = "import express from 'express';\nimport cors from 'cors';\nconst app = express();\n"
    eq((t.work / "src/app.ts").read_text(), want, "the file")
    assert not (t.work / "old").exists(), "deleted"


def test_a_patch_that_does_not_apply_is_a_failed_call(t):
    client = t.server().client()
    text = "*** Begin Patch\n*** Update File: none.txt\n@@\n-x\n+y\n*** End Patch"
    client.say(script(text))
    frames = client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
    if frames[-1]["type"] == "approval_request":
        client.review("yes")
        frames += client.until_end()
    assert outputs(frames)[0]["metadata"]["exit_code"] != 0, outputs(frames)
    eq(said(frames), ["end"], "the turn goes on")
    eq(list(t.work.iterdir()), [], "files")


def test_nothing_outside_the_working_directory_is_written_unasked(t):
    client = t.server(env={"TOOL_USE_APPROVAL_MODE": "auto-edit"}).client()
    (t.work / "link").symlink_to(t.dir)
    for name in ("../out.txt", str(t.dir / "out.txt"), "link/out.txt", "a/../../out.txt"):
        client.say(script(patch(name, "x")))
        frames = client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
        assert not (t.dir / "out.txt").exists(), f"{name}: written without a question"
        if frames[-1]["type"] == "approval_request":
            client.review("no-exit")
            client.until_end()
        else:
            assert outputs(frames)[0]["metadata"]["exit_code"] != 0, f"{name}: {frames}"


def test_auto_edit_applies_patches_and_still_asks_for_commands(t):
    client = t.server(env={"TOOL_USE_APPROVAL_MODE": "auto-edit"}).client()
    frames = client.turn(script(patch("a.txt", "hi")))
    assert "approval_request" not in kinds(frames), kinds(frames)
    eq((t.work / "a.txt").read_text(), "hi\n", "the file")
    client.say("run: touch b")
    client.until("approval_request")
    client.review("no-exit")
    client.until_end()


def test_the_session_store_is_never_the_agents_to_edit(t):
    server = t.server(env={"SESSION_STORE_PATH": t.work / "sessions",
                           "TOOL_USE_APPROVAL_MODE": "auto-edit"})
    client = server.client()
    client.say(script(patch("sessions/evil.jsonl", "{}")))
    frames = client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
    if frames[-1]["type"] == "approval_request":
        client.review("yes")
        frames += client.until_end()
    assert outputs(frames)[0]["metadata"]["exit_code"] != 0, outputs(frames)
    assert not (t.work / "sessions/evil.jsonl").exists(), "written into the session store"


def test_a_patch_waits_for_its_answer_and_is_applied_once(t):
    """The client leaves without an answer; another gives it, twice, and to the wrong session."""
    server = t.server()
    client = server.client("/ws/one")
    request = asked(client, patch("a.txt", "hi"))
    client.close()
    back, other = server.client("/ws/one"), server.client("/ws/other")
    again = back.until("approval_request")[-1]
    eq(again["payload"], request["payload"], "the request, again")
    eq(list(t.work.iterdir()), [], "before the answer")
    other.review("yes")
    other.error()
    eq(list(t.work.iterdir()), [], "after another session's answer")
    back.review("yes")
    back.review("yes")
    back.until_end()
    eq((t.work / "a.txt").read_text(), "hi\n", "the file, once")
