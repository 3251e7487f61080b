"""Clients of all dialects do what they like, leave, come back, and the server is killed now and
then; whoever followed a session saw what a replay of it shows, and every transcript is in order.

A seed decides who does what, not when: a failure names its seed, and may need several runs.
"""

import json
import random
from contextlib import suppress

from websockets.exceptions import ConnectionClosed

from harness import WAIT_SECS, eq
from story import story
from talk import ASKS, talks

STEPS = 50
SCRIPTS = [
    "say: hello there", "stream: 20 16 2", "think: hm\nsay: x\nrun: touch a{n}\nsay: y", "run: ls",
    "ask: Which? | a | b\nsay: end", "plan: do it\nsay: end", "say: begun\nfail: hang",
    "run: touch b{n}\n&run: touch c{n}\n&run: ls\nsay: z", "fail: 500", "usage: 50 5\nsay: u",
    "run: for i in 1 2 3; do echo $i; done\nstream: 10 9 1", "stream: 400 8 1\nrun: sleep 30",
    "say: part\n&run: echo x{n} > f\nask: Q? | x | y\nplan: p{n}\nsay: done", "fail: garbage",
    "cut:\nrun: ls\nsay: after", "hello",
]
WHAT = ["say", "say", "say", "settle", "settle", "settle", "explain", "late", "interrupt", "resume",
        "cancel", "mode", "compact", "chat", "chat", "leave", "leave"]


class Follower:
    """Follows a session, also over several connections and servers."""

    def __init__(self, s):
        self.s, self.frames = s, []
        self.client = None
        self.come()

    def place(self):
        return self.frames[-1].get("cursor", self.frames[-1]["seq"]) if self.frames else 0

    def come(self):
        self.client = self.s.watcher(since=self.place(), complete=False)

    def take(self, secs=0.0):
        """Takes what has come, or comes within some time."""
        with suppress(TimeoutError, ConnectionClosed):
            while True:
                self.keep(json.loads(self.client.wire.recv(secs)))

    def keep(self, frame):
        # Not what only this connection is told.
        if not frame["id"].startswith(("evt-r", "evt-h")):
            self.frames.append(frame)
        return frame

    def until(self, accepts):
        while not accepts(self.keep(self.client.recv())):
            pass

    def leave(self):
        self.client.drop()

    def open_requests(self):
        found = {}
        for frame in self.frames:
            if frame["type"] in ASKS:
                found[frame["request_id"]] = frame
            elif frame["type"] == "approval_settled":
                found.pop(frame["request_id"], None)
        return list(found.values())


def settle(choice, client, request):
    match request["type"]:
        case "control_request":
            decisions = ["allow", "allow", "deny", "allow_always", "deny_stop"]
            client.decide(request, choice.choice(decisions))
        case "ask_user_question":
            client.answer(request, [choice.choice(["a", "x", "something else"])])
        case _:
            client.approve(request, choice.random() < 0.7, feedback="so it is")


def act(choice, number, what, main, roamer, member):
    script, client = choice.choice(SCRIPTS).format(n=number), main.client
    match what:
        case "say":
            client.say(script)
        case "settle" | "explain":
            for request in main.open_requests()[:1]:
                if what == "explain" and request["type"] == "control_request":
                    client.decide(request, "explain")
                else:
                    settle(choice, client, request)
        case "late":
            if asked := [frame for frame in main.frames if frame["type"] in ASKS]:
                client.decide(choice.choice(asked), "allow")
        case "cancel":
            client.send("cancel", target_id=f"msg-{choice.randrange(1, client.sent + 2):03}")
        case "mode":
            modes = ["manual", "acceptEdits", "plan", "dontAsk"]
            client.send("set_permission_mode", mode=choice.choice(modes))
        case "chat":
            member.say(choice.choice([script, "yes", "1", "no"]))
        case "leave":
            roamer.take(choice.random() * 0.02)
            roamer.leave()
            roamer.come()
        case _:
            client.send(what)


def listen(*wires):
    """Takes what others were told, so that it is in their transcripts."""
    for wire in wires:
        with suppress(TimeoutError, ConnectionClosed):
            while True:
                wire.recv(0.0)


def mixture(s, seed, kills):
    choice = random.Random(seed)
    server = s.server()
    main, roamer = Follower(s), Follower(s)
    member, viewer = s.chat(session="s1", complete=False), s.agentloop(complete=False)
    for number in range(STEPS):
        main.take()
        listen(member.wire, viewer.ws)
        if kills and choice.random() < 0.06:
            main.take(choice.random() * 0.05)
            server.kill()
            for follower in (main, roamer):
                follower.take(1.0)
            server = s.server()
            main.come()
            roamer.come()
            member, viewer = s.chat(session="s1", complete=False), s.agentloop(complete=False)
        act(choice, number, choice.choice(WHAT), main, roamer, member)
    # What was said in the room has arrived; later it would open the session again.
    assert member.wire.ws.ping().wait(WAIT_SECS), "a ping is not answered"
    # An ended session has no turn and no queue, so nothing comes after this.
    main.client.send("session_start")
    main.client.send("session_end")
    main.until(lambda frame: frame.get("status") == "completed")
    replay = Follower(s)
    last = main.frames[-1]["seq"]
    for follower in (roamer, replay):
        if follower.place() != last:
            follower.until(lambda frame: frame.get("seq") == last and "cursor" not in frame)
    want = story(replay.frames)
    eq(story(main.frames), want, f"seed {seed}: what was seen live, and the replay")
    eq(story(roamer.frames), want, f"seed {seed}: what the one who left saw, and the replay")
    listen(member.wire, viewer.ws)


@talks
def test_one(s):
    mixture(s, 1, kills=False)


@talks
def test_two(s):
    mixture(s, 2, kills=False)


@talks
def test_three_with_kills(s):
    mixture(s, 3, kills=True)


@talks
def test_four_with_kills(s):
    mixture(s, 4, kills=True)


@talks
def test_five_with_kills(s):
    mixture(s, 5, kills=True)
