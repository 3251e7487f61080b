"""Faults of Loom transcripts."""

import copy

from .mutate import (
    Fault, Mutation, Steps, after, at, both, cut, double, drop, kind_of, put, renumbered, swap,
    until,
)

REACT = "react_with_a_tool"


def ev(kind: str, name: str, value: object, nth: int = 1) -> Mutation:
    return put(kind, f"event.{name}", value, nth)


def other_run(steps: Steps) -> Steps:
    """A second run of the thread begins inside the first."""
    place = at(steps, "run_start", 2)
    begun = steps.pop(place)
    begun["out"]["seq"] = 3
    steps.insert(at(steps, "node_enter") + 1, begun)
    return steps


def unechoed(steps: Steps) -> Steps:
    for step in steps:
        step.get("out", {}).pop("request_id", None)
    return steps


def unthreaded(steps: Steps) -> Steps:
    """A checkpoint in a run that has no thread to keep it in."""
    frame = copy.deepcopy(steps[at(steps, "updates", -1)])
    frame["out"]["event"].update(
        type="checkpoint", checkpoint_id="c", timestamp="1", step=0, thread_id="th-1"
    )
    steps.insert(at(steps, "run_end"), frame)
    return steps


FAULTS = [
    # Shape.
    Fault("a message nobody knows", REACT, put("pong", "type", "pung"), "unknown type"),
    Fault("an event nobody knows", REACT, ev("usage", "type", "tokens"), "event.type"),
    Fault("a run id of another form", "requests", put("run_end", "id", "run-1"), "run-<uuid>"),
    Fault("no event_id", REACT, cut("values", "event.event_id"), "event_id: is missing"),
    Fault("no node_id", REACT, cut("values", "event.node_id"), "node_id: is missing"),
    Fault("no session_id in the event", REACT, cut("values", "event.session_id"),
          "session_id: is missing"),
    Fault("no session_id on the frame", REACT, cut("values", "session_id"),
          "session_id: is missing"),
    Fault("no seq on the frame", REACT, cut("values", "seq"), "seq: is missing"),
    Fault("seq goes back", REACT, put("run_end", "seq", 1), "seq goes back"),
    Fault("frame and event disagree", REACT, put("node_enter", "session_id", "th-2"),
          "disagree"),
    Fault("an empty chunk", REACT, ev("message_chunk", "content", ""), "content"),
    Fault("usage does not add up", REACT, ev("usage", "total_tokens", 1), "prompt + completion"),
    Fault("usage of the run does not add up", REACT, put("run_end", "usage.total_tokens", 1),
          "prompt + completion"),
    Fault("total less than last", REACT, put("run_end", "usage", {
        "prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901}), "total_usage"),
    Fault("an unknown result", REACT, ev("node_exit", "result", "Fine"), "result"),
    Fault("state is text", REACT, ev("values", "state", "x"), "state"),
    Fault("a huge state", REACT, ev("values", "state", {"x": "y" * 65536}), "must stay under"),
    Fault("huge updates", REACT, ev("updates", "state", {"x": "é" * 32768}), "must stay under"),
    Fault("arguments are a number", REACT, ev("tool_call", "arguments", 5), "arguments"),
    Fault("is_error is missing", REACT, cut("tool_end", "event.is_error"), "is_error"),
    Fault("a negative step", REACT, ev("checkpoint", "step", -1), "step"),
    Fault("no candidates", "tot", ev("tot_expand", "candidates", []), "candidates"),
    Fault("an empty candidate", "tot", ev("tot_expand", "candidates", [""]), "candidates[0]"),
    Fault("chosen is no candidate", "tot", ev("tot_evaluate", "chosen", 3), "chosen"),
    Fault("no scores", "tot", ev("tot_evaluate", "scores", []), "scores"),
    Fault("depth is text", "tot", ev("tot_backtrack", "to_depth", "0"), "to_depth"),
    Fault("a wrong count of nodes", "got", ev("got_plan", "node_count", 3), "node_count"),
    Fault("an empty summary", "got", ev("got_node_complete", "result_summary", ""),
          "result_summary"),
    Fault("no count of edges", "got", cut("got_expand", "event.edges_added"), "edges_added"),
    Fault("reply is null", REACT, put("run_end", "reply", None), "reply"),
    Fault("no event_id at the end", REACT, cut("run_end", "event_id"), "event_id: is missing"),
    Fault("both tool and tool_yaml", "requests", put("tool_show", "tool", {}), "exactly one"),
    Fault("neither tool nor tool_yaml", "requests", cut("tool_show", "tool_yaml"), "exactly one"),
    Fault("a tool without schema", "requests", cut("tools_list", "tools.0.input_schema"),
          "input_schema"),
    Fault("an unknown role", "requests", put("user_messages", "messages.0.role", "tool"), "role"),
    Fault("has_more is text", "requests", put("user_messages", "has_more", "yes"), "has_more"),
    Fault("error is missing", "requests", cut("error", "error"), "error: is missing"),
    # Order of a run.
    Fault("an event_id is skipped", REACT, drop("usage"), "event_id"),
    Fault("an event_id twice", REACT, double("usage"), "event_id"),
    Fault("counting from 0", REACT, ev("run_start", "event_id", 0), "event_id"),
    Fault("counting from 2", "failure", drop("run_start"), "event_id"),
    Fault("run_end not the next", REACT, put("run_end", "event_id", 99), "run_end has 99"),
    Fault("no run_start", REACT, renumbered(drop("run_start")), "run_start"),
    Fault("run_start twice", REACT, renumbered(double("run_start")), "run_start: twice"),
    Fault("run_start second", REACT, renumbered(swap("run_start", "node_enter")), "run_start"),
    Fault("run_start of another run", REACT,
          ev("run_start", "run_id", "run-9b9f4c1e-7a35-4d0b-8f5e-3c2f1d6e7a80"), "run_id is"),
    Fault("a run without events", "requests",
          lambda steps: [step for step in steps if kind_of(step) in ("in", "run_end")],
          "without events"),
    Fault("another session inside", REACT, ev("usage", "session_id", "x"), "session_id"),
    Fault("no node_enter", REACT, renumbered(drop("node_enter", 2)), "open node is None"),
    Fault("no node_exit", REACT, renumbered(drop("node_exit")), "while think is open"),
    Fault("no node_exit at last", REACT, renumbered(drop("node_exit", -1)), "node_exit: missing"),
    Fault("exit of another node", REACT, ev("node_exit", "id", "plan"), "open node is think"),
    Fault("no values", REACT, renumbered(drop("values")), "updates: of think"),
    Fault("no updates", REACT, renumbered(drop("updates")), "updates: missing"),
    Fault("no updates at last", REACT, renumbered(drop("updates", -1)), "updates: missing"),
    Fault("updates before values", REACT, renumbered(swap("values", "updates")), "updates: of"),
    Fault("values before exit", REACT, renumbered(swap("node_exit", "values")),
          "not after node_exit Ok"),
    Fault("updates of another node", REACT, ev("updates", "id", "act"), "updates: of act"),
    Fault("values after a failure", REACT, ev("node_exit", "result", {"Err": "x"}),
          "node that failed"),
    Fault("a chunk outside its node", REACT, renumbered(swap("node_exit", "message_chunk", 4, 3)),
          "outside a node"),
    Fault("no tool_call", REACT, renumbered(drop("tool_call")), "missing before tool_start"),
    Fault("tool_call twice", REACT, renumbered(double("tool_call")), "call_1 twice"),
    Fault("no tool_start", REACT, renumbered(drop("tool_start")), "tool_start: missing"),
    Fault("tool_start twice", REACT, renumbered(double("tool_start")), "started already"),
    Fault("no tool_end", REACT, renumbered(drop("tool_end")), "tool_end: missing"),
    Fault("tool_end twice", REACT, renumbered(double("tool_end")), "call_1 twice"),
    Fault("end before start", REACT, renumbered(swap("tool_start", "tool_end")), "tool_start"),
    Fault("output after the end", REACT, renumbered(swap("tool_output", "tool_end")),
          "tool_output"),
    Fault("approval after the end", "approval_and_cancel",
          renumbered(swap("tool_approval", "tool_end")), "tool_approval"),
    Fault("a chunk of arguments is lost", REACT, renumbered(drop("tool_call_chunk", 2)),
          "tool_call_chunk"),
    Fault("other arguments", REACT, ev("tool_call", "arguments", {"path": "/"}),
          "tool_call_chunk"),
    Fault("a chunk of text is lost", REACT, renumbered(drop("message_chunk", 2)), "reply"),
    Fault("another reply", REACT, put("run_end", "reply", "There are two."), "reply: is not"),
    Fault("a graph node not started", "got", renumbered(drop("got_node_start", 2)),
          "compare was not started"),
    Fault("a graph node starts twice", "got", renumbered(double("got_node_start")),
          "running already"),
    # Searches.
    Fault("a node of another agent", "dup", ev("run_start", "agent", "react"), "is no node of"),
    Fault("two nodes have one id", "tot_side_by_side",
          renumbered(put("node_enter", "event.node_id", "run-think_expand-2", 4)), "twice"),
    Fault("a branch does not exit", "tot_side_by_side", renumbered(drop("node_exit", 4)),
          "think_evaluate while think_expand is open"),
    Fault("an exit of another branch", "tot_side_by_side",
          ev("node_exit", "node_id", "run-think_expand-0", 3), "open node is"),
    Fault("thought in no open node", "tot_side_by_side",
          ev("thought_chunk", "node_id", "run-think_expand-2", -1), "outside a node"),
    Fault("two rounds at once", "tot", renumbered(drop("node_exit", 2)), "while think_evaluate"),
    Fault("said where it is thought", "tot", ev("thought_chunk", "type", "message_chunk"),
          "where nothing is said"),
    Fault("an expansion is lost", "tot_side_by_side", renumbered(drop("tot_expand", 3)),
          "2 for 1 candidates"),
    Fault("depth is skipped", "tot", ev("tot_expand", "depth", 3, 2), "nothing was weighed at 2"),
    Fault("a score too many", "tot", ev("tot_evaluate", "scores", [0.5, 0.5], 2),
          "2 for 1 candidates"),
    Fault("a score that is none", "tot", ev("tot_evaluate", "scores", [1.5], 2),
          "not between 0 and 1"),
    Fault("not back", "tot", ev("tot_backtrack", "to_depth", 2), "is not back from 2"),
    Fault("a backtrack that tells nothing", "tot", renumbered(drop("tot_backtrack")),
          "tells nothing"),
    Fault("expanded in a node of another name", "tot",
          both(ev("node_enter", "id", "backtrack"), ev("node_exit", "id", "backtrack")),
          "not in think_expand"),
    Fault("a plan that tells nothing", "got", renumbered(drop("got_plan")), "tells nothing"),
    Fault("two nodes of one name", "got",
          both(ev("got_plan", "node_ids", ["read", "read"])), "one name"),
    Fault("a node that was not planned", "got_side_by_side",
          ev("got_node_start", "id", "nope"), "in the node of"),
    Fault("a sub-task does not end", "got_side_by_side", renumbered(drop("got_node_complete")),
          "has not ended"),
    Fault("a sub-task that needs what failed is not told of", "got_side_by_side",
          renumbered(drop("got_node_failed", 2)), "got_node_complete: missing for diff"),
    Fault("a sub-task ends twice", "got_side_by_side", renumbered(double("got_node_complete")),
          "has ended already"),
    Fault("split though it does not run", "got", ev("got_expand", "node_id", "read"),
          "read is not running"),
    Fault("fewer inside than was said", "got", ev("got_expand", "nodes_added", 3),
          "has 3 nodes, 2 ended"),
    Fault("not the sum of the calls", "tot", renumbered(drop("usage", 2)), "sum of the calls"),
    Fault("the sum of other calls", "got_side_by_side",
          put("run_end", "total_usage.prompt_tokens", 1, 1), "total_usage"),
    Fault("arguments of another branch", "tot_side_by_side",
          ev("tool_call_chunk", "arguments_delta", "{}"), "tool_call_chunk"),
    Fault("no checkpoint", REACT, renumbered(drop("checkpoint")), "checkpoint: missing"),
    Fault("checkpoint twice", REACT, renumbered(double("checkpoint")), "checkpoint: twice"),
    Fault("checkpoint of another thread", REACT, ev("checkpoint", "thread_id", "th-2"),
          "is not th-1"),
    Fault("checkpoint without a thread", "got", renumbered(unthreaded), "without a thread"),
    Fault("checkpoint after the end", REACT, swap("checkpoint", "run_end"), "after its end"),
    Fault("checkpoint in the middle", REACT, renumbered(swap("checkpoint", "custom"),
                                                        swap("node_enter", "checkpoint", 4)),
          "checkpoint"),
    Fault("run_end twice", REACT, double("run_end"), "after its end"),
    Fault("the run fails twice", "failure", double("error"), "after its end"),
    Fault("no run_end", REACT, drop("run_end"), "unfinished run"),
    Fault("the run stops in the middle", REACT, until("tool_start"), "unfinished run"),
    Fault("run_end after the error", "failure", after("error", {"out": {
        "type": "run_end", "id": "run-0b9f4c1e-7a35-4d0b-8f5e-3c2f1d6e7a80", "reply": "x",
        "session_id": "th-1", "seq": 9, "event_id": 4}}), "after its end"),
    Fault("a node stays open at the error", "approval_and_cancel",
          renumbered(drop("node_exit", -1)), "missing for think at the error"),
    Fault("no error before the close", "failure", drop("error"), "without an error frame"),
    Fault("two runs at once", "approval_and_cancel", other_run, "one run at a time"),
    # Answers.
    Fault("pong with another id", REACT, put("pong", "id", "p-2"), "answers no request"),
    Fault("no pong", REACT, drop("pong"), "unanswered: ping"),
    Fault("pong twice", REACT, double("pong"), "answers no request"),
    Fault("tool_show with another id", "requests", put("tool_show", "id", "r9"),
          "answers no request"),
    Fault("two answers in the wrong order", "requests", swap("tool_show", "tool_show", 1, 2),
          "answers no request"),
    Fault("yaml though json was asked", "requests",
          both(cut("tool_show", "tool", 2), put("tool_show", "tool_yaml", "name: read", 2)),
          "was asked for"),
    Fault("newest first", "requests", put("user_messages", "messages.0.seq", 8), "oldest first"),
    Fault("a message not before", "requests", put("user_messages", "messages.1.seq", 9),
          "not before 9"),
    Fault("more than the limit", "requests", put("user_messages", "messages", [
        {"role": "user", "content": "x", "seq": n} for n in range(3)]), "the limit is 2"),
    Fault("more though the page is not full", "requests",
          put("user_messages", "has_more", True, 2), "not full"),
    Fault("another thread", "requests", put("user_messages", "thread_id", "u"), "thread_id"),
    Fault("no error to broken JSON", "requests", drop("error", 3), "error owed"),
    Fault("the request id is not echoed", REACT, unechoed, "was not echoed"),
    Fault("no answer at all", REACT, lambda steps: steps[:2], "unanswered"),
]
