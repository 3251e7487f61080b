"""What goes wrong in a turn leaves a conversation that goes on: the next request is one that the
provider takes, whatever was denied, failed, broken off or summed up."""

import json

from fakemodel import FakeModel
from frames import outputs
from frames import said as agentloop_said
from harness import eq, eventually
from sdk_types import ANTHROPIC, COMPLETIONS, GEMINI, RESPONSES
from talk import spoken, talks
from test_model_requests import TOOLS
from test_models import DONE, SAY, THINK, answer, bash, opaque, say, stopping_before


class Story:
    """One session with one interface; every request so far must be good."""

    def __init__(self, s, api):
        self.s, self.api, self.model = s, api, FakeModel(test=s.t)
        self.settings = api.settings(self.model.url)
        self.server = s.server(env=self.settings)
        # A crash will take it in the middle of a turn.
        self.client = s.agentloop(complete=False)

    def begin(self, *script):
        """Says something that is answered so, up to the request that it causes."""
        self.model.script(script)
        self.client.say("Go")
        return self.client.until("approval_request")[-1]

    def turn(self, *script):
        self.model.script(script)
        return self.client.turn("Go")

    def last(self):
        """The last request's parts."""
        requests = self.model.requests()
        flows = [self.api.check(request) for request in requests]
        eq(self.api.tools(requests[-1]["body"]), TOOLS, "tools")
        return flows[-1]

    def results(self):
        return [part for part in self.last() if part["kind"] == "result"]

    def failed(self, result):
        """Where the interface has a place for it, an error is said to be one."""
        assert result.get("error", True), f"{self.api.name}: no error: {result}"


def goes_wrong(s, api):
    story = Story(s, api)
    client = story.client

    story.begin(answer({"say": SAY}, bash("touch denied")), say(DONE))
    client.review("no-continue", customDenyMessage="rather not: banana")
    eq(agentloop_said(client.until_end()), [DONE])
    assert "banana" in story.results()[-1]["text"], story.results()
    story.failed(story.results()[-1])

    story.begin(answer(bash("touch denied"), bash("touch also")))
    client.review("no-exit")
    client.until_end()
    eq(agentloop_said(story.turn(say(DONE))), [DONE])
    eq(len(story.results()), 3, "both calls have a result")

    frames = story.turn(answer(bash("cat no-such-file")), say(DONE))
    eq(outputs(frames)[0]["metadata"]["exit_code"], 1, "exit code")
    assert "no-such-file" in story.results()[-1]["text"], story.results()

    frames = story.turn(answer({"call": "frobnicate", "args": {"x": 1}}, bash("pwd")), say(DONE))
    eq(agentloop_said(frames), [DONE])
    unknown, known = story.results()[-2:]
    assert "frobnicate" in unknown["text"], unknown
    story.failed(unknown)
    assert known["text"].strip() == str(s.work), known

    story.turn(answer({"call": "bash", "args": {"command": 7}},
                      {"call": "bash", "args": {"frob": "x"}}), say(DONE))
    for result in story.results()[-2:]:
        story.failed(result)

    if api is not GEMINI:  # There calls come as objects.
        story.turn(answer({"call": "bash", "args": '{"command": oops'}), say(DONE))
        story.failed(story.results()[-1])

    answered(story)
    explained(story)
    interrupted(story)
    after_a_crash(story)
    compacted(story)
    eq(sorted(path.name for path in s.work.iterdir()), ["begun", "explained", "running"])


def answered(story):
    """A question beside a command, answered by the next message."""
    question = {"question": "Which colour?", "header": "Colour", "multiSelect": False,
                "options": [{"label": "red", "description": "r"},
                            {"label": "green", "description": "g"}]}
    asks = {"call": "ask_user", "args": {"questions": [question]}}
    story.model.script([answer(bash("pwd"), asks), say(DONE)])
    watcher = story.s.watcher()
    watcher.answer(watcher.asked("Go", "ask_user_question"), ["green"])
    eq(spoken(watcher.until_end()), [DONE])
    story.client.until("agent_finished")
    assert "green" in story.results()[-1]["text"], story.results()
    watcher.drop()


def explained(story):
    client = story.client
    story.begin(answer({"think": THINK, "signature": opaque(7)}, bash("touch explained")))
    story.model.script([say("It makes a file.")])
    client.review("explain")
    client.until("approval_request")
    asked = story.model.requests()[-1]
    flow = story.api.check(asked)
    assert "touch explained" in flow[-1]["text"], flow[-1]
    story.model.script([say(DONE)])
    client.review("yes")
    eq(agentloop_said(client.until_end()), [DONE])
    told = [part["text"] for part in story.last() if part["kind"] == "text"]
    assert any("It makes a file." in text for text in told), told


def interrupted(story):
    """Before a word, in the middle of a text, of an approval, and of a command beside one that
    has run."""
    client, model = story.client, story.model
    model.script([{"hang": True}])
    client.say("Unheard")
    model.until(lambda state: state["open"] == 1, "the model was asked")
    client.send("interrupt")
    client.until("agent_finished")
    eq(agentloop_said(story.turn(say(DONE))), [DONE])
    assert "Unheard" in json.dumps(story.last()), "what the user said stays said"

    reply = answer({"think": THINK, "signature": opaque(8)}, {"say": "begun and more"}, pieces=6)
    model.script([stopping_before("and mo", story.api, model, reply)])
    client.say("Go")
    shown = ""
    while shown != "begun ":
        shown += "".join(agentloop_said([client.recv()]))
    client.send("interrupt")
    client.until("agent_finished")
    model.until(lambda state: state["open"] == 0, "the request was given up")
    eq(agentloop_said(story.turn(say(DONE))), [DONE])
    texts = [part["text"] for part in story.last() if part["kind"] == "text"]
    eq(sum("begun " in text for text in texts), 1, f"what was shown is kept, once: {texts}")

    story.begin(answer(bash("touch withdrawn")))
    client.send("interrupt")
    client.until("agent_finished")
    eq(agentloop_said(story.turn(say(DONE))), [DONE])
    story.failed(story.results()[-1])

    story.begin(answer(bash("pwd"), bash("touch running; sleep 1000")))
    client.review("yes")
    eventually((story.s.work / "running").exists, "the command runs")
    client.send("interrupt")
    client.until("agent_finished")
    eq(agentloop_said(story.turn(say(DONE))), [DONE])
    ran, stopped = story.results()[-2:]
    eq(ran["text"].strip(), str(story.s.work), "the first ran")
    story.failed(stopped)


def after_a_crash(story):
    story.begin(answer({"say": SAY}, bash("touch begun; sleep 1000"), bash("touch never")))
    story.client.review("yes")
    eventually((story.s.work / "begun").exists, "the command runs")
    story.server.kill()
    story.server = story.s.server(env=story.settings)
    story.client = story.s.agentloop()
    story.model.script([say(DONE)])
    story.client.say("Go on")
    eq(agentloop_said(story.client.until("agent_finished")), [DONE])
    for result in story.results()[-2:]:
        story.failed(result)


def compacted(story):
    client, model = story.client, story.model
    story.turn(say("many words " * 500))
    model.script([say("A summary of it all.")])
    client.send("manual_compact")
    client.until("context_compacted")
    client.until("agent_finished")
    story.api.check(model.requests()[-1])
    frames = story.turn(answer(bash("pwd")), say(DONE))
    eq(agentloop_said(frames), [DONE])
    flow = story.last()
    assert "A summary of it all." in flow[0]["text"], flow[0]
    assert "many words" not in json.dumps(flow), "what was summed up is gone"


@talks
def test_responses_goes_on_whatever_went_wrong(s):
    goes_wrong(s, RESPONSES)


@talks
def test_chat_completions_goes_on_whatever_went_wrong(s):
    goes_wrong(s, COMPLETIONS)


@talks
def test_anthropic_goes_on_whatever_went_wrong(s):
    goes_wrong(s, ANTHROPIC)


@talks
def test_google_goes_on_whatever_went_wrong(s):
    goes_wrong(s, GEMINI)
