"""Faults of unified transcripts."""

import json

from .mutate import Fault, Steps, after, at, both, cut, double, drop, put, swap, until

TOOLS = "tool_with_permission"
QUESTION = "question_and_plan"


def event(kind: str, seq: int = 9, **fields: object) -> dict[str, object]:
    frame = {"type": kind, "id": "evt-n", "session_id": "session-456", "seq": seq, **fields}
    return {"out": frame}


def raw_exponent(steps: Steps) -> Steps:
    """A number printed as only a raw frame can show it."""
    place = at(steps, "token_usage")
    raw = json.dumps(steps[place]["out"]).replace("0.035", "3.5e-2")
    steps[place] = {"out": raw}
    return steps


FAULTS = [
    # Shape.
    Fault("an event nobody knows", "simple", put("turn_started", "type", "turn"), "unknown type"),
    Fault("control_response", "simple", put("heartbeat", "type", "control_response"),
          "unknown type"),
    Fault("no id", "simple", cut("turn_started", "id"), "id: is missing"),
    Fault("an id of another form", "simple", put("turn_started", "id", "7"), "evt-"),
    Fault("an id twice", "simple", put("turn_started", "id", "evt-123"), "id twice"),
    Fault("no session_id on an error", "failures", cut("error", "session_id"), "session_id"),
    Fault("session_id is null", "simple", put("turn_started", "session_id", None), "session_id"),
    Fault("no seq", "simple", cut("turn_started", "seq"), "seq: is missing"),
    Fault("seq is negative", "simple", put("session_init", "seq", -1), "seq: -1"),
    Fault("seq goes back", "simple", put("turn_completed", "seq", 1), "seq goes back"),
    Fault("cursor is a number", "simple", put("assistant_message", "cursor", 3), "cursor"),
    Fault("no model", "simple", cut("session_init", "model"), "model: is missing"),
    Fault("no permission_mode", "simple", cut("session_init", "permission_mode"),
          "permission_mode"),
    Fault("an unknown status", "simple", put("session_info", "status", "idle"), "status"),
    Fault("is_final is text", "simple", put("assistant_message", "is_final", "no"), "is_final"),
    Fault("text is null", "simple", put("assistant_reasoning", "text", None), "text: null"),
    Fault("total is not the sum", "simple", put("turn_completed", "usage.total_tokens", 1),
          "input + output"),
    Fault("more cached than input", "simple",
          put("turn_completed", "usage.cached_tokens", 1001), "cached_tokens"),
    Fault("tokens are text", "simple", put("turn_completed", "usage.input_tokens", "1000"),
          "input_tokens"),
    Fault("a percentage", "simple", put("token_usage", "usage_percent", 3.5), "fraction"),
    Fault("an exponent", "simple", raw_exponent, "plain decimal"),
    Fault("both result and error", TOOLS, put("tool_completed", "error", "x"), "exactly one"),
    Fault("neither result nor error", TOOLS, put("tool_completed", "result", None), "exactly one"),
    Fault("error is missing", TOOLS, cut("tool_completed", "error"), "error: is missing"),
    Fault("success disagrees", TOOLS, put("tool_completed", "success", False), "does not agree"),
    Fault("an unknown risk", TOOLS, put("control_request", "context.risk_level", "huge"),
          "risk_level"),
    Fault("an unknown operation", TOOLS, put("file_changed", "operation", "move"), "operation"),
    Fault("an exit code while streaming", TOOLS, put("command_output", "exit_code", 0),
          "exit_code"),
    Fault("no tool_id on output", TOOLS, cut("command_output", "tool_id"), "tool_id: is missing"),
    Fault("arguments are a list", TOOLS, put("tool_started", "arguments", []), "arguments"),
    Fault("no questions", QUESTION, put("ask_user_question", "questions", []), "at least 1"),
    Fault("multiSelect is missing", QUESTION,
          cut("ask_user_question", "questions.0.multiSelect"), "multiSelect"),
    Fault("two ids for one question", QUESTION, put("ask_user_question", "request_id", "r"),
          "differ"),
    Fault("no plan file", QUESTION, cut("exit_plan_mode", "plan_file_path"), "plan_file_path"),
    Fault("time in milliseconds", "simple", put("heartbeat", "timestamp", 1706169600000),
          "Unix seconds"),
    Fault("compacted to more", "compaction", put("context_compaction", "tokens_after", 184001),
          "more than before"),
    # Turns.
    Fault("no turn_started", "simple", drop("turn_started"), "outside a turn"),
    Fault("turn_started twice", "simple", double("turn_started", id="evt-n"), "is running"),
    Fault("no turn_completed", "simple", drop("turn_completed"), "is running"),
    Fault("no turn_completed at last", "simple", drop("turn_completed", -1), "unfinished turn"),
    Fault("turn_completed twice", "simple", double("turn_completed", id="evt-n"), "or twice"),
    Fault("completed and failed", "simple",
          after("turn_completed", event("turn_failed", 8, error="x")), "or twice"),
    Fault("text after the turn", "simple", swap("assistant_message", "turn_completed", -1, -1),
          "outside a turn"),
    Fault("reasoning before the turn", "simple", swap("turn_started", "assistant_reasoning"),
          "outside a turn"),
    Fault("the turn does not end", "simple", until("assistant_reasoning"), "unfinished turn"),
    Fault("active after the turn began", "simple", swap("session_info", "turn_started"),
          "before the session was said"),
    Fault("no session_init", "simple", drop("session_init"), "session_init"),
    Fault("no session_info", "simple", drop("session_info"), "session_info"),
    Fault("never active", "simple", until("session_init"), "active is missing"),
    Fault("no completed", "simple", drop("session_info", -1), "completed is missing"),
    Fault("not paused", "interrupt", drop("session_info", 2), "paused is missing"),
    Fault("not paused at last", "interrupt", drop("session_info", -1), "paused is missing"),
    Fault("interrupted without reason", "interrupt", put("turn_failed", "error", "Interrupted"),
          "Interrupted: <reason>"),
    # Items.
    Fault("no final", "simple", drop("assistant_message", 3), "is_final"),
    Fault("the final repeats the text", "simple", put("assistant_message", "text", "Let", 3),
          "is_final"),
    Fault("no tool_started", TOOLS, drop("tool_started"), "was not started"),
    Fault("tool_started twice", TOOLS, double("tool_started", id="evt-n"), "twice"),
    Fault("no tool_completed", TOOLS, drop("tool_completed"), "missing for tool-789"),
    Fault("tool_completed twice", TOOLS, double("tool_completed", id="evt-n"), "twice"),
    Fault("another tool_id", TOOLS, put("tool_completed", "tool_id", "tool-x"),
          "was not started"),
    Fault("the interrupted tool stays open", "interrupt", drop("tool_completed"),
          "missing for t1"),
    Fault("the question before the tool", TOOLS, swap("tool_started", "control_request"),
          "was not started"),
    Fault("the question after the tool", TOOLS, swap("tool_completed", "control_request", 2, 3),
          "after tool_completed"),
    Fault("output after the tool", TOOLS, swap("command_output", "tool_completed", 3),
          "after tool_completed"),
    Fault("output before the tool", TOOLS, swap("tool_started", "command_output"),
          "was not started"),
    Fault("output after the last", TOOLS, swap("command_output", "command_output", 2, 3),
          "after the last one"),
    Fault("no last output", TOOLS, drop("command_output", 3), "the last one of tool-789"),
    Fault("a question is a tool too", QUESTION,
          after("ask_user_question", event("tool_completed", 6, tool_id="tool-890", success=True,
                                           result="A", error=None)), "own event"),
    Fault("a question starts a tool too", QUESTION,
          after("ask_user_question", event("tool_started", 6, tool_id="tool-890",
                                           tool_name="AskUserQuestion", arguments={})),
          "own event"),
    Fault("a plan is a tool too", QUESTION,
          after("assistant_reasoning", event("tool_started", 4, tool_id="tool-891",
                                             tool_name="ExitPlanMode", arguments={})),
          "own event"),
    Fault("one request for two calls", TOOLS, put("control_request", "request_id", "req-001", 2),
          "asked about"),
    Fault("settled twice", TOOLS, double("approval_settled", id="evt-n"), "req-001 twice"),
    Fault("settled what was not asked", TOOLS, put("approval_settled", "request_id", "req-x"),
          "never asked"),
    # Answers.
    Fault("no error to broken JSON", "failures", both(drop("error"), drop("error")), "error owed"),
    Fault("something after a fatal error", "failures", put("error", "is_fatal", True),
          "fatal error"),
    Fault("no answer at all", "failures", lambda steps: steps[:2], "unanswered"),
    Fault("opened twice", "simple", after("turn_started", {"open": {"path": "/"}}), "once, first"),
    Fault("a step of no kind", "simple", after("turn_started", {"sent": {}}), "one of open"),
    Fault("something after the close", "simple",
          lambda steps: [*steps, steps[2]], "follows the close"),
]
