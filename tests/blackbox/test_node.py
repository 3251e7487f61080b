"""The same server seen by a client in JavaScript that follows the protocol document's advice."""

import json
import os
import subprocess
from pathlib import Path

from frames import item_text
from harness import TURN_SECS, Options, eq

SCRIPTS = Path(__file__).resolve().parent / "node"


def node(t, script, *words):
    """Runs a script to its end; what it reports."""
    env = {"PATH": os.environ["PATH"], "HOME": str(t.home),
           "TEST_NODE_MODULES": Options.node_modules}
    words = ["node", str(SCRIPTS / script), *map(str, words)]
    done = subprocess.run(words, env=env, cwd=t.dir, stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=TURN_SECS)
    assert done.returncode == 0, f"{script} ended with {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def turns(t, server, *texts, reviews=()):
    task = json.dumps({"turns": texts, "reviews": list(reviews)})
    return node(t, "turns.mjs", server.url("/ws/s1"), task)


def whole(server):
    found = [m["payload"] for m in server.messages() if m.get("type") == "response_item"]
    return {i["id"]: item_text(i) for i in found if i.get("role") == "assistant"}


def test_streamed_messages_are_put_together(t):
    server = t.server()
    text = "Grüße 👩‍👩‍👧‍👦 and a text of several words, so that it comes in pieces"
    got = turns(t, server, f"say: {text}\nstream: 30 20 5", "say: another turn")
    eq(got["messages"], whole(server), "texts by item id")
    eq(list(got["messages"].values())[0], text, "text")
    assert got["shown"].startswith(f"assistant: {text}"), got["shown"]
    assert got["shown"].endswith("\nassistant: another turn\n"), got["shown"]
    eq(got["loading"], [True, False] * 2, "loading states")
    eq(len(set(got["responseIds"])), 2, "response ids")


def test_approvals(t):
    server = t.server()
    reviews = [{"review": "yes"}, {"review": "explain"}, {"review": "YES", "named": True},
               {"review": "no-continue", "customDenyMessage": "use banana42"}]
    got = turns(t, server, "say: begin\nrun: touch a\nrun: touch b\nrun: touch c", reviews=reviews)
    eq(got["commands"], [["touch", "a"], ["touch", "b"], ["touch", "b"], ["touch", "c"]], "asked")
    call = ["approval_request", "function_call", "function_call_output"]
    want = ["assistant", *call, "approval_request", "assistant", *call, *call, "assistant"]
    eq(got["order"], want, "order")
    eq(sorted(p.name for p in t.work.iterdir()), ["a", "b"], "files")
    assert "banana42" in list(got["messages"].values())[-1], got["messages"]


def test_errors(t):
    got = turns(t, t.server(), "say: half\nfail: disconnect", "say: again")
    eq(got["errors"], ["Failed to process user input"], "errors")
    eq(got["loading"], [True, False] * 2, "loading states")
    eq(list(got["messages"].values()), ["half", "again"], "texts")


def test_reconnecting_loses_and_repeats_nothing(t):
    server = t.server()
    text = "say: Grüße 👋 to all of you out there\nstream: 80 20 5\nsay: the end"
    got = node(t, "reconnect.mjs", server.url("/ws/s1"), text, 3)
    assert got["connections"] > 3, f"it came back {got['connections']} times"
    eq(got["messages"], whole(server), "texts by item id")
    numbers = "".join(f"{n:07} " for n in range(200))
    want = ["Grüße 👋 to all of you out there", numbers, "the end"]
    eq(list(got["messages"].values()), want, "texts")
    eq(got["order"], ["assistant"] * 3, "order")


def test_closing(t):
    server = t.server()
    eq(node(t, "closing.mjs", server.url("/ws/s1"), "close")["code"], 1000, "a normal close")
    small = t.server(store=False, env={"MAX_MESSAGE_BYTES": 1024})
    eq(node(t, "closing.mjs", small.url("/ws/s1"), 1025)["code"], 1009, "a message too large")


def test_a_far_too_large_message_is_told_so(t):
    server = t.server()
    got = node(t, "closing.mjs", server.url("/ws/s1"), 12 * 1024 * 1024)
    eq(got["code"], 1009, "close code")
