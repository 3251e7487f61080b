"""What Loom clients see of every agent: its nodes in their order, its own events, each model call
once in the totals; whoever comes late, comes back or takes up a search sees everything once."""

import json
import textwrap

import checker
from harness import Options, eq, eventually
from loomtalk import all_events, events, loom, numbered, reply, watch
from strategies import AGENTS, Thinker, world
from talk import talks
from test_loom_watch import apart
from test_models import unasked
from test_schemas import GOLDEN, fits
from test_thinking_stops import ANSWERS, MIDDLE
from thinking import MESSAGE

ALL = {"react": {"agent": "react"}, **AGENTS}
SAID = {"react": "Well.", **ANSWERS}
# Which nodes there are, in the order in which they are first entered.
NODES = {
    "react": "think act observe",
    "dup": "understand plan act observe",
    "tot": "think_expand act observe think_evaluate think",
    "tot_depth": "think_expand act observe think_evaluate think",
    "tot_vote": "think_expand act observe think_evaluate think",
    "got": "plan_graph execute_graph think act observe",
    "got_adaptive": "plan_graph execute_graph think act observe",
}
OWN = {
    "react": set(),
    "dup": set(),
    "tot": {"tot_expand", "tot_evaluate"},
    "tot_depth": {"tot_expand", "tot_evaluate"},
    "tot_vote": {"tot_expand", "tot_evaluate"},
    "got": {"got_plan", "got_node_start", "got_node_complete"},
    "got_adaptive": {"got_plan", "got_node_start", "got_node_complete", "got_expand"},
}
# What the offline model is told to do; it plays the parts of every strategy by itself.
SCRIPT = "run: ls\nsay: Here it is\nrun: pwd\nsay: Done"


class Counted:
    """The world of `strategies`, with other numbers of tokens for every call."""

    def __init__(self):
        self.given = []

    def __call__(self, asked):
        answer = world(asked)
        answer = {"say": answer} if isinstance(answer, str) else answer
        answer = {"calls": answer} if isinstance(answer, list) else answer
        usage = (100 + 3 * asked.number, 10 + asked.number)
        self.given.append(usage)
        return {**answer, "usage": usage}

    def total(self):
        prompt, completion = (sum(usage[at] for usage in self.given) for at in (0, 1))
        return tokens(prompt, completion)


def tokens(prompt, completion):
    return {"prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt + completion}


class Run:
    """A server with that model, and a thread on which an agent is asked for."""

    def __init__(self, s, name, answers=None):
        self.s, self.name, own = s, name, ALL[name]
        self.answers = Counted() if answers is None else answers
        self.model = Thinker(self.answers, test=s.t)
        self.env = {**self.model.settings(ALLOW_BYPASS="true"), **own.get("env", {})}
        self.server = s.server(env=self.env)
        self.thread = unasked(self.server)
        self.agent = own["agent"]
        self.client = loom(s)

    def ask(self):
        message = "Run it." if self.agent == "react" else MESSAGE
        self.client.run(message, self.thread, self.agent)

    def turn(self):
        self.ask()
        return self.client.until_end()

    def restart(self):
        self.server.kill()
        self.server = self.s.server(env=self.env)

    def done(self):
        self.server.kill()
        (self.s.work / "ran").unlink(missing_ok=True)


# One line for people.


def number(event):
    return event["node_id"].rpartition("-")[2]


def trace(frames):
    """What a run told, in few words: +node number, -number, number:event."""
    words = []
    for event in all_events(frames):
        kind, at = event["type"], number(event)
        if kind == "node_enter":
            task = f" {event['got_node']}" if "got_node" in event else ""
            words.append(f"+{event['id']}{task} {at}")
        elif kind == "node_exit":
            words.append(f"-{at}" + ("" if event["result"] == "Ok" else "!"))
        elif kind == "tot_expand":
            words.append(f"{at}:expand@{event['depth']}{event['candidates']}")
        elif kind == "tot_evaluate":
            words.append(f"{at}:evaluate@{event['depth']}{event['scores']}->{event['chosen']}")
        elif kind == "tot_backtrack":
            words.append(f"{at}:backtrack to {event['to_depth']}")
        elif kind == "got_plan":
            words.append(f"{at}:plan{event['node_ids']} {event['edge_count']} edges")
        elif kind == "got_expand":
            words.append(f"split {event['node_id']} into {event['nodes_added']}")
        elif kind.startswith("got_node_"):
            words.append(f"{at}:{kind.removeprefix('got_node_')} {event['id']}")
        elif kind == "tool_end":
            words.append(f"{at}:{event['name']} {'failed' if event['is_error'] else 'ok'}")
        elif kind == "checkpoint":
            words.append("checkpoint")
    end = frames[-1]
    words.append(f"= {end['reply']!r}" if end["type"] == "run_end" else f"= {end}")
    return " · ".join(words)


def show(name, frames):
    for line in textwrap.wrap(f"{name}: {trace(frames)}", 110, subsequent_indent="  "):
        Options.tell(line)


def paired(frames, name):
    """Every node is entered once and left once, in that order."""
    entered, left = [], []
    for event in all_events(frames):
        if event["type"] == "node_enter":
            entered.append(event["node_id"])
        elif event["type"] == "node_exit":
            assert event["node_id"] in entered, f"{name}: {event} was not entered"
            left.append(event["node_id"])
    eq(sorted(left), sorted(entered), f"{name}: nodes that were left and entered")
    eq(len(set(entered)), len(entered), f"{name}: each has an id of its own")


def order(frames):
    names = [event["id"] for event in events(frames, "node_enter")]
    return " ".join(dict.fromkeys(names))


# With a model that counts.


@talks
def test_each_agent_from_start_to_end(s):
    for name in ALL:
        run = Run(s, name)
        frames = run.turn()
        show(name, frames)
        eq(reply(frames), SAID[name], f"{name}: the reply")
        numbered(frames)
        paired(frames, name)
        eq(order(frames), NODES[name], f"{name}: nodes in their order")
        told = {event["type"] for event in all_events(frames)}
        eq(OWN[name] - told, set(), f"{name}: events of its own")
        assert {"tool_call", "tool_start", "tool_end"} <= told, f"{name}: a tool was called"
        # The model knows how often it was asked, and what it said of each.
        used = [tokens(*usage) for usage in run.answers.given]
        seen = [{key: event[key] for key in tokens(0, 0)} for event in events(frames, "usage")]
        by = sorted(used, key=json.dumps)
        eq(sorted(seen, key=json.dumps), by, f"{name}: usage of every call, once")
        eq(frames[-1]["total_usage"], run.answers.total(), f"{name}: total_usage")
        eq(len(used), len(run.model.asked()), f"{name}: calls that the model served")
        Options.tell(f"  {len(used)} calls, at most {run.model.open_most} at once, "
                     f"total_usage {frames[-1]['total_usage']['total_tokens']} = the sum of them; "
                     f"{frames[-1]['event_id']} event ids without a gap")
        run.done()


@talks
def test_no_two_texts_are_mixed(s):
    """What a client puts together for a node is what one call after the other wrote."""
    for name in AGENTS:
        run = Run(s, name)
        frames = run.turn()
        texts = {}
        for event in all_events(frames):
            if event["type"] in ("message_chunk", "thought_chunk"):
                texts[event["node_id"]] = texts.get(event["node_id"], "") + event["content"]
        written = {str(world(asked)) for asked in run.model.asked()}
        for node, text in texts.items():
            for part in filter(None, text.split("\n\n")):
                assert part in written, f"{name}: {node} holds {part!r}, which no call wrote"
        said = {event["node_id"] for event in events(frames, "message_chunk")}
        assert all("think-" in node or "plan-" in node for node in said), f"{name}: said in {said}"
        run.done()


# Coming late, leaving, coming back.


def same_end(frames, whole, name):
    """All that came is what the one who was there from the start was sent, from some place on."""
    texts, others = apart(frames)
    all_texts, all_others = apart(whole)
    eq(others, all_others[len(all_others) - len(others):], f"{name}: what is told")
    for stream, text in texts.items():
        assert all_texts[stream].endswith(text), f"{name}: {stream} is {text!r}"


@talks
def test_whoever_comes_in_the_middle_sees_it_once(s):
    for name in AGENTS:
        run = Run(s, name, answers=world)
        first = watch(s, run.thread)
        first.still_open()
        held = run.model.hold(*MIDDLE[name], pieces=1)
        run.ask()
        held.reached()
        late = {since: watch(s, run.thread, since=since) for since in (None, 0, 3, 9)}
        before = {since: client.until_pong() for since, client in late.items()}
        held.release()
        whole = first.until_end()
        numbered(whole)
        for since, client in late.items():
            came = before[since] + client.until_end()
            eq(reply(came), reply(whole), f"{name} since {since}: the reply")
            if since is not None:
                same_end(came, whole, f"{name} since {since}")
            if since in (None, 0):
                numbered(came)
            paired_late(came, f"{name} since {since}")
        run.client.until_end()
        run.done()


def paired_late(frames, name):
    """Nothing is left twice, and what is entered is left."""
    left = [event["node_id"] for event in events(frames, "node_exit")]
    entered = [event["node_id"] for event in events(frames, "node_enter")]
    eq(len(set(left)), len(left), f"{name}: nodes that are left")
    eq(set(entered) - set(left), set(), f"{name}: nodes that are never left")


@talks
def test_from_every_cursor_the_rest_comes_once(s):
    for name in AGENTS:
        run = Run(s, name, answers=world)
        watcher = watch(s, run.thread)
        watcher.still_open()
        run.turn()
        whole = watcher.until_end()
        for at in range(0, len(whole) - 1, 7):
            frame = whole[at]
            again = watch(s, run.thread, since=frame.get("cursor", frame["seq"]), complete=False)
            rest = again.until_end()
            texts, others = apart(whole[:at + 1] + rest)
            eq((texts, others), apart(whole), f"{name}: again from {frame.get('cursor')}")
            again.wire.ws.close()
        run.done()


@talks
def test_a_search_that_is_taken_up_has_its_names(s):
    for name in AGENTS:
        run = Run(s, name, answers=world)
        held = run.model.hold(*MIDDLE[name], pieces=1, times=9)
        run.ask()
        held.reached()
        control = s.watcher(run.thread, complete=False)
        control.send("interrupt", reason="enough")
        interrupted = run.client.until_end()
        eq(interrupted[-1]["error"], "Interrupted: enough", f"{name}: the end")
        paired(interrupted, name)
        held.left = 0
        held.release()
        eventually(lambda r=run: r.model.open == 0, f"{name}: calls are given up")
        # Nobody has to have been there.
        run.restart()
        first, second = watch(s, run.thread), watch(s, run.thread)
        first.still_open()
        second.still_open()
        control = s.watcher(run.thread, complete=False)
        control.send("resume")
        resumed = first.until_end()
        show(f"{name} taken up", resumed)
        eq(apart(second.until_end()), apart(resumed), f"{name}: two who watch")
        eq(reply(resumed), SAID[name], f"{name}: the reply")
        numbered(resumed)
        paired(resumed, name)
        tasks = {event["id"] for event in events(resumed, "got_node_complete")}
        if run.agent == "got":
            known = {"alpha", "beta", "gamma", "delta", "beta.one", "beta.two"}
            assert tasks and tasks <= known, f"{name}: {tasks}"
        run.done()


# With the offline model.


@talks
def test_each_agent_offline(s):
    s.server()
    for name in ("react", "dup", "tot", "got"):
        for adaptive in {False, name == "got"}:
            client = loom(s)
            client.run(SCRIPT, f"t-{name}-{adaptive}", name, got_adaptive=adaptive)
            frames = client.until_end()
            show(f"{name}{' adaptive' if adaptive else ''} offline", frames)
            numbered(frames)
            paired(frames, name)
            assert reply(frames), f"{name}: no reply"
            assert events(frames, "tool_end"), f"{name}: no tool was called"
            summed = [sum(event[key] for event in events(frames, "usage")) for key in tokens(0, 0)]
            eq(summed, list(frames[-1]["total_usage"].values()), f"{name}: total_usage")
            for frame in frames:
                fits("loom", "server", frame, name)


# The golden runs.


def golden():
    for path in sorted(GOLDEN.glob("agent-*/loom.out.jsonl")):
        text = path.read_text().replace("$run2", RUN.replace("0b", "0c")).replace("$run", RUN)
        frames = [json.loads(line) for line in text.splitlines()]
        for frame in frames:
            if frame.get("event", {}).get("type") == "checkpoint":
                frame["event"]["checkpoint_id"] = "c"
        yield path.parent.name, frames


RUN = "run-0b9f4c1e-7a35-4d0b-8f5e-3c2f1d6e7a80"


def checked(frames, agent):
    asked = {"type": "run", "id": "r1", "message": "Compare a.txt and b.txt",
             "thread_id": "golden", "agent": agent}
    transcript = [{"open": {"path": "/loom"}}, {"in": asked}]
    return checker.check("loom", transcript + [{"out": frame} for frame in frames])


def test_golden_runs(t):
    found = 0
    for name, frames in golden():
        agent = frames[0]["event"]["agent"]
        eq(checked(frames, agent), [], name)
        for at in range(len(frames)):
            assert checked(frames[:at] + frames[at + 1:], agent), f"{name} without {frames[at]}"
        found += 1
    assert found >= 10, f"only {found} golden runs were found"
