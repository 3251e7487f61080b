"""More sessions than the server holds at once: a clear error, in every dialect and over HTTP."""

from harness import eq, eventually
from loomtalk import loom
from talk import spoken, talks
from test_limits_pressure import metric


@talks
def test_sessions_too_many_are_refused_and_have_room_later(s):
    server = s.server(env={"MAX_AWAKE_SESSIONS": 2})
    first, second = s.unified(session="a"), s.unified(session="b")
    first.turn("say: 1")
    second.turn("say: 2")
    third = s.unified(session="c")
    third.say("say: 3")
    error = third.recv()
    eq((error["type"], error["code"], error["is_fatal"]), ("error", "overloaded", False))
    assert "MAX_AWAKE_SESSIONS" in error["message"], error
    chat = s.chat(session="d")
    chat.say("say: 3")
    assert "MAX_AWAKE_SESSIONS" in chat.error()
    run = loom(s)
    run.run("say: 3", thread="e")
    assert "MAX_AWAKE_SESSIONS" in run.error()["error"]
    agentloop = s.agentloop("f")
    assert "MAX_AWAKE_SESSIONS" in str(agentloop.error())
    answer = server.http("POST", "/sessions")
    eq(answer.status, 503, "over HTTP")
    assert "MAX_AWAKE_SESSIONS" in answer.json["error"], answer
    assert int(answer.headers["retry-after"]) > 0, answer.headers
    eq(metric(server, 'polyloop_refused_total{limit="sessions"}'), 5.0, "how often it was refused")
    eq(spoken(first.turn("say: on")), ["on"], "those that are there go on")
    eq(sorted(s.sessions()), ["a", "b"], "nothing was made")
    first.wire.close()
    eventually(lambda: server.http("DELETE", "/sessions/a").status == 204, "it is put away")
    eq(spoken(third.turn("say: now")), ["now"], "then there is room")
