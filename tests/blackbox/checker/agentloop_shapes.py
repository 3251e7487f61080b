"""The messages of the agentloop dialect."""

from collections.abc import Iterator
from typing import Any

from .shapes import (
    Shape, amount, count, flag, integer, json_text, list_of, nullable, number, obj,
    one_of, positive, rule, text, words,
)

PERCENT_OFF_MAX = 0.51

strategy = one_of("ThresholdContextManager", "DummyContextManager")
parts = list_of(obj({"type": one_of("input_text"), "text": text}))
output = json_text(
    obj({
        "output": text,
        "metadata": obj({"exit_code": integer, "duration_seconds": amount}),
    })
)

ITEMS: dict[str, Shape] = {
    "message": obj({"id": words, "role": one_of("assistant", "system", "user"), "content": parts}),
    "reasoning": obj({"id": words, "content": parts}, {"duration_ms": amount}),
    "function_call": obj({"id": words, "call_id": words, "name": words, "arguments": text}),
    "function_call_output": obj({"id": words, "call_id": words, "output": output}),
    "local_shell_call": obj(
        {"id": words, "action": obj({"command": list_of(text)}), "status": words},
        {"call_id": words},
    ),
    "local_shell_call_output": obj({"id": words, "output": output}, {"call_id": words}),
}


def item(value: Any, path: str) -> Iterator[str]:
    yield from obj({"type": one_of(*ITEMS)})(value, path)
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind in ITEMS:
        yield from ITEMS[kind](value, path)


def approval(value: Any, path: str) -> Iterator[str]:
    """An edit is shown as a patch, in both places."""
    command, patch = value["command"], value.get("applyPatch")
    if patch is not None and (command[0] != "apply_patch" or len(command) != 2):
        yield f"{path}.command: with applyPatch it is [\"apply_patch\", patch]"
    is_patch = command[0] == "apply_patch" and command[-1].startswith("*** Begin Patch")
    if is_patch and patch is None:
        yield f"{path}.applyPatch: is missing for a patch"


def percent_of_window(value: Any, path: str) -> Iterator[str]:
    percent = min(100.0, 100.0 * value["tokenCount"] / value["maxTokens"])
    if abs(percent - min(100.0, value["usagePercent"])) > PERCENT_OFF_MAX:
        yield f"{path}.usagePercent: {value['usagePercent']} is not about {percent:.1f}"


def reduction(value: Any, path: str) -> Iterator[str]:
    old, new = value["oldTokenCount"], value["newTokenCount"]
    if new > old:
        yield f"{path}.newTokenCount: compacted from {old} to more, {new}"
    elif old and abs(100.0 * (old - new) / old - value["reductionPercent"]) > PERCENT_OFF_MAX:
        yield f"{path}.reductionPercent: {value['reductionPercent']} for {old} to {new}"


def message(payload: Shape) -> Shape:
    return obj({"id": words, "payload": payload})


useful: Shape = rule(lambda value: value not in (None, {}, [], ""), "something useful")

MESSAGES: dict[str, Shape] = {
    "response_item": message(item),
    "loading_state": message(obj({"loading": flag})),
    "approval_request": message(
        obj(
            {"command": list_of(text, least=1)},
            {"applyPatch": nullable(obj({"patch": words}))},
            approval,
        )
    ),
    "agent_finished": message(obj({"responseId": words})),
    "context_info": message(
        obj(
            {
                "tokenCount": count,
                "usagePercent": amount,
                "transcriptLength": count,
                "maxTokens": positive,
                "strategy": strategy,
            },
            None,
            percent_of_window,
        )
    ),
    "context_compacted": message(
        obj(
            {
                "oldTokenCount": count,
                "newTokenCount": count,
                "reductionPercent": number,
                "strategy": strategy,
            },
            None,
            reduction,
        )
    ),
    "error": message(obj({"message": words, "details": useful})),
}
