"""What `/metrics` tells while work waits at a gate, and of what is refused: running is what runs,
times are of what ran, and nobody else is blamed for what the server itself had no room for."""

import time

from disk import Disk
from fakemodel import FakeModel
from harness import eq
from talk import of, talks
from test_limits_queue import ONE_CALL, ONE_PROCESS, busy, running, stop, until_queued
from test_limits_rates import AT_ONCE, SLOW
from test_metrics import soon, told
from test_model_faults import FINE, access

FAULTS = ("overloaded", "rate_limited", "provider_error", "unreachable", "other")
# How long something waits, and the bound of the histograms that it must not come near.
WAITED_SECS, RAN_WITHIN = 3, "2.5"


def gate(now, name):
    return now("gate_running", gate=name), now("gate_waiting", gate=name)


@talks
def test_calls_that_wait_do_not_run_and_waiting_is_in_no_time(s):
    server = s.server(env=ONE_CALL)
    eq(gate(told(server), "model_calls"), (0, 0), "the gate of a new server")
    first = busy(s)
    waiting = [s.unified(session=f"w{n}") for n in range(3)]
    for client in waiting:
        client.say("say: at last")
    until_queued(waiting[0])
    soon(server, lambda now: gate(now, "model_calls") == (1, 3), "one runs and three wait")
    eq(told(server)("model_calls_running"), 1, "calls under way")
    time.sleep(WAITED_SECS)
    stop(first)
    for client in waiting:
        client.until_end()
    now = told(server)
    eq((now("model_calls_running"), *gate(now, "model_calls")), (0, 0, 0), "when all is done")
    for metric in ("model_call_seconds", "model_first_token_seconds"):
        quick = now(f"{metric}_bucket", le=RAN_WITHIN)
        # All but the first call, which ran for long; its first words came soon.
        least = now(f"{metric}_count") - (metric == "model_call_seconds")
        eq(quick, least, f"{metric}: {now.text}")


@talks
def test_a_call_that_is_stopped_while_it_waits_has_no_time(s):
    server = s.server(env=ONE_CALL)
    first, second = busy(s), s.unified(session="w")
    second.say("say: never")
    until_queued(second)
    stop(second)
    now = told(server)
    eq(now("model_calls_total", status="stopped"), 1, "calls that were stopped")
    eq(now("model_call_seconds_count"), 0, "calls that ran and ended")
    eq((now("model_calls_running"), *gate(now, "model_calls")), (1, 1, 0), "what is left")
    stop(first)


@talks
def test_a_call_that_waits_to_be_made_again_does_not_run(s):
    model = FakeModel(test=s.t)
    model.script([{"http": {"status": 429, "headers": {"retry-after": "20"}},
                   "error": {"type": "429"}}, FINE])
    server = s.server(env=access("responses", model.url))
    client = s.unified()
    client.say("Go")
    client.until(lambda frame: frame.get("code") == "retry")
    soon(server, lambda now: now("model_calls_running") == 0, "nothing runs")
    eq(told(server)("turns_running"), 1, "turns under way")
    stop(client)


@talks
def test_commands_that_wait_do_not_run_and_waiting_is_in_no_time(s):
    server = s.server(env=ONE_PROCESS)
    first, second = s.unified(session="a"), s.unified(session="b")
    running(first, "echo on; sleep 1000")
    second.say("run: echo hi\nsay: done")
    until_queued(second)
    now = told(server)
    eq((now("tools_running"), *gate(now, "processes")), (1, 1, 1), "one runs and one waits")
    time.sleep(WAITED_SECS)
    stop(first)
    second.until_end()
    soon(server, lambda now: gate(now, "processes") == (0, 0), "the gate is free")
    now = told(server)
    eq(now("tools_running"), 0, "tools under way")
    eq(now("tool_seconds_count", tool="bash"), 2, "tools that were timed")
    eq(now("tool_seconds_bucket", tool="bash", le=RAN_WITHIN), 1, f"the second: {now.text}")


@talks
def test_a_call_without_room_is_refused_here_and_no_fault_of_the_provider(s):
    server = s.server(env={**ONE_CALL, "MAX_WAITING": 1, "MODEL_RETRIES": 0})
    first, second, third = busy(s), s.unified(session="w"), s.unified(session="t")
    second.say("say: waited")
    until_queued(second)
    failed = third.turn("say: no room")[-1]
    eq(failed["code"], "overloaded", "what clients are told")
    now = told(server)
    eq(now("model_calls_total", status="refused_here"), 1, "our own refusals")
    eq({status: now("model_calls_total", status=status) for status in FAULTS},
       dict.fromkeys(FAULTS, 0), "faults of the provider")
    eq(now("refused_total", limit="model_calls"), 1, "what was refused")
    eq(now("model_call_seconds_count"), 0, "it never ran")
    stop(first)
    second.until_end()


@talks
def test_a_command_without_room_is_refused_here(s):
    server = s.server(env={**ONE_PROCESS, "MAX_WAITING": 1})
    first, second, third = (s.unified(session=name) for name in ("a", "b", "c"))
    running(first, "echo on; sleep 1000")
    second.say("run: echo hi\nsay: done")
    until_queued(second)
    third.turn("run: echo no\nsay: went on")
    now = told(server)
    eq(now("refused_total", limit="processes"), 1, "what was refused")
    eq(now("tool_calls_total", tool="bash", outcome="refused_here"), 1, "commands not run")
    eq(now("tool_calls_total", tool="bash", outcome="failed"), 0, "commands that failed")
    eq(now("tool_seconds_count", tool="bash"), 0, "it never ran")
    stop(first)
    second.until_end()


@talks
def test_messages_that_come_too_fast_are_counted_and_what_decides_is_not(s):
    server = s.server(env=SLOW)
    eq(told(server)("refused_total"), 0, "refused by a new server")
    client = s.unified()
    asked = client.asked("run: rm -f x\nsay: done")
    sent = [client.send("get_context") for _ in range(3 * AT_ONCE)]
    refused = of([client.recv() for _ in sent], "error")
    assert refused, "nothing was refused"
    client.decide(asked, "allow")
    client.until_end()
    now = told(server)
    eq(now("refused_total", limit="messages"), len(refused), "messages")
    eq(now("refused_total"), len(refused), "nothing else")


@talks
def test_turns_and_queued_messages_too_many_are_counted(s):
    server = s.server(env={"RATE_TURNS_PER_MIN": 3, "MAX_QUEUED_MESSAGES": 1})
    client, queuing = s.unified(session="a"), s.unified(session="b", complete=False)
    for n in range(3):
        client.turn(f"say: {n}")
    for _ in range(2):
        client.say("say: no more")
        eq(client.recv()["code"], "rate_limited")
    queuing.say("stream: 100000 10 20")
    queuing.until("assistant_message")
    queuing.say("say: waits")
    queuing.say("say: does not fit")
    queuing.until(lambda frame: frame.get("code") == "queue_full")
    now = told(server)
    eq(now("refused_total", limit="turns"), 2, "turns")
    eq(now("refused_total", limit="queued_messages"), 1, "messages that did not fit in")
    eq(now("refused_total"), 3, "nothing else")


def test_requests_too_many_are_counted(t):
    server = t.server(env={"RATE_CLIENT_REQUESTS_PER_SEC": 1})
    answers = [server.get("/sessions") for _ in range(AT_ONCE + 3)]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused, [answer.status for answer in answers]
    time.sleep(int(refused[-1].headers["retry-after"]))
    eq(told(server)("refused_total", limit="requests"), len(refused), "requests")


def test_what_has_not_happened_yet_is_told_as_nothing(t):
    now = told(t.server())
    for flush in ("disk", "soon", "process"):
        line = f'polyloop_log_append_seconds_count{{flush="{flush}"}} 0\n'
        assert line in now.text, f"{flush} is not told"


def test_an_append_is_the_write_and_a_flush_is_told_by_itself(t):
    disk = Disk(t.dir, t.store)
    disk.slow_down("flush", 300, ".jsonl")
    server = t.server(env=disk.env())
    server.client("/ws/s1").turn("say: x")
    now = told(server)
    appends = now("log_append_seconds_count", flush="disk")
    assert appends > 0 and now("log_flush_seconds_sum") >= 0.3, now.text
    assert now("log_append_seconds_sum", flush="disk") < 0.3 * appends, now.text
