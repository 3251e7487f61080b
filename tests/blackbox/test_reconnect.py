"""Several clients on one session, and clients that leave and come back."""

from urllib.parse import quote

from frames import item_text, kinds, outputs, said, texts
from harness import eq, eventually

LONG = "stream: 60 20 10"
WHOLE = "".join(f"{n:07} " for n in range(150))


def whole(server, session="s1"):
    """The assistant's texts by item id as the session keeps them."""
    found = [m["payload"] for m in server.messages(session) if m.get("type") == "response_item"]
    return {i["id"]: item_text(i) for i in found if i.get("role") == "assistant"}


def merged(frames):
    """What frames say, whatever pieces streamed text came in."""
    said_so_far = []
    for frame in frames:
        item = frame["payload"]
        if frame["type"] == "response_item" and item.get("role") == "assistant":
            if said_so_far and said_so_far[-1][0] == item["id"]:
                said_so_far[-1] = (item["id"], said_so_far[-1][1] + item_text(item))
            else:
                said_so_far.append((item["id"], item_text(item)))
        else:
            said_so_far.append((frame["type"], frame["id"], frame["payload"]))
    return said_so_far


def test_two_clients_see_the_same(t):
    server = t.server()
    one, two = server.client(), server.watcher()
    one.say(f"think: hm\nsay: begin\nrun: touch a\n{LONG}\nfail: 500")
    for client in (one, two):
        client.until("approval_request")
    two.review("yes")
    one.until_end()
    two.until_end()
    eq(merged(two.seen), merged(one.seen), "what both saw")
    assert "error" in kinds(one.seen) and "reasoning" in kinds(one.seen), kinds(one.seen)


def leaves_while_streaming(server, pieces=5):
    """A client that goes away in the middle of a text."""
    client = server.client()
    client.say(f"say: before\n{LONG}\nsay: after")
    while len(texts(client.seen)) < 2 or len(client.seen) < pieces:
        client.recv()
    client.drop()
    assert len(said(client.seen)[1]) < len(WHOLE), "it left while text streamed"
    return client


def test_back_with_its_cursor(t):
    server = t.server()
    gone = leaves_while_streaming(server)
    back = server.client(f"/ws/s1?since={quote(str(gone.place()))}")
    back.until_end()
    both = gone.seen + back.seen
    eq(said(both), ["before", WHOLE, "after"], "texts")
    eq(texts(both), whole(server), "texts by item id")
    eq(kinds(both)[-3:], ["assistant", "idle", "agent_finished"])
    assert "loading" not in kinds(back.seen), "the beginning is not repeated"


def test_back_again_and_again(t):
    server = t.server()
    client = server.client()
    client.say(f"say: before\n{LONG}\nsay: after")
    frames = [client.recv()]
    while frames[-1]["type"] != "agent_finished":
        place = frames[-1].get("cursor", frames[-1]["seq"])
        client.drop()
        client = server.client(f"/ws/s1?since={quote(str(place))}")
        frames.append(client.recv())
    eq(said(frames), ["before", WHOLE, "after"], "texts")
    eq(kinds(frames), ["loading", "assistant", "assistant", "assistant", "idle", "agent_finished"])


def test_back_with_a_bare_seq(t):
    server = t.server()
    gone = leaves_while_streaming(server)
    back = server.client(f"/ws/s1?since={gone.seen[-1]['seq']}")
    back.until_end()
    # The item that was open comes again from its start, the ones before it do not.
    eq(said(back.seen), [WHOLE, "after"], "texts")
    eq(kinds(back.seen), ["assistant", "assistant", "idle", "agent_finished"])


def test_back_without_since(t):
    server = t.server()
    gone = leaves_while_streaming(server)
    back = server.client()
    back.until_end()
    eq(kinds(back.seen)[0], "loading", "the opening frame")
    eq(said(back.seen)[-2:], [WHOLE, "after"], "the open item from its start, then the rest")
    assert "before" not in said(back.seen), "what was complete is not sent again"
    eq(len(gone.seen), len({f["id"] for f in gone.seen}), "ids")


def test_from_the_beginning(t):
    server = t.server()
    client = server.client()
    client.turn("say: one")
    client.turn("think: hm\nrun: ls\nsay: two")
    client.turn("fail: 500")
    back = server.client("/ws/s1?since=0")
    while len(merged(back.seen)) < len(merged(client.seen)):
        back.recv()
    eq(merged(back.seen), merged(client.seen), "a replay of everything")
    eq(said(back.turn("say: live")), ["live"], "and live frames follow")


def test_from_every_place_of_a_session(t):
    server = t.server()
    client = server.client()
    client.say("think: 考える\nsay: Grüße 👩‍👩‍👧‍👦 to everybody in the whole wide world, 世界!\n"
               "run: touch a\nsay: and so on, with a few more words")
    client.until("approval_request")
    client.review("explain")
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    client.send("manual_compact")
    client.until("agent_finished")
    client.turn("fail: 429")
    frames = client.seen
    for at, frame in enumerate(frames[:-1]):
        place = frame.get("cursor", frame["seq"])
        back = server.client(f"/ws/s1?since={quote(str(place))}")
        want = merged(frames)
        while len(merged(frames[: at + 1] + back.seen)) < len(want):
            back.recv()
        back.turn("say: end")
        got = merged(frames[: at + 1] + back.seen)[: len(want)]
        eq(got, want, f"{place} ({kinds([frame])})")
        client.until_end()
        frames = client.seen
        back.drop()


def test_a_cursor_that_lies(t):
    server = t.server()
    client = server.client()
    text = "👩‍👩‍👧‍👦 and a few words more, so that it is streamed in pieces"
    client.turn(f"say: {text}")
    item = next(int(i.removeprefix("msg_")) for i in texts(client.seen))
    for cursor in (f"{item}~{item}t1", f"{item}~{item}t2", f"{item}~{item}t999999", f"{item}+9",
                   f"{item}~99t1", f"1~{item}t5", "0+4294967295", f"{item}~{item}o1",
                   f"{item}~{item}t1,{item}t2", "18446744073709551615", "18446744073709551614~1t1"):
        back = server.client(f"/ws/s1?since={quote(cursor)}")
        back.send("get_context_info")
        frames = back.until("context_info")
        for shown in said(frames):
            assert shown and text.endswith(shown), f"{cursor}: {shown!r}"
        back.drop()
    eq(said(server.client().turn("say: fine")), ["fine"], "the session afterwards")


def test_a_pending_approval_is_sent_to_whoever_comes(t):
    server = t.server()
    first = server.client()
    first.say("say: begin\nrun: touch a\nsay: end")
    request = first.until("approval_request")[-1]
    place = first.place()
    first.drop()
    for path in ("/ws/s1", f"/ws/s1?since={quote(str(place))}", "/ws/s1?since=0", "/ws/s1"):
        client = server.client(path)
        frames = client.until("approval_request")
        eq((frames[-1]["id"], frames[-1]["payload"]), (request["id"], request["payload"]), path)
        client.still_open()  # Sent once: nothing else comes before the answer.
        if "since" not in path:
            eq(kinds(frames), ["loading", "approval_request"], path)
        client.drop()
    client = server.client()
    client.until("approval_request")
    client.review("yes", requestId=request["id"])
    eq(said(client.until_end()), ["end"])
    assert (t.work / "a").exists(), "it ran"


def test_a_turn_goes_on_while_nobody_is_attached(t):
    server = t.server()
    leaves_while_streaming(server)
    finished = lambda: any(m.get("type") == "agent_finished" for m in server.messages())
    eventually(finished, "the turn ends by itself")
    eq(list(whole(server).values()), ["before", WHOLE, "after"], "texts")


def test_a_command_goes_on_while_nobody_is_attached(t):
    server = t.server()
    client = server.client()
    client.say("run: while [ ! -e go ]; do sleep 0.05; done; echo went\nsay: end")
    client.until("approval_request")
    client.review("yes")
    client.until("response_item")
    client.drop()
    (t.work / "go").touch()
    finished = lambda: any(m.get("type") == "agent_finished" for m in server.messages())
    eventually(finished, "the turn ends by itself")
    frames = [m for m in server.messages() if m.get("type") == "response_item"]
    eq(outputs(frames)[0]["output"], "went\n", "output")


def test_a_quiet_session_sends_nothing_on_attach(t):
    server = t.server()
    server.client().turn("say: x")
    client = server.client()
    client.still_open()
    eq(len(client.seen), 1, "frames")


def test_many_clients_come_and_go_while_text_streams(t):
    server = t.server()
    speaker = server.client()
    speaker.say("stream: 100 30 10")
    speaker.until("response_item")
    watchers = [server.client() for _ in range(20)]
    for watcher in watchers[::2]:
        watcher.recv()
        watcher.drop()
    speaker.until_end()
    (text,) = said(speaker.seen)
    for watcher in watchers[1::2]:
        watcher.until_end()
        eq(said(watcher.seen), [text], "text")
