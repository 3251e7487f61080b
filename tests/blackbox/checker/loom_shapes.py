"""The messages of the Loom dialect, and the events inside `run_stream_event`."""

import json
from collections.abc import Iterator
from typing import Any

from .shapes import (
    Shape, anobject, anything, count, either, flag, list_of, matching, nullable, number, obj,
    one_of, positive, text, words,
)

STATE_BYTES_MAX = 64 * 1024
HEX = "[0-9a-fA-F]"

run_id = matching(
    rf"run-{HEX}{{8}}-?{HEX}{{4}}-?{HEX}{{4}}-?{HEX}{{4}}-?{HEX}{{12}}", "a run id run-<uuid>"
)


def sums(value: Any, path: str) -> Iterator[str]:
    total = value["prompt_tokens"] + value["completion_tokens"]
    if value["total_tokens"] != total:
        yield f"{path}.total_tokens: {value['total_tokens']} is not prompt + completion, {total}"


def chosen(value: Any, path: str) -> Iterator[str]:
    if value["chosen"] >= len(value["scores"]):
        yield f"{path}.chosen: {value['chosen']} is none of {len(value['scores'])} candidates"


def counted(value: Any, path: str) -> Iterator[str]:
    if value["node_count"] != len(value["node_ids"]):
        yield f"{path}.node_count: {value['node_count']} for {len(value['node_ids'])} node_ids"


def small(value: Any, path: str) -> Iterator[str]:
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    size = len(written.encode("utf-8", "replace"))
    if size >= STATE_BYTES_MAX:
        yield f"{path}: {size} bytes, must stay under {STATE_BYTES_MAX}"


def one_definition(value: Any, path: str) -> Iterator[str]:
    if ("tool" in value) == ("tool_yaml" in value):
        yield f"{path}: exactly one of tool and tool_yaml is present"


def ascending(value: Any, path: str) -> Iterator[str]:
    numbers = [message["seq"] for message in value]
    if any(later <= sooner for sooner, later in zip(numbers, numbers[1:])):
        yield f"{path}: messages are not oldest first"


def messages(value: Any, path: str) -> Iterator[str]:
    wrong = list(list_of(stored)(value, path))
    yield from wrong or ascending(value, path)


stored = obj(
    {"role": one_of("system", "user", "assistant"), "content": text, "seq": count}
)
tokens = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": count}
usage = obj(tokens, None, sums)
failed = obj({"Err": text})
call: dict[str, Shape] = {"name": words}
call_id: dict[str, Shape] = {"call_id": nullable(words)}


def event(
    needed: dict[str, Shape] | None = None, optional: dict[str, Shape] | None = None, *also: Shape
) -> Shape:
    envelope = {"session_id": words, "node_id": words, "event_id": positive}
    return obj({**envelope, **(needed or {})}, optional, *also)


# Arguments that are no JSON object are shown as the string they are.
arguments = either(text, anobject)

EVENTS: dict[str, Shape] = {
    "run_start": event(None, {
        "run_id": nullable(run_id),
        "message": nullable(text),
        "agent": nullable(one_of("react", "dup", "tot", "got")),
    }),
    "node_enter": event({"id": words}, {"got_node": words}),
    "node_exit": event({"id": words, "result": either(one_of("Ok"), failed)}),
    "message_chunk": event({"content": words, "id": words}),
    "thought_chunk": event({"content": words}),
    "usage": event(tokens, None, sums),
    "values": event({"state": anobject}, None, small),
    "updates": event({"id": words, "state": anobject}, None, small),
    "custom": event({"value": anything}),
    "checkpoint": event(
        {
            "checkpoint_id": words,
            "timestamp": either(number, words),
            "step": count,
            "state": anything,
            "thread_id": words,
        },
        {"checkpoint_ns": nullable(text)},
    ),
    "tot_expand": event({"candidates": list_of(words, least=1)}, {"depth": positive}),
    "tot_evaluate": event(
        {"chosen": count, "scores": list_of(number, least=1)}, {"depth": positive}, chosen
    ),
    "tot_backtrack": event({"reason": text, "to_depth": count}),
    "got_plan": event(
        {"node_count": count, "edge_count": count, "node_ids": list_of(words)}, None, counted
    ),
    "got_node_start": event({"id": words}),
    "got_node_complete": event({"id": words, "result_summary": words}),
    "got_node_failed": event({"id": words, "error": text}),
    "got_expand": event({"nodes_added": count, "edges_added": count}),
    "tool_call_chunk": event(
        {"arguments_delta": text}, {**call_id, "name": nullable(text)}
    ),
    "tool_call": event({**call, "arguments": arguments}, call_id),
    "tool_start": event(call, call_id),
    "tool_output": event({**call, "content": text}, call_id),
    "tool_end": event({**call, "result": text, "is_error": flag}, call_id),
    "tool_approval": event({**call, "arguments": arguments}, call_id),
}


def stream_event(value: Any, path: str) -> Iterator[str]:
    yield from obj({"type": one_of(*EVENTS)})(value, path)
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in EVENTS:
        yield from EVENTS[kind](value, f"{path}({kind})")


def grows(value: Any, path: str) -> Iterator[str]:
    last, whole = value.get("usage"), value.get("total_usage")
    if last and whole and any(last[name] > whole[name] for name in tokens):
        yield f"{path}.total_usage: less than the usage of one call"


tool_spec = obj({"name": words, "input_schema": anobject}, {"description": nullable(text)})

MESSAGES: dict[str, Shape] = {
    "run_stream_event": obj({"id": run_id, "event": stream_event}),
    "run_end": obj(
        {"id": run_id, "reply": text, "event_id": positive},
        {
            "usage": nullable(usage),
            "total_usage": nullable(usage),
            "session_id": words,
            "node_id": words,
        },
        grows,
    ),
    "tools_list": obj({"id": text, "tools": list_of(tool_spec)}),
    "tool_show": obj({"id": text}, {"tool": anobject, "tool_yaml": words}, one_definition),
    "user_messages": obj(
        {"id": text, "thread_id": words, "messages": messages}, {"has_more": flag}
    ),
    "pong": obj({"id": text}),
    "error": obj({"error": words}, {"id": nullable(text)}),
}
