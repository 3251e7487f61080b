"""How full the context is, and compacting it."""

from frames import kinds, said
from harness import eq


def info(client):
    client.send("get_context_info")
    return client.until("context_info")[-1]["payload"]


def filled(server, path="/ws/s1"):
    client = server.client(path)
    for number in range(4):
        client.turn(f"say: {number} {'many words are said here ' * 40}")
    return client


def test_an_empty_session(t):
    client = t.server().client()
    got = info(client)
    eq(got["transcriptLength"], 0, "transcriptLength")
    assert got["maxTokens"] > 0, got
    eq(got["strategy"], "ThresholdContextManager", "strategy")


def test_a_connection_without_a_session(t):
    server = t.server()
    client = server.client("/")
    eq(info(client)["transcriptLength"], 0, "transcriptLength")
    eq(server.get("/sessions").json, {"sessions": []}, "asking makes no session")


def test_counts_grow_with_the_conversation(t):
    client = t.server().client()
    before = info(client)
    client.turn("say: some words")
    one = info(client)
    assert one["transcriptLength"] > before["transcriptLength"], (before, one)
    client.turn(f"say: {'many words ' * 3000}")
    two = info(client)
    assert two["tokenCount"] > one["tokenCount"] > 0, (one, two)
    assert two["transcriptLength"] > one["transcriptLength"], (one, two)
    percent = 100 * two["tokenCount"] / two["maxTokens"]
    assert abs(two["usagePercent"] - percent) <= 0.1, two


def test_it_can_be_asked_during_a_turn(t):
    client = t.server().client()
    client.say("say: begun\nrun: touch a\nsay: end")
    client.until("approval_request")
    assert info(client)["tokenCount"] > 0
    client.review("no-continue")
    eq(said(client.until_end()), ["end"], "the turn was not disturbed")


def test_the_strategies_have_their_names(t):
    client = t.server(env={"CONTEXT_STRATEGY": "dummy"}).client()
    eq(info(client)["strategy"], "DummyContextManager", "strategy")


def test_manual_compaction(t):
    server = t.server()
    client = filled(server)
    watcher = server.watcher()
    before = info(client)
    client.send("manual_compact")
    frames = client.until("agent_finished")
    words = [kind for kind in kinds(frames) if kind in ("context_compacted", "context_info")]
    eq(words, ["context_compacted", "context_info"], "reports")
    assert "assistant" not in kinds(frames), "the summary is no reply"
    (compacted,) = [f["payload"] for f in frames if f["type"] == "context_compacted"]
    (told,) = [f["payload"] for f in frames if f["type"] == "context_info"]
    assert compacted["newTokenCount"] < compacted["oldTokenCount"], compacted
    eq(compacted["oldTokenCount"], before["tokenCount"], "oldTokenCount")
    eq(told["tokenCount"], compacted["newTokenCount"], "tokenCount")
    share = compacted["oldTokenCount"] - compacted["newTokenCount"]
    percent = 100 * share / compacted["oldTokenCount"]
    assert abs(compacted["reductionPercent"] - percent) <= 0.1, compacted
    eq(info(client)["tokenCount"], compacted["newTokenCount"], "tokenCount afterwards")
    assert "context_compacted" in kinds(watcher.until("agent_finished")), "others see it too"
    eq(said(client.turn("say: usable")), ["usable"])


def test_compaction_keeps_the_whole_session_readable(t):
    server = t.server()
    client = filled(server)
    before = server.events()
    client.send("manual_compact")
    client.until("agent_finished")
    eq(server.events()[: len(before)], before, "the events before it")


def test_a_compacted_session_outlives_the_server(t):
    server = t.server()
    client = filled(server)
    client.send("manual_compact")
    client.until("agent_finished")
    after = info(client)
    server.kill()
    client = t.server().client()
    eq(info(client), after, "context_info after a restart")
    eq(said(client.turn("say: usable")), ["usable"])


def test_compaction_during_a_turn_is_an_error(t):
    client = t.server().client()
    client.turn("say: something")
    client.say("run: touch a\nsay: end")
    client.until("approval_request")
    client.send("manual_compact")
    client.error()
    client.review("no-continue")
    eq(said(client.until_end()), ["end"], "the turn was not disturbed")


def test_compacting_an_empty_session_is_an_error(t):
    server = t.server()
    for path in ("/ws/s1", "/"):
        client = server.client(path)
        client.send("manual_compact")
        client.error()
        eq(said(client.turn("say: usable")), ["usable"], path)


def test_the_dummy_strategy_never_compacts_by_itself(t):
    client = t.server(env={"CONTEXT_STRATEGY": "dummy"}).client()
    client.turn("usage: 120000 100\nsay: full")
    words = kinds(client.turn("say: and on"))
    assert "context_compacted" not in words, words
