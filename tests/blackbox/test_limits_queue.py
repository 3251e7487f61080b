"""More model calls and commands than the server runs at once: they wait their turn, session by
session, their clients see it, and who gives up or does not fit in is told at once."""

from harness import eq, processes_in
from loomtalk import event, loom, watch
from strategies import Thinker
from talk import of, spoken, talks

ONE_CALL = {"MAX_MODEL_CALLS": 1}
ONE_PROCESS = {"MAX_PROCESSES": 1, "TOOL_USE_APPROVAL_MODE": "suggest"}
LONG = "stream: 100000 10 20"


def busy(s, session="busy"):
    """A session whose model call does not end by itself."""
    client = s.unified(session=session)
    client.say(LONG)
    client.until("assistant_message")
    return client


def stop(client):
    client.send("interrupt", reason="enough")
    client.until_end()


def queued(frames):
    """The notice that something waits."""
    (notice,) = [f for f in of(frames, "notice") if f["code"] == "queued"]
    return notice


def until_queued(client):
    return queued(client.until(lambda frame: frame.get("code") == "queued"))


@talks
def test_a_call_waits_its_turn_and_every_dialect_says_so(s):
    s.server(env=ONE_CALL)
    first = busy(s)
    agentloop, chat = s.agentloop("w"), s.chat(session="w")
    watcher, run = s.watcher("w"), watch(s, "w")
    chat.say("say: at last")
    notice = until_queued(watcher)
    eq(notice["level"], "info", f"{notice}")
    assert "MAX_MODEL_CALLS" in notice["text"] and "1 wait" in notice["text"], notice
    told = chat.until("agent_thinking")[-1]
    eq(told["reasoning"], notice["text"], "chat")
    item = agentloop.until("response_item")[-1]["payload"]
    eq((item["role"], item["content"][0]["text"]), ("system", f"ℹ️ {notice['text']}"), "agentloop")
    custom = event(run.until_event("custom"), "custom")
    assert notice["text"] in str(custom), custom
    stop(first)
    eq(spoken(watcher.until_end()), ["at last"])
    eq(len([f for f in watcher.seen if f.get("code") == "queued"]), 1, "told once")
    # Whoever comes later sees that it was so.
    late = s.unified("/unified?session_id=w", "w", since=0)
    eq(queued(late.until_end())["text"], notice["text"], "in the history")


@talks
def test_sessions_that_share_one_place_all_have_their_turn(s):
    s.server(env=ONE_CALL)
    clients = [s.unified(session=f"s{n}") for n in range(8)]
    for n, client in enumerate(clients):
        client.say(f"stream: 5 10 1\nsay: {n}")
    for n, client in enumerate(clients):
        frames = client.until_end()
        eq(spoken(frames)[-1], str(n))
        eq(of(frames, "error"), [])


@talks
def test_a_waiting_turn_is_interrupted_at_once(s):
    s.server(env=ONE_CALL)
    first = busy(s)
    waiting, third = s.unified(session="w"), s.unified(session="third")
    waiting.say("say: never")
    until_queued(waiting)
    third.say("say: then I")
    waiting.send("interrupt", reason="changed my mind")
    failed = waiting.until_end()[-2]
    eq(failed["error"], "Interrupted: changed my mind", "the turn that waited")
    stop(first)
    eq(spoken(third.until_end()), ["then I"], "its place went to the next")
    eq(spoken(waiting.turn("say: again")), ["again"], "and it goes on")


@talks
def test_who_leaves_the_queue_leaves_no_place_behind(s):
    s.server(env={**ONE_CALL, "MAX_WAITING": 2, "MODEL_RETRIES": 0})
    first = busy(s)
    for _ in range(5):
        waiting = [s.unified(session=f"w{n}") for n in range(2)]
        for client in waiting:
            client.say("say: never")
            client.until("turn_started")
        for client in waiting:
            stop(client)
    stop(first)
    eq(spoken(first.turn("say: free")), ["free"])


@talks
def test_a_full_queue_is_an_error_that_says_so(s):
    s.server(env={**ONE_CALL, "MAX_WAITING": 1, "MODEL_RETRIES": 0})
    first = busy(s)
    second, third, run = s.unified(session="w"), s.unified(session="t"), loom(s)
    second.say("say: waited")
    until_queued(second)
    failed = third.turn("say: no room")[-1]
    eq(failed["type"], "turn_failed", f"{failed}")
    for word in ("overloaded", "MAX_MODEL_CALLS", "MAX_WAITING", "try again later"):
        assert word in failed["error"], failed
    error = run.turn("say: no room either", thread="l")[-1]
    assert "MAX_WAITING" in error["error"], error
    stop(first)
    eq(spoken(second.until_end()), ["waited"], "who waited already has its turn")
    eq(spoken(third.turn("say: now")), ["now"], "and then there is room")


@talks
def test_who_does_not_fit_in_tries_again_by_itself(s):
    s.server(env={**ONE_CALL, "MAX_WAITING": 1, "MODEL_RETRIES": 10})
    first = busy(s)
    second, third = s.unified(session="w"), s.unified(session="t")
    second.say("say: waited")
    until_queued(second)
    third.say("say: patient")
    retry = third.until(lambda frame: frame.get("code") == "retry")[-1]
    assert "MAX_WAITING" in retry["text"], retry
    stop(first)
    eq(spoken(second.until_end()), ["waited"])
    eq(spoken(third.until_end())[-1], "patient")


def running(client, command):
    """Lets a command run; it has begun when this returns."""
    asked = client.asked(f"run: {command}\nsay: over")
    client.decide(asked, "allow")
    client.until("command_output")


@talks
def test_commands_wait_their_turn_and_what_only_reads_does_not(s):
    s.server(env=ONE_PROCESS)
    first, second, third = (s.unified(session=name) for name in ("a", "b", "c"))
    running(first, "echo on; sleep 1000")
    before = len(processes_in(s.work))
    second.say("run: echo hi\nsay: done")
    notice = until_queued(second)
    assert "MAX_PROCESSES" in notice["text"], notice
    eq(len(processes_in(s.work)), before, "nothing was started")
    (s.work / "note").write_text("here")
    frames = third.turn('tool: read {"path": "note"}\nsay: read')
    eq(spoken(frames), ["read"], "no command, no waiting")
    stop(first)
    frames = second.until_end()
    eq(spoken(frames), ["done"])
    assert "hi" in str(of(frames, "tool_completed")), frames
    s.t.no_process_left()


@talks
def test_a_waiting_command_is_interrupted_at_once_and_never_runs(s):
    s.server(env=ONE_PROCESS)
    first, second = s.unified(session="a"), s.unified(session="b")
    running(first, "echo on; sleep 1000")
    asked = second.asked("run: touch made\nsay: over")
    second.decide(asked, "allow")
    until_queued(second)
    second.send("interrupt", reason="no")
    frames = second.until_end()
    (completed,) = of(frames, "tool_completed")
    eq(completed["success"], False, f"{completed}")
    stop(first)
    eq(spoken(second.turn("run: ls\nsay: fine")), ["fine"], "the queue goes on")
    eq(sorted(p.name for p in s.work.iterdir()), [], "it never ran")


@talks
def test_a_command_that_does_not_fit_in_is_told_to_the_model(s):
    s.server(env={**ONE_PROCESS, "MAX_WAITING": 1})
    first, second, third = (s.unified(session=name) for name in ("a", "b", "c"))
    running(first, "echo on; sleep 1000")
    second.say("run: echo hi\nsay: done")
    until_queued(second)
    frames = third.turn('tool: batch {"calls": [{"tool": "bash", "parameters": '
                        '{"command": "echo no"}}]}\nsay: went on')
    (completed,) = of(frames, "tool_completed")
    for word in ("not run", "MAX_PROCESSES", "MAX_WAITING"):
        assert word in completed["error"], completed
    eq(spoken(frames), ["went on"], "the turn goes on")
    stop(first)
    eq(spoken(second.until_end()), ["done"])


def many_ways(asked):
    """A search that weighs six ways at once; a plain question has a plain answer."""
    if asked.kind == "expand":
        return "\n".join(f"{n}. way {n}" for n in range(1, 7))
    return "likely" if asked.kind == "value" else "quick"


@talks
def test_a_session_that_asks_for_much_starves_nobody(s):
    model = Thinker(many_ways, test=s.t)
    s.server(env=model.settings(**ONE_CALL, AGENT="react", TOT_PROPOSALS="6", TOT_DEPTH="1"))
    first = model.hold("value")
    greedy, modest = loom(s), s.unified(session="modest")
    greedy.run("Find a way", thread="greedy", agent="tot")
    first.reached()
    modest.say("A plain question")
    until_queued(modest)
    first.release()
    eq(spoken(modest.until_end()), ["quick"])
    greedy.until_end()
    eq(model.open_most, 1, "calls at once")
    kinds = [asked.kind for asked in model.asked() if asked.kind != "expand"]
    eq(kinds[:3], ["value", "value", "think"], "whose turn it was")
    eq(kinds.count("value"), 6, "the search had all its answers")


@talks
def test_a_killed_server_forgets_its_queue_and_nothing_else(s):
    server = s.server(env=ONE_CALL)
    first, waiting = busy(s), s.unified(session="w", complete=False)
    first.wire.complete = False
    waiting.say("say: not yet")
    until_queued(waiting)
    server.kill()
    s.server(env=ONE_CALL)
    back = s.watcher("w")
    back.send("resume")
    eq(spoken(back.until_end()), ["not yet"])
