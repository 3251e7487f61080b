"""Unified: clients that leave and come back with their place, and what is still asked of them."""

from harness import eq
from talk import ASKS, merged, of, spoken, talks, types

LONG = "stream: 200 16 5"
WHOLE = "".join(f"{n:07} " for n in range(400))


def leaves_while_streaming(s, pieces=6):
    """A client that goes away in the middle of a text."""
    client = s.unified(complete=False)
    client.say(f"say: before\n{LONG}\nsay: after")
    while len(spoken(client.seen)) < 2 or len(client.seen) < pieces:
        client.recv()
    client.drop()
    shown = spoken(client.seen)
    assert shown[0] == "before" and len(shown[1]) < len(WHOLE), "it left while text streamed"
    return client


@talks
def test_back_with_a_cursor(s):
    s.server()
    gone = leaves_while_streaming(s)
    assert "cursor" in gone.seen[-1], f"inside a text a frame has a cursor: {gone.seen[-1]}"
    back = s.watcher(since=gone.place())
    frames = back.until_end()
    eq(spoken(gone.seen + frames), ["before", WHOLE, "after"], "texts")
    eq(types(frames), ["assistant_message", "assistant_message", "turn_completed"])


@talks
def test_back_and_cut_right_after_the_greeting(s):
    s.server()
    gone = leaves_while_streaming(s)
    greeted = s.watcher(since=gone.place(), complete=False)
    greeted.drop()
    greeting = greeted.seen[0]
    eq(greeting.get("cursor", greeting["seq"]), gone.place(), "a greeting leaves a client in its place")
    back = s.watcher(since=greeting.get("cursor", greeting["seq"]))
    eq(spoken(gone.seen + back.until_end()), ["before", WHOLE, "after"], "texts")


@talks
def test_back_with_a_bare_seq(s):
    s.server()
    gone = leaves_while_streaming(s)
    back = s.watcher(since=gone.seen[-1]["seq"])
    frames = back.until_end()
    eq(spoken(frames), [WHOLE, "after"], "an open text comes again from its start")
    eq(types(frames), ["assistant_message", "assistant_message", "turn_completed"])


@talks
def test_back_without_a_place(s):
    s.server()
    leaves_while_streaming(s)
    back = s.watcher()
    frames = back.until_end()
    eq(frames[0]["type"], "turn_started", "the opening frame of a running turn")
    eq(spoken(frames), [WHOLE, "after"], "open items so far, then the rest")


@talks
def test_back_again_and_again(s):
    s.server()
    client = s.unified(complete=False)
    greeting = "Grüße 👩‍👩‍👧‍👦 an alle"
    client.say(f"say: {greeting}\nstream: 60 16 10\nthink: hm\nrun: echo 世界\nsay: after")
    frames = [client.recv()]
    while frames[-1]["type"] != "turn_completed":
        place = frames[-1].get("cursor", frames[-1]["seq"])
        client.drop()
        client = s.watcher(since=place, complete=False)
        frames.append(client.recv())
    texts = [greeting, "".join(f"{n:07} " for n in range(120)), "after"]
    eq(spoken(frames), texts, "texts")
    want = ["turn_started", "assistant_message", "assistant_message", "assistant_reasoning",
            "tool_started", "command_output", "tool_completed", "assistant_message",
            "turn_completed"]
    eq(types(frames), want)


@talks
def test_from_every_place_of_a_session(s):
    s.server()
    client = s.unified()
    client.say("think: 考える\nsay: Grüße 👩‍👩‍👧‍👦 to everybody in the world, 世界!\n"
               "run: for i in 1 2; do echo $i; done; unset i\nask: Which? | a | b\nplan: do it\nsay: end")
    request = client.until("control_request")[-1]
    client.decide(request, "explain")
    client.until("control_request")
    client.decide(request, "allow")
    client.answer(client.until("ask_user_question")[-1], ["a"])
    client.approve(client.until("exit_plan_mode")[-1])
    client.until_end()
    client.turn("fail: 429")
    frames = client.seen
    want = merged(frames)
    for at, frame in enumerate(frames[:-1]):
        place = frame.get("cursor", frame["seq"])
        back = s.watcher(since=place, complete=False)
        back.until(lambda f: f["seq"] == frames[-1]["seq"])
        got = merged(frames[: at + 1] + back.seen[1:])
        eq(got, want, f"from {place} ({frame['type']})")
        back.drop()


@talks
def test_from_the_beginning(s):
    s.server()
    client = s.unified()
    client.turn("say: one")
    client.turn("think: hm\nrun: ls\nsay: two")
    client.turn("fail: 500")
    back = s.watcher(since=0)
    frames = back.until(lambda f: f["seq"] == client.seen[-1]["seq"])
    eq(merged(frames), merged(client.seen), "a replay of everything")
    eq(spoken(back.turn("say: live")), ["live"], "and live frames follow")


@talks
def test_from_after_a_crash(s):
    server = s.server()
    client = s.unified(complete=False)
    client.say("say: before\nstream: 100000 20 5")
    while len(client.seen) < 20:
        client.recv()
    place = client.place()
    server.kill()
    s.server()
    back = s.watcher(since=place)
    frames = back.until(lambda f: f["type"] == "turn_failed")
    before, cut = spoken(client.seen + frames)
    eq(before, "before")
    assert cut.startswith(spoken(client.seen)[1]), "every character that was shown is kept"
    number = "".join(f"{n:07} " for n in range(len(cut) // 8 + 1))
    assert number.startswith(cut), "and there is no gap"
    assert frames[-1]["error"].startswith("Interrupted"), frames[-1]
    eq(spoken(back.turn("say: usable")), ["usable"])


def asked_again(s, script, kind, settle):
    """What is pending comes to whoever attaches, once, with the same ids."""
    s.server()
    first = s.unified(complete=False)
    request = first.asked(script, kind)
    place = first.place()
    first.drop()
    same = [key for key in request if key not in ("seq", "cursor")]
    for since in (None, place, 0, request["seq"] - 1):
        client = s.watcher(since=since, complete=False)
        again = client.until(kind)[-1]
        eq({key: again[key] for key in same}, {key: request[key] for key in same}, f"{since}")
        client.send("get_context")
        frames = client.until("context_info")
        eq([f for f in frames if f["type"] in ASKS], [], f"since {since}: it is asked once")
        client.drop()
    s.last.kill()
    s.server()
    client = s.watcher()
    again = client.until(kind)[-1]
    eq({key: again[key] for key in same}, {key: request[key] for key in same}, "after a crash")
    settle(client, again)
    eq(spoken(client.until_end()), ["end"])


@talks
def test_a_pending_approval_comes_again(s):
    asked_again(s, "say: begin\nrun: touch a\nsay: end", "control_request",
                lambda client, request: client.decide(request, "allow"))
    assert (s.work / "a").exists(), "it ran"


@talks
def test_a_pending_question_comes_again(s):
    asked_again(s, "say: begin\nask: Which? | a | b\nsay: end", "ask_user_question",
                lambda client, request: client.answer(request, ["b"]))


@talks
def test_a_pending_plan_comes_again(s):
    asked_again(s, "say: begin\nplan: do it\nsay: end", "exit_plan_mode",
                lambda client, request: client.approve(request))


@talks
def test_coming_by_session_start_gets_what_is_pending(s):
    s.server()
    first = s.unified(complete=False)
    request = first.asked("run: touch a\nsay: end")
    first.drop()
    client = s.unified()
    client.send("session_start")
    again = client.until("control_request")[-1]
    eq(again["request_id"], request["request_id"], "the request")
    client.decide(again, "allow")
    eq(spoken(client.until_end()), ["end"])
    assert of(client.seen, "session_init"), types(client.seen)


@talks
def test_two_clients_see_the_same(s):
    s.server()
    one, two = s.watcher(), s.watcher()
    request = one.asked(f"think: hm\nsay: begin\nrun: touch a\n{LONG}\nfail: 500")
    two.until("control_request")
    two.decide(request, "allow")
    one.until_end()
    two.until_end()
    eq(merged(two.seen), merged(one.seen), "what both saw")


@talks
def test_a_place_that_lies(s):
    server = s.server()
    client = s.unified()
    text = "👩‍👩‍👧‍👦 and a few words more, so that it is streamed in pieces"
    client.turn(f"say: {text}")
    for since in ("5~5t1", "5~5t2", "5~5t999999", "5+9", "5~99t1", "1~5t5", "0+4294967295",
                  "5~5o1", "5~5t1,5t2", "18446744073709551615", "18446744073709551614~1t1"):
        back = s.watcher(since=since, complete=False)
        back.send("get_context")
        for shown in spoken(back.until("context_info")):
            assert shown and text.endswith(shown) or not shown, f"{since}: {shown!r}"
        back.drop()
    for since in ("x", "-1", "1.5", "5~", "~", "1" * 5000):
        status = server.upgrade(f"/unified?session_id=s1&since={since}")
        assert status in (101, 400), f"{since[:20]}: {status}"
    eq(spoken(client.turn("say: fine")), ["fine"], "the session afterwards")
