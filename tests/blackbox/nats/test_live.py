"""A session is served by all servers of its store at once, whichever of them has it."""

import signal
from pathlib import Path

from harness import eq, eventually
from natsserver import NatsServer
from talk import spoken, talks


def servers(s, count=2, **env):
    """Servers of one store, each with a message database of its own."""
    nats = NatsServer(s.t)
    started = [s.server(env=nats.env(USER_MESSAGE_DB=s.t.dir / f"{at}.db", **env), store=False)
               for at in range(count)]
    return nats, *started


def at(s, server):
    """Clients connect there from now on."""
    s.last = server
    return s


def stand_still(server):
    """Stops a server; when this returns it does nothing any more."""
    server.signal(signal.SIGSTOP)
    threads = Path(f"/proc/{server.process.pid}/task")

    def all_stopped():
        stats = [(one / "stat").read_text() for one in threads.iterdir()]
        return all(stat.rsplit(")")[-1].split()[0] == "T" for stat in stats)

    eventually(all_stopped, "it stands still")


def story(client):
    """What a client was shown that is in the log, by number."""
    return [(frame["seq"], frame["type"]) for frame in client.seen
            if frame.get("seq") and frame["type"] != "assistant_message"]


@talks
def test_what_happens_at_one_server_is_seen_at_the_other(s):
    _, one, two = servers(s)
    here = at(s, one).unified()
    eq(spoken(here.turn("say: first")), ["first"])
    there = at(s, two).watcher(since=0)
    eq(spoken(there.until_end()), ["first"], "what was before")
    here.say("say: second")
    eq(spoken(there.until_end()), ["second"], "seen there")
    eq(spoken(here.until_end()), ["second"], "and here")
    # Said there, done here, seen by both.
    eq(spoken(there.turn("say: third")), ["third"])
    eq(spoken(here.until_end()), ["third"])
    eq(story(there), [one for one in story(here) if one in story(there)], "one order")


@talks
def test_an_approval_asked_here_is_given_there(s):
    _, one, two = servers(s)
    here = at(s, one).unified()
    asked = here.asked("run: touch made\nsay: done")
    there = at(s, two).watcher(since=0)
    request = there.until("control_request")[-1]
    eq(request["request_id"], asked["request_id"], "the same request")
    there.decide(request, "allow")
    eq(spoken(there.until_end()), ["done"])
    eq(spoken(here.until_end()), ["done"])
    assert (s.work / "made").exists(), "what was approved"
    # A second yes is refused, wherever it is said.
    there.decide(request, "allow")
    eq(there.until("error")[-1]["code"], "already_settled", "the second yes")


@talks
def test_who_can_approve_at_another_server_is_asked(s):
    _, one, two = servers(s)
    at(s, one).unified().turn("say: begun")
    there = at(s, two).watcher(since=0)
    there.until_end()
    # A chat client cannot approve; whoever can is attached to the other server.
    talker = at(s, one).chat(session="s1", complete=False)
    talker.say("run: touch asked\nsay: yes")
    there.decide(there.until("control_request")[-1], "allow")
    there.until_end()
    assert (s.work / "asked").exists(), "it was asked, not denied"


@talks
def test_when_a_server_is_killed_another_goes_on_with_its_clients(s):
    _, one, two = servers(s)
    here = at(s, one).unified(complete=False)
    there = at(s, two).watcher(since=0)
    asked = here.asked("run: touch kept\nsay: after")
    there.until("control_request")
    one.kill()
    # Nobody comes or goes there: its client goes on as it was, and the request is still open.
    there.decide(asked, "allow")
    eq(spoken(there.until_end())[-1:], ["after"])
    assert (s.work / "kept").exists(), "what was approved"
    eq(spoken(there.turn("say: more")), ["more"])


@talks
def test_a_turn_that_ran_on_a_killed_server_is_closed_by_another(s):
    _, one, two = servers(s)
    here = at(s, one).unified(complete=False)
    here.say("fail: hang")
    here.until("turn_started")
    one.kill()
    # Nobody is attached anywhere, and nobody asks.
    eventually(lambda: any("The server stopped" in str(event) for event in two.events()),
               "somebody closes it")
    again = at(s, two).watcher()
    eq(spoken(again.turn("say: alive")), ["alive"])


@talks
def test_a_server_that_stops_hands_its_sessions_over(s):
    _, one, two = servers(s)
    here = at(s, one).unified(complete=False)
    there = at(s, two).watcher(since=0)
    asked = here.asked("run: touch handed\nsay: over")
    there.until("control_request")
    one.stop()
    there.decide(asked, "allow")
    eq(spoken(there.until_end())[-1:], ["over"])
    assert (s.work / "handed").exists(), "what was approved"


@talks
def test_a_server_that_slept_through_its_own_fall_writes_nothing(s):
    _, one, two = servers(s)
    here = at(s, one).unified(complete=False)
    eq(spoken(here.turn("say: mine")), ["mine"])
    there = at(s, two).watcher(since=0)
    eq(spoken(there.until_end()), ["mine"])
    stand_still(one)
    eq(spoken(there.turn("say: yours")), ["yours"])
    one.signal(signal.SIGCONT)
    # Its client sees what happened meanwhile, and goes on through the one that has it now.
    eq(spoken(here.until_end()), ["yours"])
    eq(spoken(here.turn("say: again")), ["again"])
    eq(spoken(there.until_end()), ["again"])
    eq(one.events(), two.events(), "one log")
    numbers = [event["seq"] for event in one.events() if event.get("seq")]
    eq(numbers, sorted(numbers), "numbers")


@talks
def test_a_session_in_use_elsewhere_is_not_put_away(s):
    _, one, two = servers(s)
    here = at(s, one).unified()
    here.turn("say: x")
    eq(two.http("DELETE", "/sessions/s1").status, 409, "while somebody is attached")
    here.drop()
    eventually(lambda: two.http("DELETE", "/sessions/s1").status in (200, 204), "put away")
    eq(at(s, one).sessions(), [], "the list")


@talks
def test_a_long_message_reaches_the_server_that_has_the_session(s):
    # Longer than what NATS takes in one message.
    _, one, two = servers(s, MAX_MESSAGE_BYTES="8388608")
    here = at(s, one).unified()
    eq(spoken(here.turn("say: short")), ["short"])
    there = at(s, two).watcher()
    long = "long " * 400_000
    there.say(long)
    # The model cannot take so much, but everybody is shown what was said.
    for client in (there, here):
        started, failed = client.until("turn_failed")[-2:]
        eq((started["type"], failed["type"]), ("turn_started", "turn_failed"), "frames")
        assert started["message"].strip() == long.strip(), len(started["message"])


@talks
def test_an_error_sends_nobody_back(s):
    nats, one, two = servers(s)
    here = at(s, one).unified(complete=False)
    last = here.turn("say: x")[-1]["seq"]
    nats.kill()
    # It remembers the number of what it was told last, and comes back with that.
    there = at(s, two).agentloop(since=last, complete=False)
    told = there.recv()
    eq((told["type"], told["seq"]), ("error", last), "an error, at the client's place")


@talks
def test_a_client_whose_session_moves_is_not_asked_twice(s):
    _, one, two = servers(s)
    here = at(s, one).agentloop(complete=False)
    here.say("ask: Which? | a | b\nsay: done")
    asked = here.until(lambda frame: "Which?" in str(frame["payload"]))[-1]
    there = at(s, two).watcher(since=0)
    request = there.until("ask_user_question")[-1]
    stand_still(one)
    there.answer(request, ["a"])
    there.until_end()
    one.signal(signal.SIGCONT)
    here.until(lambda frame: "done" in str(frame["payload"]))
    shown = [frame for frame in here.seen if frame["id"] == asked["id"]]
    eq(len(shown), 1, f"the question was shown: {shown}")
