"""One client a dialect in JavaScript, with the package ws: a turn with an approval, over every way
to choose the dialect."""

import checker
from harness import Options, eq
from test_node import node

ASKED = {"agentloop": ["touch", "a"], "unified": {"command": "touch a"},
         "loom": {"command": "touch a"}}
PATHS = {"subprotocol": "/", "query": "/ws?protocol={}", "path": "/{}", "first": "/"}


def turn(t, server, dialect, text, way="subprotocol"):
    """What the client reports of its turn; the whole conversation is checked."""
    assert Options.node_modules, "run.py needs --node-modules for this test"
    got = node(t, "dialects.mjs", server.url("").rstrip("/"), dialect, text, way)
    path, protocol = PATHS[way].format(dialect), got["protocol"] or None
    steps = [{"open": {"path": path, "protocol": protocol}}, *got["messages"]]
    eq(checker.check(dialect, steps), [], f"the checker on {dialect} by {way}")
    eq((got["done"], got["code"]), (True, 1000), "the turn and the connection ended well")
    assert "binary" not in got["types"], "frames are text"
    return got


def with_approval(t, dialect):
    server = t.server()
    got = turn(t, server, dialect, "say: Grüße 👋 \nrun: touch a\nsay: done")
    eq(got["protocol"], f"{dialect}.v1", "the subprotocol that was selected")
    eq(got["asked"], [ASKED[dialect]], "what was asked")
    eq(got["text"].replace(" ", ""), "Grüße👋done", "text")
    assert (t.work / "a").exists(), "the command ran"


def test_agentloop(t):
    with_approval(t, "agentloop")


def test_unified(t):
    with_approval(t, "unified")


def test_loom(t):
    with_approval(t, "loom")


def test_chat(t):
    server = t.server()
    got = turn(t, server, "chat", "think: hm\nrun: echo hi\nsay: Grüße 👋")
    eq(got["protocol"], "chat.v1", "the subprotocol that was selected")
    eq(got["types"], ["user_message", "agent_thinking", "tool_call", "tool_result",
                      "agent_message"])
    eq(got["text"], "Grüße 👋", "text")


def test_every_way_to_choose(t):
    server = t.server()
    for dialect in ("agentloop", "unified", "loom", "chat"):
        for way in ("query", "path", "first"):
            got = turn(t, server, dialect, f"say: {way}", way)
            eq((got["protocol"], got["text"]), ("", way), f"{dialect} by {way}")
