"""A model that always wants more never gets more than the bounds say: what its server counts stays
under what docs/THINKING.md says of each agent, and every turn ends, with an answer or a clear
error."""

import json
import random
import time

from harness import TURN_SECS, eq
from strategies import Thinker, call
from test_models import unasked

SEED = 5
MORE = 100
# What a turn may end with that had no more calls to make.
ENDS = ("max_turns", "limit for one turn", "sub-task")
READS = [call("ls", path=".")]


def thoughts(count):
    return json.dumps({"thoughts": [{"thought": f"way {n}", "final": False} for n in range(count)]})


def nodes(count):
    """Side by side and behind one another, with everything that may be wanted."""
    made = [{"id": f"n{n}", "task": f"task {n}", "needs": [f"n{n - 1}"] if n % 3 else [],
             "attempts": MORE, "refine": MORE} for n in range(count)]
    return json.dumps({"nodes": made})


def greedy(asked):
    """Whatever it is asked, there is more to do; in a conversation it never answers."""
    said = {"question": "What more?", "information": '{"context": "more"}',
            "expand": thoughts(MORE), "value": "likely", "vote": "1", "plan": nodes(MORE),
            "judge": "complex", "score": "5", "refine": "more of it", "summary": "More."}
    return said.get(asked.kind, READS)


def content(asked):
    """Greedy in all it plans, but it answers when it is its turn to."""
    said = greedy(asked)
    return "That is all." if said is READS else said


def looking(asked):
    """Looks around for ever, also where it was asked for thoughts."""
    return READS if asked.kind == "expand" else greedy(asked)


def mumbling(asked):
    """Nothing that it says can be read."""
    return "Hm." if asked.kind not in ("task", "think", "path", "solve", "gather") else "Well."


def tree(proposals, depth, **_):
    """Thoughts that can be gone on from, when the search goes back to all that it left."""
    return sum(proposals ** level for level in range(depth))


def tot_most(t):
    """Calls of a whole search: every question may be asked twice."""
    expanded = tree(**t)
    opinions = t["samples"] * (expanded if t["judge"] == "vote" else expanded * t["proposals"])
    return expanded * (t["steps"] + 2) + 2 * opinions


def got_most(g):
    """The same of a graph."""
    tries = g["attempts"] * g["steps"] + (2 * g["attempts"] if g["attempts"] > 1 else 0)
    each = tries + g["refine"]
    if not g["adaptive"]:
        return 2 + min(g["nodes"], g["nodes_total"]) * each
    # Judged, planned, and put together.
    return 2 + g["nodes_total"] * (each + 2 + 2 + g["steps"])


def most(agent, wanted, max_turns):
    """What docs/THINKING.md says of a turn's calls, those made again not counted."""
    search = {"react": lambda: 0, "dup": lambda: 4, "tot": lambda: tot_most(wanted),
              "got": lambda: got_most(wanted)}[agent]()
    # The answer may take all that is left.
    return max_turns, search


class Runs:
    """A server and the model behind it; runs one after the other."""

    def __init__(self, t, answers, **env):
        self.model = Thinker(answers, test=t)
        self.server = t.server(env=self.model.settings(**{"MODEL_RETRIES": "0", **env}))
        self.client = self.server.client("/loom", checked=False)

    def run(self, agent, max_turns, wanted=None):
        """The last frame of a run, and what the model was asked meanwhile."""
        before = len(self.model.asked())
        bounds = {agent: wanted} if wanted else {}
        self.client.ws.send(json.dumps({"type": "run", "message": "Do more.", "agent": agent,
                                        "max_turns": max_turns, **bounds}))
        end, self.events = time.monotonic() + TURN_SECS, []
        while True:
            assert time.monotonic() < end, f"{agent} {wanted} does not end"
            frame = json.loads(self.client.ws.recv(timeout=TURN_SECS))
            if frame["type"] in ("run_end", "error"):
                break
            self.events.append(frame["event"])
        if frame["type"] == "error":
            self.client = self.server.client("/loom", checked=False)
        return frame, self.model.asked()[before:]

    def planned(self):
        """Sub-tasks in all graphs of the last run."""
        counts = {"got_plan": "node_count", "got_expand": "nodes_added"}
        own = [event for event in self.events if event["type"] in counts]
        return sum(event[counts[event["type"]]] for event in own)


def ended(frame, what):
    """With an answer, or with an error that says which limit it was."""
    told = frame.get("error") or frame.get("reply")
    assert told, f"{what}: {frame}"
    if frame["type"] == "error":
        assert any(word in told for word in ENDS), f"{what}: {told}"


def wanted_tot(dice):
    return {"proposals": dice.randint(1, 5), "samples": dice.randint(1, 3),
            "beam": dice.randint(1, 5), "depth": dice.randint(1, 3),
            "search": dice.choice(["breadth", "depth"]), "judge": dice.choice(["value", "vote"]),
            "steps": dice.randint(0, 3)}


def wanted_got(dice):
    return {"nodes": dice.randint(1, 6), "nodes_total": dice.randint(1, 12),
            "layers": dice.randint(1, 4), "depth": dice.randint(1, 3),
            "attempts": dice.randint(1, 3), "refine": dice.randint(0, 2),
            "steps": dice.randint(1, 3), "adaptive": dice.random() < 0.6}


def many(t, answers, count, **env):
    """Runs of every agent with bounds that chance chose."""
    dice, runs = random.Random(SEED), Runs(t, answers, **env)
    for _ in range(count):
        for agent in ("react", "dup", "tot", "got"):
            wanted = {"tot": wanted_tot, "got": wanted_got}.get(agent, lambda _: None)(dice)
            max_turns = dice.choice([1, 2, 3, 5, 8, 20, 60])
            frame, asked = runs.run(agent, max_turns, wanted)
            what = f"{answers.__name__}: {agent} {wanted}, max_turns {max_turns}"
            ended(frame, what)
            held(agent, wanted, max_turns, asked, what)
            if agent == "got":
                assert runs.planned() <= wanted["nodes_total"], f"{what}: {runs.planned()} nodes"


def held(agent, wanted, max_turns, asked, what):
    """The counts of one run are within their bounds."""
    turns, search = most(agent, wanted, max_turns)
    assert len(asked) <= turns, f"{what}: {len(asked)} calls"
    own = [one for one in asked if one.kind not in ("think", "path", "solve", "gather")]
    if agent in ("tot", "got", "dup"):
        assert len(own) <= search, f"{what}: {len(own)} calls of the search, at most {search}"
        # A quarter is kept for the answer.
        kept = max(1, max_turns // 4)
        assert len(own) <= max_turns - kept, f"{what}: {len(own)} calls of the search"


def test_a_greedy_model(t):
    many(t, greedy, 12)


def test_a_model_that_answers_in_the_end(t):
    many(t, content, 12)


def test_a_model_that_only_looks(t):
    many(t, looking, 6)


def test_a_model_that_cannot_be_read(t):
    many(t, mumbling, 6)


def exact(runs, wanted):
    frame, asked = runs.run("tot", 1_000, wanted)
    eq(frame["type"], "run_end", f"end {frame}")
    kinds = [one.kind for one in asked]
    return {kind: kinds.count(kind) for kind in ("expand", "value", "vote", "path")}


def test_a_tree_is_as_large_as_it_may_be_and_not_larger(t):
    runs, wanted = Runs(t, content), {"proposals": 3, "samples": 2, "beam": 2, "depth": 3}
    # The beginning, then two states of each depth; what is likely everywhere needs no way back.
    eq(exact(runs, wanted), {"expand": 5, "value": 30, "vote": 0, "path": 1}, "breadth")
    deep = {**wanted, "search": "depth"}
    # Nothing is sure enough to end it, so all that can be thought is thought.
    eq(exact(runs, deep), {"expand": 13, "value": 78, "vote": 0, "path": 1}, "depth")


def test_sub_tasks_of_all_graphs_together(t):
    """What a graph leaves of them is shared by its sub-tasks, so that none comes first; one whose
    share is less than two is not split."""
    runs = Runs(t, content)
    for total, planned in ((1, 1), (2, 2), (5, 4), (11, 4), (12, 12), (13, 12), (30, 20)):
        wanted = {"nodes": 4, "nodes_total": total, "depth": 3, "attempts": 1, "refine": 0,
                  "adaptive": True}
        frame, _ = runs.run("got", 1_000, wanted)
        eq(frame["type"], "run_end", f"end {frame}")
        eq(runs.planned(), planned, f"sub-tasks where {total} may be")


def test_calls_that_are_made_again(t):
    """Each call that fails is made again so often and no oftener; the rest is as without."""
    retries, dead = 1, 1_000
    runs = Runs(t, content, MODEL_RETRIES=retries)
    for agent, wanted in (("tot", {"proposals": 2, "beam": 1, "depth": 2}),
                          ("got", {"nodes": 2, "attempts": 1, "refine": 0, "steps": 1})):
        plain = len(runs.run(agent, 30, wanted)[1])
        kind = {"tot": "value", "got": "task"}[agent]
        runs.model.fault(kind, status=500, times=1)
        frame, asked = runs.run(agent, 30, wanted)
        eq(frame["type"], "run_end", f"{agent}: end {frame}")
        eq(len(asked), plain + 1, f"{agent}: calls with one that failed")
        # One that always fails counts once, and its place in the search is given up.
        runs.model.fault(kind, status=500, times=dead)
        frame, asked = runs.run(agent, 30, wanted)
        ended(frame, agent)
        assert len(asked) <= 30 * (1 + retries), f"{agent}: {len(asked)} calls"
        of_kind = [one for one in asked if one.kind == kind]
        assert len(of_kind) % (1 + retries) == 0, f"{agent}: {len(of_kind)} of {kind}"


def killed(t, agent, kind, answers):
    """A search of 20 calls at most, killed in the middle of it again and again; what was asked."""
    model = Thinker(answers, test=t)
    env = model.settings(MODEL_RETRIES="0", AUTO_RESUME="true", MAX_TURNS=20, ALLOW_BYPASS="true",
                         MAX_CALLS_AT_ONCE=2, TOT_BEAM=5, TOT_PROPOSALS=5, TOT_DEPTH=5)
    server = t.server(env=env)
    session = unasked(server, agent=agent)
    held = model.hold(kind)
    server.client(f"/ws/{session}", checked=False).say("Do more.")
    for _ in range(2):
        held.reached()
        server.kill()
        # For whoever goes on.
        held.release()
        held = model.hold(kind)
        server = t.server(env=env)
    held.reached()
    client = server.watcher(f"/ws/{session}")
    client.checked = False
    held.release()
    client.until_end()
    return model.asked()


def kept_within(asked):
    search = [one.kind for one in asked if one.kind not in ("think", "path", "gather")]
    assert len(search) <= 15, f"{len(search)} calls of the search: {search}"
    assert len(search) > 10, f"it was not greedy: {search}"


def test_calls_of_a_tree_before_a_kill_count(t):
    kept_within(killed(t, "tot", "value", content))


def test_calls_of_a_graph_before_a_kill_count(t):
    kept_within(killed(t, "got", "task", greedy))
