"""What clients may do between the parts of a search: compact, fork, close, cancel, leave, or be one
that cannot be asked."""

from harness import eq, eventually
from loomtalk import loom
from strategies import AGENTS
from talk import of, spoken, talks, the
from test_thinking_stops import ANSWERS, MIDDLE, in_the_middle
from thinking import MESSAGE, Case


def let_go(case, held):
    held.left = 0
    held.release()
    eventually(lambda: case.model.open == 0, f"{case.name}: no call is left open")


def done(case):
    case.server.kill()
    (case.s.work / "ran").unlink(missing_ok=True)


@talks
def test_compacted_before_it_is_taken_up(s):
    for name in AGENTS:
        case = Case(s, name)
        case.client.send("set_agent", agent="react")
        for number in range(3):
            case.turn(f"Small talk, number {number}." + " Well." * 300)
        case.client.send("set_agent", agent=case.agent)
        held = in_the_middle(case)
        case.client.send("interrupt")
        case.client.until_end()
        let_go(case, held)
        case.client.send("compact")
        case.client.until(lambda frame: frame["type"] in ("turn_completed", "turn_failed"))
        eq(case.resume(), ANSWERS[name], f"{name}: the answer")
        ran = case.ran()
        eq(len(ran), len(set(ran)), f"{name}: each command ran once, {ran}")
        done(case)


@talks
def test_taken_up_in_a_fork(s):
    for name in ("dup", "tot", "got", "got_adaptive"):
        case = Case(s, name)
        want = case.turn()
        taken_up = 0
        for seq in range(3, case.frames[-1]["seq"], 5):
            made = case.server.http("POST", f"/sessions/{case.session}:fork?at={seq}")
            eq(made.status, 201, f"{name} at {seq}: {made}")
            client = s.watcher(made.json["id"], complete=False)
            client.send("resume")
            frames = client.until(lambda f: f["type"] in ("turn_completed", "turn_failed", "error"))
            if frames[-1]["type"] != "error":
                eq(frames[-1]["type"], "turn_completed", f"{name} at {seq}: {frames[-1]}")
                eq(spoken(frames)[-1], want, f"{name} forked at {seq}: the answer")
                taken_up += 1
            client.drop()
        assert taken_up > 3, f"{name}: only {taken_up} forks had something to take up"
        done(case)


@talks
def test_closed_and_reopened(s):
    for name in AGENTS:
        case = Case(s, name)
        held = in_the_middle(case)
        case.client.send("session_end")
        case.client.until(lambda frame: frame.get("status") == "completed")
        let_go(case, held)
        case.client.start()
        eq(case.turn(), ANSWERS[name], f"{name}: the answer")
        done(case)


@talks
def test_cancelled(s):
    for name in AGENTS:
        case = Case(s, name)
        kind, about = MIDDLE[name]
        held = case.model.hold(kind, about, pieces=1, times=9)
        message = case.client.say(MESSAGE)
        held.reached()
        case.client.send("cancel", target_id=message)
        eq(the(case.client.until_end(), "turn_failed")["error"][:11], "Interrupted", name)
        let_go(case, held)
        eq(case.turn(), ANSWERS[name], f"{name}: the answer to another")
        done(case)


@talks
def test_a_run_without_a_thread_ends_with_its_connection(s):
    for name in AGENTS:
        case = Case(s, name)
        kind, about = MIDDLE[name]
        held = case.model.hold(kind, about, pieces=1, times=9)
        client = loom(s, complete=False)
        client.send("run", message=MESSAGE, agent=case.agent)
        held.reached()
        client.drop()
        held.left = 0
        # What is held is not answered: it is given up when the run is.
        eventually(lambda: case.model.open == 0, f"{name}: its calls are given up")
        held.release()
        done(case)


@talks
def test_who_cannot_be_asked(s):
    """A call that needs leave is denied, and the search goes on without it."""
    for name in ("dup", "tot", "got"):
        case = Case(s, name)
        client = loom(s, complete=False)
        client.send("run", message=MESSAGE, agent=case.agent)
        frames = client.until_end()
        eq(frames[-1].get("reply"), ANSWERS[name], f"{name}: the answer, {frames[-1]}")
        eq(case.ran(), [], f"{name}: commands that ran")
        done(case)


@talks
def test_what_a_turn_cost_is_the_sum_of_its_calls(s):
    for name in AGENTS:
        case = Case(s, name)
        case.turn()
        made = len(case.model.asked())
        told = the(case.frames, "turn_completed")["usage"]
        eq((told["input_tokens"], told["output_tokens"]), (10 * made, 5 * made), f"{name}: usage")
        eq(len(of(case.frames, "token_usage")), made, f"{name}: calls that were told of")
        listed = case.server.get(f"/sessions/{case.session}").json["usage"]
        eq((listed["model_calls"], listed["input_tokens"]), (made, 10 * made), f"{name}: REST")
        done(case)
