"""The example clients: each is run as a person would run it, against a live server."""

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

from harness import WAIT_SECS, Options, eq
from talk import talks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "clients"
DIALECTS = ("agentloop", "unified", "loom", "chat")
ASKING = ("agentloop", "unified", "loom")
LINES_MAX = 59


class Ran:
    """An example that has ended."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def __repr__(self):
        return f"<exit {self.code}\n{self.out}\n--- and on standard error\n{self.err}>"


def program(t, dialect, language):
    if language == "py":
        return [sys.executable, EXAMPLES / f"{dialect}.py"]
    assert Options.node_modules, "run.py needs --node-modules for this test"
    # node looks for packages beside the program.
    copy = t.dir / f"{dialect}.mjs"
    copy.write_text((EXAMPLES / copy.name).read_text())
    if not (t.dir / "node_modules").exists():
        (t.dir / "node_modules").symlink_to(Options.node_modules)
    return ["node", copy]


def run(t, dialect, language, *words, url=None, typed="", token=None):
    """Runs an example to its end, with what a person types."""
    env = {"PATH": os.environ["PATH"], "HOME": str(t.home), "LANG": "C.UTF-8"}
    if token:
        env["POLYLOOP_TOKEN"] = token
    url = url or t.servers[-1].url("").rstrip("/")
    command = [*program(t, dialect, language), "--url", url, *words]
    return Ran(subprocess.run(command, input=typed, env=env, cwd=t.start, capture_output=True,
                              text=True, timeout=2 * WAIT_SECS))


def ran_well(got):
    eq((got.code, got.err), (0, ""), f"{got}")
    return got.out


def text(t, dialect, language):
    t.server()
    out = ran_well(run(t, dialect, language, "say: Grüße 👋\nrun: echo by-the-tool\nsay: bye"))
    places = [out.find(word) for word in ("Grüße 👋", "echo", "by-the-tool", "bye")]
    assert -1 not in places and places == sorted(places), out
    eq(out.count("by-the-tool"), 2, f"the call and its output: {out}")


def approval(t, dialect, language):
    t.server()
    script = "run: touch {}\nsay: bye"
    ran_well(run(t, dialect, language, script.format("allowed"), typed="y\n"))
    ran_well(run(t, dialect, language, "--yes", script.format("unasked")))
    denied = ran_well(run(t, dialect, language, script.format("denied"), typed="n\n"))
    nobody = ran_well(run(t, dialect, language, script.format("nobody")))
    eq(sorted(path.name for path in t.work.iterdir()), ["allowed", "unasked"], "what was run")
    for out in (denied, nobody):
        assert "not allow" in out and "bye" in out, f"the denial is shown, the turn goes on: {out}"


def question(t, dialect, language):
    t.server()
    script = "ask: Which colour? | red | green\nplan: # Paint it\nsay: painted"
    typed = "green\nyes\n" if dialect == "chat" else "green\ny\n"
    out = ran_well(run(t, dialect, language, "--session", "q", script, typed=typed))
    for word in ("Which colour?", "red", "green", "painted"):
        assert word in out, f"{word}: {out}"
    kept = (t.store / "q.jsonl").read_text()
    assert "The user answered: green" in kept, "the answer reached the session"
    assert "approved the plan" in kept, "the plan was approved"


def error(t, dialect, language):
    t.server()
    failed = run(t, dialect, language, "fail: 500")
    eq(failed.code, 1, f"{failed}")
    assert "500 Internal Server Error" in failed.err, failed
    refused = run(t, dialect, language, "--session", "no such/id", "say: x")
    assert refused.code == 1 and refused.err and "x" not in refused.out.split(), refused
    unreached = run(t, dialect, language, "say: x", url="ws://127.0.0.1:1")
    assert unreached.code == 1 and "refused" in unreached.err.lower(), unreached
    assert "Traceback" not in failed.err + refused.err + unreached.err, "told, not thrown"


def one_of(check, dialect, language):
    return lambda t: check(t, dialect, language)


CHECKS = [(text, DIALECTS), (approval, ASKING), (question, DIALECTS), (error, DIALECTS)]
for language, spoken in (("py", "python"), ("mjs", "node")):
    for check, dialects in CHECKS:
        for dialect in dialects:
            name = f"test_{spoken}_{dialect}_{check.__name__}"
            globals()[name] = one_of(check, dialect, language)


@talks
def test_python_chat_is_allowed_by_another(s):
    allowed_by_another(s, "py")


@talks
def test_node_chat_is_allowed_by_another(s):
    allowed_by_another(s, "mjs")


def allowed_by_another(s, language):
    s.server()
    other = s.watcher()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        script = "run: touch a\nsay: bye"
        chat = pool.submit(run, s.t, "chat", language, "--session", "s1", script)
        other.decide(other.until("control_request")[-1], "allow")
        out = ran_well(chat.result())
    assert (s.work / "a").exists() and "bye" in out, out


@talks
def test_python_unified_leaves_another_turn_alone(s):
    beside_another_turn(s, "py")


@talks
def test_node_unified_leaves_another_turn_alone(s):
    beside_another_turn(s, "mjs")


def beside_another_turn(s, language):
    s.server()
    other = s.watcher()
    other.say("run: touch a\nsay: of the other")
    request = other.until("control_request")[-1]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        words = ("--yes", "--session", "s1", "say: of the example")
        example = pool.submit(run, s.t, "unified", language, *words)
        other.until("message_queued")
        other.decide(request, "deny")
        out = ran_well(example.result())
    assert not (s.work / "a").exists(), "the example allowed what it was not asked"
    eq(out, "of the example\n", "what the example shows")


def test_chat_says_why_a_call_was_not_run(t):
    t.server()
    out = ran_well(run(t, "chat", "py", "run: touch a"))
    assert "needs approval" in out and not list(t.work.iterdir()), out


def test_several_questions_and_own_words(t):
    t.server()
    options = [{"label": label, "description": ""} for label in ("red", "green", "blue")]
    questions = [{"header": "A", "question": "Some?", "options": options, "multiSelect": True},
                 {"header": "B", "question": "One?", "options": options, "multiSelect": False}]
    script = "tool: ask_user " + json.dumps({"questions": questions}) + "\nsay: bye"
    for language in ("py", "mjs"):
        typed = "1, 3\na dark red, matt\n"
        ran_well(run(t, "unified", language, "--session", language, script, typed=typed))
        kept = (t.store / f"{language}.jsonl").read_text()
        for words in ("red, blue", "a dark red, matt"):
            assert words in kept, f"{language}: {words} in {kept}"


def test_a_session_goes_on_in_another_dialect(t):
    t.server()
    for dialect in DIALECTS:
        ran_well(run(t, dialect, "py", "--session", "same", f"say: by {dialect}"))
    kept = (t.store / "same.jsonl").read_text()
    for dialect in DIALECTS:
        assert f"by {dialect}" in kept, f"{dialect}: {kept}"


def test_a_token(t):
    secret = "an-example-token-0123456789"
    t.server(env={"POLYLOOP_TOKEN": secret})
    for dialect in DIALECTS:
        for language in ("py", "mjs"):
            ran_well(run(t, dialect, language, "say: hi", token=secret))
            got = run(t, dialect, language, "say: hi", token="another-token-0123456789")
            assert got.code == 1 and "401" in got.err, got


def test_they_are_small(t):
    for path in sorted(EXAMPLES.glob("*.py")) + sorted(EXAMPLES.glob("*.mjs")):
        count = len(path.read_text().splitlines())
        assert count <= LINES_MAX, f"{path.name} has {count} lines"
