"""Approvals and questions in the middle of every way to think: one that waits holds only what it
is for, and whatever is answered the turn comes to its end."""

from harness import eq, eventually
from strategies import call, ran, world
from talk import of, spoken, talks, the
from thinking import MESSAGE, Case

# The commands that each asks for, in order.
COMMANDS = {"dup": ["solve"], "tot": ["path"], "tot_depth": ["path"], "got": ["alpha", "gather"],
            "got_adaptive": ["alpha", "gather"]}


def asked(case):
    """The next request; what came before it is kept too."""
    frames = case.client.until("control_request")
    case.shown += frames
    return frames[-1]


def begin(case):
    case.client.say(MESSAGE)
    return asked(case)


def finish(case, decision):
    """Decides everything that is asked in the same way; what was said last, or nothing."""
    ends = ("turn_completed", "turn_failed")
    while True:
        frames = case.client.until(lambda f: f["type"] in ("control_request", *ends))
        case.shown += frames
        if frames[-1]["type"] in ends:
            eq(frames[-1]["type"], "turn_completed", f"{case.name}: {frames[-1]}")
            return (spoken(case.shown) or [None])[-1]
        case.client.decide(frames[-1], decision)


def answer_of(s, name):
    case = Case(s, name)
    answer = case.turn()
    case.server.kill()
    (s.work / "ran").unlink()
    return answer


@talks
def test_allowed_and_denied(s):
    for name, commands in COMMANDS.items():
        want = answer_of(s, name)
        for decision, ran in (("allow", commands), ("deny", [])):
            case = Case(s, name, asks=True)
            case.client.say(MESSAGE)
            eq(finish(case, decision), want, f"{name}, {decision}: the answer")
            eq(case.ran(), ran, f"{name}, {decision}: commands that ran")
            eq(len(of(case.shown, "control_request")), len(commands), f"{name}: requests")
            case.server.kill()
            (s.work / "ran").unlink(missing_ok=True)


@talks
def test_a_denial_may_end_the_turn(s):
    for name in COMMANDS:
        case = Case(s, name, asks=True)
        request = begin(case)
        case.client.decide(request, "deny_stop")
        eq(case.client.until_end()[-1]["type"], "turn_completed", f"{name}: the end")
        # Other loops go on until the denial is there, and no longer.
        kinds = [(e.get("event") or {}).get("type") for e in case.server.events(case.session)]
        after = kinds[kinds.index("turn_stopping"):]
        eq(after.count("call_started"), 0, f"{name}: calls after the denial: {after}")
        eq(case.ran(), [], f"{name}: commands that ran")
        # The session goes on.
        case.client.send("set_agent", agent="react")
        eq(spoken(case.client.turn("Hello"))[-1], "Well.", f"{name}: the next turn")
        case.server.kill()


@talks
def test_explained(s):
    for name in ("dup", "tot", "got"):
        want = answer_of(s, name)
        case = Case(s, name, asks=True)
        first = begin(case)
        case.client.decide(first, "explain")
        again = asked(case)
        eq(again["request_id"], first["request_id"], f"{name}: the same request")
        case.client.decide(again, "allow")
        eq(finish(case, "allow"), want, f"{name}: the answer")
        eq(case.ran(), COMMANDS[name], f"{name}: commands that ran")
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_the_others_go_on_while_one_waits(s):
    case = Case(s, "got", asks=True)
    request = begin(case)
    # What does not need it comes to its end.
    eventually(lambda: case.model.asked("refine"), "beta is worked over while alpha waits")
    eventually(lambda: case.model.open == 0, "nothing is left to do but to wait")
    eq([one.about for one in case.model.asked("task") if one.about == "add up"], [], "too early")
    case.client.decide(request, "allow")
    eq(finish(case, "allow"), "Together: the sum is 3; alpha ok", "the answer")


def both_ask(asked):
    if asked.kind == "task" and asked.about == "count beta" and not asked.since:
        return [ran("beta")]
    if asked.kind == "plan":
        return world(asked).replace('"attempts": 2', '"attempts": 1')
    return world(asked)


@talks
def test_two_at_once(s):
    for order in ((0, 1), (1, 0)):
        case = Case(s, "got", answers=both_ask, asks=True)
        requests = [begin(case), asked(case)]
        eq(len({one["request_id"] for one in requests}), 2, "two requests are open")
        for at in order:
            case.client.decide(requests[at], "allow")
        eq(finish(case, "allow"), "Together: the sum is 3; alpha ok", "the answer")
        eq(sorted(case.ran()), ["alpha", "beta", "gather"], "commands that ran")
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_two_at_once_for_a_client_that_is_shown_one_at_a_time(s):
    case = Case(s, "got", answers=both_ask, asks=True)
    case.client.drop()
    client = case.watcher
    client.say(MESSAGE)
    shown = []
    for _ in range(3):
        shown.append(client.until("approval_request")[-1]["id"])
        client.review("yes")
    client.until_end()
    eq(len(set(shown)), 3, "requests")
    eq(sorted(case.ran()), ["alpha", "beta", "gather"], "commands that ran")


@talks
def test_one_of_two_denied(s):
    case = Case(s, "got", answers=both_ask, asks=True)
    first, second = begin(case), asked(case)
    case.client.decide(first, "deny")
    case.client.decide(second, "allow")
    finish(case, "allow")
    eq(len(case.ran()), 2, f"commands that ran: {case.ran()}")


@talks
def test_nobody_answers(s):
    for name in ("dup", "tot", "got"):
        want = answer_of(s, name)
        case = Case(s, name, asks=True, APPROVAL_TIMEOUT_SECS="1")
        case.client.say(MESSAGE)
        frames = case.client.until("turn_completed")
        eq(spoken(frames)[-1], want, f"{name}: the answer")
        eq(case.ran(), [], f"{name}: commands that ran")
        eq(len(of(frames, "control_request")), len(COMMANDS[name]), f"{name}: requests")
        case.server.kill()


@talks
def test_killed_while_one_waits(s):
    for name in COMMANDS:
        want = answer_of(s, name)
        case = Case(s, name, asks=True)
        first = begin(case)
        for _ in range(2):
            case.kill()
            again = asked(case)
            eq(again["request_id"], first["request_id"], f"{name}: the same request")
        case.client.decide(again, "allow")
        eq(finish(case, "allow"), want, f"{name}: the answer")
        eq(case.ran(), COMMANDS[name], f"{name}: commands that ran")
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_killed_while_two_wait(s):
    case = Case(s, "got", answers=both_ask, asks=True)
    before = {begin(case)["request_id"], asked(case)["request_id"]}
    case.kill()
    again = [asked(case), asked(case)]
    eq({one["request_id"] for one in again}, before, "the same requests")
    for one in again:
        case.client.decide(one, "allow")
    eq(finish(case, "allow"), "Together: the sum is 3; alpha ok", "the answer")
    eq(sorted(case.ran()), ["alpha", "beta", "gather"], "commands that ran")


def asks_back(asked):
    if asked.kind == "task" and asked.about == "count alpha":
        if not asked.since:
            options = [{"label": "one", "description": "1"}, {"label": "two", "description": "2"}]
            return [call("ask_user", questions=[{"question": "How many?", "header": "Count",
                                                 "options": options, "multi_select": False}])]
        return "alpha is " + ("two" if "two" in asked.whole() else "one")
    return world(asked)


@talks
def test_a_sub_task_asks_a_question(s):
    case = Case(s, "got", answers=asks_back)
    case.client.say(MESSAGE)
    frames = case.client.until("ask_user_question")
    eventually(lambda: case.model.asked("refine"), "beta goes on meanwhile")
    case.client.answer(frames[-1], ["two"])
    frames = case.client.until_end()
    eq(the(frames, "turn_completed")["type"], "turn_completed")
    note = case.model.asked("gather")[-1].whole()
    assert "alpha" in note, note


def branch_writes(asked):
    """A branch that wants to do more than read."""
    if asked.kind == "expand" and not asked.about and "Not run" not in asked.whole():
        return [ran("branch")]
    return world(asked)


@talks
def test_a_branch_only_reads(s):
    case = Case(s, "tot", answers=branch_writes, asks=True)
    case.client.say(MESSAGE)
    eq(finish(case, "allow"), "The way is A, A2.", "the answer")
    eq(case.ran(), ["path"], "commands that ran")
    eq(len(of(case.shown, "control_request")), 1, "requests")
