"""kill -9 while a summary is being written, by itself and on request: the session goes on in every
dialect, and the model is shown one result for every call."""

import collections
import json

from harness import eq
from loomtalk import loom
from sdk_types import ANTHROPIC, COMPLETIONS, RESPONSES
from talk import talks
from test_context_full import FULL, REQUEST, SUMMARY, Case, reply, say
from test_models import bash

# Slow enough that nobody sees its end.
SLOW_SUMMARY = say("They talked. " * 2_000, pieces=20, delay_ms=5)


def pairs(api, request):
    """Every call of a request has exactly one result."""
    flow = api.check(request)
    calls = collections.Counter(part["id"] for part in flow if part["kind"] == "call")
    results = collections.Counter(part["id"] for part in flow if part["kind"] == "result")
    eq(results, calls, "results by their calls")
    assert all(count == 1 for count in calls.values()), calls
    return len(calls)


class Killed:
    """A session that was killed while the summary's text was on its way."""

    def __init__(self, s, api):
        self.s, self.case, self.first = s, Case(s, api), []
        self.summarised = False
        case = self.case
        case.begin()
        case.turn("look", reply(bash("echo one"), bash("echo two")), say("seen"))

    def automatic(self, speak):
        """Room is made between two calls of a turn."""
        case = self.case
        case.model.script([reply(bash("echo three"), usage=FULL), SLOW_SUMMARY])
        speak("work on")
        self.kill()
        # It is as full as it was, so room is made first.
        self.first, self.summarised = [say(SUMMARY)], True

    def manual(self, ask):
        self.case.model.script([SLOW_SUMMARY])
        ask()
        self.kill()

    def kill(self):
        model = self.case.model
        model.until(lambda state: state["queued"] == 0 and state["open"] == 1, "a summary begins")
        assert REQUEST in json.dumps(self.case.requests()[-1]["body"]), "it is one"
        # Some of it is there.
        self.case.client.wire.complete = False
        self.s.last.kill()
        model.until(lambda state: state["open"] == 0, "the model is left alone")
        model.clear_script()
        model.clear_requests()
        self.s.server(env=self.case.env)

    def goes_on(self, turn, said):
        """Twice: also behind what was recorded of the first."""
        for number in range(2):
            answer = f"Here I am, {number}."
            self.case.model.script([*self.first, say(answer)])
            frames = turn(f"And now, {number}?")
            assert answer in said(frames), frames[-3:]
            calls = pairs(self.case.api, self.case.requests()[-1])
            assert calls or self.summarised, "the calls are there"
            self.first = []
        eq(self.case.model.state()["queued"], 0, "replies that nobody asked for")


def unified_text(frames):
    return "".join(f["text"] for f in frames if f["type"] == "assistant_message")


def agentloop_text(frames):
    return json.dumps(frames)


def loom_text(frames):
    return frames[-1].get("reply", "")


def unified_client(killed):
    return killed.s.watcher(killed.case.session, complete=False)


@talks
def test_unified_by_itself(s):
    killed = Killed(s, COMPLETIONS)
    killed.automatic(killed.case.client.say)
    killed.goes_on(unified_client(killed).turn, unified_text)


@talks
def test_unified_on_request(s):
    killed = Killed(s, ANTHROPIC)
    killed.manual(lambda: killed.case.client.send("compact"))
    killed.goes_on(unified_client(killed).turn, unified_text)


@talks
def test_agentloop_by_itself(s):
    killed = Killed(s, ANTHROPIC)
    killed.automatic(s.agentloop(killed.case.session, complete=False).say)
    killed.goes_on(s.agentloop(killed.case.session, complete=False).turn, agentloop_text)


@talks
def test_agentloop_on_request(s):
    killed = Killed(s, RESPONSES)
    client = s.agentloop(killed.case.session, complete=False)
    killed.manual(lambda: client.send("manual_compact"))
    killed.goes_on(s.agentloop(killed.case.session, complete=False).turn, agentloop_text)


@talks
def test_loom_by_itself(s):
    killed = Killed(s, RESPONSES)
    client = loom(s, complete=False)
    killed.automatic(lambda text: client.run(text, killed.case.session))
    again = loom(s, complete=False)
    killed.goes_on(lambda text: again.turn(text, killed.case.session), loom_text)


@talks
def test_loom_while_another_asks_for_it(s):
    """Loom has no word for it: somebody else asks, and Loom's runs go on."""
    killed = Killed(s, COMPLETIONS)
    killed.manual(lambda: killed.case.client.send("compact"))
    again = loom(s, complete=False)
    killed.goes_on(lambda text: again.turn(text, killed.case.session), loom_text)
