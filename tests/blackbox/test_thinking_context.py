"""A window that fills in the middle of every way to think: room is made on the line that needs it,
and whoever goes on there still knows what it was to do. And plans that cannot be read."""

import json

from frames import said
from harness import Options, eq
from loomtalk import loom
from strategies import AGENTS, bash, plan, world
from talk import of, spoken, talks
from test_models import unasked
from test_thinking_stops import ANSWERS
from thinking import MESSAGE, Case

WINDOW = 60_000
# More than four fifths of it, as the model counts.
FULL = (50_000, 100)
SUMMARY = "They want to know the number."


def small(s, **env):
    rows = s.t.dir / "models.json"
    row = {"match": "*", "context": WINDOW, "output": 1_000, "input_usd": 1, "output_usd": 2}
    rows.write_text(json.dumps([row]))
    return {"MODELS_FILE": rows, **env}


def filling(*kinds):
    """A model whose window is nearly full after its first answer of these kinds."""
    def answers(asked):
        if asked.kind == "think":
            return "Well." + " Surely." * 300
        reply = world(asked)
        fills = asked.kind in kinds and SUMMARY not in asked.whole()
        if not fills:
            return reply
        reply = {"say": reply} if isinstance(reply, str) else {"calls": reply}
        return {**reply, "usage": FULL}

    return answers


def talk_before(case):
    """A few turns that a summary can take the place of."""
    case.client.send("set_agent", agent="react")
    for number in range(4):
        case.turn(f"Small talk, number {number}.")
    case.client.send("set_agent", agent=case.agent)
    case.client.until(lambda f: f["type"] == "session_info" and f.get("agent") == case.agent)


def last_of_the_talk_fills(asked):
    reply = filling()(asked)
    fills = asked.kind == "think" and "number 3" in asked.about
    return {"say": reply, "usage": FULL} if fills else reply


@talks
def test_before_a_search(s):
    for name in AGENTS:
        case = Case(s, name, answers=last_of_the_talk_fills, **small(s))
        talk_before(case)
        eq(case.turn(), ANSWERS[name], f"{name}: the answer")
        eq(len(case.model.asked("summary")), 1, f"{name}: summaries")
        # Whoever was asked afterwards knows the summary, and not what it stands for.
        for one in case.model.asked()[5:]:
            assert SUMMARY in one.whole() and MESSAGE in one.whole(), f"{name}: {one}"
            assert "number 0" not in one.whole(), f"{name}: {one}"
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_on_the_line_of_a_sub_task(s):
    for name in ("got", "got_adaptive"):
        case = Case(s, name, answers=filling("task"), **small(s))
        talk_before(case)
        eq(case.turn(), ANSWERS[name], f"{name}: the answer")
        assert case.model.asked("summary"), f"{name}: no room was made"
        after = [one for one in case.model.asked("task") if SUMMARY in one.whole()]
        eq({one.about for one in after}, {"count alpha"}, f"{name}: it still knows its sub-task")
        case.server.kill()
        (s.work / "ran").unlink()


STEPS = 12


def long_work(asked):
    """A sub-task of many steps, of each of which there is much to say."""
    if asked.kind == "task" and asked.about == "count alpha":
        made = sum(f"step{at}" in asked.whole() for at in range(STEPS))
        steps = sum(one.kind == "task" and one.about == "count alpha" for one in long_work.case())
        if steps <= STEPS:
            said = f"This is step{steps}, well considered." + " Surely." * 3_000
            return {"say": said, "calls": [bash(f"echo step{steps} >> steps")],
                    "usage": (len(asked.whole()) // 2, 10)}
        return f"alpha is 1 after {made} of them"
    return world(asked)


@talks
def test_a_sub_task_of_many_steps(s):
    case = Case(s, "got", answers=long_work, **small(s))
    long_work.case = case.model.asked_now
    case.turn()
    steps = (s.work / "steps").read_text().split()
    eq(steps, [f"step{at}" for at in range(1, STEPS + 1)], "each step was made once")
    assert case.model.asked("summary"), "no room was made"
    late = case.model.asked("task")
    eq({one.about for one in late},
       {"count alpha", "count beta", "add up", "check alpha"}, "sub-tasks that are known")


@talks
def test_on_the_line_of_a_branch(s):
    case = Case(s, "tot", answers=filling("expand"), **small(s))
    talk_before(case)
    eq(case.turn(), ANSWERS["tot"], "the answer")
    assert case.model.asked("summary"), "no room was made"


@talks
def test_behind_a_search(s):
    for name, kind in (("dup", "solve"), ("tot", "path"), ("got", "gather")):
        case = Case(s, name, answers=filling(kind), **small(s))
        talk_before(case)
        answer = case.turn()
        eq(answer, ANSWERS[name], f"{name}: the answer")
        assert case.model.asked("summary"), f"{name}: no room was made"
        case.server.kill()
        (s.work / "ran").unlink()


@talks
def test_killed_while_room_is_made(s):
    for name, kind in (("got", "task"), ("tot", "expand"), ("tot", "path")):
        case = Case(s, name, answers=filling(kind), **small(s))
        talk_before(case)
        held = case.model.hold("summary", pieces=1)
        case.client.say(MESSAGE)
        held.reached()
        case.server.kill()
        held.release()
        case.server = s.server(env=case.env)
        case.client = s.watcher(case.session, complete=False)
        eq(case.resume(), ANSWERS[name], f"{name}, {kind}: the answer")
        ran = case.ran()
        eq(len(ran), len(set(ran)), f"{name}: each command ran once, {ran}")
        case.server.kill()
        (s.work / "ran").unlink()


CYCLE = [{"id": "a", "task": "count alpha", "needs": ["b"]},
         {"id": "b", "task": "count beta", "needs": ["a"]}]
TWICE = [{"id": "a", "task": "count alpha"}, {"id": "a", "task": "check alpha"}]


def planning(*plans):
    """A model that plans so at first, and then so."""
    left = list(plans)

    def answers(asked):
        if asked.kind == "plan":
            return left.pop(0) if len(left) > 1 else left[0]
        return world(asked)

    return answers


PLANS = {
    "a cycle, then none": ([plan(CYCLE), plan(TWICE[:1])], None),
    "a cycle twice": ([plan(CYCLE)], "repaired"),
    "the same id twice": ([plan(TWICE)], "repaired"),
    "garbage twice": (["I would rather not."], "worked on as one task"),
    "prose around it": (["Sure!\n" + json.dumps({"nodes": TWICE[:1]}) + "\nThat is all."], None),
}


@talks
def test_plans_that_are_not_sound(s):
    for name, (plans, told) in PLANS.items():
        case = Case(s, "got", answers=planning(*plans))
        case.client.say(MESSAGE)
        frames = case.client.until_end()
        eq(frames[-1]["type"], "turn_completed", f"{name}: {frames[-1]}")
        notices = " ".join(json.dumps(one) for one in of(frames, "notice"))
        Options.tell(f"{name}: {notices}")
        assert (told or "") in notices and bool(told) == bool(notices), f"{name}: {notices!r}"
        case.server.kill()


@talks
def test_every_dialect_tells_what_was_done_instead(s):
    case = Case(s, "got", answers=planning("I would rather not."))
    words = "worked on as one task"
    client = loom(s, complete=False)
    client.send("run", message=MESSAGE, agent="got", thread_id=case.session)
    frames = client.until_end()
    assert words in json.dumps(frames), "loom"
    assert words in json.dumps(case.client.until("turn_completed")), "unified"
    assert words in json.dumps(case.watcher.until("agent_finished")), "agentloop"
    chat = s.chat(session=case.session, complete=False)
    assert words in json.dumps(chat.turn(MESSAGE)), "chat"
