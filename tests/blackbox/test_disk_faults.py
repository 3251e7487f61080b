"""A flush or a write that fails in the middle of a live session: what each client is told, that
nothing acknowledged is lost, and that after a failed flush nothing more is called safe."""

import contextlib
import json
import time

from websockets.exceptions import ConnectionClosed

from disk import Disk
from frames import item_text
from harness import Options, eq
from loomtalk import loom
from talk import Scene

SCRIPT = "say: begin\nrun: echo {name} >> runs; echo shown {name}\nsay: end {name}"
# More than a turn has of any of these calls.
CALLS_MAX = 40
QUIET_SECS = 0.5
WAIT_SECS = 30


def disk(t):
    t.store.mkdir(exist_ok=True)
    return Disk(t.dir, t.store)


def is_end(frame):
    return frame["type"] in ("agent_finished", "turn_completed", "turn_failed", "run_end")


def is_error(frame):
    return frame["type"] == "error"


class Live:
    """A session of one dialect, and all that its client was sent."""

    def __init__(self, scene, dialect, name):
        self.dialect, self.name, self.seen, self.answers = dialect, name, [], 0
        if dialect == "agentloop":
            self.client = scene.agentloop(name, complete=False)
        elif dialect == "unified":
            self.client = scene.unified(session=name, complete=False)
        elif dialect == "chat":
            self.client = scene.chat(session=name, complete=False)
        else:
            self.client = loom(scene, complete=False)
        self.wire = scene.wires[-1]

    def say(self, text):
        if self.dialect == "loom":
            self.client.run(text, self.name, approvals=True)
        else:
            self.client.say(text)

    def allow(self, frame):
        """Answers a request; false when the frame is none."""
        if frame["type"] == "approval_request":
            self.client.review("yes")
        elif frame["type"] == "control_request":
            self.client.decide(frame, "allow")
        elif frame.get("event", {}).get("type") == "tool_approval":
            self.client.answer(frame, True)
        else:
            return False
        self.answers += 1
        return True

    def until(self, accepts, secs=WAIT_SECS):
        """Frames up to one that is accepted; requests are answered with yes."""
        frames, end = [], time.monotonic() + secs
        while time.monotonic() < end:
            try:
                frame = json.loads(self.wire.recv(timeout=end - time.monotonic()))
            except (TimeoutError, ConnectionClosed):
                break
            frames.append(frame)
            # A flush that nobody waits for may have ended a run meanwhile; what it said comes next.
            with contextlib.suppress(ConnectionClosed):
                self.allow(frame)
            if accepts(frame):
                break
        self.seen += frames
        return frames

    def turn(self, text):
        self.say(text)
        # A room is told of no end; there it is the last word.
        last = text.splitlines()[-1].removeprefix("say: ")
        return self.until(lambda frame: is_end(frame) or is_error(frame)
                          or frame["type"] == "agent_message" and frame["message"] == last)

    def quiet(self):
        """What else comes within a moment."""
        return self.until(lambda _: False, QUIET_SECS)


def acknowledged(live):
    """What an agentloop client saw that a restart may not forget: ids of results and ends."""
    return [f["id"] for f in live.seen if f["type"] == "agent_finished"
            or f["type"] == "response_item" and f["payload"]["type"] == "function_call_output"]


def said_by_the_agent(messages):
    items = [m["payload"] for m in messages if m["type"] == "response_item"]
    return [item_text(item) for item in items if item.get("role") == "assistant"]


def errors(frames):
    return [frame for frame in frames if is_error(frame)]


def break_each(t, call, error, ending=".jsonl", dialect="agentloop"):
    """One session for each time that a turn makes the call, which fails there."""
    under = disk(t)
    scene = Scene(t)
    server = scene.server(env=under.env())
    other = Live(scene, "agentloop", "other")
    sessions = []
    for nth in range(1, CALLS_MAX):
        live = Live(scene, dialect, f"s{nth}")
        live.turn("say: before")
        part = f"/{live.name}{ending}"
        under.break_at((call, error, nth, part))
        live.turn(SCRIPT.format(name=live.name))
        if part not in under.fired():
            break
        sessions.append(live)
        if call == "flush":
            # One that nobody waits for may fail while a request is answered, which is told of, too.
            live.quiet()
        told = len(errors(live.seen))
        late = live.answers if call == "flush" else 0
        assert 1 <= told <= 1 + late, f"{live.name}, {call} {nth}: errors in {live.seen}"
        said = json.dumps(errors(live.seen)[0])
        assert "flush" in said or "No space left" in said or "Input/output" in said, said
        yield server, scene, live
        assert any(map(is_end, other.turn("say: still"))), "another session goes on"
        eq(server.get("/healthz").status, 200, "the server lives")
    eq(errors(other.seen), [], "what the other one was told")
    assert len(sessions) >= 2, f"{call} was hardly made: {len(sessions)}"
    Options.tell(f"{dialect}: {call} failed with {error} at {len(sessions)} places")
    server.kill()
    server = scene.server(env={"LD_PRELOAD": ""})
    for live in sessions:
        # It is opened with all that was acknowledged, and goes on.
        again = Live(scene, "agentloop", live.name)
        frames = again.turn(f"say: after {live.name}")
        assert any(map(is_end, frames)), f"{live.name} goes on: {frames}"
        events_ = server.events(live.name)
        seqs = sorted({e["seq"] for e in events_})
        eq(seqs, list(range(1, len(seqs) + 1)), f"{live.name}: numbers without a gap")
        kept = [m for m in server.messages(live.name) if m.get("id")]
        texts = said_by_the_agent(kept)
        assert "before" in texts and f"after {live.name}" in texts, texts
        if dialect == "agentloop":
            lost = set(acknowledged(live)) - {m["id"] for m in kept}
            eq(lost, set(), f"{live.name}: acknowledged and lost")
        runs = (t.work / "runs").read_text().split().count(live.name) if (
            t.work / "runs").exists() else 0
        assert runs <= 1, f"{live.name}: its command ran {runs} times"
    checked = t.program("sessions", "check", env={"SESSION_STORE_PATH": t.store})
    eq(checked.returncode, 0, f"every line is whole: {checked.stdout}")


def refuses_for_good(server, live):
    """After a failed flush nothing more is taken, and all of it can be read."""
    for _ in range(2):
        before = len(live.seen)
        frames = live.turn("say: once more")
        assert errors(frames) and not any(map(is_end, frames)), f"{live.name}: {frames}"
        eq(len(errors(live.seen[before:])), 1, "one error a message")
        told = json.dumps(errors(frames))
        assert "started again" in told, f"what to do about it: {told}"
    eq(errors(live.quiet()), [], "nothing more")
    eq(server.get(f"/sessions/{live.name}").status, 200, "it can be read")


def test_a_flush_that_fails_in_a_turn_is_final(t):
    for server, _, live in break_each(t, "flush", "EIO"):
        refuses_for_good(server, live)
        eq((t.store / f"{live.name}.unflushed").exists(), True, "the mark")


def test_a_flush_that_fails_for_want_of_space_is_final_in_unified(t):
    for server, _, live in break_each(t, "flush", "ENOSPC", dialect="unified"):
        refuses_for_good(server, live)


def test_a_flush_that_fails_is_told_in_loom(t):
    for _, scene, live in break_each(t, "flush", "EIO", dialect="loom"):
        # A run that fails ends its connection; who comes back is told at once.
        again = Live(scene, "loom", live.name)
        told = json.dumps(errors(again.turn("say: once more")))
        assert "started again" in told, told


def test_a_flush_that_fails_is_told_in_the_room(t):
    for _ in break_each(t, "flush", "EIO", dialect="chat"):
        pass


def test_a_write_that_fails_in_a_turn_loses_nothing(t):
    for _, _, live in break_each(t, "write", "ENOSPC"):
        frames = live.until(is_end, QUIET_SECS)
        eq(errors(frames), [], "one error")


def test_a_write_that_is_torn_in_a_turn_loses_nothing(t):
    for _, _, live in break_each(t, "torn", "EIO", dialect="unified"):
        live.quiet()


def test_a_journal_that_cannot_be_written_loses_nothing(t):
    for _, _, live in break_each(t, "write", "ENOSPC", ending=".live"):
        live.quiet()


def test_a_name_that_cannot_be_flushed_makes_no_session(t):
    under = disk(t)
    server = t.server(env=under.env())
    under.break_at(("names", "EIO", 1, str(t.store)))
    answer = server.http("POST", "/sessions")
    eq(answer.status, 500, "a session that cannot be kept is not made")
    eq(server.http("POST", "/sessions").status, 201, "the next one is")


def test_a_session_is_written_anew_after_a_failed_flush(t):
    """By the next server: what the kernel calls clean may not be on the disk."""
    under = disk(t)
    scene = Scene(t)
    scene.server(env=under.env())
    live = Live(scene, "agentloop", "s1")
    live.turn("say: " + "long " * 20_000)
    under.break_at(("flush", "EIO", 1, "/s1.jsonl"))
    assert errors(live.turn("say: shown"))
    before = (t.store / "s1.jsonl").stat().st_ino
    scene.last.kill()
    server = scene.server(env={"LD_PRELOAD": ""})
    again = Live(scene, "agentloop", "s1")
    again.turn("say: on")
    assert (t.store / "s1.jsonl").stat().st_ino != before, "another file"
    assert not (t.store / "s1.unflushed").exists(), "the mark is gone"
    texts = said_by_the_agent(m for m in server.messages() if m.get("id"))
    # Only its end was not shown.
    eq([text[:8] for text in texts], ["long lon", "shown", "on"], "all that was shown")
    eq([p.name for p in t.store.rglob("*.anew")], [], "nothing is left over")
