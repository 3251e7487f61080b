"""Interruption by every dialect, SIGTERM, queues, faults of the model, budgets and limits in the
middle of every way to think: each ends clearly, and the session goes on."""

import itertools
import signal

from frames import kinds
from harness import WAIT_SECS, eq, eventually
from loomtalk import loom, numbered
from strategies import AGENTS, Thinker, world
from talk import of, spoken, talks, the
from thinking import MESSAGE, Case

# A moment in the middle of each, and what it asks at that moment.
MIDDLE = {
    "dup": ("information", None),
    "tot": ("value", "B"),
    "tot_depth": ("expand", "B"),
    "tot_vote": ("vote", None),
    "got": ("task", "count beta"),
    "got_adaptive": ("task", "beta one"),
}
ANSWERS = {"dup": "The number is 7.", "tot": "The way is A, A2.", "tot_depth": "The way is B, B2.",
           "tot_vote": "The way is B, B2.", "got": "Together: the sum is 3; alpha ok",
           "got_adaptive": "Together: the sum is 3; alpha ok"}


def in_the_middle(case, pieces=1):
    held = case.model.hold(*MIDDLE[case.name], pieces=pieces, times=9)
    case.client.say(MESSAGE)
    return held.reached()


@talks
def test_interrupted_and_taken_up(s):
    for name in AGENTS:
        case = Case(s, name)
        held = in_the_middle(case)
        case.client.send("interrupt", reason="enough")
        failed = the(case.client.until_end(), "turn_failed")
        eq(failed["error"], "Interrupted: enough", f"{name}: the end")
        held.left = 0
        held.release()
        eventually(lambda: case.model.open == 0, f"{name}: calls are given up")
        eq(case.resume(), ANSWERS[name], f"{name}: the answer")
        ran = case.ran()
        eq(len(ran), len(set(ran)), f"{name}: each command ran once, {ran}")
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_interrupted_and_spoken_to(s):
    for name in AGENTS:
        case = Case(s, name)
        held = in_the_middle(case)
        case.watcher.send("interrupt", {"reason": "wait"})
        case.client.until_end()
        held.left = 0
        held.release()
        eq(case.turn("Once more."), ANSWERS[name], f"{name}: the answer to another message")
        # What was searched for before is no part of it.
        plans = [one for one in case.model.asked() if one.kind in ("plan", "expand", "question")]
        assert "Once more." in plans[-1].whole(), f"{name}: a new search"
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_a_run_is_cancelled(s):
    for name in AGENTS:
        case = Case(s, name)
        client = loom(s, complete=False)
        kind, about = MIDDLE[name]
        held = case.model.hold(kind, about, pieces=1, times=9)
        client.send("run", message=MESSAGE, agent=case.agent, thread_id=case.session)
        held.reached()
        run = client.until("run_stream_event")[-1]["id"]
        client.send("cancel_run", run_id=run)
        frames = client.until_end()
        eq(frames[-1]["type"], "error", f"{name}: the end, {frames[-1]}")
        held.left = 0
        held.release()
        client.send("run", message=MESSAGE, agent=case.agent, thread_id=case.session)
        frames = client.until_end()
        eq(frames[-1].get("reply"), ANSWERS[name], f"{name}: another run, {frames[-1]}")
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_sigterm(s):
    for name in AGENTS:
        case = Case(s, name)
        held = in_the_middle(case)
        case.server.signal(signal.SIGTERM)
        eq(case.server.process.wait(WAIT_SECS), 0, f"{name}: exit code")
        held.left = 0
        held.release()
        case.server = s.server(env=case.env)
        case.client = s.watcher(case.session, complete=False)
        eq(case.resume(), ANSWERS[name], f"{name}: the answer")
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_messages_wait_for_a_search(s):
    for name in AGENTS:
        case = Case(s, name)
        held = in_the_middle(case)
        case.client.say("The next.")
        case.client.say("The last.")
        held.left = 0
        held.release()
        for at in range(3):
            eq(case.ended(), ANSWERS[name], f"{name}: the answer to message {at}")
        case.server.kill()
        (s.work / "ran").unlink()


# What is tried again by itself, after a while, and what is not.
PASSING = [dict(status=429), dict(status=500), dict(cut=2)]
ANSWERED = [dict(instead={"say": ""}),
            dict(instead={"say": "I cannot help with that.", "finish": "content_filter"})]
# Every kind of question that each asks.
ASKS = {"dup": ["question", "information", "solve"], "tot": ["expand", "value", "path"],
        "tot_vote": ["vote"], "got": ["plan", "task", "score", "refine", "gather"],
        "got_adaptive": ["judge", "plan", "gather"]}


@talks
def test_one_fault_in_every_kind_of_question(s):
    passing = itertools.cycle(PASSING)
    for name, kinds in ASKS.items():
        case = Case(s, name, MODEL_RETRIES="2")
        for kind in kinds:
            for fault in (next(passing), *ANSWERED):
                case.model.rules.clear()
                case.model.fault(kind, **fault)
                case.client.say(MESSAGE)
                frames = case.client.until_end()
                told = f"{name}, {kind}, {fault}: {frames[-1]}"
                refused = fault.get("instead", {}).get("finish")
                if frames[-1]["type"] == "turn_failed":
                    assert refused, told
                else:
                    assert spoken(frames), told
        case.server.kill()


@talks
def test_a_fault_that_stays(s):
    for name, kinds in ASKS.items():
        case = Case(s, name, MODEL_RETRIES="0")
        for kind in kinds:
            case.model.rules.clear()
            case.model.fault(kind, status=500, times=1_000)
            case.client.say(MESSAGE)
            frames = case.client.until_end()
            if frames[-1]["type"] == "turn_failed":
                assert "500" in frames[-1]["error"], f"{name}, {kind}: {frames[-1]}"
            else:
                assert of(frames, "notice"), f"{name}, {kind}: nobody was told"
        case.model.rules.clear()
        eq(case.turn(), ANSWERS[name], f"{name}: afterwards")
        case.server.kill()


@talks
def test_a_turn_with_few_calls_still_answers(s):
    for name in AGENTS:
        case = Case(s, name)
        for most in (1, 2, 3, 4, 6, 9):
            case.client.start(max_turns=most)
            before = len(case.model.asked())
            case.client.say(MESSAGE)
            frames = case.client.until_end()
            made = len(case.model.asked()) - before
            assert made <= most, f"{name}, {most}: {made} calls"
            if frames[-1]["type"] == "turn_failed":
                assert f"after {most} model calls" in frames[-1]["error"], frames[-1]
            else:
                assert spoken(frames), f"{name}, {most}: no answer"
        case.server.kill()


@talks
def test_a_budget_ends_a_search(s):
    for name in AGENTS:
        # Each call counts 15 tokens.
        case = Case(s, name, MAX_SESSION_TOKENS="40")
        case.client.say(MESSAGE)
        frames = case.client.until_end()
        eq(frames[-1]["type"], "turn_failed", f"{name}: the end")
        assert "MAX_SESSION_TOKENS" in frames[-1]["error"], frames[-1]
        # Those that ran at the same time had begun before.
        assert len(case.model.asked()) <= 4 + 8, f"{name}: {len(case.model.asked())} calls"
        case.server.kill()
        case.server = s.server(env={**case.env, "MAX_SESSION_TOKENS": "1000000"})
        case.client = s.watcher(case.session, complete=False)
        eq(case.turn(), ANSWERS[name], f"{name}: with more to spend")
        case.server.kill()
        (s.work / "ran").unlink()
