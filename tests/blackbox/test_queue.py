"""Messages that come while a turn runs wait their turn."""

from frames import kinds, said
from harness import eq


def busy(client):
    """A turn that lasts until its approval is answered."""
    client.say("run: touch a\nsay: 0")
    client.until("approval_request")


def turns(client, count):
    frames = []
    for _ in range(count):
        frames += client.until_end()
    return frames


def test_in_order(t):
    client = t.server().client()
    busy(client)
    for number in range(1, 11):
        client.say(f"say: {number}")
    client.review("no-continue")
    frames = turns(client, 11)
    eq(said(frames), [str(number) for number in range(11)], "replies")
    finished = ["idle", "agent_finished"]
    want = ["function_call", "function_call_output", "assistant", *finished]
    eq(kinds(frames), want + ["loading", "assistant", *finished] * 10)


def test_from_several_clients(t):
    server = t.server()
    one, two = server.client(), server.client()
    busy(one)
    two.until("approval_request")
    one.say("say: 1")
    one.still_open()
    two.say("say: 2")
    two.still_open()
    one.review("no-continue")
    eq(said(turns(one, 3)), ["0", "1", "2"], "replies")


def test_a_full_queue_is_an_error(t):
    client = t.server(env={"MAX_QUEUED_MESSAGES": 3}).client()
    busy(client)
    for number in range(1, 4):
        client.say(f"say: {number}")
        client.still_open()
    client.say("say: too many")
    told = client.error()
    assert "3" in told["details"]["error"], f"it names the limit: {told}"
    client.say("say: too many again")
    client.error()
    client.review("no-continue")
    eq(said(turns(client, 4)), ["0", "1", "2", "3"], "replies")
    eq(said(client.turn("say: there is room again")), ["there is room again"])


def test_the_default_queue_holds_32(t):
    client = t.server().client()
    busy(client)
    for number in range(1, 33):
        client.say(f"say: {number}")
    client.still_open()
    client.say("say: 33")
    client.error()
    client.review("no-continue")
    eq(said(turns(client, 33)), [str(number) for number in range(33)], "replies")


def test_a_failed_turn_does_not_stop_the_queue(t):
    client = t.server().client()
    busy(client)
    client.say("fail: 500")
    client.say("say: 2")
    client.review("no-exit")
    eq(kinds(turns(client, 3))[-4:], ["loading", "assistant", "idle", "agent_finished"])


def test_after_an_interrupt_a_new_message_works(t):
    client = t.server().client()
    busy(client)
    client.send("interrupt")
    client.until_end()
    eq(said(client.turn("say: on")), ["on"])


def test_an_interrupt_loses_no_queued_message(t):
    client = t.server().client()
    busy(client)
    client.say("say: 1")
    client.say("say: 2")
    client.send("interrupt")
    client.until_end()
    client.say("say: 3")
    eq(said(turns(client, 3)), ["1", "2", "3"], "replies")


def test_sessions_do_not_wait_for_each_other(t):
    server = t.server()
    busy(server.client("/ws/s1"))
    eq(said(server.client("/ws/s2").turn("say: here")), ["here"])
