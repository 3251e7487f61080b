"""A unified and an AgentLoop client of one session, whose tales must agree with each other and
with the session's file, and the model server they end up talking to."""

import http.client
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "blackbox"))

import harness  # noqa: E402

# A model that computes on a busy machine takes longer than a scripted one. `talk` takes these over.
ANSWER_SECS = 120.0
harness.WAIT_SECS = harness.TURN_SECS = ANSWER_SECS

import talk  # noqa: E402
from frames import is_idle, item_text, items, said  # noqa: E402
from harness import eq, eventually  # noqa: E402
from talk import of, spoken  # noqa: E402

MODEL = "smollm2-135m"
START_SECS = 60.0
# Until a model server notices that nobody listens; far less than an answer may take.
RELEASE_SECS = 15.0


class Llama:
    """The running model server; see serve.py."""

    def __init__(self, log, context_tokens, answer_tokens):
        self.log = log
        sizes = ["--context", str(context_tokens), "--answer", str(answer_tokens)]
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "serve.py"), *sizes], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=stderr, text=True)
        try:
            self.url = self._address()
            eventually(self._answers, "the model server answers", START_SECS)
        except BaseException:
            self.stop()
            raise

    def _address(self):
        # A server that says nothing is ended, and then its output ends too.
        late = threading.Timer(START_SECS, self.process.kill)
        late.start()
        try:
            line = self.process.stdout.readline()
        finally:
            late.cancel()
        found = re.search(r"listens on (http://\S+)", line)
        assert found, f"the model server said no address: {line!r}\n{self.last_words()}"
        return found[1]

    def _answers(self):
        try:
            return self.get("/health")[0] == 200
        except OSError:
            return False

    def get(self, path):
        """Status and text of an answer."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def is_working(self):
        status, text = self.get("/slots")
        eq(status, 200, "status of /slots")
        return any(slot["is_processing"] for slot in json.loads(text))

    def rounds(self):
        """How often it has computed; one of them gives at most one token of an answer."""
        _, text = self.get("/metrics")
        return int(re.search(r"^llamacpp:n_decode_total (\d+)", text, re.MULTILINE)[1])

    def until_idle(self):
        began = time.monotonic()
        eventually(lambda: not self.is_working(), "the model server rests", RELEASE_SECS)
        return time.monotonic() - began

    def last_words(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])

    def stop(self):
        """It ends with its standard input."""
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.process.stdout.close()


def is_over(frames):
    """Whether a turn has ended with these frames, of either dialect."""
    last = [frame["type"] for frame in frames[-2:]]
    if last[-1:] == ["loading_state"]:
        return last[0] == "error" and is_idle(frames[-1])
    return last[-1:] and last[-1] in (*talk.ENDS, "agent_finished")


class Agentloop(talk.Agentloop):
    def recv(self, secs=ANSWER_SECS):
        return super().recv(secs)


class Pair:
    """Two clients of one session. Nobody is asked anything: what would be asked is denied."""

    def __init__(self, scene, session):
        self.scene, self.session = scene, session
        self.unified = scene.unified(session=session)
        self.unified.start(permission_mode="dontAsk")
        wire = scene._wire(f"/ws/{session}", "agentloop", {})
        # Nothing is read from it before it is attached, and a turn may be over at once.
        assert wire.ws.ping().wait(ANSWER_SECS), "a ping is not answered"
        self.agentloop = Agentloop(wire)

    def turn(self, speaker, text):
        """A turn that must end well."""
        told = self.tell(speaker, text)
        eq(told.end, "turn_completed", f"end of the turn, {told.unified[-1]}")
        return told

    def tell(self, speaker, text):
        began = time.monotonic()
        speaker.say(text)
        return self.rest(began)

    def rest(self, began, first_secs=None, unified=(), agentloop=()):
        """What both are told up to the end of the turn, after what was read already."""
        unified = list(unified)
        while not is_over(unified):
            unified.append(self.unified.recv())
            if unified[-1]["type"] == "assistant_message" and first_secs is None:
                first_secs = time.monotonic() - began
        secs = time.monotonic() - began
        if unified[-1].get("error", "").startswith("Interrupted"):
            unified += self.unified.until(lambda frame: frame.get("status") == "paused")
        agentloop = list(agentloop)
        while not is_over(agentloop):
            agentloop.append(self.agentloop.recv())
        return Told(self, unified, agentloop, secs, first_secs)

    def stored(self):
        """The assistant's texts in the session's file."""
        path = self.scene.store / f"{self.session}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        messages = [line["message_data"] or {} for line in lines]
        return said([m for m in messages if m.get("type") == "response_item"])


class Told:
    """A turn as both were told of it; where they disagree, it fails."""

    def __init__(self, pair, unified, agentloop, secs, first_secs):
        self.pair, self.unified, self.agentloop = pair, unified, agentloop
        self.secs, self.first_secs = secs, first_secs

    @property
    def end(self):
        return next(f["type"] for f in self.unified if f["type"] in talk.ENDS)

    @property
    def text(self):
        """What the model said last, put together from its pieces."""
        pieces = spoken(self.unified)
        eq(said(self.agentloop), pieces, "the pieces put together by the AgentLoop client")
        assert pieces, f"nothing was said: {talk.types(self.unified)}"
        eq(self.pair.stored()[-1], pieces[-1], "the text in the session's file")
        return pieces[-1]

    @property
    def deltas(self):
        """How many pieces came, by dialect."""
        unified = [f for f in of(self.unified, "assistant_message") if f["text"]]
        agentloop = [i for i in items(self.agentloop, "message")
                     if i["role"] == "assistant" and item_text(i)]
        return len(unified), len(agentloop)

    @property
    def usage(self):
        """Tokens in, from the cache, and out, of the last call."""
        usage = of(self.unified, "token_usage")[-1]["usage"]
        return usage["input_tokens"], usage["cached_tokens"], usage["output_tokens"]

    @property
    def fault(self):
        """Why the turn failed."""
        fault = next(f["error"] for f in self.unified if f["type"] == "turn_failed")
        if not fault.startswith("Interrupted"):
            eq(self.agentloop[-2]["payload"]["details"]["error"], fault, "fault to AgentLoop")
        return fault
