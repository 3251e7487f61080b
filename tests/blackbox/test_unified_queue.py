"""Unified: messages that wait for their turn are told, told again, cancelled and begun."""

from harness import eq
from talk import of, spoken, talks, the

FIELDS = ("message_id", "message", "by", "client_ref")


def facts(frame):
    return {name: frame[name] for name in FIELDS if name in frame}


def busy(s, **options):
    """A client whose turn lasts until its request is answered, and that request."""
    client = s.unified(**options)
    return client, client.asked("run: touch a\nsay: 0")


@talks
def test_everybody_is_told_what_waits_and_what_begins(s):
    s.server()
    one, request = busy(s, name="Ada")
    two = s.watcher(name="Bob")
    two.until("control_request")
    own = one.say("say: 1")
    told = [the(one.until("message_queued"), "message_queued")]
    two.say("say: 2")
    told += [the(one.until("message_queued"), "message_queued")]
    names = [frame["message_id"] for frame in told]
    eq([facts(frame) for frame in told],
       [{"message_id": names[0], "message": "say: 1", "by": "Ada (unified)", "client_ref": own},
        {"message_id": names[1], "message": "say: 2", "by": "Bob (unified)",
         "client_ref": "msg-001"}], "what waits")
    assert names[0] != names[1] and all(name.startswith("queued-") for name in names), names
    two.decide(request, "deny")
    for client in (one, two):
        frames = [frame for _ in range(3) for frame in client.until_end()]
        eq([facts(frame) for frame in of(frames, "turn_started")],
           [facts(frame) for frame in told], "what began")
        eq(spoken(frames), ["0", "1", "2"], "answers")


@talks
def test_what_begins_at_once_does_not_wait(s):
    s.server()
    client = s.unified()
    for number in range(3):
        frames = client.turn(f"say: {number}")
        eq(of(frames, "message_queued"), [], "nothing waits")
        assert "message_id" not in the(frames, "turn_started"), frames[0]


@talks
def test_who_comes_is_told_what_waits_once(s):
    s.server()
    client, request = busy(s)
    client.say("say: 1")
    client.say("say: 2")
    told = [the(client.until("message_queued"), "message_queued") for _ in range(2)]
    before = told[0]["seq"] - 1
    for since in (None, before, before + 1, before + 2, 0, 1):
        comer = s.watcher(since=since, complete=False)
        comer.send("get_context")
        seen = of(comer.until("context_info"), "message_queued")
        # What is told again comes after what was missed; the names say the order.
        seen.sort(key=lambda frame: int(frame["message_id"].removeprefix("queued-")))
        eq([facts(frame) for frame in seen], [facts(frame) for frame in told], f"since {since}")
        eq([frame["id"] for frame in seen], [frame["id"] for frame in told], f"since {since}")
        comer.drop()
    client.decide(request, "deny")
    for _ in range(3):
        client.until_end()
    comer = s.watcher()
    comer.still_open()


@talks
def test_what_waits_outlives_a_kill(s):
    server = s.server()
    client, request = busy(s, complete=False)
    client.say("say: 1")
    told = the(client.until("message_queued"), "message_queued")
    server.kill()
    s.server()
    for since in (None, told["seq"]):
        comer = s.watcher(since=since, complete=False)
        again = the(comer.until("message_queued"), "message_queued")
        eq((facts(again), again["id"]), (facts(told), told["id"]), f"since {since}")
        if since is None:
            comer.drop()
    comer.decide(request, "deny")
    frames = comer.until_end() + comer.until_end()
    eq(the(frames, "turn_started")["message_id"], told["message_id"], "it begins")


@talks
def test_after_an_interrupt_what_waits_still_does(s):
    s.server()
    client, _ = busy(s)
    client.say("say: 1")
    told = the(client.until("message_queued"), "message_queued")
    client.send("interrupt")
    client.until_end()
    comer = s.watcher()
    eq(facts(the(comer.until("message_queued"), "message_queued")), facts(told), "told again")
    client.say("say: 2")
    last = the(client.until("message_queued"), "message_queued")
    eq(last["message"], "say: 2", "it waits for the one before")
    for talker in (client, comer):
        frames = talker.until_end() + talker.until_end()
        eq([frame["message_id"] for frame in of(frames, "turn_started")],
           [told["message_id"], last["message_id"]], "what began")


@talks
def test_a_waiting_message_is_cancelled_by_either_name(s):
    s.server()
    client, request = busy(s, name="Ada")
    comer = s.watcher(name="Bob")
    comer.until("control_request")
    own = client.say("say: GONE")
    first = the(comer.until("message_queued"), "message_queued")
    client.say("say: GONE TOO")
    second = the(comer.until("message_queued"), "message_queued")
    client.send("cancel", target_id=own)
    dropped = the(comer.until("message_dropped"), "message_dropped")
    eq((dropped["message_id"], dropped["by"]), (first["message_id"], "Ada (unified)"), "dropped")
    comer.send("cancel", target_id=second["message_id"])
    dropped = the(client.until(lambda frame: frame.get("by") == "Bob (unified)"
                               and frame["type"] == "message_dropped")[-1:], "message_dropped")
    eq(dropped["message_id"], second["message_id"], "dropped by its name")
    for name in (second["message_id"], first["message_id"], "queued-99999", "queued-", "queued-x"):
        client.send("cancel", target_id=name)
        client.error()
    client.decide(request, "deny")
    eq(spoken(client.until_end()), ["0"], "answers")
    client.still_open()


@talks
def test_the_running_turn_is_cancelled_by_its_message_s_name(s):
    s.server()
    client, request = busy(s)
    client.say("stream: 100000 10 20\nsay: AFTER")
    told = the(client.until("message_queued"), "message_queued")
    client.decide(request, "deny")
    client.until_end()
    client.until("assistant_message")
    client.send("cancel", target_id=told["message_id"])
    failed = the(client.until_end(), "turn_failed")
    assert failed["error"].startswith("Interrupted: "), failed


@talks
def test_a_session_that_ends_drops_what_waits(s):
    s.server()
    client, _ = busy(s, name="Ada")
    client.say("say: 1")
    client.say("say: 2")
    told = [the(client.until("message_queued"), "message_queued") for _ in range(2)]
    client.send("session_end")
    frames = client.until(lambda frame: frame.get("status") == "completed")
    eq([(frame["message_id"], frame["by"]) for frame in of(frames, "message_dropped")],
       [(frame["message_id"], "Ada (unified)") for frame in told], "dropped")
    eq(of(frames, "notice"), [], "no notice says it too")
    comer = s.watcher()
    comer.still_open()


@talks
def test_messages_of_other_dialects_wait_in_sight_too(s):
    s.server()
    client, request = busy(s)
    member, viewer = s.chat(session="s1"), s.agentloop()
    viewer.until("approval_request")
    viewer.say("say: 1")
    told = the(client.until("message_queued"), "message_queued")
    eq((told["message"], told["by"]), ("say: 1", "a client of agentloop"), "from agentloop")
    member.say("say: 2")
    told = the(client.until("message_queued"), "message_queued")
    eq((told["message"], told["by"]), ("say: 2", "a client of chat"), "from chat")
    assert "client_ref" not in told, told
    client.decide(request, "deny")
    for _ in range(3):
        client.until_end()
        viewer.until_end()
    member.until(lambda frame: frame.get("message") == "2")
