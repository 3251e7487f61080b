"""Chat: conversations with a name and without, who may approve, and who comes back."""

from harness import eq, eventually
from talk import of, spoken, talks, the, types, words


# Conversations.


@talks
def test_a_conversation_goes_on_after_a_reconnect(s):
    s.server()
    first = s.chat()
    first.turn("ask: Which? | a | b", session="s1")
    first.drop()
    again = s.chat()
    frames = again.turn("2", session="s1")
    assert "b" in frames[-1]["message"], f"the question was still open: {frames}"
    eq(s.sessions(), ["s1"], "sessions")


@talks
def test_a_conversation_goes_on_after_a_restart(s):
    server = s.server()
    first = s.chat(session="s1", complete=False)
    before = first.turn("say: one")[-1]["seq"]
    server.kill()
    s.server()
    again = s.chat(session="s1")
    assert again.turn("say: two")[-1]["seq"] > before, "it is the same session"
    other = s.unified()
    other.start()
    other.send("get_context")
    eq(other.recv()["transcript_length"], 4, "both are in the transcript")


@talks
def test_without_a_session_id_nothing_is_listed_or_kept(s):
    s.server()
    client = s.chat()
    client.turn("run: ls\nsay: x")
    session = client.seen[-1]["session_id"]
    eq(s.sessions(), [], "sessions")
    eq(s.last.get(f"/sessions/{session}").status, 404, "GET")
    kept = [p for p in s.store.rglob("*") if p.is_file() and session in p.read_text("latin-1")]
    named = [p for p in s.store.rglob("*") if session in p.name]
    eq((kept, named), ([], []), "files that know of it")


@talks
def test_without_a_session_id_it_is_remembered_while_the_connection_lives(s):
    s.server()
    client, other = s.chat(), s.chat()
    client.turn("ask: Which? | a | b")
    mine = client.seen[-1]["session_id"]
    other.until("agent_message")
    frames = other.turn("say: mine")
    assert frames[-1]["session_id"] != mine, "another connection, another conversation"
    client.until("agent_message")
    client.say("1")
    frames = client.until(lambda f: f["type"] == "agent_message" and f["session_id"] == mine)
    assert "a" in frames[-1]["message"], f"it answers the question: {frames}"


@talks
def test_without_a_session_id_it_ends_with_its_connection(s):
    s.server()
    client = s.chat(complete=False)
    client.turn("ask: Which? | a | b")
    session = client.seen[-1]["session_id"]
    client.drop()
    other = s.unified(session=session)

    def is_gone():
        other.send("get_context")
        return other.recv()["type"] == "error"

    eventually(is_gone, "the session is gone")
    fresh = s.chat()
    assert fresh.turn("say: x")[-1]["session_id"] != session, "a new conversation"


@talks
def test_with_and_without_are_two_conversations(s):
    s.server()
    client = s.chat()
    client.turn("say: one", session="s1")
    client.turn("say: two")
    client.turn("say: three", session="s2")
    used = [f["session_id"] for f in of(client.seen, "agent_message")]
    eq((used[0], used[2], len(set(used))), ("s1", "s2", 3), "sessions")
    eq(sorted(s.sessions()), ["s1", "s2"], "listed")


# Approvals.


@talks
def test_denied_with_a_reason_when_nobody_can_approve(s):
    s.server()
    client = s.chat(session="s1")
    frames = client.turn("run: touch a")
    result = the(frames, "tool_result")
    eq(result["success"], False, "it is denied")
    assert "approve" in result["result"] or "allow" in result["result"], f"it says why: {result}"
    assert result["result"][:30] in frames[-1]["message"], f"the model was told: {frames[-1]}"
    eq(list(s.work.iterdir()), [], "files")


@talks
def test_it_waits_when_somebody_who_can_is_attached(s):
    s.server()
    client, other = s.chat(session="s1", name="Ada"), s.watcher(name="Bob")
    client.say("run: touch a\nsay: end")
    request = other.until("control_request")[-1]
    eq(list(s.work.iterdir()), [], "it waits")
    other.decide(request, "allow")
    eq(spoken(other.until_end()), ["end"])
    frames = client.until_answer()
    eq(types(frames), ["user_message", "tool_call", "agent_thinking", "tool_result",
                       "agent_message"])
    assert "Bob" in the(frames, "agent_thinking")["reasoning"], "who decided"
    assert (s.work / "a").exists(), "it ran"


@talks
def test_it_is_denied_when_the_other_watches_another_session(s):
    s.server()
    client, other = s.chat(session="s1"), s.unified(session="s2")
    other.start()
    eq(the(client.turn("run: touch a"), "tool_result")["success"], False)
    other.still_open()


@talks
def test_a_turn_of_unified_is_asked_though_only_chat_is_left(s):
    s.server()
    member, other = s.chat(session="s1"), s.unified(complete=False)
    member.turn("say: I am here")
    request = other.asked("run: touch a\nsay: end")
    other.drop()
    again = s.watcher()
    again.decide(again.until("control_request")[-1], "deny")
    eq(again.seen[-1]["request_id"], request["request_id"], "it waited")
    again.until_end()


@talks
def test_it_waits_on_though_whoever_could_approve_left(s):
    s.server()
    client, gone = s.chat(session="s1"), s.watcher(complete=False)
    client.say("run: touch a\nsay: end")
    request = gone.until("control_request")[-1]
    gone.drop()
    other = s.watcher(name="Bob")
    again = other.until("control_request")[-1]
    eq(again["request_id"], request["request_id"], "the request")
    other.decide(again, "allow")
    other.until_end()
    eq(words(client.until_answer())[-1], ("agent_message", "end"))


@talks
def test_a_conversation_without_a_name_takes_its_command_along(s):
    s.server()
    client = s.chat(complete=False)
    session = client.turn("say: hi")[-1]["session_id"]
    other = s.watcher(session)
    client.say("run: echo begun; sleep 300")
    other.decide(other.until("control_request")[-1], "allow")
    other.until("command_output")
    client.drop()
    failed = the(other.until_end(), "turn_failed")
    s.t.no_process_left()
    assert "shutting down" not in failed["error"], f"the server runs on: {failed}"


# A member that names a session in its address.


@talks
def test_a_replay_of_what_was_said(s):
    s.server()
    first, other = s.chat(session="s1"), s.unified()
    first.turn("say: one")
    other.turn("run: ls\nsay: two")
    first.until_answer()
    back = s.chat("/chat?session_id=s1&since=0")
    frames = back.until(lambda f: f.get("message") == "two")
    eq(frames, first.seen, "the same frames")
    first.turn("say: three")
    eq(words(back.until("agent_message")), [("user_message", "say: three"),
                                            ("agent_message", "three")], "live, and once")
    first.turn("say: elsewhere", session="s2")
    eq(words(back.until("agent_message"))[-1], ("agent_message", "elsewhere"), "and the room")


@talks
def test_a_running_turn_and_its_question_are_shown_to_who_comes(s):
    s.server()
    first = s.chat(session="s1", complete=False)
    first.turn("ask: Which? | a | b\nsay: end")
    first.drop()
    back = s.chat("/chat?session_id=s1", session="s1")
    frames = back.until("agent_message")
    assert "1. a" in frames[-1]["message"], f"the open question: {frames}"
    eq(words(back.turn("1"))[-1], ("agent_message", "end"))
