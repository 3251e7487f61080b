"""The messages of the unified dialect: those of seed 001 and the additions of decisions.md."""

from collections.abc import Iterator
from typing import Any

from .shapes import (
    Shape, amount, anobject, anything, count, either, flag, integer, list_of, matching, nullable,
    number, obj, one_of, positive, rule, text, words,
)

# A fraction may be rounded to three places.
FRACTION_OFF_MAX = 0.00051

event_id = matching(r"evt-.+", "an event id evt-...")
unix_seconds: Shape = rule(
    lambda value: isinstance(value, int) and 10**9 < value < 10**11, "a time in Unix seconds"
)


def sums(value: Any, path: str) -> Iterator[str]:
    total = value["input_tokens"] + value["output_tokens"]
    if value["total_tokens"] != total:
        yield f"{path}.total_tokens: {value['total_tokens']} is not input + output, {total}"
    if value["cached_tokens"] > value["input_tokens"]:
        yield f"{path}.cached_tokens: more than input_tokens"


def fraction(value: Any, path: str) -> Iterator[str]:
    want = value["usage"]["total_tokens"] / value["context_window"]
    if abs(value["usage_percent"] - want) > FRACTION_OFF_MAX:
        yield f"{path}.usage_percent: {value['usage_percent']} is not the fraction {want:.6f}"


def outcome(value: Any, path: str) -> Iterator[str]:
    if (value["result"] is None) == (value["error"] is None):
        yield f"{path}: exactly one of result and error is not null"
    elif value["success"] != (value["error"] is None):
        yield f"{path}.success: {value['success']} does not agree with result and error"


def command_end(value: Any, path: str) -> Iterator[str]:
    if value["is_streaming"] and value["exit_code"] is not None:
        yield f"{path}.exit_code: not null though more output may come"


def smaller(value: Any, path: str) -> Iterator[str]:
    if value["tokens_after"] > value["tokens_before"]:
        yield f"{path}.tokens_after: more than before"


def one_id(value: Any, path: str) -> Iterator[str]:
    if value["tool_id"] != value["request_id"]:
        yield f"{path}: tool_id and request_id differ"


usage = obj(
    {
        "input_tokens": count,
        "output_tokens": count,
        "cached_tokens": count,
        "total_tokens": count,
    },
    {"cost_usd": nullable(amount)},
    sums,
)
question = obj({
    "header": text,
    "question": words,
    "options": list_of(obj({"label": words}, {"description": text})),
    "multiSelect": flag,
})


todo = obj(
    {"content": words, "status": one_of("pending", "in_progress", "completed", "cancelled")},
    {"priority": one_of("high", "medium", "low")},
)


def event(
    needed: dict[str, Shape] | None = None, optional: dict[str, Shape] | None = None, *also: Shape
) -> Shape:
    return obj({"id": event_id, "session_id": text, **(needed or {})}, optional, *also)


SEED: dict[str, Shape] = {
    "session_init": event({
        "model": words,
        "success": flag,
        "cwd": text,
        "tools": list_of(anything),
        "permission_mode": words,
    }),
    "session_info": event({"status": one_of("active", "paused", "completed", "error")}),
    "turn_started": event(),
    "turn_completed": event({"usage": usage}),
    "turn_failed": event({"error": words}),
    "assistant_message": event({"text": text, "is_final": flag}),
    "assistant_reasoning": event({"text": text}),
    "tool_started": event({
        "tool_name": words,
        "tool_id": words,
        # Arguments that are no JSON cannot be shown as an object.
        "arguments": either(text, anobject),
    }),
    "tool_completed": event(
        {"tool_id": words, "success": flag, "result": nullable(text), "error": nullable(text)},
        None,
        outcome,
    ),
    "control_request": event({
        "request_id": words,
        "tool_name": words,
        "tool_use_id": words,
        "input": anobject,
        "context": obj({"description": text, "risk_level": one_of("low", "medium", "high")}),
    }),
    "file_changed": event({"path": words, "operation": one_of("create", "update", "delete")}),
    "command_output": event(
        {
            "command": text,
            "output": text,
            "exit_code": nullable(integer),
            "is_streaming": flag,
            "tool_id": words,
        },
        None,
        command_end,
    ),
    "token_usage": event(
        {"usage": usage, "context_window": positive, "usage_percent": number}, None, fraction
    ),
    "context_compaction": event(
        {"reason": text, "tokens_before": count, "tokens_after": count}, None, smaller
    ),
    "ask_user_question": event(
        {"tool_id": words, "request_id": words, "questions": list_of(question, least=1)},
        None,
        one_id,
    ),
    "exit_plan_mode": event(
        {"tool_id": words, "request_id": words, "plan_file_path": text}, None, one_id
    ),
    "error": event({"message": words, "is_fatal": flag}),
    "heartbeat": event({"timestamp": unix_seconds}),
}

ADDITIONS: dict[str, Shape] = {
    "context_info": event(),
    "todos_changed": event({"todos": list_of(todo)}),
    "message_queued": event({"message_id": words, "message": text, "by": words},
                            {"client_ref": text}),
    "message_dropped": event({"message_id": words, "by": words}, {"client_ref": text}),
    "notice": event(),
    "session_renamed": event(),
    "approval_settled": event(
        {"request_id": words, "decision": words, "by": nullable(text)}
    ),
    "raw": event(),
}

MESSAGES = {**SEED, **ADDITIONS}
