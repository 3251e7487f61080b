"""`polyloop check-command`: what it decides, how it tells, and that it runs nothing."""

import json
import subprocess

from harness import WAIT_SECS, Options, eq


def check(t, *words, lines="", cwd=None):
    program = [Options.polyloop, "check-command", "--cwd", str(cwd or t.work), *words]
    return subprocess.run(
        program, env=t.environment(None), input=lines, capture_output=True, text=True,
        timeout=WAIT_SECS,
    )


def test_decisions_and_exit_codes(t):
    (t.work / "a.txt").write_text("x\n")
    rows = [
        ("ls -la | head -3", "allow", 0),
        ("cat a.txt && wc -l < a.txt", "allow", 0),
        ("touch made", "ask", 1),
        ("ls; touch made", "ask", 1),
        ("cat /etc/shadow", "ask", 1),
        ("", "ask", 1),
        ("ls (", "ask", 1),
    ]
    for script, decision, code in rows:
        result = check(t, script)
        eq((result.returncode, result.stderr), (code, ""), script)
        (line,) = result.stdout.splitlines()
        told, _, reason = line.partition(": ")
        eq(told, decision, script)
        assert reason, script
    assert not (t.work / "made").exists(), "it runs nothing"


def test_words_that_make_no_sense(t):
    for words in ([], ["ls", "pwd"], ["--jsonl", "ls"], ["--nope", "ls"]):
        result = check(t, *words)
        eq((result.returncode, result.stdout), (2, ""), words)
        assert "Usage" in result.stderr, result.stderr
    result = check(t, "ls", cwd=t.work / "nowhere")
    eq(result.returncode, 2, "no such directory")
    assert "nowhere" in result.stderr, result.stderr


def test_lines_are_answered_one_by_one(t):
    asked = [
        {"id": "a", "cmd": "ls | wc -l"},
        {"id": "b", "cmd": ["cat", "a b.txt"]},
        {"id": "c", "cmd": ["touch", "x"]},
        {"id": {"n": 1}, "cmd": "rm -rf /"},
        {"id": "e"},
        {"id": "f", "cmd": 7},
        {"id": "g", "cmd": "echo \u202e"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in asked) + "no JSON\n\n" + '{"id":9,"cmd":"pwd"}'
    result = check(t, "--jsonl", lines=text)
    eq((result.returncode, result.stderr), (0, ""), "exit code")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    eq([(a["id"], a["decision"], "error" in a) for a in answers], [
        ("a", "allow", False),
        ("b", "allow", False),
        ("c", "ask", False),
        ({"n": 1}, "ask", False),
        ("e", "ask", True),
        ("f", "ask", True),
        ("g", "ask", False),
        (None, "ask", True),
        (9, "allow", False),
    ], "answers")
    assert all(answer["reason"] for answer in answers), answers
    assert "\u202e" not in result.stdout, "what cannot be seen is written as its code"
