"""One session at three replicas on three NATS servers: begun at one, approved at another, seen at
the third, while the first is killed in the middle.
"""

from cluster import Cluster
from harness import eq
from proof import said
from story import story
from talk import spoken, talks

SCRIPT = "run: echo once >> ran\nstream: 200 8 50\nsay: never"


def three(s):
    """The replicas of a cluster of the test's own, on loopback."""
    cluster = Cluster()
    s.t.closing.append(cluster.stop)
    s.work = cluster.work
    return cluster, cluster.replicas


def at(s, replica):
    """Clients connect there from now on."""
    s.last = replica.server
    return s


def texts(replica):
    """What people said in the session, as a replica's log has it."""
    return said(replica.get("/sessions/s1").json["events"])


def own(frames):
    """Without what only a connection was told."""
    return [frame for frame in frames if not frame["id"].startswith(("evt-r", "evt-h"))]


@talks
def test_begun_at_one_approved_at_another_seen_at_the_third(s):
    cluster, (a, b, c) = three(s)
    at_a = at(s, a).watcher(since=0, complete=False)
    at_b = at(s, b).watcher(since=0, complete=False)
    at_c = at(s, c).watcher(since=0, complete=False)
    at_a.say(SCRIPT)
    at_a.until("control_request")
    at_b.decide(at_b.until("control_request")[-1], "allow")
    # The third sees what the second decided, and what the first does.
    at_c.until("approval_settled")
    at_c.until(lambda frame: "cursor" in frame and frame["type"] == "assistant_message")
    a.kill()
    # Another one takes over, closes the turn that was cut, and both who stayed are told.
    ended = [client.until("session_info")[-1] for client in (at_b, at_c)]
    eq([frame["status"] for frame in ended], ["paused", "paused"], "how the turn ended")
    eq((cluster.work / "ran").read_text(), "once\n", "what was approved ran once")
    # It goes on at whoever is there, and whoever was at the first comes back by its place.
    again = at(s, c).watcher(since=at_a.place(), complete=False)
    eq(spoken(at_b.turn("say: after"))[-1:], ["after"], "the next turn")
    for client in (at_c, again):
        client.until("turn_completed")
    told = [story(own(frames)) for frames in
            (at_b.seen, at_c.seen, [*at_a.seen, *again.seen])]
    replay = at(s, b).watcher(since=0, complete=False)
    replay.until("turn_completed")
    for who, one in zip("bca", told):
        eq(one, story(own(replay.seen)), f"what the client of {who} saw, and the replay")
    for replica in (b, c):
        eq(texts(replica), [SCRIPT, "say: after"], f"messages at {replica.name}")


@talks
def test_an_approval_outlives_its_owner(s):
    _, (a, b, c) = three(s)
    at_a = at(s, a).watcher(since=0, complete=False)
    at_a.say("run: touch approved\nsay: done")
    request = at_a.until("control_request")[-1]
    at_b = at(s, b).watcher(since=0, complete=False)
    eq(at_b.until("control_request")[-1]["request_id"], request["request_id"], "at b")
    at_c = at(s, c).watcher(since=0, complete=False)
    at_c.until("control_request")
    a.kill()
    at_c.decide(request, "allow")
    eq(spoken(at_b.until_end())[-1:], ["done"], "what b is told")
    eq(spoken(at_c.until_end())[-1:], ["done"], "what c is told")
    assert (s.work / "approved").exists(), "what was approved has run"


@talks
def test_a_replica_that_ends_in_order_hands_over_at_once(s):
    _, (a, b, _) = three(s)
    at_a = at(s, a).watcher(since=0, complete=False)
    eq(spoken(at_a.turn("say: before")), ["before"])
    at_b = at(s, b).watcher(since=at_a.place(), complete=False)
    eq(a.drain(), 0, "its exit code")
    eq(at_a.closed(), 1001, "what its clients are told")
    eq(spoken(at_b.turn("say: after")), ["after"])
    eq(texts(b), ["say: before", "say: after"], "messages")
