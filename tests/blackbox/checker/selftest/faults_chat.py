"""Faults of chat transcripts."""

from .mutate import Fault, after, cut, double, drop, put, swap, until

TALK = "conversation"

FAULTS = [
    # Shape.
    Fault("a message nobody knows", TALK, put("agent_message", "type", "agent"), "unknown type"),
    Fault("message is missing", TALK, cut("agent_message", "message"), "message: is missing"),
    Fault("message is null", TALK, put("agent_message", "message", None), "message: null"),
    Fault("reasoning is a list", TALK, put("agent_thinking", "reasoning", []), "reasoning"),
    Fault("not trimmed", TALK, put("user_message", "message", " weather? ", 2), "trimmed"),
    Fault("tool_args is an object", TALK, put("tool_call", "tool_args", {}), "tool_args"),
    Fault("tool_args is no JSON", TALK, put("tool_call", "tool_args", "query=x"), "not JSON"),
    Fault("result is an object", TALK, put("tool_result", "result", {}), "result"),
    Fault("success is text", TALK, put("tool_result", "success", "yes"), "success"),
    Fault("no tool_name", TALK, cut("tool_result", "tool_name"), "tool_name: is missing"),
    Fault("an empty error", "failures", put("error", "error", ""), "error.error"),
    Fault("no session_id", TALK, cut("agent_message", "session_id"), "session_id: is missing"),
    Fault("no seq", TALK, cut("agent_message", "seq"), "seq: is missing"),
    Fault("seq goes back", TALK, put("agent_message", "seq", 1, -1), "seq goes back"),
    # Order.
    Fault("no echo", TALK, drop("user_message"), "user_message"),
    Fault("another echo", TALK, put("user_message", "message", "Hello"), "user_message"),
    Fault("the answer before the echo", TALK, swap("user_message", "agent_message"), "order"),
    Fault("thinking before the echo", TALK, swap("user_message", "agent_thinking", 2), "order"),
    Fault("no answer", TALK, drop("agent_message", -1), "not answered"),
    Fault("two answers", TALK, double("agent_message", -1), "order"),
    Fault("an answer and an error", TALK,
          after("agent_message", {"out": {"type": "error", "error": "boom", "session_id": "s",
                                          "seq": 2}}), "order"),
    Fault("an error and an answer", "failures",
          after("error", {"out": {"type": "agent_message", "message": "x", "session_id": "s",
                                  "seq": 4}}), "order"),
    Fault("thinking after the answer", TALK, swap("agent_thinking", "agent_message", 1, -1),
          "order"),
    Fault("the chat stops in the middle", TALK, until("agent_thinking"), "not answered"),
    Fault("no tool_result", TALK, drop("tool_result"), "missing for Search"),
    Fault("one result for two calls", TALK, drop("tool_result", 3), "missing for bash"),
    Fault("tool_result twice", TALK, double("tool_result"), "without its tool_call"),
    Fault("the result before the call", TALK, swap("tool_call", "tool_result"),
          "without its tool_call"),
    Fault("the result of another tool", TALK, put("tool_result", "tool_name", "Find"),
          "without its tool_call"),
    Fault("the call is not closed by an error", "failures", drop("tool_result"),
          "before error"),
    # Answers.
    Fault("no error to broken JSON", "refusals", drop("error", 3), "error owed"),
    Fault("another text for an empty message", "refusals",
          put("error", "error", "Empty message"), "error text"),
    Fault("another text for an unknown type", "refusals",
          put("error", "error", "Unknown message type", 2), "error text"),
    Fault("another text for broken JSON", "refusals", put("error", "error", "Bad JSON", 3),
          "error text"),
    Fault("another text for no text", "refusals",
          put("error", "error", "message must be a string", 4), "error text"),
    Fault("no answer at all", TALK, lambda steps: steps[:2], "user_message"),
]
