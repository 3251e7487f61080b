"""A session in `suggest` decides on each line of the corpora as `check-command` does: what is
allowed runs, the rest is asked about, and denied here."""

import json
import subprocess
from pathlib import Path

from fakemodel import FakeModel
from harness import Options, eq
from sdk_types import RESPONSES
from test_models import CODEX, answer, bash, opaque, say

DATA = Path(__file__).resolve().parents[2] / "crates/agent/tests/data"
# Calls of one session: each request holds all that was before.
SESSION_CALLS = 25
CHECK_SECS_MAX = 120


def cases(name):
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def checked(t, lines):
    """What `check-command` decides, in order."""
    asked = "".join(json.dumps({"id": line["id"], "cmd": line["cmd"]}) + "\n" for line in lines)
    result = subprocess.run(
        [Options.polyloop, "check-command", "--jsonl", "--cwd", str(t.work)], input=asked,
        env=t.environment(), capture_output=True, text=True, encoding="utf-8",
        timeout=CHECK_SECS_MAX)
    eq((result.returncode, result.stderr), (0, ""), "check-command")
    answers = {answer["id"]: answer["decision"]
               for answer in map(json.loads, result.stdout.splitlines())}
    return [answers[line["id"]] for line in lines]


def proposed(number, command):
    """A reply of the model: a script, or words for its provider's own shell."""
    if isinstance(command, str):
        return answer(bash(command))
    return answer({"think": "So.", "signature": opaque(number)}, {"shell": command})


def decided(client, model, lines):
    """What the session decides, one call after the other."""
    model.script([proposed(n, line["cmd"]) for n, line in enumerate(lines)] + [say("Done.")])
    client.say("Go")
    decisions, asked = [], False
    while (frame := client.recv())["type"] != "agent_finished":
        assert frame["type"] != "error", frame
        if frame["type"] == "approval_request":
            asked = True
            client.review("no-continue")
        elif frame["type"] == "response_item":
            # A call is told when it is decided.
            if frame["payload"]["type"] in ("function_call", "local_shell_call"):
                decisions.append("ask" if asked else "allow")
                asked = False
    return decisions


def compare(t, lines):
    subprocess.run(["bash", str(DATA / "world.sh"), str(t.dir)], check=True, capture_output=True)
    want = checked(t, lines)
    model = FakeModel(test=t)
    server = t.server(env=RESPONSES.settings(model.url, **CODEX))
    for start in range(0, len(lines), SESSION_CALLS):
        client = server.client(f"/ws/s{start}", checked=False)
        part = slice(start, start + SESSION_CALLS)
        got = decided(client, model, lines[part])
        eq(len(got), len(lines[part]), "calls")
        for line, mine, theirs in zip(lines[part], got, want[part], strict=True):
            eq(mine, theirs, line["cmd"])
            assert line["safe"] or mine == "ask", line
        client.close()
    assert not (t.work / "PWNED").exists()


def part(lines, number, of):
    return lines[len(lines) * number // of:len(lines) * (number + 1) // of]


def test_the_public_corpus(t):
    compare(t, cases("commands_public.jsonl"))


def test_our_own_corpus_first_part(t):
    compare(t, part(cases("own.jsonl"), 0, 4))


def test_our_own_corpus_second_part(t):
    compare(t, part(cases("own.jsonl"), 1, 4))


def test_our_own_corpus_third_part(t):
    compare(t, part(cases("own.jsonl"), 2, 4))


def test_our_own_corpus_last_part(t):
    compare(t, part(cases("own.jsonl"), 3, 4))
