"""A session's past over HTTP, in pages of frames, and attaching where they end."""

import itertools
import json
import threading

from harness import WAIT_SECS, eq
from talk import of, spoken, talks

DIALECTS = ("agentloop", "unified", "loom", "chat")
LONG = "stream: 100000 10 20"
STORY = [
    "think: hm\nsay: one\nrun: ls", "run: touch a\nsay: two", "ask: Which? | a | b\nsay: three",
    "fail: 500", "stream: 20 30 1\nrun: for i in 1 2 3; do echo $i; done\nsay: four",
    "say: x\n&run: echo y\nsay: five", 'tool: todo_write {"todos": [{"content": "c"}]}\nsay: six',
]


def paged(server, dialect="unified", limit=None, before=None, session="s1"):
    """All frames before a place, page by page, and the last place that the first page covers."""
    frames, last, count = [], None, 0
    for _ in itertools.count():
        query = f"?dialect={dialect}"
        query += "" if limit is None else f"&limit={limit}"
        query += "" if before is None else f"&before={before}"
        answer = server.get(f"/sessions/{session}/frames{query}")
        eq(answer.status, 200, query)
        page = answer.json
        last = page["seq"] if last is None else last
        assert limit is None or len(page["frames"]) <= max(limit, MOST), page
        frames = page["frames"] + frames
        count += 1
        if page["before"] is None:
            return frames, last, count
        assert before is None or page["before"] < before, "a page must bring one further"
        before = page["before"]


# No entry of these stories gives more.
MOST = 12


def replayed(s, dialect, last):
    """What a connection that asks for everything is sent up to an entry."""
    path = f"/{dialect}?session_id=s1&since=0"
    ws = s.last.client(path, checked=False)
    frames = []
    while not frames or frames[-1].get("seq") != last or "+" in frames[-1].get("cursor", ""):
        frame = ws.recv()
        # Not what only this connection is told.
        if frame["type"] not in ("session_init", "heartbeat"):
            frames.append(frame)
    ws.close()
    return [{name: value for name, value in frame.items() if name != "cursor"}
            for frame in frames]


def told(s):
    client = s.unified()
    for script in STORY:
        client.say(script)
        while True:
            frame = client.recv()
            match frame["type"]:
                case "control_request":
                    client.decide(frame, "allow")
                case "ask_user_question":
                    client.answer(frame, ["a"])
                case "turn_completed" | "turn_failed":
                    break
    client.send("set_permission_mode", mode="plan")
    client.until("session_info")
    return client


@talks
def test_pages_are_the_replay_in_every_dialect(s):
    server = s.server()
    told(s)
    for dialect in DIALECTS:
        whole, last, count = paged(server, dialect, 1000)
        eq(count, 1, "one page")
        assert len(whole) > len(STORY), f"{dialect}: {whole}"
        assert all("seq" in frame and "cursor" not in frame for frame in whole), dialect
        for limit in (1, 2, 7, 40, None):
            frames, upto, _ = paged(server, dialect, limit)
            eq((frames, upto), (whole, last), f"{dialect} in pages of {limit}")
        if dialect == "unified":
            eq(whole, replayed(s, dialect, last), f"{dialect}: the replay")
        else:
            want = replayed(s, dialect, whole[-1]["seq"])
            eq(whole, want[:len(whole)], f"{dialect}: the replay")


@talks
def test_the_default_is_unified_and_the_newest(s):
    server = s.server()
    told(s)
    plain = server.get("/sessions/s1/frames").json
    eq(plain, server.get("/sessions/s1/frames?dialect=unified&limit=200").json, "defaults")
    few = server.get("/sessions/s1/frames?limit=3").json
    eq(few["frames"], plain["frames"][-len(few["frames"]):], "the newest")
    older = server.get(f"/sessions/s1/frames?limit=3&before={few['before']}").json
    eq(older["seq"], few["before"] - 1, "the place that it covers")
    place = len(plain["frames"]) - len(few["frames"])
    eq(older["frames"], plain["frames"][place - len(older["frames"]):place], "those before")


@talks
def test_pages_after_a_restart_and_of_long_texts(s):
    server = s.server()
    client = s.unified()
    for n in range(6):
        client.turn(f"say: {n}" + "z" * 70_000)
    client.say("stream: 300 10000 0")
    client.until_end()
    before = paged(server)
    assert before[2] > 1, "several pages, by their bytes"
    eq(paged(server, limit=2)[0], before[0], "pages of two")
    server.stop()
    server = s.server()
    eq(paged(server), before, "after a restart")
    eq(len(spoken(before[0])), 7, "texts")


@talks
def test_a_page_and_attaching_is_everything_once(s):
    server = s.server()
    writer = s.unified()
    writer.say(f"say: before\n{LONG}")
    texts = {}
    watcher = s.watcher(complete=False)
    # The first text is whole when the second begins.
    while watcher.until("assistant_message")[-1]["text"] in ("before", ""):
        pass
    for _ in range(5):
        watcher.until("assistant_message")
        frames, last, _ = paged(server, limit=5)
        comer = s.watcher(since=last, complete=False)
        frames += comer.until("assistant_message")
        ids = [frame["id"] for frame in frames]
        eq(len(set(ids)), len(ids), "each event once")
        eq(len(of(frames, "turn_started")), 1, "the turn began once")
        eq(spoken(frames)[:1], ["before"], "what was whole")
        shown = frames[-1]["text"]
        texts[len(shown)] = shown
        comer.drop()
    longest = texts[max(texts)]
    for text in texts.values():
        assert longest.startswith(text), "each got the open text from its start"
    writer.send("interrupt")
    writer.until_end()


@talks
def test_what_waits_is_in_the_page_and_told_again_by_its_name(s):
    server = s.server()
    client = s.unified()
    request = client.asked("run: touch a\nsay: 0")
    client.say("say: 1")
    client.until("message_queued")
    frames, last, _ = paged(server)
    comer = s.watcher(since=last, complete=False)
    again = comer.until("message_queued")
    known = {frame["id"] for frame in frames}
    eq([frame["type"] for frame in again], ["control_request", "message_queued"], "what is open")
    assert all(frame["id"] in known for frame in again), "under the ids that it has"
    client.decide(request, "deny")
    client.until_end()
    client.until_end()


@talks
def test_pages_while_a_turn_goes_on(s):
    server = s.server()
    client = s.unified()
    client.say("\n".join(f"run: echo {n}" for n in range(40)) + "\nsay: end")
    client.until("tool_completed")
    found, done = [], threading.Event()

    def look():
        while not done.is_set():
            found.append(paged(server, limit=7)[0])

    looker = threading.Thread(target=look)
    looker.start()
    client.until_end()
    done.set()
    looker.join(WAIT_SECS)
    whole = paged(server)[0]
    for frames in found:
        eq(frames, whole[:len(frames)], "what was there is as it is at the end")


def test_an_adopted_file_has_pages_too(t):
    t.store.mkdir(exist_ok=True)
    lines = []
    for n in range(700):
        data = {"id": f"m{n}", "type": "user_input", "payload": {"input": [
            {"role": "user", "content": [{"type": "input_text", "text": f"said {n}"}]}]}}
        lines.append({"timestamp": f"2025-01-09T12:{n // 60:02}:{n % 60:02}.000Z",
                      "event_type": "websocket_message_received", "direction": "received",
                      "message_data": data})
    (t.store / "s1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    server = t.server()
    whole, _, _ = paged(server, limit=1000)
    eq([frame["text"] for frame in of(whole, "notice")], [f"said {n}" for n in range(700)], "all")
    eq(paged(server, limit=90)[0], whole, "in pages")


def test_what_is_not_there_and_what_makes_no_sense(t):
    server = t.server()
    client = server.client()
    client.turn("say: x")
    for path in ("nobody/frames", ".x/frames", "s1/frames?dialect=x", "s1/frames?dialect=",
                 "s1/frames?limit=0", "s1/frames?limit=x", "s1/frames?limit=-1",
                 "s1/frames?before=x", "s1/frames?before=-1", "s1/frames?before=1.5"):
        answer = server.get(f"/sessions/{path}")
        eq(answer.status, 404 if path.startswith("nobody") else 400, path)
        eq(list(answer.json), ["error"], path)
    eq(server.http("POST", "/sessions/s1/frames").status, 405, "POST")
    for before in (0, 1):
        eq(server.get(f"/sessions/s1/frames?before={before}").json,
           {"frames": [], "before": None, "seq": 0}, f"before {before}")
    whole = server.get("/sessions/s1/frames").json
    eq(server.get("/sessions/s1/frames?before=99999").json, whole, "beyond the end")
    eq(server.get("/sessions/s1/frames?limit=99999999").json, whole, "more than there may be")
    eq([one["id"] for one in server.get("/sessions").json["sessions"]], ["s1"], "nothing was made")
