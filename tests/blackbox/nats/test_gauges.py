"""What each of several servers tells of itself and of the others, on `GET /metrics`."""

from harness import eq, eventually
from talk import spoken, talks
from test_metrics import told
from test_three import at, three

# While NATS is away this server must have been silent for a while before it is sure.
AWAY_SECS_MAX = 60


def parts(replica):
    """How many sessions it runs and how many it follows."""
    now = told(replica.server)
    return now("sessions_owned"), now("sessions_followed")


def become(replicas, tell, wanted, what, secs=30):
    """Waits until each replica tells what is wanted of it."""
    def seen():
        return [tell(replica) for replica in replicas]

    try:
        eventually(lambda: seen() == wanted, what, secs=secs)
    except AssertionError as late:
        raise AssertionError(f"{what}: {seen()}, not {wanted}") from late


def living(replica):
    return told(replica.server)("servers_living")


def reaches(replica):
    return told(replica.server)("store_reachable")


def taken_over(replica, why):
    return told(replica.server)("sessions_taken_over_total", why=why)


@talks
def test_who_runs_and_who_follows_and_who_takes_over(s):
    _, (a, b, c) = three(s)
    all_three = (a, b, c)
    become(all_three, living, [3, 3, 3], "all see each other")
    eq([parts(replica) for replica in all_three], [(0, 0)] * 3, "before anybody came")
    at_a = at(s, a).watcher(since=0, complete=False)
    eq(spoken(at_a.turn("say: one")), ["one"])
    at(s, a).watcher("s2", since=0, complete=False).turn("say: two")
    at_b = at(s, b).watcher(since=at_a.place(), complete=False)
    at(s, c).watcher("s3", since=0, complete=False).turn("say: three")
    become(all_three, parts, [(2, 0), (0, 1), (1, 0)], "who has what")
    assert told(a.server)("log_flush_seconds_count") > 0, "how long NATS took to have it safe"
    answered = told(b.server)("peer_questions_total", outcome="answered")
    eq(spoken(at_b.turn("say: from b")), ["from b"])
    assert told(b.server)("peer_questions_total", outcome="answered") > answered, "asked and told"
    at(s, c).watcher(since=at_a.place(), complete=False)
    become(all_three, parts, [(2, 0), (0, 1), (1, 1)], "one more follows")
    eq([taken_over(replica, why) for replica in all_three for why in ("fallen", "let_go")],
       [0] * 6, "taken over, while all live")
    a.kill()
    # One of those who follow takes it over; of the other session only its claim is put away.
    become((b, c), living, [2, 2], "one has fallen")
    eventually(lambda: taken_over(b, "fallen") + taken_over(c, "fallen") == 1, "it is counted")
    eq(taken_over(b, "let_go") + taken_over(c, "let_go"), 0, "let go")
    took, follows = (b, c) if taken_over(b, "fallen") else (c, b)
    before = 1 if took is c else 0
    become((took, follows), parts, [(before + 1, 0), (1 - before, 1)], "who has what now")
    eq(spoken(at_b.turn("say: still")), ["still"])
    # The one that took it over ends in good order, so there is nobody else any more.
    eq(took.drain(), 0, "its exit code")
    become((follows,), lambda replica: taken_over(replica, "let_go"), [1], "it was let go")
    eq(taken_over(follows, "fallen"), 0, "taken from one that fell")
    become((follows,), living, [1], "it is alone")


@talks
def test_whether_nats_is_reached(s):
    cluster, replicas = three(s)
    eq([reaches(replica) for replica in replicas], [1, 1, 1], "at first")
    for node in cluster.nodes:
        node.kill()
    become(replicas, reaches, [0, 0, 0], "NATS is away", secs=AWAY_SECS_MAX)
    # Nobody has fallen because nobody can be heard.
    eq([living(replica) for replica in replicas], [3, 3, 3], "living, meanwhile")
    for node in cluster.nodes:
        node.start()
    become(replicas, reaches, [1, 1, 1], "NATS is back", secs=AWAY_SECS_MAX)
    become(replicas, living, [3, 3, 3], "all live")
