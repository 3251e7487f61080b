"""Several calls as one: one approval, results by number, and never more than each may alone."""

import json

from frames import outputs
from harness import eq
from loomtalk import event, loom, reply
from talk import of, talks, the


def part(tool, **parameters):
    return {"tool": tool, "parameters": parameters}


def batch(*parts):
    return f"tool: batch {json.dumps({'calls': parts})}\nsay: end"


@talks
def test_a_batch_of_reads_runs_unasked(s):
    s.server()
    (s.t.work / "a.txt").write_text("needle\n")
    frames = s.unified().turn(batch(part("read", path="a.txt"), part("bash", command="cat a.txt")))
    done = the(frames, "tool_completed")
    eq((done["success"], done["result"]),
       (True, "[1] read:      1\tneedle\n[2] bash: needle\n"), "result")


@talks
def test_one_approval_for_all_parts_and_every_file_is_told(s):
    s.server()
    (s.t.work / "a.txt").write_text("one\n")
    client = s.unified()
    request = client.asked(batch(
        part("read", path="a.txt"), part("bash", command="echo hi; touch c.txt"),
        part("edit", path="a.txt", oldString="one", newString="two"),
        part("write_file", path="b.txt", content="b\n")))
    context = request["context"]
    assert context["description"].startswith("4 calls, the riskiest: "), context
    eq(len(context["command"]), 5, "all parts are shown")
    assert "-one\n+two" in context["command"][3], context
    eq((s.t.work / "a.txt").read_text(), "one\n", "before the answer")
    client.decide(request, "allow")
    frames = client.until_end()
    done = the(frames, "tool_completed")
    assert done["success"] and done["result"].startswith("[1] read:      1\tone\n[2] bash: hi\n"), done
    eq([change["path"].rsplit("/", 1)[1] for change in of(frames, "file_changed")],
       ["c.txt", "a.txt", "b.txt"], "files")
    eq((s.t.work / "a.txt").read_text(), "two\n", "after it")


@talks
def test_a_denied_batch_does_nothing_and_a_refused_one_is_not_asked_about(s):
    s.server()
    client = s.unified()
    request = client.asked(batch(part("write_file", path="a", content="x"),
                                 part("write_file", path="b", content="x")))
    client.decide(request, "deny")
    assert not the(client.until_end(), "tool_completed")["success"]
    frames = client.turn(batch(part("write_file", path="a", content="x"),
                               part("read", path=str(s.t.store))))
    error = the(frames, "tool_completed")["error"]
    assert error.startswith("batch: [2] read: ") and "server's own files" in error, error
    frames = client.turn(batch(part("ask_user", questions=[])))
    assert "cannot be part of a batch" in the(frames, "tool_completed")["error"], frames
    eq(sorted(path.name for path in s.t.work.iterdir() if path.name in "ab"), [], "files")


@talks
def test_loom_clients_approve_batches_and_see_failures(s):
    s.server("--tool-use-approval-mode", "auto-edit")
    client = loom(s)
    # Edits run unasked in this mode, and so do harmless commands beside them.
    frames = client.turn(batch(part("write_file", path="a", content="x\n"),
                               part("bash", command="pwd")), approvals=True)
    assert not event(frames, "tool_end")["is_error"], frames
    eq((s.t.work / "a").read_text(), "x\n")
    request = client.asked(batch(part("read", path="none"), part("bash", command="touch b")))
    eq(request["event"]["name"], "batch", "what is asked")
    client.answer(request, True)
    frames = client.until_end()
    end = event(frames, "tool_end")
    assert "(1 of 2 calls failed: [1])" in end["result"] and not end["is_error"], end
    eq(reply(frames), "end")
    assert (s.t.work / "b").exists()


def test_agentloop_shows_a_batch_by_its_parts(t):
    client = t.server().client()
    client.say(batch(part("bash", command="touch a"), part("bash", command="touch 'b c'")))
    payload = client.until("approval_request")[-1]["payload"]
    eq(payload["command"], ["batch", "[1] bash: touch a", "[2] bash: touch 'b c'"], "request")
    client.review("yes")
    output = outputs(client.until_end())[0]
    eq((output["output"], output["metadata"]["exit_code"]), ("[1] bash: \n[2] bash: \n", 0))
    assert (t.work / "a").exists() and (t.work / "b c").exists()
