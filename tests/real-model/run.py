"""Holds conversations with a small real language model through a real `polyloop`.

    python run.py --polyloop PATH

Judges what happens, never what the model says: it is tiny. Every process is on this machine, and
ended by its id, whatever happens.
"""

import argparse
import json
import signal
import sys
import time
import traceback

from pair import MODEL, Llama, Pair, eq, harness, is_over, of, talk

CONTEXT_TOKENS, ANSWER_TOKENS = 4096, 48
# How soon an interrupted turn is over; an answer could take far longer.
INTERRUPT_SECS = 15.0
# What is said before somebody interrupts.
PIECES_BEFORE = 5
STORIES = (
    "Tell me a long story about a sailor who goes around the world. Do not stop early.",
    "Write down everything you know about the sea, in as many words as you can.",
    "Write a very long letter from a lighthouse keeper to his sister.",
)
PARAGRAPH = (
    "The harbour of the town lies between two hills. In the morning the boats come back, and the "
    "men carry baskets of fish to the market behind the church. The lighthouse was built of grey "
    "stone, and its keeper writes the weather into a book every evening. In winter the storms "
    "reach the first houses, so the people have put heavy shutters before their windows.\n\n"
)
# More words than the window has tokens.
TOO_LONG = "The sea was grey that day. " * 1000


class Play:
    """What the checks share."""

    def __init__(self, test):
        self.scene = talk.Scene(test)
        self.llama = Llama(test.dir / "llama.log", CONTEXT_TOKENS, ANSWER_TOKENS)
        test.closing.append(self.llama.stop)
        table = test.dir / "models.json"
        row = {"match": MODEL, "context": CONTEXT_TOKENS, "output": ANSWER_TOKENS}
        table.write_text(json.dumps([row]))
        self.env = {"PROVIDER": "openai", "OPENAI_WIRE_API": "chat", "MODEL": MODEL,
                    "OPENAI_BASE_URL": f"{self.llama.url}/v1", "MODELS_FILE": table}
        self.server = self.scene.server(env=self.env)
        self.pair = Pair(self.scene, "harbour")
        self.tokens = 0

    def took(self, told, speaker):
        """Checks what every good answer has; the figures for people."""
        text, pieces, (given, cached, given_back) = told.text, told.deltas, told.usage
        assert min(pieces) > 1, f"the answer came in {pieces} pieces: {text!r}"
        assert text.strip() and given_back > 0, f"an empty answer: {text!r}, {told.usage}"
        assert given > self.tokens, f"the history did not grow: {given} after {self.tokens} tokens"
        self.tokens = given
        first = "" if told.first_secs is None else f", the first after {told.first_secs:.1f} s"
        return (f"{name(speaker)}: {len(text)} characters in {pieces[0]} pieces in "
                f"{told.secs:.1f} s{first}; tokens: {given} in, {cached} of them cached, "
                f"{given_back} out")


def name(speaker):
    return "agentloop" if isinstance(speaker, talk.Agentloop) else "unified"


def doctor(play):
    """The program finds the model server, and the model in its list."""
    done = play.scene.t.program("doctor", "--json", "--port", "0", env=play.env)
    eq(done.returncode, 0, f"exit status of doctor, which said {done.stdout}{done.stderr}")
    found = {check["thing"]: check for check in json.loads(done.stdout)["checks"]}
    for thing in ("endpoint", "model list"):
        eq(found[thing]["status"], "ok", f"{thing}: {found[thing]['text']}")
        yield f"{thing}: {found[thing]['text']}"


def conversation(play):
    """Several turns, each spoken in another dialect than the one before."""
    pair, before = play.pair, 0
    turns = ((pair.unified, "Hello! What is a harbour? Please answer in a few sentences."),
             (pair.agentloop, "And what is a lighthouse?"),
             (pair.unified, "Which of the two would you rather visit, and why?"))
    for speaker, text in turns:
        told = pair.turn(speaker, text)
        yield play.took(told, speaker)
        _, cached, _ = told.usage
        # A history that is sent the same way each time need not be computed again.
        assert cached >= before, f"{cached} tokens came from the cache, {before} were known"
        before = told.usage[0]


def interrupted(play):
    """A turn that is stopped while it streams; the model server stops too."""
    pair = play.pair
    for speaker, other in ((pair.unified, pair.agentloop), (pair.agentloop, pair.unified)):
        yield stopped(play, speaker)
        yield play.took(pair.turn(other, "Thank you. What is a boat?"), other)


def stopped(play, speaker):
    pair, llama = play.pair, play.llama
    for story in STORIES:
        rounds = llama.rounds()
        speaker.say(story)
        read = begun(speaker)
        began = time.monotonic()
        if not is_over(read):
            speaker.send("interrupt", **reason(speaker, "that is enough"))
        told = pair.rest(began, **{name(speaker): read})
        if told.end == "turn_completed":
            continue  # The model had said all it wanted to.
        eq(told.fault, "Interrupted: that is enough", "why the turn ended")
        assert told.secs < INTERRUPT_SECS, f"it took {told.secs:.1f} s to interrupt a turn"
        idle_secs = llama.until_idle()
        rounds = llama.rounds() - rounds
        assert rounds < ANSWER_TOKENS, f"the model server went on: {rounds} rounds"
        return (f"{name(speaker)}: over after {told.secs:.2f} s with {len(told.text)} characters "
                f"kept; the model rests after {told.secs + idle_secs:.2f} s and {rounds} rounds "
                f"(an answer may have {ANSWER_TOKENS})")
    raise AssertionError(f"none of {len(STORIES)} stories was long enough to be interrupted")


def begun(speaker):
    """What is told of a turn until something has been said, or all of it."""
    frames = []
    while sum(map(is_piece, frames)) < PIECES_BEFORE and not is_over(frames):
        frames.append(speaker.recv())
    return frames


def is_piece(frame):
    if frame["type"] == "assistant_message":
        return frame["text"] != ""
    item = frame.get("payload", {})
    return frame["type"] == "response_item" and item.get("role") == "assistant"


def reason(speaker, text):
    return {"payload": {"reason": text}} if name(speaker) == "agentloop" else {"reason": text}


def compacted(play):
    """The model writes the summary; what it knows of the conversation afterwards is shorter."""
    pair = play.pair
    for speaker, word, other in ((pair.unified, "compact", pair.agentloop),
                                 (pair.agentloop, "manual_compact", pair.unified)):
        told = pair.turn(speaker, f"Here is a text.\n\n{PARAGRAPH * 2}What is it about?")
        yield play.took(told, speaker)
        began = time.monotonic()
        speaker.send(word)
        told = pair.rest(began)
        eq(told.end, "turn_completed", f"end of the compaction, {told.unified[-1]}")
        (by_unified,) = of(told.unified, "context_compaction")
        before, after = by_unified["tokens_before"], by_unified["tokens_after"]
        assert 0 < after < before, f"{after} tokens of {before}"
        (by_agentloop,) = of(told.agentloop, "context_compacted")
        sizes = by_agentloop["payload"]
        eq((sizes["oldTokenCount"], sizes["newTokenCount"]), (before, after), "to AgentLoop")
        # What follows it says how much is left.
        used = of(told.unified, "token_usage")[0]["usage"]
        yield (f"{name(speaker)}: {before} tokens became {after} in {told.secs:.1f} s; the summary "
               f"took {used['input_tokens']} tokens in, {used['cached_tokens']} of them cached, "
               f"{used['output_tokens']} out")
        full, play.tokens = play.tokens, 0
        yield play.took(pair.turn(other, "Who lives in the town?"), other)
        assert play.tokens < full, f"{play.tokens} tokens were sent after {full} before"


def restarted(play):
    """Another server goes on with the session."""
    play.server.signal(signal.SIGTERM)
    play.server.process.wait(harness.WAIT_SECS)
    play.server = play.scene.server(env=play.env)
    play.pair = pair = Pair(play.scene, "harbour")
    yield play.took(pair.turn(pair.unified, "And what do they do in winter?"), pair.unified)


def too_long(play):
    """A message that is larger than the model's window is said so, and nothing is broken."""
    fresh = Pair(play.scene, "fresh")
    for pair, speaker, tokens in ((fresh, fresh.unified, 0),
                                  (play.pair, play.pair.agentloop, play.tokens)):
        told = pair.tell(speaker, TOO_LONG)
        eq(told.end, "turn_failed", f"end of the turn, {told.unified[-1]}")
        assert "cannot be made shorter" in told.fault, told.fault
        yield f"{name(speaker)}: after {told.secs:.1f} s: {told.fault}"
        play.tokens = tokens
        yield play.took(pair.turn(speaker, "What is a ship?"), speaker)


CHECKS = (doctor, conversation, interrupted, compacted, restarted, too_long)


def run(test):
    began = time.monotonic()
    play = Play(test)
    print(f"ready after {time.monotonic() - began:.1f} s: {MODEL} at {play.llama.url}", flush=True)
    for check in CHECKS:
        print(f"{check.__name__}: {check.__doc__}", flush=True)
        for figures in check(play):
            print(f"  ok  {figures}", flush=True)
    # Every frame that the clients were sent, by the published specifications.
    play.scene.check()
    frames = sum("out" in step for wire in play.scene.wires for step in wire.steps)
    print(f"checked {frames} frames of {len(play.scene.wires)} connections")
    print(f"all checks passed in {time.monotonic() - began:.0f} s")


def end(*_):
    sys.exit("ended from outside")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--polyloop", required=True, help="the program to test")
    harness.Options.polyloop = parser.parse_args().polyloop
    signal.signal(signal.SIGTERM, end)
    test = harness.Test("real-model")
    try:
        run(test)
    except Exception:
        print("  FAIL", flush=True)
        traceback.print_exc(file=sys.stdout)
        for server in test.servers:
            print(f"the server said:\n{server.stderr()[-4000:]}")
        for log in test.dir.glob("llama.log"):
            print("the model server said:", *log.read_text(errors="replace").splitlines()[-20:],
                  sep="\n")
        sys.exit(1)
    finally:
        # Nothing is left behind by being told to end twice.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        test.clean()


if __name__ == "__main__":
    main()
