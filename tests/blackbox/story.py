"""What frames of the unified dialect tell, whatever pieces they came in and over however many
connections: whoever followed a session is told the same story as whoever replays it.
"""

import json

from talk import ASKS

# What people do beside the turn.
OF_OTHERS = ("message_queued", "message_dropped", "session_info", "notice")


def story(frames):
    """What frames tell: streams as wholes where they end, what is told again only once. Reasoning
    ends with what the turn does next, whatever others do meanwhile."""
    told, streams, before, thought = [], {}, set(), ""
    for frame in frames:
        kind = frame["type"]
        if kind == "assistant_reasoning":
            thought += frame["text"]
            continue
        if kind in ("assistant_message", "command_output"):
            stream = frame.get("tool_id")
            text = streams.pop(stream, "") + frame.get("text", frame.get("output"))
            if not frame.get("is_final") and frame.get("is_streaming") is not False:
                streams[stream] = text
                continue
        if thought and kind not in OF_OTHERS:
            told.append(("assistant_reasoning", thought))
            thought = ""
        if kind in ("assistant_message", "command_output"):
            told.append((kind, text, frame.get("exit_code")))
        else:
            said = {k: v for k, v in frame.items() if k not in ("id", "seq", "cursor")}
            key = json.dumps(said, sort_keys=True)
            if kind not in (*ASKS, "message_queued") or key not in before:
                told.append((kind, said))
            before.add(key)
    return told
