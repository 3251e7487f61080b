"""kill -9 at the worst moment, then a new server on the same files."""

from urllib.parse import quote

from frames import item_text, items, kinds, outputs, said, texts
from harness import eq, eventually


def kept(server, session="s1"):
    found = [m["payload"] for m in server.messages(session) if m.get("type") == "response_item"]
    return {i["id"]: item_text(i) for i in found if i.get("role") == "assistant"}


def test_while_an_approval_is_open(t):
    server = t.server()
    client = server.client()
    client.say("say: begin\nrun: echo x >> runs\nsay: end")
    request = client.until("approval_request")[-1]
    server.kill()
    server = t.server()
    client = server.client()
    frames = client.until("approval_request")
    eq(kinds(frames), ["loading", "approval_request"], "what a client is owed")
    eq((frames[-1]["id"], frames[-1]["payload"]), (request["id"], request["payload"]), "request")
    assert not (t.work / "runs").exists(), "it ran without an answer"
    client.review("yes", requestId=request["id"])
    frames = client.until_end()
    want = ["function_call", "function_call_output", "assistant", "idle", "agent_finished"]
    eq(kinds(frames), want)
    eq((t.work / "runs").read_text(), "x\n", "it ran once")
    eq(said(frames), ["end"])


def test_an_approval_outlives_several_crashes(t):
    client = t.server().client()
    client.say("run: touch a\n&run: touch b\nsay: end")
    requests = [client.until("approval_request")[-1]["id"]]
    for _ in range(3):
        t.servers[-1].kill()
        client = t.server().client()
        requests.append(client.until("approval_request")[-1]["id"])
    eq(len(set(requests)), 1, f"the same request: {requests}")
    client.review("yes")
    client.until("approval_request")
    t.servers[-1].kill()
    client = t.server().client()
    frames = client.until("approval_request")
    eq(frames[-1]["payload"]["command"], ["touch", "b"], "the second request")
    client.review("no-exit")
    client.until_end()
    eq([p.name for p in t.work.iterdir()], ["a"], "files")


def test_while_a_command_runs(t):
    server = t.server()
    client = server.client()
    client.say("run: echo shown; echo x >> runs; sleep 1000\nsay: AFTER")
    client.until("approval_request")
    client.review("yes")
    frames = client.until("response_item")
    eventually(lambda: (t.work / "runs").exists(), "the command runs")
    place = client.place()
    server.kill()
    t.no_process_left()
    server = t.server()
    back = server.client(f"/ws/s1?since={quote(str(place))}")
    frames = back.until_end()
    eq(kinds(frames), ["function_call_output", "idle", "agent_finished"], "it is closed")
    assert outputs(frames)[0]["metadata"]["exit_code"] != 0, outputs(frames)
    eq(said(back.turn("say: usable")), ["usable"])
    eq((t.work / "runs").read_text(), "x\n", "it did not run again")


def test_a_crashed_command_is_told_to_the_model_as_interrupted(t):
    server = t.server()
    client = server.client()
    client.say("run: touch begun; sleep 1000")
    client.until("approval_request")
    client.review("yes")
    eventually((t.work / "begun").exists, "the command runs")
    server.kill()
    server = t.server()
    client = server.client("/ws/s1?since=0")
    frames = client.until("agent_finished")
    (output,) = outputs(frames)
    assert "nterrupt" in output["output"], f"the output says so: {output}"
    calls = items(frames, "function_call")
    eq(len(calls), 1, "calls")


def test_while_text_streams_no_character_is_lost(t):
    server = t.server()
    client = server.client()
    client.say("say: before\nstream: 100000 20 5\nsay: AFTER")
    while len(client.seen) < 20:
        client.recv()
    shown, place = texts(client.seen), client.place()
    server.kill()
    server = t.server()
    back = server.client(f"/ws/s1?since={quote(str(place))}")
    back.until_end()
    whole = texts(client.seen + back.seen)
    for item, text in shown.items():
        assert whole[item].startswith(text), f"{item}: shown {text!r}, kept {whole[item]!r}"
    eq(kept(server), whole, "texts by item id")
    number = "".join(f"{n:07} " for n in range(len(list(whole.values())[1]) // 8 + 1))
    assert number.startswith(list(whole.values())[1]), "the text has no gap"
    eq(kinds(client.seen + back.seen), ["loading", "assistant", "assistant", "idle",
                                        "agent_finished"])
    eq(said(back.turn("say: usable")), ["usable"])


def test_again_and_again_one_client_loses_and_repeats_nothing(t):
    script = "say: Grüße 👋 to everybody\nstream: 40 13 2\nrun: ls\nstream: 40 7 2"
    frames, since = [], ""
    for count in (1, 2, 3, 5, 8, 13, 21, 34):
        server = t.server()
        client = server.client(f"/ws/s1{since}")
        client.say(script)
        while len(client.seen) < count:
            client.recv()
        server.kill()
        frames += client.seen
        since = f"?since={quote(str(client.place()))}"
    server = t.server()
    client = server.client(f"/ws/s1{since}")
    client.say("say: finally")
    while "finally" not in said(client.seen):
        client.until_end()
    eq(texts(frames + client.seen), kept(server), "texts by item id")


def test_while_messages_are_queued(t):
    server = t.server()
    client = server.client()
    client.say("run: touch a\nsay: 0")
    client.until("approval_request")
    client.say("say: 1")
    client.say("say: 2")
    client.still_open()
    server.kill()
    client = t.server().client()
    client.until("approval_request")
    client.review("no-continue")
    frames = [frame for _ in range(3) for frame in client.until_end()]
    eq(said(frames), ["0", "1", "2"], "replies")


def test_nothing_is_called_before_a_client_asks(t):
    server = t.server()
    client = server.client()
    client.say("run: echo x >> runs; sleep 1000\nrun: echo y >> runs")
    client.until("approval_request")
    client.review("always")
    eventually((t.work / "runs").exists, "the command runs")
    server.kill()
    server = t.server()
    client = server.client()
    client.still_open()
    types = [m.get("type") for m in server.messages()]
    eq(types.count("agent_finished"), 1, "the turn was ended once")
    eq((t.work / "runs").read_text(), "x\n", "nothing more ran")


def test_every_turn_ends_exactly_once(t):
    for _ in range(4):
        server = t.server()
        client = server.client()
        client.still_open()
        client.say("say: x\nstream: 1000 10 5")
        client.until("response_item")
        server.kill()
    server = t.server()
    server.client().still_open()
    states = [m["payload"]["loading"] for m in server.messages()
              if m.get("type") == "loading_state"]
    eq(states, [True, False] * 4, "loading states")


def test_finished_work_is_there_after_a_crash(t):
    server = t.server()
    client = server.client()
    client.turn("say: one\nrun: ls")
    client.turn("say: two")
    events = server.events()
    server.kill()
    server = t.server()
    eq(server.events(), events, "events")
    eq(server.get("/sessions").json["sessions"][0]["event_count"], len(events), "event_count")
    back = server.client("/ws/s1?since=0")
    while len(back.seen) < 2 or len(said(back.seen)) < len(said(client.seen)):
        back.recv()
    eq(texts(back.seen), texts(client.seen), "texts")


def test_long_texts_are_there_after_a_crash(t):
    text = "wörd 世界 " * 20_000
    server = t.server()
    server.client().turn(f"say: {text}")
    server.kill()
    server = t.server()
    eq(list(kept(server).values()), [text.strip()], "GET")
    eq(said(server.client("/ws/s1?since=0").until_end()), [text.strip()], "a replay")
    assert (t.store / "s1.jsonl").stat().st_size < 2 * len(text), "a long text stands once"


def test_unfinished_turns_go_on_at_start_if_configured(t):
    server = t.server()
    client = server.client()
    client.say("run: touch begun; sleep 1000\nsay: went on")
    client.until("approval_request")
    client.review("yes")
    eventually((t.work / "begun").exists, "the command runs")
    server.kill()
    server = t.server(env={"AUTO_RESUME": "true"})
    went_on = lambda: "went on" in kept(server).values()
    eventually(went_on, "the turn goes on though nobody is attached")
