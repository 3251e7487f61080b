"""Reads a list of messages as a client's user would see it."""

import json


def is_idle(frame):
    return frame["type"] == "loading_state" and not frame["payload"]["loading"]


def item_text(item):
    return "".join(part["text"] for part in item["content"])


def kinds(frames):
    """One word a message; the pieces of one streamed item count once."""
    words, last = [], None
    for frame in frames:
        item = frame["payload"] if frame["type"] == "response_item" else None
        if frame["type"] == "loading_state":
            word = "loading" if frame["payload"]["loading"] else "idle"
        elif item and item["type"] == "message":
            word = item["role"]
        else:
            word = item["type"] if item else frame["type"]
        streamed = item["id"] if word == "assistant" else None
        if streamed is None or streamed != last:
            words.append(word)
        last = streamed
    return words


def texts(frames):
    """The assistant's texts by item id, assembled from their pieces."""
    found = {}
    for frame in frames:
        item = frame["payload"]
        if frame["type"] == "response_item" and item.get("role") == "assistant":
            found.setdefault(item["id"], []).append(item_text(item))
    return {item: "".join(pieces) for item, pieces in found.items()}


def said(frames):
    return list(texts(frames).values())


def items(frames, kind):
    found = (f["payload"] for f in frames if f["type"] == "response_item")
    return [item for item in found if item["type"] == kind]


def outputs(frames):
    return [json.loads(item["output"]) for item in items(frames, "function_call_output")]
