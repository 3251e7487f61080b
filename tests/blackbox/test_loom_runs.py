"""Loom: one run at a time, cancelling, and what becomes of a run whose client leaves."""

from harness import eq, eventually, processes_in
from loomtalk import event, loom, numbered, reply, text, watch, words
from talk import of, talks

HOLD = "run: touch held\nsay: done"
# Ends when the file `go` is there.
WAITING = "run: until [ -e go ]; do sleep 0.05; done; echo gone\nsay: done"


def started(client, message, thread=None):
    """A run whose command is running, and what was sent so far."""
    request = client.asked(message, thread)
    client.answer(request, True)
    return client.until_event("tool_start")


# One at a time.


@talks
def test_requests_during_a_run_are_answered_after_it_in_order(s):
    s.server()
    client = loom(s)
    request = client.asked(HOLD, "t1")
    order = [client.send("tools_list"), client.send("tool_show", name="bash"),
             client.run("say: second", "t1"), client.send("user_messages", thread_id="t1"),
             client.send("tool_show", name="nope"), client.run("say: third")]
    client.still_open()
    client.answer(request, True)
    frames = client.until_end() + client.until(lambda frame: frame.get("reply") == "third")
    runs = of(frames, "run_end")
    eq([run["reply"] for run in runs], ["done", "second", "third"], "runs")
    answers = [frame["request_id"] if "request_id" in frame else frame["id"] for frame in frames
               if frame["type"] != "run_stream_event"]
    eq(answers, ["req-1", *order], "order of the answers")
    starts = [frame["request_id"] for frame in frames
              if frame.get("event", {}).get("type") == "run_start"]
    eq(starts, [order[2], order[5]], "runs that began after the first")


@talks
def test_a_ping_is_answered_at_once(s):
    s.server()
    client = loom(s)
    client.run("stream: 400 8 5")
    client.until_event("message_chunk")
    asked = client.send("ping")
    frames = client.until("pong")
    eq(frames[-1], {"type": "pong", "id": asked})
    assert not of(frames, "run_end"), "it did not wait for the run"
    client.until_end()
    numbered([frame for frame in client.seen if frame["type"] != "pong"])


@talks
def test_every_request_is_answered_however_many_wait(s):
    s.server()
    client = loom(s)
    request = client.asked(HOLD)
    for _ in range(300):
        client.send("tool_show", name="bash", output="json")
    client.send("ping")
    early = client.until("pong")[:-1]
    assert {frame["type"] for frame in early} <= {"error"}, f"at once only refusals: {early[:3]}"
    client.answer(request, True)
    eq(reply(client.until_end()), "done")
    late = [client.recv() for _ in range(300 - len(early))]
    eq({frame["type"] for frame in late}, {"tool_show"}, "answers after the run")


@talks
def test_a_request_that_may_not_wait_is_refused_by_its_id(s):
    s.server()
    client = loom(s)
    request = client.asked(HOLD)
    for _ in range(300):
        client.send("tools_list")
    client.send("ping")
    refused = client.until("pong")[:-1]
    assert refused, "a bound"
    eq([frame for frame in refused if "id" not in frame][:1], [], "refusals without an id")
    client.answer(request, True)
    client.until_end()


@talks
def test_two_connections_on_one_thread_take_turns(s):
    s.server()
    first, second = loom(s), loom(s)
    request = first.asked(HOLD, "t1")
    second.run("say: second", "t1")
    second.still_open()
    first.answer(request, True)
    eq(reply(first.until_end()), "done")
    frames = second.until_end()
    numbered(frames)
    eq((words(frames)[0], reply(frames)), ("run_start", "second"), "its own run alone")
    first.still_open()


@talks
def test_two_threads_run_side_by_side(s):
    s.server()
    first, second = loom(s), loom(s)
    request = first.asked(HOLD, "t1")
    eq(reply(second.turn("say: second", "t2")), "second")
    eq(reply(second.turn("say: third")), "third")
    first.answer(request, True)
    eq(reply(first.until_end()), "done")


@talks
def test_a_full_queue_is_told(s):
    s.server("--max-queued-messages", "1")
    first, second, third = loom(s), loom(s), loom(s)
    request = first.asked(HOLD, "t1")
    second.run("say: second", "t1")
    second.still_open()
    third.run("say: third", "t1")
    assert third.error()["error"], "why"
    third.still_open()
    first.answer(request, True)
    eq(reply(first.until_end()), "done")
    eq(reply(second.until_end()), "second")


def taken_away(s, way, **fields):
    """A run that waits in the queue is taken from it, which its client is told."""
    first, second, unified = loom(s), loom(s), s.watcher("t1")
    request = first.asked(HOLD, "t1")
    second.run("say: second", "t1", id="queued")
    second.still_open()
    unified.send(way, **fields)
    error = second.error()
    eq(error["request_id"], "queued", "request_id")
    assert "id" not in error, f"there was no run: {error}"
    second.still_open()
    return first, request, second


@talks
def test_a_run_that_is_taken_from_the_queue_is_told_so(s):
    s.server()
    first, request, second = taken_away(s, "cancel", target_id="queued")
    first.answer(request, True)
    eq(reply(first.until_end()), "done", "the run before it")
    eq(reply(second.turn("say: again", "t1")), "again", "the run after it")


@talks
def test_a_session_that_is_ended_takes_its_queue_along(s):
    s.server()
    first, _, second = taken_away(s, "session_end")
    assert first.until_end()[-1]["error"].startswith("Interrupted: "), "the run that was going"
    eq(reply(second.turn("say: again", "t1")), "again", "speaking reopens it")


# Cancelling.


@talks
def test_cancel_run(s):
    s.server()
    for thread in ("t1", None):
        client = loom(s)
        run = started(client, "run: sleep 600\nsay: never", thread)[-1]["id"]
        eventually(lambda: processes_in(s.work), "the command runs")
        client.send("cancel_run", run_id=run)
        frames = client.until_end()
        error = frames[-1]
        eq((error["type"], error["id"], error["request_id"]), ("error", run, "req-1"), "end")
        assert error["error"].startswith("Interrupted: "), error
        eq(event(frames, "tool_end")["is_error"], True, "the command")
        s.t.no_process_left()
        client.still_open()
        eq(reply(client.turn("say: next", thread)), "next")


@talks
def test_cancelling_while_the_model_hangs(s):
    s.server()
    client = loom(s)
    client.run("say: half\nfail: hang", "t1")
    run = client.until_event("message_chunk")[-1]["id"]
    client.send("cancel_run", run_id=run)
    error = client.until_end()[-1]
    assert error["error"].startswith("Interrupted: "), error
    client.still_open()


@talks
def test_cancelling_lets_the_waiting_requests_go(s):
    s.server()
    client = loom(s)
    run = client.asked(HOLD, "t1")["id"]
    listed, asked = client.send("tools_list"), client.run("say: next", "t1")
    client.send("cancel_run", run_id=run)
    eq(client.until_end()[-1]["id"], run, "the run that ends")
    eq(client.recv()["id"], listed, "the request that waited")
    frames = client.until_end()
    eq((frames[0]["request_id"], reply(frames)), (asked, "next"), "the run that waited")


@talks
def test_a_watcher_may_cancel(s):
    s.server()
    client, watcher = loom(s), watch(s, "t1")
    run = client.asked(HOLD, "t1")["id"]
    watcher.until_event("tool_approval")
    watcher.send("cancel_run", run_id=run)
    for one in (client, watcher):
        error = one.until_end()[-1]
        eq((error["id"], error["error"].startswith("Interrupted: ")), (run, True), f"{error}")
        one.still_open()


@talks
def test_a_run_of_somebody_else_is_not_found(s):
    s.server()
    client, other = loom(s), loom(s)
    for thread in (None, "t1"):
        request = client.asked(HOLD, thread)
        frame = other.ask("cancel_run", run_id=request["id"])
        eq(frame["type"], "error", "another's run")
        assert request["id"] in frame["error"], frame
        client.answer(request, True)
        eq(reply(client.until_end()), "done")


@talks
def test_unknown_runs(s):
    s.server()
    client = loom(s)
    for run in ("", "run-", "nope", "run-00000000-0000-8000-8005-000000000003", "x" * 10_000):
        frame = client.ask("cancel_run", run_id=run)
        eq(frame["type"], "error", run)
        assert len(frame["error"]) < 1000, "a short text"
    client.still_open()


@talks
def test_a_run_that_has_ended_is_not_found(s):
    s.server()
    client, watcher = loom(s), watch(s, "t1")
    for thread in ("t1", None):
        run = client.turn("say: x", thread)[-1]["id"]
        eq(client.ask("cancel_run", run_id=run)["type"], "error", f"ended, thread {thread}")
    run = watcher.until_end()[-1]["id"]
    asked = watcher.send("cancel_run", run_id=run)
    eq(watcher.error().get("id"), asked, "id of the error")
    watcher.still_open()


@talks
def test_cancelling_an_ended_run_leaves_the_next_one_alone(s):
    s.server()
    watcher = watch(s, "t1")
    old = watcher.turn("say: x", "t1")[-1]["id"]
    request = watcher.asked(HOLD, "t1")
    watcher.send("cancel_run", run_id=old)
    watcher.error()
    watcher.answer(request, True)
    eq(reply(watcher.until_end()), "done")


# Leaving.


@talks
def test_closing_ends_a_run_without_a_thread(s):
    s.server()
    for leave in ("close", "drop"):
        client = loom(s, complete=False)
        started(client, "run: sleep 600\nsay: never")
        eventually(lambda: processes_in(s.work), "the command runs")
        client.wire.close() if leave == "close" else client.drop()
        s.t.no_process_left()
    eq(s.sessions(), [], "sessions")


@talks
def test_closing_drops_the_requests_that_waited(s):
    s.server()
    client = loom(s, complete=False)
    client.asked(HOLD)
    client.run("run: touch later\nsay: x", "t1")
    client.still_open()
    client.drop()
    other = loom(s)
    eq(reply(other.turn("say: x", "t2")), "x")
    eq(s.sessions(), ["t2"], "a run that never began made no session")


@talks
def test_closing_does_not_end_a_run_on_a_thread(s):
    s.server()
    client = loom(s, complete=False)
    run = started(client, WAITING, "t1")[-1]["id"]
    watcher = watch(s, "t1")
    watcher.until_event("tool_start")
    client.drop()
    (s.work / "go").touch()
    frames = watcher.until_end()
    eq((frames[-1]["id"], reply(frames)), (run, "done"))
    eq(text(frames, "tool_output"), "gone\n", "output")


@talks
def test_a_run_on_a_thread_goes_on_with_nobody_there(s):
    s.server()
    client = loom(s, complete=False)
    run = started(client, WAITING, "t1")[-1]
    client.drop()
    (s.work / "go").touch()
    eventually(lambda: not processes_in(s.work), "the command ends")
    watcher = watch(s, "t1", since=run["seq"])
    frames = watcher.until_end()
    eq((frames[-1]["id"], reply(frames)), (run["id"], "done"))


@talks
def test_a_request_survives_whoever_asked_for_it(s):
    s.server()
    client = loom(s, complete=False)
    first = client.asked(HOLD, "t1")
    client.drop()
    again = watch(s, "t1")
    request = again.until_event("tool_approval")[-1]
    eq((request["id"], request["event"]["call_id"]), (first["id"], first["event"]["call_id"]),
       "the same request")
    again.answer(request, True)
    eq(reply(again.until_end()), "done")
    assert (s.work / "held").exists(), "it ran"


@talks
def test_a_request_survives_the_server(s):
    server = s.server()
    first = loom(s, complete=False).asked(HOLD, "t1")
    server.kill()
    s.server()
    again = watch(s, "t1")
    request = again.until_event("tool_approval")[-1]
    eq((request["id"], request["event"]["call_id"]), (first["id"], first["event"]["call_id"]),
       "the same request")
    again.answer(request, True)
    eq(reply(again.until_end()), "done")


@talks
def test_after_a_crash_a_run_that_was_streaming_is_told_as_interrupted(s):
    server = s.server()
    client = loom(s, complete=False)
    client.run("stream: 2000 16 5", "t1")
    seen = client.collect(3, "message_chunk")
    server.kill()
    s.server()
    again = watch(s, "t1", since=seen[-1]["cursor"])
    frames = again.until_end()
    eq((frames[-1]["type"], frames[-1]["id"]), ("error", seen[0]["id"]), "end")
    assert frames[-1]["error"].startswith("Interrupted: "), frames[-1]
    eq(frames[0]["event"]["event_id"], seen[-1]["event"]["event_id"] + 1, "the count goes on")
    again.still_open()
