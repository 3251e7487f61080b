"""Loom: watching a thread, attaching in the middle of a run, and going on where one left off."""

from websockets.exceptions import InvalidStatus

from harness import eq
from loomtalk import STREAMED, all_events, event, events, loom, numbered, reply, text, watch, words
from talk import talks

NUMBERS = "".join(f"{number:07} " for number in range(400))
STREAM = "stream: 200 16 5"


def said(frames):
    """What a run's frames say, whatever pieces its streams came in."""
    told, last = [], None
    for frame in frames:
        inner = frame.get("event", frame)
        one = {name: inner[name] for name in inner if name not in ("event_id", "seq", "cursor")}
        field = {"tool_call_chunk": "arguments_delta"}.get(one["type"], "content")
        going_on = one["type"] in (*STREAMED, "tool_call_chunk")
        stream = (one["type"], one.get("call_id"), one["node_id"]) if going_on else None
        if stream and stream == last:
            told[-1][field] += one[field]
        else:
            told.append(one)
        last = stream
    return told


def apart(frames):
    """The texts of the streams, and what else is said in its order: of streams that run side by
    side only their own order is kept. Of a call's pieces only the first one names it."""
    texts, others, calls = {}, [], {}
    for one in said(frames):
        if one["type"] in (*STREAMED, "tool_call_chunk"):
            call = one.get("call_id") or calls.get((one["type"], one["node_id"]))
            calls[one["type"], one["node_id"]] = call
            stream = (one["type"], call, one["node_id"])
            texts[stream] = texts.get(stream, "") + one.get("content", one.get("arguments_delta"))
        else:
            others.append(one)
    return texts, others


def watches(s, thread):
    """A watcher that surely is attached."""
    watcher = watch(s, thread)
    watcher.still_open()
    return watcher


# Turns begun elsewhere.


@talks
def test_turns_of_other_dialects_are_runs(s):
    s.server()
    watcher = watches(s, "s1")
    begin = {"agentloop": lambda: s.agentloop("s1").turn("say: one\nrun: ls\nsay: two"),
             "unified": lambda: s.unified().turn("say: one\nrun: ls\nsay: two"),
             "chat": lambda: s.chat(session="s1").turn("say: one\nrun: ls\nsay: two"),
             "loom": lambda: loom(s).turn("say: one\nrun: ls\nsay: two", "s1")}
    runs, told = set(), []
    for name, turn in begin.items():
        turn()
        frames = watcher.until_end()
        run = frames[0]["id"]
        assert run.startswith("run-"), f"id of {name}'s run"
        eq({frame["id"] for frame in frames}, {run}, f"ids of {name}'s run")
        runs.add(run)
        numbered(frames)
        start = all_events(frames)[0]
        eq((start["type"], start["message"], start["agent"]),
           ("run_start", "say: one\nrun: ls\nsay: two", "react"), name)
        eq({one["session_id"] for one in all_events(frames)}, {"s1"}, "session_id")
        eq(reply(frames), "two", name)
        told.append(words(frames))
    eq(len(runs), 4, "runs")
    eq(told, [told[0]] * 4, "the same events, whoever began the turn")


@talks
def test_a_watcher_sees_what_the_asker_sees(s):
    s.server()
    watcher, client = watches(s, "t1"), loom(s)
    frames = client.turn("think: hm\nsay: one\nrun: echo hi\n& run: ls\nstream: 20 16 5", "t1")
    eq(said(watcher.until_end()), said(frames), "the run")


@talks
def test_others_see_their_own_runs_alone(s):
    s.server()
    other, watcher = loom(s), watches(s, "t2")
    loom(s).turn("say: x", "t1")
    s.agentloop("s1").turn("say: x")
    other.still_open()
    watcher.still_open()
    eq(reply(other.turn("say: mine", "t1")), "mine")
    loom(s).turn("say: x", "t1")
    other.still_open()


@talks
def test_a_watcher_may_run_elsewhere_too(s):
    s.server()
    watcher = watches(s, "t1")
    eq(reply(watcher.turn("say: there", "t2")), "there")
    eq(reply(watcher.turn("say: nowhere")), "nowhere")
    loom(s).turn("say: here", "t1")
    eq(reply(watcher.until_end()), "here")
    loom(s).turn("say: x", "t2")
    watcher.still_open()


@talks
def test_session_id_names_the_thread_as_well(s):
    s.server()
    for path in ("/loom?session_id=t1", "/loom?thread_id=t1", "/?protocol=loom&thread_id=t1",
                 "/ws?protocol=loom&session_id=t1"):
        watcher = loom(s, path)
        watcher.still_open()
        loom(s).turn("say: x", "t1")
        eq(reply(watcher.until_end()), "x", path)


@talks
def test_a_bad_thread_id_is_refused_before_the_upgrade(s):
    s.server()
    for bad in ("..", "", "a%2Fb", "x" * 129, ".x"):
        try:
            watch(s, bad)
            raise AssertionError(f"thread_id={bad} was taken")
        except InvalidStatus as refused:
            eq(refused.response.status_code, 400, f"thread_id={bad}")


@talks
def test_nothing_is_sent_where_nothing_runs(s):
    s.server()
    loom(s).turn("say: x", "t1")
    watches(s, "t1")
    watches(s, "new")


# In the middle of a run.


@talks
def test_attaching_while_a_text_streams(s):
    s.server()
    client = loom(s)
    client.run(STREAM, "t1")
    client.collect(5, "message_chunk")
    watcher = watch(s, "t1")
    frames = watcher.until_end()
    eq(words(frames)[:3], ["run_start", "node_enter think", "message_chunk"], "it begins with")
    eq((text(frames), reply(frames)), (NUMBERS, NUMBERS), "text")
    numbered(frames)
    client.until_end()


@talks
def test_attaching_while_a_command_runs(s):
    s.server()
    client = loom(s)
    command = "echo one; until [ -e go ]; do sleep 0.05; done; echo two"
    client.answer(client.asked(f"say: before\nrun: {command}\nsay: done", "t1"), True)
    client.until_event("tool_output")
    watcher = watch(s, "t1")
    frames = watcher.until_event("tool_output")
    eq(words(frames)[0], "run_start", "it begins with")
    eq(words(frames)[-2:], ["tool_start", "tool_output"], "the open call")
    assert "node_enter act" in words(frames), "the open node"
    (s.work / "go").touch()
    frames += watcher.until_end()
    eq((text(frames, "tool_output"), reply(frames)), ("one\ntwo\n", "done"))
    numbered(frames)
    client.until_end()


@talks
def test_attaching_while_a_request_waits(s):
    s.server()
    client = loom(s)
    first = client.asked("run: touch a\nsay: done", "t1")
    watcher = watch(s, "t1")
    frames = watcher.until_event("tool_approval")
    eq(words(frames)[0], "run_start", "it begins with")
    assert "node_enter act" in words(frames), "the open node"
    eq(frames[-1]["event"]["call_id"], first["event"]["call_id"], "the request")
    client.answer(first, True)
    frames += watcher.until_end()
    eq(reply(frames), "done")
    numbered(frames)
    client.until_end()


# Where one left off.


@talks
def test_from_every_cursor_of_a_run(s):
    s.server()
    frames = loom(s).turn("think: hm\nsay: one\nrun: echo hi\nstream: 5 16 20", "t1")
    for at, frame in enumerate(frames[:-1]):
        rest = watch(s, "t1", since=frame["cursor"]).until_end()
        eq(said(rest), said(frames[at + 1:]), f"what follows {frame['event']['type']}, {at}")
        ids = [one.get("event", one)["event_id"] for one in rest]
        first = frame["event"]["event_id"] + 1
        eq(ids, list(range(first, first + len(ids))), f"event ids after {frame['cursor']}")


@talks
def test_from_every_cursor_of_calls_side_by_side(s):
    s.server()
    script = "say: one\nrun: echo hi\n& run: ls\n& run: pwd\nsay: two"
    frames = loom(s).turn(script, "t1")
    for at, frame in enumerate(frames[:-1]):
        rest = watch(s, "t1", since=frame["cursor"]).until_end()
        eq(apart(rest), apart(frames[at + 1:]), f"what follows {frame['event']['type']}, {at}")


@talks
def test_from_every_seq_of_a_run(s):
    s.server()
    frames = loom(s).turn("say: one\nrun: echo hi\nsay: two", "t1")
    whole = said(frames)
    for seq in sorted({frame["seq"] for frame in frames[:-1]}):
        rest = watch(s, "t1", since=seq).until_end()
        eq(said(rest), whole[-len(said(rest)):], f"what follows {seq} is an end of the run")
        kept = [frame for frame in frames if frame["seq"] > seq]
        assert len(said(rest)) >= len(said(kept)), f"nothing behind {seq} is missing"
    every = watch(s, "t1", since=0).until_end()
    eq(said(every), whole, "from the beginning")
    numbered(every)


@talks
def test_leaving_and_coming_back_in_the_middle_of_a_stream(s):
    s.server()
    client = loom(s)
    client.run(STREAM, "t1")
    watcher = watch(s, "t1")
    seen = watcher.collect(3, "message_chunk")
    while seen[-1]["type"] != "run_end":
        watcher.drop()
        watcher.wire.complete = False
        watcher = watch(s, "t1", since=seen[-1]["cursor"])
        for _ in range(40):
            seen.append(watcher.recv())
            if seen[-1]["type"] == "run_end":
                break
    eq((text(seen), reply(seen)), (NUMBERS, NUMBERS), "text")
    numbered([frame for frame in seen if frame["type"] != "pong"])
    client.until_end()


@talks
def test_from_a_bare_seq_an_open_text_begins_anew(s):
    s.server()
    client = loom(s)
    client.run(STREAM, "t1")
    seen = client.collect(5, "message_chunk")
    again = watch(s, "t1", since=seen[-1]["seq"])
    frames = again.until_end()
    eq((text(frames), reply(frames)), (NUMBERS, NUMBERS), "text")
    ids = [one["event_id"] for one in all_events(frames)]
    eq(ids, list(range(ids[0], ids[0] + len(ids))), "event ids")
    client.until_end()


@talks
def test_a_cursor_survives_a_restart(s):
    server = s.server()
    frames = loom(s).turn("say: one\nrun: ls\nsay: two", "t1")
    server.kill()
    s.server()
    at = len(frames) // 2
    rest = watch(s, "t1", since=frames[at]["cursor"]).until_end()
    eq(said(rest), said(frames[at + 1:]), "the rest")
    eq(rest[0]["event"]["event_id"], frames[at]["event"]["event_id"] + 1, "the count goes on")


@talks
def test_every_character_that_was_shown_survives_a_crash(s):
    server = s.server()
    client = loom(s, complete=False)
    client.run("stream: 4000 16 2", "t1")
    shown = text(client.collect(20, "message_chunk"))
    server.kill()
    s.server()
    frames = watch(s, "t1", since=0).until_end()
    assert text(frames).startswith(shown), "what was shown is there"
    eq(frames[-1]["type"], "error", "end")
    numbered(frames)


@talks
def test_coming_back_during_a_request_asks_again_once(s):
    s.server()
    client = loom(s)
    client.run("run: touch a\nsay: done", "t1", approvals=True)
    frames = client.until_event("tool_approval")
    for frame in (frames[0], frames[-2], frames[-1]):
        again = watch(s, "t1", since=frame["cursor"])
        again.send("ping")
        rest = again.until("pong")[:-1]
        eq(len(events(rest, "tool_approval")), 1, f"asked after {frame['event']['type']}")
        eq(event(rest, "tool_approval")["call_id"], frames[-1]["event"]["call_id"], "the same")
        again.wire.complete = False
    client.answer(frames[-1], True)
    eq(reply(client.until_end()), "done")


# Every kind of turn.


def decided(unified, script, *decisions):
    """A turn whose requests are answered in order."""
    unified.say(script)
    for decision in decisions:
        unified.decide(unified.until("control_request")[-1], decision)
    unified.until_end()


def ends(watcher):
    return watcher.until(lambda frame: frame["type"] in ("run_end", "error"))


@talks
def test_a_replay_tells_what_a_watcher_was_told(s):
    server = s.server()
    unified, watcher = s.unified(), watches(s, "s1")
    decided(unified, "run: touch a\nsay: x", "allow_always")
    decided(unified, "run: touch b\nrun: rm a\nsay: x", "deny")
    decided(unified, "run: rm b\nsay: x", "deny_stop")
    decided(unified, "say: a\n& run: rm b\n& run: ls\n& run: rm c\nsay: x", "allow", "deny")
    for script in ("cut:\nrun: ls\nsay: x", "say: half\nfail: disconnect", "say: " + "w " * 900):
        unified.turn(script)
    unified.send("compact")
    unified.until_end()
    unified.asked("run: rm d\nsay: x")
    unified.send("interrupt", reason="no")
    unified.until_end()
    unified.send("resume")
    unified.until_end()
    live = [frame for _ in range(10) for frame in ends(watcher)]
    for restarted in (False, True):
        if restarted:
            server.kill()
            s.server()
        again = watch(s, "s1", since=0)
        replayed = [frame for _ in range(10) for frame in ends(again)]
        eq(apart(replayed), apart(live), f"the runs, restarted: {restarted}")


@talks
def test_an_explanation_of_a_request(s):
    s.server()
    unified, watcher = s.unified(), watches(s, "s1")
    decided(unified, "run: touch a\nsay: x", "explain", "allow")
    frames = ends(watcher)
    eq(reply(frames), "x")
    entered = [one["id"] for one in events(frames, "node_enter")]
    assert "explain" in entered, f"nodes: {entered}"


@talks
def test_ones_own_run_waits_for_anothers_and_both_are_seen(s):
    s.server()
    client, watcher = loom(s), watches(s, "t1")
    request = client.asked("run: touch a\nsay: first", "t1", id="theirs")
    watcher.run("say: second", "t1", id="mine")
    client.answer(request, True)
    for name, text_of_it in (("theirs", "first"), ("mine", "second")):
        frames = ends(watcher)
        numbered(frames)
        eq(({frame["request_id"] for frame in frames}, reply(frames)), ({name}, text_of_it))
    eq(reply(client.until_end()), "first")
