"""Pages over HTTP: of the sessions, and of one session's events."""

import re

from harness import eq


def next_page(answer):
    found = re.fullmatch(r'<(.*)>; rel="next"', answer.headers.get("link") or "")
    return found and found[1]


def talked(t, turns=5):
    server = t.server()
    client = server.client()
    for n in range(turns):
        client.turn(f"think: {n}\nsay: answer {n}")
    client.close()
    return server


def test_the_pages_of_a_session_are_the_session(t):
    server = talked(t)
    whole = server.events()
    for limit in (1, 2, 7, len(whole), len(whole) + 5):
        path, found, pages = f"/sessions/s1?limit={limit}", [], 0
        while path:
            answer = server.get(path)
            eq(answer.status, 200, path)
            eq(answer.json["id"], "s1", "id")
            assert 0 < len(answer.json["events"]) <= limit, answer.json
            found += answer.json["events"]
            path, pages = next_page(answer), pages + 1
        eq(found, whole, f"pages of {limit}")
        eq(pages, -(-len(whole) // limit), "how many pages")
    for after in (0, 1, len(whole) - 1, len(whole)):
        events = server.get(f"/sessions/s1?after={after}").json["events"]
        eq(events, whole[after:], f"after {after}")


def test_pages_after_a_restart_and_of_a_long_session(t):
    server = t.server()
    client = server.client()
    for n in range(4):
        client.turn(f"say: {n}" + "z" * 60_000)
    client.close()
    whole = server.events()
    server.signal(15)
    server.process.wait(30)
    assert (t.store / "s1.index").is_file(), "its index"
    server = t.server()
    for after in range(0, len(whole), 3):
        answer = server.get(f"/sessions/s1?after={after}&limit=4")
        eq(answer.json["events"], whole[after:after + 4], f"after {after}")


def test_bad_pages_are_refused(t):
    server = talked(t, 1)
    count = len(server.events())
    for query in ("limit=x", "limit=-1", "limit=0", "after=x", "after=-1", "after=1.5",
                  f"after={count + 1}", "limit=99999999999999999999"):
        answer = server.get(f"/sessions/s1?{query}")
        eq(answer.status, 400, query)
        assert query.split("=")[0] in answer.json["error"], answer.json
    eq(server.get("/sessions/nobody?limit=1").status, 404, "of no session")


def test_the_list_says_where_it_goes_on(t):
    server = t.server()
    ids = [server.http("POST", "/sessions").json["id"] for _ in range(5)]
    path, found = "/sessions?limit=2", []
    while path:
        answer = server.get(path)
        found += [one["id"] for one in answer.json["sessions"]]
        path = next_page(answer)
    eq((len(found), set(found)), (5, set(ids)), "the pages")
    eq(next_page(server.get("/sessions")), None, "the whole list has no next page")
