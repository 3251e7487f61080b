"""Collects what there is at the end, and has it judged: each client's transcript, each replica's
log by REST and by replay, the messages in JetStream itself, and what commands have left behind.
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field

from websockets.asyncio.client import connect

import proof
from cluster import STORE_NAME
from kill_run import compare, records
from people import OWN, Agentloop, Unified, options

REPLAY_SECS = 60.0
TOGETHER = 8
# An answer to this client alone, of a store that was away or a request that came too late.
TOLD = ": it was told "
# What the items of questions are named.
QUESTION = "ask_"


@dataclass
class Evidence:
    problems: list = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)
    # The fences of each session.
    fences: dict = field(default_factory=dict)
    unanswered_there: int = 0


async def gather(cluster, sessions):
    evidence = Evidence()
    places = asyncio.Semaphore(TOGETHER)

    async def one(session):
        async with places:
            await look_at(cluster, session, evidence)

    await asyncio.gather(*(one(session) for session in sessions))
    await asyncio.to_thread(look_at_store, cluster, evidence)
    return evidence


async def replay(replica, session):
    """What a replica tells of a session from its beginning, up to where it came to rest."""
    url = replica.url(f"/unified?session_id={session.id}&since=0")
    frames = []
    async with connect(url, **options(replica)) as socket:
        async with asyncio.timeout(REPLAY_SECS):
            async for text in socket:
                frame = json.loads(text)
                if frame["id"].startswith(OWN):
                    continue
                frames.append(frame)
                if frame["seq"] >= session.last_seq and "cursor" not in frame:
                    return frames
    return frames


async def look_at(cluster, session, evidence):
    if session.last_seq is None:
        return  # It never came to rest, which is a problem already.
    replays, logs = {}, {}
    for replica in cluster.replicas:
        try:
            replays[replica.name] = await replay(replica, session)
            answer = await asyncio.to_thread(replica.get, f"/sessions/{session.id}")
            assert answer.status == 200, f"GET /sessions/{session.id}: {answer}"
            logs[replica.name] = answer.json["events"]
        except Exception as error:
            evidence.problems.append(f"{session.id}: unreadable at {replica.name}: "
                                     f"{type(error).__name__} {error}")
    if len(logs) < len(cluster.replicas):
        return
    lines, told = next(iter(logs.values())), next(iter(replays.values()))
    problems, counts = evidence.problems, evidence.counts
    problems += proof.replays_agree(session.id, replays)
    problems += proof.logs_agree(session.id, logs)
    problems += proof.messages(session.id, session.sent.values(), lines)
    there = Counter(proof.said(lines))
    evidence.unanswered_there += sum(
        bool(there[one.text]) for one in session.sent.values() if not one.acknowledged)
    ran = cluster.work / f"ran-{session.id}"
    ran = ran.read_text().split() if ran.exists() else []
    problems += proof.commands(session.id, ran, lines)
    record = records.read(lines)
    problems += [f"{session.id}: record: {problem}" for problem in record.problems]
    for one in session.people:
        who = f"{session.id}/{one.name}"
        if isinstance(one, Unified):
            frames = [frame for frame in one.frames if frame["seq"] <= session.last_seq]
            found = proof.against_replay(who, frames, told)
            problems += [*found, *connections(who, one)] if found else []
            counts["events seen"] += len(frames)
        elif isinstance(one, Agentloop):
            asked_once(one.recorder)
            found = compare(one.recorder, record, 0)
            problems += [kind_of(problem) for problem in found.problems if TOLD not in problem]
            counts["events seen"] += sum(len(visit.shown) for visit in one.recorder.visits)
        counts["transcripts compared"] += 1
    counts["logs compared"] += 2 * len(logs)
    counts["log entries"] += record.last_seq
    counts["commands run"] += len(ran)


def asked_once(recorder):
    """Takes out what the dialect allows: a question that waits is told again to whoever comes back,
    in the same words and once a connection. Anything else stays, and is found."""
    asked = {}
    for visit in recorder.visits:
        here, kept = set(), []
        for shown in visit.shown:
            known = shown.item is not None and asked.get(shown.item) == shown.text
            if not known or shown.item in here:
                kept.append(shown)
            here.add(shown.item)
            if shown.item is not None and shown.item.startswith(QUESTION):
                asked.setdefault(shown.item, shown.text)
        visit.shown = kept


def connections(who, one):
    """Where whoever has a problem was, and what was shown there, for people who look for it."""
    ends = [*(before for *_, before in one.history[1:]), len(one.frames)]
    shown = []
    for (when, where, place, before), end in zip(one.history, ends):
        numbers = [frame["seq"] for frame in one.frames[before:end]]
        runs = [number for at, number in enumerate(numbers) if at == 0 or numbers[at - 1] != number]
        shown.append(f"{when} {where} since {place}: {runs}")
    return [f"{who}: note: " + "; ".join(shown)]


WORDS = {"none are recorded": "lost", "is recorded and was never shown": "missing",
         "more never came": "missing", "twice": "doubled", "again": "doubled",
         "came after what is recorded": "order", "place went back": "order",
         "otherwise than it is recorded": "diverged", "and is not recorded": "lost",
         "on it was shown": "lost"}


def kind_of(problem):
    """A problem of the kill run's comparison, with the word for its kind."""
    who, _, what = problem.partition(": ")
    kind = next((kind for words, kind in WORDS.items() if words in what), "other")
    return f"{who}: {kind}: {what}"


def look_at_store(cluster, evidence):
    with cluster.wire() as wire:
        stored = wire.whole(f"{STORE_NAME}-log")
    problems, fences = proof.one_owner(stored)
    evidence.problems += problems
    evidence.counts["messages in JetStream"] = len(stored)
    evidence.counts["fences"] = sum(map(len, fences.values()))
    # Subjects end in the session's id and its birth.
    evidence.fences = {subject.split(".")[2]: found for subject, found in fences.items()}
