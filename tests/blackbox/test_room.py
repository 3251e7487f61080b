"""The chat room: who is told what, and that one slow member holds up nobody."""

import json

from harness import WAIT_SECS, eq
from talk import of, spoken, talks, types, words
from test_limits import never_reads


def heard(client, text):
    """Waits until a member is told an answer; all its frames up to there."""
    return client.until(lambda f: f["type"] == "agent_message" and f["message"] == text)


def first_is(client, text):
    """The next that a member hears is this user's message: nothing was told before."""
    frame = client.recv()
    eq((frame["type"], frame.get("message")), ("user_message", text), f"the first: {frame}")


@talks
def test_everybody_hears_everything(s):
    s.server()
    speaker, member = s.chat(session="s1"), s.chat(session="s2")
    silent = [s.chat("/chat"), s.chat("/ws"), s.chat("/ws?protocol=chat"),
              s.chat("/", subprotocols=["chat.v1"])]
    speaker.say("think: hm\nsay: I look\nrun: ls\nsay: Done.")
    frames = heard(speaker, "Done.")
    eq(types(frames), ["user_message", "agent_thinking", "agent_thinking", "tool_call",
                       "tool_result", "agent_message"])
    for other in (member, *silent):
        eq(heard(other, "Done."), frames, "the same frames")
    member.say("say: of another")
    for other in (speaker, *silent):
        eq(words(heard(other, "of another")),
           [("user_message", "say: of another"), ("agent_message", "of another")])


@talks
def test_a_conversation_without_a_name_is_heard_too(s):
    s.server()
    speaker, silent = s.chat(), s.chat("/ws")
    speaker.turn("say: hello")
    eq(words(heard(silent, "hello")), [("user_message", "say: hello"), ("agent_message", "hello")])


@talks
def test_who_comes_later_hears_what_comes_then(s):
    s.server()
    speaker = s.chat(session="s1")
    speaker.turn("say: before")
    late = s.chat("/ws")
    speaker.turn("say: after")
    first_is(late, "say: after")


@talks
def test_other_dialects_hear_nothing_of_it(s):
    s.server()
    speaker = s.chat(session="s1")
    unified, agentloop = s.unified(session="s2"), s.agentloop("s3")
    unified.turn("say: x")
    agentloop.turn("say: x")
    unspoken = s.unified("/unified", session="s4")
    undecided = s.unified("/", session="s5")
    speaker.turn("say: only for the room")
    unified.still_open()
    agentloop.still_open()
    for other in (unspoken, undecided):
        eq(other.turn("say: x")[0]["type"], "turn_started", "the first frame")


@talks
def test_who_turns_out_to_speak_another_dialect_leaves_the_room(s):
    s.server()
    viewer, speaker = s.unified("/ws", session="s2"), s.chat(session="s1")
    speaker.turn("say: one")
    eq(viewer.until(lambda f: f["type"] == "agent_message")[-1]["message"], "one", "a viewer")
    eq(spoken(viewer.turn("say: mine")), ["mine"])
    speaker.turn("say: two")
    viewer.still_open()


@talks
def test_sessions_never_spoken_in_are_not_told(s):
    s.server()
    member, viewer = s.chat(session="s1"), s.chat("/ws")
    other = s.unified(session="s2")
    other.turn("say: private")
    s.agentloop("s3").turn("say: private too")
    member.turn("say: public")
    first_is(viewer, "say: public")
    eq(member.seen[0]["message"], "say: public", "the first that the member hears")


@talks
def test_a_session_joins_the_room_when_it_is_spoken_in(s):
    s.server()
    viewer, other = s.chat("/ws"), s.unified()
    other.turn("say: before")
    member = s.chat(session="s1")
    member.turn("say: now")
    eq(words(viewer.until("agent_message")),
       [("user_message", "say: now"), ("agent_message", "now")], "nothing of before")
    other.until_end()
    other.turn("run: ls\nsay: from unified")
    frames = heard(viewer, "from unified")
    eq(types(frames), ["user_message", "tool_call", "tool_result", "agent_message"])
    eq(heard(member, "from unified"), frames, "every member")


@talks
def test_after_a_restart_the_room_is_empty(s):
    server = s.server()
    s.chat(session="s1", complete=False).turn("say: before")
    server.kill()
    s.server()
    viewer, other = s.chat("/ws"), s.unified()
    other.turn("say: unheard")
    s.chat(session="s1").turn("say: heard")
    first_is(viewer, "say: heard")


@talks
def test_errors_are_told_to_all(s):
    s.server()
    speaker, member = s.chat(session="s1"), s.chat("/chat")
    member.turn("say: I am here")
    heard(speaker, "I am here")
    speaker.raw(json.dumps({"type": "chat", "message": " "}))
    for other in (speaker, member):
        eq(other.error(), "Empty message received")
    speaker.turn("fail: 500")
    eq(types(member.until("error")), ["user_message", "error"], "a failed turn")


@talks
def test_an_undecided_client_s_error_is_its_own(s):
    s.server()
    member, viewer = s.chat("/chat"), s.chat("/ws")
    for text in ("{", '{"type":"nope"}', "[]"):
        viewer.raw(text)
        viewer.error()
    member.turn("say: x")
    eq(types(member.seen), ["user_message", "agent_message"], "what the member heard")


@talks
def test_two_members_in_one_session(s):
    s.server()
    one, two = s.chat(session="s1", name="Ada"), s.chat(session="s1", name="Bob")
    one.say("stream: 5 8 20\nsay: first")
    one.until("user_message")
    two.until("user_message")
    two.say("say: second")
    two.say("say: third")
    for member in (one, two):
        member.until(lambda f: f.get("message") == "third")
        said = [f["message"].split()[-1] for f in of(member.seen, "user_message")]
        eq(said, ["first", "second", "third"], "messages in order")
        answers = [f["message"].split()[-1] for f in of(member.seen, "agent_message")]
        eq(answers, ["first", "second", "third"], "answers in order")
    eq(one.seen, two.seen, "both heard the same")


@talks
def test_different_sessions_go_on_at_the_same_time(s):
    s.server()
    one, two = s.chat(session="s1"), s.chat(session="s2")
    one.say("ask: Which? | a | b")
    one.until("agent_message")
    two.say("say: not held up")
    heard(two, "not held up")
    heard(one, "not held up")
    one.say("1")
    one.until("agent_message")


@talks
def test_broadcast_limited_to_the_session(s):
    s.server(env={"CHAT_BROADCAST": "session"})
    one, two, viewer = s.chat(session="s1"), s.chat(session="s2"), s.chat("/ws")
    both = s.chat()
    two.turn("say: of two")
    both.turn("say: of both", session="s1")
    one.turn("say: of one")
    eq(words(one.seen), [("user_message", "say: of one"), ("agent_message", "of one")],
       "it had not spoken there before")
    heard(both, "of one")
    one.raw(json.dumps({"type": "chat", "message": ""}))
    eq(one.error(), "Empty message received")
    two.turn("say: again of two")
    eq({f["session_id"] for f in two.seen}, {"s2"}, "what the second heard")
    both.turn("say: last", session="s1")
    eq({f["session_id"] for f in both.seen}, {"s1"}, "what the third heard")
    eq(of(both.seen + two.seen, "error"), [], "a bad frame's error is its sender's")
    viewer.turn("say: mine", session="s9")
    eq({f["session_id"] for f in viewer.seen}, {"s9"}, "a silent viewer heard nothing")


@talks
def test_a_wrong_setting_is_refused_at_start(s):
    done = s.t.program("serve", "--port", "0", env={"CHAT_BROADCAST": "nobody"})
    assert done.returncode != 0 and "CHAT_BROADCAST" in done.stderr, done


@talks
def test_a_member_that_never_reads_is_cut_off_and_holds_up_nobody(s):
    server = s.server()
    slow = never_reads(server, "/chat")
    speaker, member = s.chat(), s.chat("/ws")
    # More than a server can be expected to keep for one client.
    count, size = 26, 1_000_000
    for number in range(count):
        # Each in a session of its own, since a long one takes long to prompt a model with.
        speaker.say(f"stream: 10 {size // 10} 0\nsay: end {number}", session=f"s{number}")
        for client in (speaker, member):
            frame = client.until("agent_message")[-1]
            assert frame["message"].endswith(f"end {number}"), frame["message"][-30:]
    slow.settimeout(WAIT_SECS)
    taken = 0
    try:
        while data := slow.recv(1 << 20):
            taken += len(data)
    except ConnectionError:
        pass
    assert taken < count * size, f"it was cut off, and got {taken} bytes"


@talks
def test_many_members_come_and_go(s):
    s.server()
    speaker = s.chat(session="s1")
    members = [s.chat("/ws", complete=False) for _ in range(20)]
    for number in range(10):
        speaker.say(f"say: {number}")
        members[number * 2].drop()
    for number in range(10):
        eq(speaker.until_answer()[-1]["message"], str(number))
    for member in members[1::2]:
        heard(member, "9")
        eq([f["message"] for f in of(member.seen, "agent_message")], list("0123456789"), "answers")
