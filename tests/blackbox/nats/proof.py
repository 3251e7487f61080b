"""Proves from transcripts and logs that nothing was lost, doubled or put in another order, and that
no two owners wrote. Pure: values in, problems out; each problem begins with whose it is and with
one word that says what kind it is.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass

from story import story

SHOWN_CHARS = 160
# Told in a word that the client used before.
LOOSE = ("session_info",)
STREAMED = ("assistant_message", "assistant_reasoning", "command_output")
# The number of the fence a message was written behind, and which of its writer's it is.
BY = re.compile(r"(\d+)-(\d+)")


@dataclass
class Fence:
    """Where a writer began: its number in the stream, the session's seq there, and when."""

    number: int | None
    seq: int
    time: str | None
    # When it first wrote something.
    written: str | None = None


def text_of(thing):
    return json.dumps(thing, sort_keys=True, ensure_ascii=False)


def brief(text):
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


def against_replay(who, frames, replay):
    """What a client was shown, over all its connections, is what the log tells."""
    problems = []
    got, want = [text_of(one) for one in story(frames)], [text_of(one) for one in story(replay)]
    have, due = Counter(got), Counter(want)
    for one, times in (have - due).items():
        kind = "doubled" if due[one] else "lost"
        problems.append(f"{who}: {kind}: it was shown {times} time(s) more than the log has it: "
                        f"{brief(one)}")
    for one, times in (due - have).items():
        problems.append(f"{who}: missing: the log has it {times} time(s) more than it was shown: "
                        f"{brief(one)}")
    if not problems and got != want:
        at = next(at for at, (one, other) in enumerate(zip(got, want)) if one != other)
        problems.append(f"{who}: order: {brief(got[at])} was shown where the log has "
                        f"{brief(want[at])}")
    return problems + in_place(who, frames, replay)


def in_place(who, frames, replay):
    """A number always means the same, and a client never goes back."""
    problems, seen, last = [], set(), 0
    named = {one["id"]: one for one in replay if one["type"] not in STREAMED}
    for frame in frames:
        if frame["seq"] < last:
            problems.append(f"{who}: order: {frame['seq']} came after {last}")
        last = max(last, frame["seq"])
        if frame["type"] in STREAMED or frame["type"] in LOOSE:
            continue
        told = named.get(frame["id"])
        same = told is not None and all(
            told.get(name) == frame.get(name) for name in {*told, *frame} - {"cursor"})
        if told is not None and not same:
            apart = {name: (frame.get(name), told.get(name)) for name in {*told, *frame}
                     if frame.get(name) != told.get(name)}
            problems.append(f"{who}: diverged: {frame['id']} was shown and is in the log with "
                            f"different {brief(text_of(apart))}")
    return problems


def replays_agree(session, replays):
    """All replicas tell the same, to the letter; `replays` is frames by replica."""
    problems, names = [], list(replays)
    first = [text_of(one) for one in replays[names[0]]]
    for name in names[1:]:
        other = [text_of(one) for one in replays[name]]
        if other != first:
            at = next((at for at, (a, b) in enumerate(zip(first, other)) if a != b),
                      min(len(first), len(other)))
            shown = [brief(one[at]) if at < len(one) else "nothing" for one in (first, other)]
            problems.append(f"{session}: diverged: at frame {at} {names[0]} tells {shown[0]}, "
                            f"{name} tells {shown[1]}")
    return problems


def logs_agree(session, logs):
    """REST gives the same lines at all replicas, numbered without a gap; `logs` by replica."""
    problems, names = [], list(logs)
    first = [text_of(line) for line in logs[names[0]]]
    for name in names[1:]:
        if [text_of(line) for line in logs[name]] != first:
            problems.append(f"{session}: diverged: the lines at {name} are not those at {names[0]}")
    last = 0
    for line in logs[names[0]]:
        if line.get("audit"):
            continue
        if line["seq"] not in (last, last + 1):
            problems.append(f"{session}: order: {line['seq']} stands behind {last} in the log")
        last = line["seq"]
    return problems


def said(lines):
    """The texts of people's messages in a log, in order."""
    texts = []
    for line in lines:
        event = line.get("event") or {}
        if event.get("type") == "message_queued" and not line.get("audit"):
            texts.append("".join(part.get("text", "") for part in event["content"]))
    return texts


def messages(session, sent, lines):
    """What was acknowledged is there once; what was not, at most once."""
    problems, there = [], Counter(said(lines))
    for one in sent:
        times = there.pop(one.text, 0)
        if times > 1:
            problems.append(f"{session}: doubled: {one.ref} was said once and is there {times} "
                            "times")
        elif one.acknowledged and not times:
            problems.append(f"{session}: lost: {one.ref} was acknowledged and is not there")
    for text in there:
        problems.append(f"{session}: foreign: nobody said {brief(repr(text))}")
    return problems


def commands(session, ran, lines):
    """A command that was approved ran once at most; one that ended well did. `ran` are the lines
    of the file that each command adds one to."""
    problems, times = [], Counter(ran)
    for mark, count in times.items():
        if count > 1:
            problems.append(f"{session}: doubled: the command of {mark} ran {count} times")
    for text in said(lines):
        mark = re.search(r"was run$", text) and re.search(r"echo (\S+) >>", text)
        if mark and f"{mark[1]} was run" in answers(lines) and not times[mark[1]]:
            problems.append(f"{session}: lost: the command of {mark[1]} was answered and never ran")
    return problems


def answers(lines):
    found = set()
    for line in lines:
        message = line.get("message_data") or {}
        payload = message.get("payload") or {}
        if payload.get("role") == "assistant":
            found.update(part.get("text") for part in payload.get("content", []))
    return found


def one_owner(stored):
    """Behind a fence nobody writes but who set it; `stored` are the messages of the log's stream,
    in order. Gives the problems, and the fences of each subject."""
    problems, fences, last_seq, counts = [], {}, {}, {}
    for one in stored:
        by, seq = one.headers.get("Polyloop-By"), one.headers.get("Polyloop-Seq")
        if by is None or seq is None:
            problems.append(f"{one.subject}: foreign: message {one.number} says not whose it is")
            continue
        seq, subject = int(seq), one.subject
        written = BY.fullmatch(by)
        if written is None:
            fences.setdefault(subject, []).append(
                Fence(one.number, seq, one.headers.get("Nats-Time-Stamp")))
            if seq != last_seq.get(subject, 0):
                problems.append(f"{subject}: order: the fence {one.number} stands at {seq}, behind "
                                f"{last_seq.get(subject, 0)}")
            counts[subject] = 0
        else:
            epoch, count = int(written[1]), int(written[2])
            fence = fences.get(subject, [Fence(None, 0, None)])[-1]
            if fence.written is None and seq > fence.seq:
                fence.written = one.headers.get("Nats-Time-Stamp")
            if epoch != fence.number:
                problems.append(f"{subject}: two owners: message {one.number} of the writer "
                                f"{epoch} stands behind the fence {fence.number}")
            elif count <= counts.get(subject, 0):
                problems.append(f"{subject}: doubled: message {one.number} is {by} again")
            else:
                counts[subject] = count
            if seq < last_seq.get(subject, 0):
                problems.append(f"{subject}: order: message {one.number} ends at {seq}, behind "
                                f"{last_seq[subject]}")
        last_seq[subject] = max(seq, last_seq.get(subject, 0))
    return problems, fences
