"""Unified: every permission mode's word and what it does, also when it changes during a turn."""

import json

from harness import eq
from talk import of, spoken, talks, the, types

COMMAND = "run: touch made"


def patch(name, text="x"):
    """A script line that makes a file by a patch."""
    lines = ["*** Begin Patch", f"*** Add File: {name}", f"+{text}", "*** End Patch"]
    return "tool: apply_patch " + json.dumps({"patch": "\n".join(lines)})


def is_asked(client, script):
    """Whether a script's one call is asked about; a request is then denied."""
    client.say(script)
    frames = client.until(
        lambda f: f["type"] in ("control_request", "turn_completed", "turn_failed")
    )
    if frames[-1]["type"] != "control_request":
        eq(frames[-1]["type"], "turn_completed", f"end of {script}")
        return False
    client.decide(frames[-1], "deny_stop")
    client.until_end()
    return True


def denial(client, script):
    """The error of a call that is denied without a question."""
    done = the(client.turn(script), "tool_completed")
    eq((done["success"], done["result"]), (False, None), f"{script}: {done}")
    return done["error"]


def files(s):
    return sorted(p.name for p in s.work.iterdir())


@talks
def test_manual_and_default_ask_for_all_but_reading(s):
    s.server()
    for word in ("manual", "default"):
        client = s.unified(session=f"s-{word}")
        eq(client.start(permission_mode=word)["permission_mode"], word, "the client's own word")
        assert is_asked(client, COMMAND), f"{word}: a command"
        assert is_asked(client, patch("p")), f"{word}: an edit"
        assert not is_asked(client, "run: ls"), f"{word}: a command that only reads"
    eq(files(s), [], "files")


@talks
def test_accept_edits_runs_edits_only(s):
    s.server()
    client = s.unified()
    eq(client.start(permission_mode="acceptEdits")["permission_mode"], "acceptEdits")
    assert not is_asked(client, patch("edited")), "an edit"
    assert is_asked(client, COMMAND), "a command"
    assert is_asked(client, patch(".env")), "an edit of a protected file"
    eq(files(s), ["edited"], "files")


@talks
def test_bypass_is_refused_unless_the_server_allows_it(s):
    s.server()
    client = s.unified()
    client.start()
    for word in ("bypass", "bypassPermissions"):
        client.send("set_permission_mode", mode=word)
        assert "ALLOW_BYPASS" in client.error(), "it says what would allow it"
    assert is_asked(client, COMMAND), "the mode stays"
    eq(files(s), [], "files")


@talks
def test_a_start_with_bypass_is_refused_and_makes_nothing(s):
    s.server()
    client = s.unified()
    for word in ("bypass", "bypassPermissions"):
        client.send("session_start", permission_mode=word)
        told = client.recv()
        if told["type"] == "session_init":
            eq(told["success"], False, f"answer {told}")
            why = told["error"]
        else:
            eq((told["type"], told["is_fatal"]), ("error", False), f"answer {told}")
            why = told["message"]
        assert "ALLOW_BYPASS" in why, f"it says what would allow it: {told}"
        eq(s.sessions(), [], f"sessions after {word}")
    client.start(permission_mode="manual")
    assert is_asked(client, COMMAND), "the session afterwards"


@talks
def test_bypass_never_asks_where_it_is_allowed(s):
    s.server(env={"ALLOW_BYPASS": "true"})
    for at, word in enumerate(("bypass", "bypassPermissions")):
        client = s.unified(session=f"s{at}")
        eq(client.start(permission_mode=word)["permission_mode"], word)
        assert not is_asked(client, f"run: touch {word}"), "a command"
        assert not is_asked(client, patch(f"edited-{at}")), "an edit"
        assert not is_asked(client, patch(f".env.{at}")), "a protected file"
    eq(files(s), [".env.0", ".env.1", "bypass", "bypassPermissions", "edited-0", "edited-1"],
       "files")


@talks
def test_bypass_ends_with_the_server_that_allowed_it(s):
    server = s.server(env={"ALLOW_BYPASS": "true"})
    client = s.unified()
    client.start(permission_mode="bypass")
    client.turn("say: hi")
    server.stop()
    s.server()
    again = s.unified()
    eq(again.start()["permission_mode"], "manual", "the mode after the restart")
    assert is_asked(again, COMMAND), "a command"


@talks
def test_plan_denies_with_advice(s):
    s.server()
    client = s.unified()
    eq(client.start(permission_mode="plan")["permission_mode"], "plan")
    for script in (COMMAND, patch("p")):
        assert "plan" in denial(client, script).lower(), "the advice to plan"
    assert not is_asked(client, "run: ls"), "reading goes on"
    eq(files(s), [], "files")


@talks
def test_dont_ask_denies_what_is_not_granted(s):
    s.server()
    client = s.unified()
    client.start()
    request = client.asked("run: touch granted")
    client.decide(request, "allow_always")
    client.until_end()
    client.send("set_permission_mode", mode="dontAsk")
    client.until("session_info")
    for script in ("run: mkdir made", patch("p")):
        assert denial(client, script), "a denial says something"
    assert not is_asked(client, "run: touch granted-too"), "what always covers"
    assert not is_asked(client, "run: ls"), "reading goes on"
    eq(files(s), ["granted", "granted-too"], "files")


@talks
def test_auto_runs_edits_and_commands_in_the_sandbox(s):
    s.server()
    client = s.unified(full_auto=True)
    eq(client.start(permission_mode="auto")["permission_mode"], "auto")
    assert not is_asked(client, patch("edited")), "an edit"
    assert not is_asked(client, COMMAND), "a command"
    assert is_asked(client, patch(".env")), "an edit of a protected file"
    assert is_asked(client, "run: touch .env"), "a command that names one"
    assert is_asked(client, "run: touch /usr/made"), "a command that the sandbox stops"
    eq(files(s), ["edited", "made"], "files")


@talks
def test_questions_and_plans_reach_the_user_in_every_mode(s):
    s.server(env={"ALLOW_BYPASS": "true"})
    for word in ("manual", "default", "acceptEdits", "auto", "bypass", "plan", "dontAsk"):
        client = s.unified(session=f"s-{word}", full_auto=True)
        client.start(permission_mode=word)
        question = client.asked("ask: Which? | a | b\nplan: do it\nsay: end", "ask_user_question")
        client.answer(question, ["a"])
        client.approve(client.until("exit_plan_mode")[-1])
        eq(spoken(client.until_end()), ["end"], word)


@talks
def test_an_approved_plan_ends_plan_mode(s):
    s.server()
    client = s.unified()
    client.start(permission_mode="acceptEdits")
    client.send("set_permission_mode", mode="plan")
    client.until("session_info")
    plan = client.asked(f"plan: 1. edit\n{patch('edited')}\nsay: end", "exit_plan_mode")
    client.approve(plan)
    eq(spoken(client.until_end()), ["end"], "the mode from before plan runs the edit")
    eq(files(s), ["edited"], "files")


@talks
def test_a_plan_sent_back_leaves_plan_mode_on(s):
    s.server()
    client = s.unified()
    client.start(permission_mode="acceptEdits")
    client.send("set_permission_mode", mode="plan")
    client.until("session_info")
    plan = client.asked(f"plan: 1. edit\n{patch('edited')}\nsay: end", "exit_plan_mode")
    client.approve(plan, False, feedback="not yet")
    frames = client.until_end()
    eq(the(frames, "tool_completed")["success"], False, "the edit")
    eq(files(s), [], "files")


@talks
def test_the_mode_changes_while_a_turn_runs(s):
    s.server()
    client = s.unified()
    client.start(permission_mode="manual")
    request = client.asked(f"run: touch asked\n{patch('edited')}\nrun: mkdir made\nsay: end")
    client.send("set_permission_mode", mode="acceptEdits")
    info = client.recv()
    eq((info["type"], info["status"]), ("session_info", "active"), "it is confirmed")
    eq(files(s), [], "a request that is open stays open")
    client.decide(request, "allow")
    frames = client.until("control_request")
    eq(len(of(frames, "tool_completed")), 2, "the edit ran without a question")
    eq(frames[-1]["input"], {"command": "mkdir made"}, "a command is still asked for")
    client.send("set_permission_mode", mode="manual")
    client.until("session_info")
    client.decide(frames[-1], "deny_stop")
    client.until_end()
    eq(files(s), ["asked", "edited"], "files")


@talks
def test_the_mode_is_the_session_s_and_is_kept(s):
    server = s.server()
    client = s.unified(complete=False)
    client.start(permission_mode="acceptEdits")
    client.turn("say: x")
    server.kill()
    s.server()
    client = s.unified()
    eq(client.start()["permission_mode"], "acceptEdits", "after a restart")
    assert not is_asked(client, patch("edited")), "an edit"


@talks
def test_others_learn_of_a_new_mode(s):
    s.server()
    client, watcher = s.unified(), None
    client.start()
    watcher = s.watcher()
    client.send("set_permission_mode", mode="plan")
    for each in (client, watcher):
        eq(each.until("session_info")[-1]["status"], "active")


@talks
def test_a_word_that_is_no_mode(s):
    s.server()
    client = s.unified()
    client.start()
    for word in ("yolo", "", "MANUAL", "manual ", "full-auto", "\0", "bypass\0"):
        client.send("set_permission_mode", mode=word)
        assert "manual" in client.error(), f"{word!r}: it says which there are"
        client.send("session_start", permission_mode=word)
        told = client.recv()
        eq((told["type"], told.get("is_fatal")), ("error", False), f"{word!r}: {told}")
    assert is_asked(client, COMMAND), "the mode stays"


@talks
def test_the_servers_own_mode_is_the_default(s):
    s.server(env={"TOOL_USE_APPROVAL_MODE": "auto-edit"})
    client = s.unified()
    eq(client.start()["permission_mode"], "acceptEdits", "its word")
    eq(types(client.turn(patch("edited"))).count("control_request"), 0, "questions")
    eq(files(s), ["edited"], "files")
