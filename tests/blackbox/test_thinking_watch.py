"""Every way to think in unified, agentloop and chat: whoever comes in the middle or comes back sees
everything once, no two texts are mixed, and what is told on the way is for people."""

import json

from harness import eq
from strategies import AGENTS, world
from talk import talks
from test_thinking_stops import ANSWERS, MIDDLE
from thinking import MESSAGE, Case

# What a message is, apart from its place.
PLACE = ("seq", "cursor")


def plain(frames):
    return [{key: frame[key] for key in frame if key not in PLACE} for frame in frames]


def unified(frames):
    """Texts by item, and all else in its order; increments are named by item and place."""
    texts, others = {}, []
    for frame in plain(frames):
        text = frame.get("text", frame.get("output"))
        item = frame["id"].removeprefix("evt-").partition("-")[0]
        if frame["type"] == "assistant_message":
            # What was not streamed comes whole, with its end.
            texts["said"] = texts.get("said", "") + text
            others += [{**frame, "text": ""}] if frame["is_final"] else []
        elif text is not None and not item.isdigit():
            item = item.replace("o", "t").partition("t")[0]
            texts[item] = texts.get(item, "") + text
        else:
            others.append(frame)
    return texts, others


def agentloop(frames):
    texts, others = {}, []
    for frame in plain(frames):
        item = frame.get("payload", {})
        if item.get("role") == "assistant":
            texts[item["id"]] = texts.get(item["id"], "") + item["content"][0]["text"]
        else:
            others.append(frame)
    return texts, others


def turn_of(frames, begins):
    """From the beginning of the last turn on."""
    at = [place for place, frame in enumerate(frames) if begins(frame)]
    return frames[at[-1]:]


def begins_unified(frame):
    return frame["type"] == "turn_started"


def begins_agentloop(frame):
    return frame.get("payload", {}).get("loading") is True


@talks
def test_whoever_comes_in_the_middle_sees_it_once(s):
    for name in AGENTS:
        case = Case(s, name)
        held = case.model.hold(*MIDDLE[name], pieces=1)
        case.client.say(MESSAGE)
        held.reached()
        late = s.watcher(case.session, since=0, complete=False)
        other = s.agentloop(case.session, since=0, complete=False)
        held.release()
        whole = case.client.until_end()
        eq(unified(turn_of(late.until_end(), begins_unified)),
           unified(turn_of(whole, begins_unified)), f"{name}: unified")
        seen = case.watcher.until_end()
        eq(agentloop(turn_of(other.until_end(), begins_agentloop)),
           agentloop(turn_of(seen, begins_agentloop)), f"{name}: agentloop")
        case.server.kill()
        (s.work / "ran").unlink(missing_ok=True)


@talks
def test_from_every_cursor_the_rest_comes_once(s):
    for name in AGENTS:
        case = Case(s, name)
        case.turn()
        whole = turn_of(case.frames, begins_unified)
        for at in range(0, len(whole) - 1, 9):
            frame = whole[at]
            since = frame.get("cursor", frame["seq"])
            again = s.watcher(case.session, since=since, complete=False)
            eq(unified(whole[:at + 1] + again.until_end()), unified(whole), f"{name} from {since}")
            again.wire.ws.close()
        case.server.kill()
        (s.work / "ran").unlink(missing_ok=True)


def is_json(text):
    try:
        return isinstance(json.loads(text.strip().strip("`").removeprefix("json")), (dict, list))
    except ValueError:
        return False


@talks
def test_what_is_told_on_the_way_is_for_people(s):
    for name in AGENTS:
        case = Case(s, name)
        eq(case.turn(), ANSWERS[name], f"{name}: the answer")
        said = "".join(f["text"] for f in case.frames if f["type"] == "assistant_message")
        eq(said, ANSWERS[name], f"{name}: what is said is the answer alone")
        thought = [f["text"] for f in case.frames if f["type"] == "assistant_reasoning"]
        lines = "".join(thought).split("\n")
        assert len(lines) > 2, f"{name}: {thought}"
        for text in [*thought, *lines]:
            assert not is_json(text), f"{name} thinks in JSON: {text}"
        # What a strategy reads is not shown as it was written, but told.
        for asked in case.model.asked():
            if asked.kind in ("expand", "value", "vote", "plan", "judge", "score", "information"):
                answer = world(asked)
                assert answer not in lines, f"{name} shows what it read: {answer}"
        case.server.kill()
        (s.work / "ran").unlink(missing_ok=True)


@talks
def test_chat_is_told_too(s):
    for name in AGENTS:
        case = Case(s, name)
        chat = s.chat(session=case.session)
        frames = chat.turn(MESSAGE)
        eq(frames[-1]["message"], ANSWERS[name], f"{name}: the answer")
        thought = [f["reasoning"] for f in frames if f["type"] == "agent_thinking"]
        assert thought and not any(map(is_json, thought)), f"{name}: {thought}"
        assert any(f["type"] == "tool_call" for f in frames), f"{name}: a tool was called"
        case.server.kill()
        (s.work / "ran").unlink(missing_ok=True)
