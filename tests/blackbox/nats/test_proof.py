"""The proofs of the chaos run find each kind of fault in transcripts made by hand."""

from types import SimpleNamespace

import proof
from evidence import asked_once
from harness import eq
from kill_run import Recorder, Return, Shown, Visit
from natswire import Stored

SESSION = "s1"


def frame(seq, kind, cursor=None, **fields):
    placed = {} if cursor is None else {"cursor": cursor}
    return {"type": kind, "id": f"evt-{seq}-{cursor}", "seq": seq, **placed, **fields}


def talk():
    """A session of two turns, as a replay tells it."""
    return [
        frame(1, "turn_started", message="one", client_ref="m1"),
        frame(2, "assistant_message", text="hello there", is_final=True),
        frame(3, "turn_completed"),
        frame(4, "turn_started", message="two", client_ref="m2"),
        frame(5, "control_request", request_id="req-5"),
        frame(6, "approval_settled", request_id="req-5", decision="allow"),
        frame(7, "turn_completed"),
    ]


def streamed():
    """The same as whoever was there saw it: in pieces, and asked again after coming back."""
    whole = talk()
    pieces = [frame(1, "assistant_message", "1~1t5", text="hello", is_final=False),
              frame(1, "assistant_message", "1~1t11", text=" there", is_final=False),
              frame(2, "assistant_message", text="", is_final=True)]
    return [whole[0], *pieces, *whole[2:5], whole[4], *whole[5:]]


def kinds(problems):
    return sorted({problem.split(": ")[1] for problem in problems})


def against(frames):
    return kinds(proof.against_replay("s1/u1", frames, talk()))


def test_what_is_right_passes(t):
    eq(against(talk()), [], "the replay itself")
    eq(against(streamed()), [], "the same in pieces")
    eq(proof.replays_agree(SESSION, {"r1": talk(), "r2": talk()}), [], "replays")


def test_lost(t):
    shown = talk()
    shown.insert(6, frame(6, "notice", "6~1", text="seen by one alone"))
    eq(against(shown), ["lost"], "what the log has not")
    pieces = streamed()
    pieces[2] = {**pieces[2], "text": " where"}
    eq(against(pieces), ["lost", "missing"], "another text than the log's")


def test_missing(t):
    shown = talk()
    del shown[5]
    eq(against(shown), ["missing"], "what was never shown")
    eq(against(talk()[:4]), ["missing"], "the end")


def test_doubled(t):
    shown = streamed()
    eq(against([*shown[:2], shown[1], *shown[2:]]), ["lost", "missing"], "a piece of text twice")
    shown = talk()
    eq(against([*shown[:3], shown[2], *shown[3:]]), ["doubled"], "an event twice")


def test_order(t):
    shown = talk()
    shown[4], shown[5] = shown[5], shown[4]
    eq(against(shown), ["order"], "two events the other way round")


def test_diverged(t):
    shown = talk()
    shown[3] = {**shown[3], "seq": 3}
    eq(against(shown), ["diverged"], "another number for the same")
    other = talk()
    other[6] = {**other[6], "type": "turn_failed"}
    eq(kinds(proof.replays_agree(SESSION, {"r1": talk(), "r2": other})), ["diverged"], "replays")
    eq(kinds(proof.replays_agree(SESSION, {"r1": talk(), "r2": other[:6]})), ["diverged"], "shorter")


def line(seq, text=None, **more):
    event = {"type": "turn_started"}
    if text is not None:
        event = {"type": "message_queued", "content": [{"type": "text", "text": text}]}
    return {"seq": seq, "event": event, **more}


def test_logs(t):
    lines = [line(1), line(2, "one"), line(3)]
    eq(proof.logs_agree(SESSION, {"r1": lines, "r2": lines}), [], "equal logs")
    other = [lines[0], line(2, "two"), lines[2]]
    eq(kinds(proof.logs_agree(SESSION, {"r1": lines, "r2": other})), ["diverged"], "another line")
    gap = [lines[0], line(4, "one")]
    eq(kinds(proof.logs_agree(SESSION, {"r1": gap})), ["order"], "a gap")


def sent(ref, text, acknowledged):
    return SimpleNamespace(ref=ref, text=text, acknowledged=acknowledged)


def test_messages(t):
    said = [sent("m1", "one", True), sent("m2", "two", False)]
    eq(proof.messages(SESSION, said, [line(1, "one")]), [], "one unanswered and not there")
    eq(proof.messages(SESSION, said, [line(1, "one"), line(2, "two")]), [], "and there")
    eq(kinds(proof.messages(SESSION, said, [line(2, "two")])), ["lost"], "acknowledged")
    twice = [line(1, "one"), line(2, "two"), line(3, "two")]
    eq(kinds(proof.messages(SESSION, said, twice)), ["doubled"], "twice")
    eq(kinds(proof.messages(SESSION, said, [line(1, "one"), line(2, "three")])), ["foreign"], "whose")


def test_commands(t):
    asked = "run: echo s1-4 >> ran-s1\nsay: s1-4 was run"
    part = {"type": "output_text", "text": "s1-4 was run"}
    reply = {"payload": {"role": "assistant", "content": [part]}}
    lines = [line(1, asked), line(2, message_data=reply)]
    eq(proof.commands(SESSION, ["s1-4"], lines), [], "once")
    eq(kinds(proof.commands(SESSION, ["s1-4", "s1-4"], lines)), ["doubled"], "twice")
    eq(kinds(proof.commands(SESSION, [], lines)), ["lost"], "answered, but never run")
    eq(proof.commands(SESSION, [], lines[:1]), [], "never run and never answered")


def stored(*words):
    """Messages as (number, by, seq)."""
    return [Stored(number, "polyloop.log.s1.b", {"Polyloop-By": by, "Polyloop-Seq": str(seq)}, b"")
            for number, by, seq in words]


def test_one_owner(t):
    well = stored((1, "f1", 0), (2, "1-1", 2), (5, "1-3", 4), (7, "f2", 4), (8, "7-1", 6))
    problems, fences = proof.one_owner(well)
    eq(problems, [], "one after the other")
    eq([fence.number for fence in fences["polyloop.log.s1.b"]], [1, 7], "fences")


def test_two_owners(t):
    late = stored((1, "f1", 0), (2, "1-1", 2), (3, "f2", 2), (4, "3-1", 3), (5, "1-2", 4))
    eq(kinds(proof.one_owner(late)[0]), ["two owners"], "one that woke up late")
    blind = stored((1, "f1", 0), (2, "1-1", 2), (3, "f2", 0))
    eq(kinds(proof.one_owner(blind)[0]), ["order"], "a fence by one who has not read all")
    again = stored((1, "f1", 0), (2, "1-1", 2), (3, "1-1", 4))
    eq(kinds(proof.one_owner(again)[0]), ["doubled"], "a message twice")
    back = stored((1, "f1", 0), (2, "1-1", 4), (3, "1-2", 3))
    eq(kinds(proof.one_owner(back)[0]), ["order"], "a number again")


def test_questions_told_again(t):
    def left(*visits):
        recorder = Recorder(SESSION, "a1")
        recorder.visits = [Visit(Return.CURSOR, 0, [Shown(item, text, {}) for item, text in one])
                           for one in visits]
        asked_once(recorder)
        return [[shown.text for shown in visit.shown] for visit in recorder.visits]

    which = ("ask_8", "Which?")
    eq(left([which], [which]), [["Which?"], []], "to one who came back")
    eq(left([which, which]), [["Which?", "Which?"]], "twice to one who stayed")
    eq(left([which], [which, which]), [["Which?"], ["Which?"]], "twice to one who came back")
    eq(left([which], [("ask_8", "What?")]), [["Which?"], ["What?"]], "in other words")
    said = ("msg_9", "Hello")
    eq(left([said], [said]), [["Hello"], ["Hello"]], "what is no question")
