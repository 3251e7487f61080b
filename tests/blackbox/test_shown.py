"""What is shown for approval is what runs: nothing hidden, nothing that looks like something else.

A model proposes calls with characters that a screen would not show, or would show as others. The
request writes them as their codes; what then runs is what the model wrote, byte for byte.
"""

import json
import re
import unicodedata

from frames import items
from harness import eq
from loomtalk import event, loom
from talk import talks, the

# What runs -> what is shown.
COMMANDS = {
    "bidi": ("printf %s 'a\u202eb\u2066c' > f", "printf %s 'a\\u{202e}b\\u{2066}c' > f"),
    "zero width": ("printf %s 'a\u200bb\ufeff' > f", "printf %s 'a\\u{200b}b\\u{feff}' > f"),
    "carriage return": ("printf %s 'a\rb' > f", "printf %s 'a\\u{d}b' > f"),
    "escape": ("printf %s '\x1b[2K\x1b[1A' > f", "printf %s '\\u{1b}[2K\\u{1b}[1A' > f"),
    "look-alike": ("printf %s 's\u0443stem \u0440\u0440 \u2013x' > f",
                   "printf %s 's\\u{443}stem \\u{440}\\u{440} \\u{2013}x' > f"),
    "a code": ("printf %s '\\u{202e}' > f", "printf %s '\\u{5c}u{202e}' > f"),
    "honest": ("printf %s 'отчёт Müller 日本語\tx' > f", "printf %s 'отчёт Müller 日本語\tx' > f"),
}

PATCH = ("*** Begin Patch\n*** Add File: n\u0430me.txt\n+x = 'a\u202eb' # \u0440\u0430\n"
         "+y = '\\u{41}'\n*** End Patch")
PATCH_SHOWN = ("*** Begin Patch\n*** Add File: n\\u{430}me.txt\n+x = 'a\\u{202e}b' # \u0440\u0430\n"
               "+y = '\\u{5c}u{41}'\n*** End Patch")
PATCHED = "x = 'a\u202eb' # \u0440\u0430\ny = '\\u{41}'\n"


def script(tool, **args):
    return f"tool: {tool} {json.dumps(args)}\nsay: end"


def written(command):
    """What a command's `printf` puts into the file."""
    return re.search("'(.*)'", command, re.DOTALL)[1]


def texts(value):
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from texts(one)
        case dict():
            for name, one in value.items():
                yield name
                yield from texts(one)


def plain(frame):
    """No text of the frame holds what cannot be seen."""
    for text in texts(frame):
        bad = [c for c in text if c not in "\n\t" and unicodedata.category(c) in
               ("Cc", "Cf", "Co", "Cn", "Zl", "Zp")]
        assert not bad, f"{bad} in {text!r}"
    return frame


def each(s, ask):
    """Has every command asked about, and looks at what it wrote."""
    for kind, (command, shown) in COMMANDS.items():
        (s.work / "f").unlink(missing_ok=True)
        ask(command, shown, kind)
        eq((s.work / "f").read_bytes(), written(command).encode(), f"what ran: {kind}")


@talks
def test_agentloop_shows_commands(s):
    s.server()
    client = s.agentloop()

    def ask(command, shown, kind):
        client.say(script("bash", command=command))
        request = plain(client.until("approval_request")[-1])
        eq(request["payload"]["command"], ["bash", "-lc", shown], kind)
        client.review("yes")
        (call,) = items(client.until_end(), "function_call")
        eq(json.loads(call["arguments"])["command"][-1], command, "the call is told as it is")

    each(s, ask)


@talks
def test_unified_shows_commands(s):
    s.server()
    client = s.unified()
    client.start()

    def ask(command, shown, kind):
        client.say(script("bash", command=command, description="a\u202e", **{"k\u200b": "\x1b"}))
        frames = client.until("control_request")
        request = plain(frames[-1])
        want = {"command": shown, "description": "a\\u{202e}", "k\\u{200b}": "\\u{1b}"}
        eq(request["input"], want, kind)
        eq(request["context"]["command"], ["bash", "-lc", shown], kind)
        eq(the(frames, "tool_started")["arguments"]["command"], command, "told as it is")
        client.decide(request, "allow")
        client.until_end()

    each(s, ask)


@talks
def test_loom_shows_commands(s):
    s.server()
    client = loom(s)

    def ask(command, shown, kind):
        client.run(script("bash", command=command), "t1", approvals=True)
        frames = client.until_event("tool_approval")
        request = plain(frames[-1])
        eq(request["event"]["arguments"], {"command": shown}, kind)
        eq(event(frames, "tool_call")["arguments"], {"command": command}, "told as it is")
        client.answer(request, True)
        client.until_end()

    each(s, ask)


@talks
def test_chat_shows_what_was_decided(s):
    s.server()
    approver, client = s.agentloop("s1"), s.chat(session="s1")

    def ask(command, shown, kind):
        client.say(script("bash", command=command))
        approver.until("approval_request")
        approver.review("yes")
        news = plain(the(client.until_answer(), "agent_thinking"))
        assert news["reasoning"].startswith(f"bash -lc {shown}: approved"), (kind, news)
        approver.until_end()

    each(s, ask)


@talks
def test_a_simple_command_is_shown_word_by_word(s):
    s.server()
    client = s.agentloop()
    client.say(script("bash", command="touch \u0430b отчёт"))
    request = plain(client.until("approval_request")[-1])
    eq(request["payload"]["command"], ["touch", "\\u{430}b", "отчёт"])
    client.review("yes")
    client.until_end()
    eq(sorted(p.name for p in s.work.iterdir()), sorted(["\u0430b", "отчёт"]), "files")


@talks
def test_a_patch_is_shown_and_runs_as_it_was(s):
    s.server()
    client = s.agentloop()
    for answer in ({}, {"applyPatch": {"patch": PATCH_SHOWN}}, {"applyPatch": {"patch": PATCH}}):
        client.say(script("apply_patch", patch=PATCH))
        request = plain(client.until("approval_request")[-1])
        want = {"command": ["apply_patch", PATCH_SHOWN], "applyPatch": {"patch": PATCH_SHOWN}}
        eq(request["payload"], want)
        client.review("yes", **answer)
        (call,) = items(client.until_end(), "function_call")
        eq(json.loads(call["arguments"])["patch"], PATCH, f"the call after {answer}")
        file = s.work / "n\u0430me.txt"
        eq(file.read_text(), PATCHED, f"the file after {answer}")
        file.unlink()
    eq(list(s.work.iterdir()), [], "other files")


@talks
def test_a_shown_patch_that_was_changed_is_read_back(s):
    s.server()
    client = s.agentloop()
    client.say(script("apply_patch", patch=PATCH))
    client.until("approval_request")
    changed = PATCH_SHOWN.replace("+x = ", "+z = '\\u{e9}' ")
    client.review("yes", applyPatch={"patch": changed})
    client.until_end()
    want = PATCHED.replace("x = ", "z = '\\u{e9}' ")
    eq((s.work / "n\u0430me.txt").read_text(), want, "the file")


@talks
def test_a_patch_without_codes_is_taken_as_it_is_sent(s):
    s.server()
    client = s.agentloop()
    client.say(script("apply_patch", patch="*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"))
    client.until("approval_request")
    mine = "*** Begin Patch\n*** Add File: a\n+\\u{202e}\n*** End Patch"
    client.review("yes", applyPatch={"patch": mine})
    client.until_end()
    eq((s.work / "a").read_text(), "\\u{202e}\n", "the file")


@talks
def test_unified_and_loom_show_edits(s):
    s.server()
    client = s.unified()
    client.start()
    request = plain(client.asked(script("write_file", path="\u0430b", content="\u0430b\u202e\n")))
    eq(request["input"], {"path": "\\u{430}b", "content": "\u0430b\\u{202e}\n"})
    assert "\\u{430}b" in request["context"]["description"], request
    assert "\\u{430}b" in request["context"]["covers"], request
    client.decide(request, "allow")
    client.until_end()
    eq((s.work / "\u0430b").read_text(), "\u0430b\u202e\n", "the file")
    run = loom(s)
    request = plain(run.asked(script("apply_patch", patch=PATCH)))
    eq(request["event"]["arguments"], {"patch": PATCH_SHOWN})
    run.answer(request, True)
    run.until_end()
    eq((s.work / "n\u0430me.txt").read_text(), PATCHED, "the file")


@talks
def test_questions_and_plans_hide_nothing(s):
    s.server()
    client = s.unified()
    client.start()
    asked = [{"question": "Which\u202e? ⚠️", "header": "H\u200b",
              "options": [{"label": "o\u200bne", "description": "\x1b[1m"}, {"label": "two"}]}]
    client.say(script("ask_user", questions=asked))
    request = client.until("ask_user_question")[-1]
    (question,) = request["questions"]
    eq(question["question"], "Which\\u{202e}? ⚠️")
    eq(question["header"], "H\\u{200b}")
    eq([option["label"] for option in question["options"]], ["o\\u{200b}ne", "two"])
    eq(question["options"][0]["description"], "\\u{1b}[1m")
    client.answer(request, ["o\\u{200b}ne"])
    frames = client.until_end()
    eq(the(frames, "approval_settled")["message"], "o\u200bne", "the label that was meant")
    client.say(script("exit_plan_mode", plan="# A\u202e\n— \u0440\u0430 \\u{41}"))
    request = client.until("exit_plan_mode")[-1]
    eq(request["plan"], "# A\\u{202e}\n— \u0440\u0430 \\u{41}")
    client.approve(request)
    client.until_end()
