"""What the list of sessions says of each, and what a search finds."""

import json
import re
import urllib.parse

from harness import eq, eventually


def listed(server, session="s1"):
    found = server.get("/sessions").json["sessions"]
    return next((one for one in found if one["id"] == session), None)


def stands(server, session="s1"):
    one = listed(server, session)
    return one["status"], one["waiting"], one["preview"]


def test_the_list_says_where_each_session_stands(t):
    server = t.server()
    client = server.client()
    client.still_open()
    eq(stands(server), ("idle", 0, None), "new")
    client.turn("say: one\n\n  say:  two")
    eq(stands(server), ("idle", 0, "say: one say: two"), "after a turn")
    client.say("run: touch a\nsay: " + "é" * 300)
    client.until("approval_request")
    preview = ("run: touch a say: " + "é" * 300)[:120]
    eq(stands(server), ("waiting", 1, preview), "while it asks")
    server.kill()
    server = t.server()
    eq(stands(server), ("waiting", 1, preview), "after a kill")
    client = server.client()
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    eq(stands(server), ("idle", 0, preview), "after the answer")
    client.say("stream: 1000 10 20")
    client.until("response_item")
    eq(stands(server)[:2], ("running", 0), "while it streams")
    server.kill()
    server = t.server()
    eq(stands(server), ("idle", 0, "stream: 1000 10 20"), "nobody works on what a kill cut off")


def test_a_session_that_was_ended_says_so(t):
    server = t.server()
    client = server.client("/unified?session_id=s1", checked=False)
    eventually(lambda: listed(server), "the session is there")
    for kind, want in (("session_end", "ended"), ("session_start", "idle"),
                       ("session_end", "ended")):
        client.ws.send(json.dumps({"type": kind, "session_id": "s1"}))
        eventually(lambda: stands(server)[0] == want, f"{want} after {kind}")
    client.close()
    server.stop()
    eq(stands(t.server())[0], "ended", "after a restart")


def test_a_long_session_is_listed_the_same_after_a_restart(t):
    server = t.server()
    client = server.client()
    for n in range(4):
        client.turn(f"say: {n}" + "z" * 60_000)
    client.turn("say: a message that is a file of its own " + "y" * 70_000)
    client.turn("say: the last one")
    client.close()
    body = json.dumps({"title": "Much"})
    eq(server.http("PATCH", "/sessions/s1", body=body).status, 200, "a title")
    before = listed(server)
    eq(before["preview"], "say: the last one", "preview")
    server.stop()
    assert (t.store / "s1.index").is_file(), "its index"
    server = t.server()
    eq(listed(server), before, "by its index")
    server.stop()
    (t.store / "s1.index").unlink()
    eq(listed(t.server()), before, "by its file")


def test_sessions_are_found_by_title_id_and_preview(t):
    server = t.server()
    for name, said in (("alpha", "say: Größe und Maß"), ("beta", "say: about ALPHA & co"),
                       ("gamma", "say: 100% nothing")):
        client = server.client(f"/ws/{name}")
        client.turn(said)
        client.close()
    eq(server.http("PATCH", "/sessions/gamma", body='{"title": "The Title"}').status, 200, "title")

    def found(search, more=""):
        answer = server.get(f"/sessions?search={urllib.parse.quote(search)}{more}")
        return [one["id"] for one in answer.json["sessions"]], answer

    for search, want in (("", ["gamma", "beta", "alpha"]), ("alpha", ["beta", "alpha"]),
                         ("ALPHA &", ["beta"]), ("größe", ["alpha"]), ("the title", ["gamma"]),
                         ("100% n", ["gamma"]), ("nowhere", []), ("GAMMA", ["gamma"])):
        eq(found(search)[0], want, search)
    first, answer = found("a & ", "&limit=1")
    eq((first, answer.headers.get("link")), (["beta"], None), "the only one")
    first, answer = found("alpha", "&limit=1")
    eq(first, ["beta"], "first page")
    next_path = re.fullmatch(r'<(.*)>; rel="next"', answer.headers["link"])[1]
    answer = server.get(next_path)
    eq([one["id"] for one in answer.json["sessions"]], ["alpha"], "second page")
    eq(answer.headers.get("link"), None, "no third")
