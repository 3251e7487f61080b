"""Commands that try to stay alive: nobody is left, in whatever mode, however the call ended. The
long form is `cargo xtask soak --only stay`."""

import json
import uuid

import stays
from frames import outputs
from harness import eq, eventually
from talk import of, spoken, talks, the

# A promise of two seconds, on a machine that may be busy.
GONE_SECS = 10.0
SHORT = 8


def call(**args):
    return f"tool: bash {json.dumps(args)}"


def gone(s, mark):
    eventually(lambda: not stays.left(mark, s.work),
               f"nobody is left; there is {stays.left(mark, s.work)}", GONE_SECS)


def session(s, mode):
    client = s.unified(session=f"s-{mode}", full_auto=True, complete=False)
    client.start(permission_mode=mode)
    return client


def begin(client, mode, script):
    """Starts a command, approved where the mode asks."""
    client.say(script)
    if mode == "manual":
        client.decide(client.until("control_request")[-1], "allow")


MODES = ["auto", "manual", "bypass"]


def stay(s, mode):
    s.server(env={"ALLOW_BYPASS": "true"})
    client, mark = session(s, mode), uuid.uuid4().hex
    for own, script in stays.commands(SHORT * len(MODES), mark):
        at = int(own[-3:])
        if MODES[at % len(MODES)] != mode:
            continue
        begin(client, mode, call(command=script))
        done = the(client.until_end(), "tool_completed")
        assert done["success"], (script, done)
        gone(s, own)
    gone(s, mark)


@talks
def test_eight_commands_in_the_sandbox(s):
    stay(s, "auto")


@talks
def test_eight_commands_that_were_approved(s):
    stay(s, "manual")


@talks
def test_eight_commands_in_bypass(s):
    stay(s, "bypass")


@talks
def test_whoever_acts_against_its_watcher_leaves_nobody(s):
    s.server()
    client, mark = session(s, "manual"), uuid.uuid4().hex
    for own, script in stays.against(mark):
        begin(client, "manual", call(command=script))
        client.until_end()
        gone(s, own)


def ended(s, mode, end):
    """All ways at once, and the call is ended from outside."""
    client, mark = session(s, mode), uuid.uuid4().hex
    begin(client, mode, call(command=stays.everybody(mark), timeout_ms=600_000))
    eventually((s.work / "ready").exists, "they are there")
    assert stays.left(mark, s.work), "somebody is there"
    end(client)
    gone(s, mark)
    (s.work / "ready").unlink()


def interrupted(client):
    client.send("interrupt", reason="enough")
    client.until_end()


@talks
def test_an_interrupt_leaves_nobody(s):
    s.server(env={"ALLOW_BYPASS": "true"})
    for mode in MODES:
        ended(s, mode, interrupted)


@talks
def test_a_kill_of_the_server_leaves_nobody(s):
    for mode in MODES:
        server = s.server(env={"ALLOW_BYPASS": "true"})
        ended(s, mode, lambda _: server.kill())


@talks
def test_the_time_limit_leaves_nobody(s):
    s.server(env={"ALLOW_BYPASS": "true"})
    for mode in MODES:
        client, mark = session(s, mode), uuid.uuid4().hex
        begin(client, mode, call(command=stays.everybody(mark), timeout_ms=2000))
        done = the(client.until_end(), "tool_completed")
        assert "time limit of 2000 ms" in json.dumps(done), done
        gone(s, mark)


def test_whoever_leaves_is_not_waited_for(t):
    """The call ends with its command; what was left behind does not hold it up."""
    client = t.server("--tool-use-approval-mode", "full-auto").client()
    (output,) = outputs(client.turn("run: touch x; setsid sleep 1000 & echo done"))
    eq(output["output"].splitlines()[0], "done")
    t.no_process_left()


@talks
def test_the_search_would_find_somebody(s):
    """Else the tests above would prove nothing."""
    s.server(env={"ALLOW_BYPASS": "true"})
    client, mark = session(s, "auto"), uuid.uuid4().hex
    client.say(call(command=stays.everybody(mark)))
    eventually((s.work / "ready").exists, "they are there")
    found = [words for words in stays.left(mark, s.work).values()]
    assert len(found) >= len(stays.LAUNCHERS), found
    interrupted(client)
    gone(s, mark)
    eq(spoken(client.turn("say: usable")), ["usable"])
    eq(of(client.seen, "error"), [], "errors")
