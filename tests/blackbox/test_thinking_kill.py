"""`kill -9` in the middle of every way to think: what takes it up gives the same answer, no
command runs twice, and nothing that a client saw is lost."""

import time

from frames import texts
from harness import POLL_SECS, Options, eq, eventually
from strategies import AGENTS
from talk import talks
from test_crash import kept
from thinking import MESSAGE, Case

# Where each is stopped: at a question of that kind, before a byte of the answer or after some
# pieces of it, or while a command runs.
MOMENTS = {
    "dup": [("question", "", 0), ("question", "", 3), ("information", "", 2), ("solve", None, 0),
            ("command", "solve", 0)],
    "tot": [("expand", "", 0), ("expand", "", 3), ("value", "B", 0), ("value", "C", 2),
            ("expand", "A", 1), ("value", "B1", 0), ("path", None, 0), ("command", "path", 0)],
    "tot_depth": [("expand", "", 2), ("expand", "B", 1), ("value", "B2", 1), ("value", "A", 0),
                  ("command", "path", 0)],
    "tot_vote": [("vote", None, 0), ("vote", None, 1), ("expand", "B", 2)],
    "got": [("plan", "", 0), ("plan", "", 4), ("task", "count alpha", 0), ("task", "count beta", 1),
            ("score", "count beta", 0), ("refine", "count beta", 1), ("task", "add up", 1),
            ("gather", None, 0), ("command", "alpha", 0), ("command", "gather", 0)],
    "got_adaptive": [("judge", "count alpha", 0), ("judge", "count beta", 0),
                     ("plan", "count beta", 2), ("task", "beta two", 1), ("gather", None, 1),
                     ("command", "alpha", 0)],
}


def undisturbed(s, name):
    case = Case(s, name)
    answer = case.turn()
    return case, answer, sorted(case.ran())


def stop_at(case, moment):
    kind, about, pieces = moment
    if kind == "command":
        case.hold_command(about)
        case.client.say(MESSAGE)
        case.at_command(about)
        return lambda: case.release_command(about)
    held = case.model.hold(kind, about, pieces)
    case.client.say(MESSAGE)
    held.reached()
    # A model is asked a moment before the message is written.
    eventually(lambda: case.server.messages(case.session), "the message is kept")
    return held.release


def come_to_rest(case):
    """Waits until all that was answered is recorded; how many questions are open then."""
    same, last = 0, None
    while same < 5:
        now = (case.model.open, len(case.model.asked()), len(case.server.events(case.session)))
        same, last = (same + 1, last) if now == last else (0, now)
        time.sleep(POLL_SECS)
    return case.model.open


def killed(s, name, moment, auto, rests):
    """The answer, the commands that ran, and how many questions must be asked again if it rested
    before."""
    case = Case(s, name)
    shown = case.watcher
    go_on = stop_at(case, moment)
    lost = come_to_rest(case) if rests else None
    case.server.kill()
    try:
        while True:
            shown.recv()
    except Exception:
        pass  # It was cut off.
    go_on()
    case.server = s.server(env={**case.env, **({"AUTO_RESUME": "true"} if auto else {})})
    case.client = s.watcher(case.session, complete=False)
    if auto:
        eventually(lambda: is_over(case), f"{name} {moment}: it goes on by itself")
    else:
        case.resume()
    held = kept(case.server, case.session)
    for item, text in texts(shown.seen).items():
        whole = held.get(item, "")
        assert whole.startswith(text), f"{name} {moment}: shown {text!r}, kept {whole!r}"
    return list(held.values())[-1], sorted(case.ran()), case, lost


def is_over(case):
    ends = [m for m in case.server.messages(case.session) if m.get("type") == "agent_finished"]
    return len(ends) > 1


def check(s, name, moments, auto=False):
    done, answer, ran = undisturbed(s, name)
    asked = len(done.model.asked())
    done.server.kill()
    for at, moment in enumerate(moments):
        (s.work / "ran").unlink()
        for mark in s.work.glob("at-*"):
            mark.unlink()
        got, did, case, lost = killed(s, name, moment, auto, rests=at % 2 == 0)
        Options.tell(f"{name} killed at {moment}: {got!r}, {len(case.model.asked())} calls "
                     f"for {asked}")
        eq(got, answer, f"{name} killed at {moment}: the answer")
        if lost is not None:
            eq(len(case.model.asked()), asked + lost, f"{name} killed at {moment}: only what was "
                                                      "lost is asked again")
        twice = [one for one in set(did) if did.count(one) > 1]
        eq(twice, [], f"{name} killed at {moment}: commands that ran twice")
        # What ran when the server was killed may not have come to write its line.
        assert set(did) <= set(ran), f"{name} killed at {moment}: {did}"
        case.server.kill()


def test_dup(t):
    talks(lambda s: check(s, "dup", MOMENTS["dup"]))(t)


def test_tot(t):
    talks(lambda s: check(s, "tot", MOMENTS["tot"]))(t)


def test_tot_depth(t):
    talks(lambda s: check(s, "tot_depth", MOMENTS["tot_depth"]))(t)


def test_tot_vote(t):
    talks(lambda s: check(s, "tot_vote", MOMENTS["tot_vote"]))(t)


def test_got(t):
    talks(lambda s: check(s, "got", MOMENTS["got"]))(t)


def test_got_adaptive(t):
    talks(lambda s: check(s, "got_adaptive", MOMENTS["got_adaptive"]))(t)


def test_all_of_them_go_on_by_themselves(t):
    def all_of(s):
        for name in AGENTS:
            check(s, name, MOMENTS[name][1:2], auto=True)

    talks(all_of)(t)
