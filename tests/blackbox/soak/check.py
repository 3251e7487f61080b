"""Compares what a client was shown with the session's record, character by character.

Pure: two values in, problems out. The rules are those of reconnecting: from a cursor an open item
goes on at the very character; from a bare seq what came after it is sent again, an open item from
its start; without a place only what comes from now on, and what is open. What is pending is sent
on every attach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from record import Message, Record
from recorder import Recorder, Return, Shown, Visit

QUOTE_CHARACTERS = 24
# A turn may end, or another begin, before what a user asks for arrives.
# One client may interrupt or answer while another answers: that answer comes too late.
HARMLESS = {"nothing_running", "turn_running", "nothing_to_compact", "withdrawn",
            "already_settled"}


@dataclass
class Findings:
    problems: list[str] = field(default_factory=list)
    # Shown, but not where the record has them.
    characters_lost: int = 0
    # Recorded, but not shown to one who came back with its place.
    characters_missing: int = 0

    def add(self, other: Findings) -> None:
        self.problems += other.problems
        self.characters_lost += other.characters_lost
        self.characters_missing += other.characters_missing


def compare(recorder: Recorder, record: Record, baseline: int) -> Findings:
    """`baseline` is the last seq of the record when this client was last compared with it."""
    return _Comparison(recorder, record, baseline).run()


class _Comparison:
    def __init__(self, recorder: Recorder, record: Record, baseline: int) -> None:
        self.recorder = recorder
        self.record = record
        self.baseline = baseline
        self.found = Findings()
        self.screen: dict[str, str] = {}
        self.seen: set[str] = set()
        # Everything recorded after this was due; None when nothing tells.
        self.due_after: int | None = baseline

    def run(self) -> Findings:
        visits = self.recorder.visits
        for visit in visits:
            # Who was shown nothing has the place it had before, and goes on from there.
            in_vain = visit.how is Return.NO_PLACE and not visit.shown and visit is not visits[-1]
            if not in_vain:
                self.visit(visit)
        for item, text in self.screen.items():
            self.text(item, text, whole=True)
        self.due()
        for misplaced in self.recorder.misplaced:
            self.problem(misplaced)
        return self.found

    def problem(self, text: str) -> None:
        self.found.problems.append(f"{self.recorder.session}/{self.recorder.name}: {text}")

    def visit(self, visit: Visit) -> None:
        if visit.how is Return.NO_PLACE:
            # It may have missed something; what it was shown before must still be true.
            for item, text in self.screen.items():
                self.text(item, text, whole=False)
            self.screen.clear()
            self.due_after = None
        items: set[str] = set()
        ids: set[str] = set()
        position = -1
        for shown in visit.shown:
            if shown.item is None:
                place = self.message(visit, shown, ids)
            else:
                place = self.characters(visit, shown, items)
            if place is None:
                continue
            if place.position < position:
                self.problem(f"{place.what} came after what is recorded behind it")
            position = max(position, place.position)
            if self.due_after is None:
                self.due_after = place.seq - 1

    def characters(self, visit: Visit, shown: Shown, here: set[str]) -> _Place | None:
        """Puts characters on the screen."""
        item, whole = shown.item, self.record.texts.get(shown.item)
        if visit.how is Return.SEQ and item not in here and item in self.screen:
            self.text(item, self.screen.pop(item), whole=False)
            if whole is not None and whole.seq <= visit.since:
                self.problem(f"{item} was complete and is sent again")
        here.add(item)
        self.screen[item] = self.screen.get(item, "") + shown.text
        if whole is None:
            return None
        if whole.seq <= self.baseline:
            self.problem(f"{item} was complete at the last check and is sent again")
        return _Place(f"text of {item}", whole.seq, whole.position)

    def message(self, visit: Visit, shown: Shown, here: set[str]) -> _Place | None:
        """Checks a message that stands for itself; gives its place if it is new to the client."""
        message = shown.message
        recorded = self.record.messages.get(message["id"])
        what = f"{message['type']} {message['id']}"
        if recorded is None:
            self.not_recorded(message, what)
            return None
        if (recorded.type, recorded.payload) != (message["type"], message["payload"]):
            self.problem(f"{what} was shown otherwise than it is recorded")
        if message["id"] in here:
            self.problem(f"{what} was sent twice to one who came {visit.how.value}")
        known = message["id"] in self.seen or recorded.seq <= self.baseline
        owed = _owed(visit, recorded)
        if known and not owed:
            self.problem(f"{what} was sent again to one who came {visit.how.value}")
        here.add(message["id"])
        self.seen.add(message["id"])
        return None if known or owed else _Place(what, recorded.seq, recorded.position)

    def not_recorded(self, message: dict[str, Any], what: str) -> None:
        """Only an answer to this client alone has no place in the record."""
        if message["type"] == "context_info":
            return
        if message["type"] != "error":
            self.problem(f"{what} was shown and is not recorded")
        elif message["payload"]["details"].get("code") not in HARMLESS:
            self.problem(f"it was told {message['payload']}")

    def text(self, item: str, shown: str, whole: bool) -> None:
        """What was shown is the beginning of the recorded text, or all of it."""
        recorded = self.record.texts.get(item)
        if recorded is None:
            self.problem(f"{item}: {len(shown)} characters were shown, none are recorded")
            self.found.characters_lost += len(shown)
            return
        common = _common(shown, recorded.text)
        if common < len(shown):
            was, is_ = shown[common:], recorded.text[common:]
            self.problem(
                f"{item}: from character {common} of {len(recorded.text)} on it was shown "
                f"{_quote(was)}, and {_quote(is_)} is recorded"
            )
            self.found.characters_lost += len(shown) - common
        elif whole and len(shown) < len(recorded.text):
            missing = len(recorded.text) - len(shown)
            self.problem(f"{item}: {len(shown)} characters were shown, {missing} more never came")
            self.found.characters_missing += missing

    def due(self) -> None:
        """Nothing recorded was kept from one who never left, or came back with its place."""
        if self.due_after is None:
            return
        for item, whole in self.record.texts.items():
            if whole.seq > self.due_after and whole.text and item not in self.screen:
                self.problem(f"{item} is recorded and was never shown")
                self.found.characters_missing += len(whole.text)
        text_ids = {whole.position for whole in self.record.texts.values()}
        for message in self.record.messages.values():
            if message.position in text_ids or message.seq <= self.due_after:
                continue
            if message.id not in self.seen:
                self.problem(f"{message.type} {message.id} is recorded and was never shown")


@dataclass(frozen=True)
class _Place:
    what: str
    seq: int
    position: int


def _owed(visit: Visit, message: Message) -> bool:
    """Whether attaching in this way sends a message whether or not the client had it before."""
    if visit.how is Return.SEQ and message.seq > visit.since:
        return True
    attached = visit.how is not Return.STAYED
    if message.type == "approval_request":
        return attached
    begins = message.type == "loading_state" and message.payload["loading"]
    return begins and visit.how is Return.NO_PLACE


def _common(one: str, other: str) -> int:
    for at, (a, b) in enumerate(zip(one, other)):
        if a != b:
            return at
    return min(len(one), len(other))


def _quote(text: str) -> str:
    more = "…" if len(text) > QUOTE_CHARACTERS else ""
    return repr(text[:QUOTE_CHARACTERS] + more)
