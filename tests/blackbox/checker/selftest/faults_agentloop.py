"""Faults of agentloop transcripts."""

import json
from typing import Any

from .mutate import Fault, Steps, after, at, cut, double, drop, put, swap, until

OUTPUT = "payload.output"


def output(**metadata: Any) -> str:
    return json.dumps({"output": "x", "metadata": metadata})


def call_first(steps: Steps) -> Steps:
    """The call is shown, then it is asked about."""
    call = steps.pop(at(steps, "function_call"))
    steps.insert(at(steps, "approval_request"), call)
    call["out"]["seq"] = steps[at(steps, "loading_true")]["out"]["seq"]
    return steps


FAULTS = [
    # Shape.
    Fault("no type", "query", cut("loading_true", "type"), "with a type"),
    Fault("a type nobody knows", "query", put("reasoning", "type", "hello"), "unknown type"),
    Fault("an id that is a number", "query", put("loading_true", "id", 7), "loading_state.id"),
    Fault("no payload", "query", cut("agent_finished", "payload"), "payload: is missing"),
    Fault("loading is text", "query", put("loading_true", "payload.loading", "true"), "boolean"),
    Fault("no session_id", "query", cut("agent_finished", "session_id"), "session_id: is missing"),
    Fault("no seq", "query", cut("agent_finished", "seq"), "seq: is missing"),
    Fault("seq is text", "query", put("agent_finished", "seq", "9"), "seq: \"9\""),
    Fault("seq goes back", "query", put("agent_finished", "seq", 1), "seq goes back"),
    Fault("an empty cursor", "query", put("message", "cursor", ""), "cursor"),
    Fault("an unknown role", "query", put("message", "payload.role", "agent"), "role"),
    Fault("output_text to the client", "query",
          put("message", "payload.content.0.type", "output_text"), "input_text"),
    Fault("content is text", "query", put("message", "payload.content", "hi"), "not a list"),
    Fault("output is plain text", "query", put("function_call_output", OUTPUT, "ok"), "not JSON"),
    Fault("output has no exit code", "query",
          put("function_call_output", OUTPUT, output(duration_seconds=1)), "exit_code: is missing"),
    Fault("exit code is null", "query",
          put("function_call_output", OUTPUT, output(exit_code=None, duration_seconds=1)),
          "exit_code: null"),
    Fault("duration is text", "query",
          put("function_call_output", OUTPUT, output(exit_code=0, duration_seconds="1")),
          "duration_seconds"),
    Fault("arguments are an object", "query",
          put("function_call", "payload.arguments", {}), "arguments"),
    Fault("an item of unknown type", "query", put("reasoning", "payload.type", "x"), "one of"),
    Fault("a shell call without action", "query",
          cut("local_shell_call", "payload.action"), "action: is missing"),
    Fault("an empty command", "approval",
          put("approval_request", "payload.command", []), "at least 1"),
    Fault("a patch without applyPatch", "approval",
          cut("approval_request", "payload.applyPatch", 2), "applyPatch: is missing"),
    Fault("applyPatch with another command", "approval",
          put("approval_request", "payload.command", ["vi", "x"], 2), "with applyPatch"),
    Fault("details are null", "failure", put("error", "payload.details", None), "details"),
    Fault("details are empty", "failure", put("error", "payload.details", {}), "details"),
    Fault("no details", "failure", cut("error", "payload.details"), "details: is missing"),
    Fault("an unknown strategy", "compaction",
          put("context_info", "payload.strategy", "Best"), "strategy"),
    Fault("usagePercent is a fraction", "compaction",
          put("context_info", "payload.usagePercent", 0.097), "usagePercent"),
    Fault("compacted to more", "compaction",
          put("context_compacted", "payload.newTokenCount", 98235), "to more"),
    Fault("a wrong reduction", "compaction",
          put("context_compacted", "payload.reductionPercent", 12.7), "reductionPercent"),
    Fault("a message id twice", "query", double("agent_finished"), "id twice"),
    # Order.
    Fault("a turn without its beginning", "query", drop("loading_true"), "outside a turn"),
    Fault("true twice", "query", double("loading_true", id="n"), "true twice"),
    Fault("false twice", "query", double("loading_false", id="n"), "false outside a turn"),
    Fault("no false", "query", drop("loading_false"), "before loading_state false"),
    Fault("false missing in the last turn", "query", drop("loading_false", -1), "agent_finished"),
    Fault("no agent_finished", "query", drop("agent_finished"), "missing after the turn before"),
    Fault("no agent_finished at last", "query", drop("agent_finished", -1), "missing at the end"),
    Fault("agent_finished twice", "query", double("agent_finished", id="n"), "or twice"),
    Fault("finished before false", "query", swap("loading_false", "agent_finished"),
          "before loading_state false"),
    Fault("finished after a failure", "failure",
          after("loading_false", {"out": {
              "id": "n", "type": "agent_finished", "payload": {"responseId": "r"},
              "session_id": "a1b2", "seq": 2}}), "after a turn that failed"),
    Fault("a failure without its error", "failure", drop("error"), "agent_finished"),
    Fault("an item after the turn", "query", swap("message", "agent_finished", 5, 1),
          "outside a turn"),
    Fault("the turn does not end", "query", until("message", -1), "unfinished turn"),
    Fault("no call before its output", "query", drop("function_call"), "was not shown"),
    Fault("output before its call", "query", swap("function_call", "function_call_output"),
          "was not shown"),
    Fault("a call without output", "query", drop("function_call_output"), "missing for call"),
    Fault("a shell call without output", "query", drop("local_shell_call_output"),
          "missing for call sh1"),
    Fault("another call_id", "query",
          put("function_call_output", "payload.call_id", "call_x"), "was not shown"),
    Fault("a call twice", "query", double("function_call", id="n"), "twice"),
    Fault("an output twice", "query", double("function_call_output", id="n"), "second output"),
    Fault("a delta in a later turn", "query",
          put("message", "payload.id", "resp_abc123", -1), "earlier turn"),
    Fault("one id for two kinds", "query", put("reasoning", "payload.id", "resp_abc123"),
          "item id"),
    Fault("the call before the question", "approval", call_first, "approval_request after"),
    Fault("two approvals at once", "approval",
          double("approval_request", id="ap9"), "one approval at a time"),
    Fault("an approval outside a turn", "approval", drop("loading_true"), "approval outside"),
    # Answers.
    Fault("no error to broken JSON", "undecided_first", drop("error"), "error owed"),
    Fault("another text to an answer to nothing", "refusals",
          put("error", "payload.message", "What?", -1), "No pending approval request"),
    Fault("no answer at all", "query", lambda steps: steps[:2], "unanswered"),
    Fault("no context after compacting", "compaction", drop("context_info", -1), "context_info"),
    Fault("another dialect's message in the middle", "undecided_first",
          after("loading_true", {"out": {"type": "agent_message", "message": "x"}}),
          "unknown type"),
]
