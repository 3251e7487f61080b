"""What Loom clients will see of the agents dup, tot and got: the golden runs have the documented
shapes and order, and a fault in one is found."""

import copy
import json

import jsonschema

import checker
from harness import eq
from test_schemas import GOLDEN, ROOT

AGENTS = ["dup", "tot", "got", "got_adaptive"]
OWN = {
    "dup": set(),
    "tot": {"tot_expand", "tot_evaluate", "tot_backtrack"},
    "got": {"got_plan", "got_node_start", "got_node_complete", "got_node_failed"},
    "got_adaptive": {"got_plan", "got_node_start", "got_node_complete", "got_expand"},
}


def run(agent):
    lines = (GOLDEN / "loom-agents" / f"{agent}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def schema(kind):
    path = ROOT / "docs" / "schemas" / f"loom.server.{kind}.json"
    return jsonschema.Draft202012Validator(json.loads(path.read_text()))


def checked(frames, agent):
    asked = {"type": "run", "message": "any", "thread_id": "golden",
             "agent": agent.removesuffix("_adaptive")}
    transcript = [{"open": {"path": "/loom"}}, {"in": asked}]
    return checker.check("loom", transcript + [{"out": frame} for frame in frames])


def test_shapes(t):
    for agent in AGENTS:
        for frame in run(agent):
            faults = [fault.message for fault in schema(frame["type"]).iter_errors(frame)]
            eq(faults, [], f"{agent}: {frame}")


def test_order(t):
    for agent in AGENTS:
        eq(checked(run(agent), agent), [], agent)


def test_every_event_of_theirs_is_there(t):
    for agent in AGENTS:
        told = {frame["event"]["type"] for frame in run(agent) if "event" in frame}
        eq(OWN[agent] - told, set(), agent)


def test_faults_are_found(t):
    for agent in AGENTS:
        frames = run(agent)
        for at in range(len(frames)):
            assert checked(frames[:at] + frames[at + 1:], agent), f"{agent} without {frames[at]}"
    tot = run("tot")
    for at, frame in enumerate(tot):
        if frame.get("event", {}).get("type") == "tot_evaluate":
            wrong = copy.deepcopy(tot)
            wrong[at]["event"]["chosen"] = 9
            assert checked(wrong, "tot"), "a choice that is not there"
