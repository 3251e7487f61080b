"""The end of a server, asked for by a signal."""

import signal
import subprocess
import time

from frames import kinds, said
from harness import WAIT_SECS, eq, eventually, handshake, processes_in, read_answer

SHUTDOWN_SECS_MAX = 5


def ends_well(server):
    began = time.monotonic()
    eq(server.process.wait(WAIT_SECS), 0, "exit code")
    took = time.monotonic() - began
    assert took < SHUTDOWN_SECS_MAX, f"it took {took:.1f} s"


def closed_by(t, number):
    server = t.server()
    clients = [server.client("/ws/s1"), server.client("/ws/s2"), server.client("/"),
               server.client("/ws")]
    clients[0].turn("say: x")
    server.signal(number)
    for client in clients:
        eq(client.closed(), 1001, "close code")
    ends_well(server)


def test_sigterm(t):
    closed_by(t, signal.SIGTERM)


def test_sigint(t):
    closed_by(t, signal.SIGINT)


def test_while_text_streams(t):
    server = t.server()
    client = server.client()
    client.say("stream: 100000 10 5")
    client.until("response_item")
    server.signal(signal.SIGTERM)
    eq(client.closed(), 1001, "close code")
    ends_well(server)
    server = t.server()
    client = server.client()
    eq(said(client.turn("say: next")), ["next"], "the session afterwards")
    types = [m["payload"]["loading"] for m in server.messages() if m.get("type") == "loading_state"]
    eq(types, [True, False] * 2, "every turn ended once")


def test_while_a_command_runs(t):
    server = t.server()
    client = server.client()
    client.say("run: trap '' TERM; touch begun; sleep 1000 & sleep 1000")
    client.until("approval_request")
    client.review("yes")
    eventually((t.work / "begun").exists, "the command runs")
    server.signal(signal.SIGTERM)
    eq(client.closed(), 1001, "close code")
    ends_well(server)
    t.no_process_left()
    client = t.server().client()
    eq(said(client.turn("say: next")), ["next"], "the session afterwards")


def test_an_open_approval_stays_open(t):
    server = t.server()
    client = server.client()
    client.say("run: touch a\nsay: end")
    request = client.until("approval_request")[-1]["id"]
    server.signal(signal.SIGTERM)
    eq(client.closed(), 1001, "close code")
    ends_well(server)
    client = t.server().client()
    eq(client.until("approval_request")[-1]["id"], request, "the request after a restart")
    client.review("yes", requestId=request)
    eq(kinds(client.until_end())[-3:], ["assistant", "idle", "agent_finished"])
    assert (t.work / "a").exists(), "it ran"


def test_clients_that_say_nothing_do_not_hold_it_up(t):
    server = t.server()
    silent = server.socket()
    t.closing.append(silent.close)
    half = server.socket()
    t.closing.append(half.close)
    half.sendall(b"GET /sessions HTTP/1.1\r\n")
    stuck = server.socket()
    t.closing.append(stuck.close)
    stuck.sendall(handshake("/ws/s1", server.address))
    eq(read_answer(stuck).status, 101, "status")
    server.signal(signal.SIGTERM)
    ends_well(server)


def test_a_second_signal_ends_it_at_once(t):
    server = t.server()
    # A client that answers no close keeps the server waiting for a while.
    stuck = server.socket()
    t.closing.append(stuck.close)
    stuck.sendall(handshake("/ws/s1", server.address))
    eq(read_answer(stuck).status, 101, "status")
    client = server.client("/ws/s2")
    server.signal(signal.SIGTERM)
    eq(client.closed(), 1001, "close code")
    assert server.process.poll() is None, "nothing kept it waiting, so this test shows nothing"
    server.signal(signal.SIGTERM)
    code = server.process.wait(WAIT_SECS)
    assert code in (130, 143, -signal.SIGTERM), f"a second signal gives up at once: {code}"


def test_no_new_connections_while_it_ends(t):
    server = t.server()
    client = server.client()
    server.signal(signal.SIGTERM)
    eq(client.closed(), 1001, "close code")
    server.process.wait(WAIT_SECS)
    try:
        server.socket().close()
        raise AssertionError("somebody still listens")
    except ConnectionRefusedError:
        pass


def test_its_end_leaves_no_process_behind(t):
    server = t.server()
    client = server.client()
    client.say("run: (setsid nohup sleep 1000 >/dev/null 2>&1 &); touch begun; sleep 1000")
    client.until("approval_request")
    client.review("yes")
    eventually((t.work / "begun").exists, "the command runs")
    assert processes_in(t.work), "there are processes to end"
    server.signal(signal.SIGINT)
    ends_well(server)
    t.no_process_left()


def test_a_command_that_ended_leaves_no_process_behind(t):
    client = t.server().client()
    client.say("run: (setsid nohup sleep 1000 >/dev/null 2>&1 &); echo done\nsay: end")
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    t.no_process_left()


def test_the_log_says_nothing_alarming_about_a_normal_end(t):
    server = t.server()
    server.client().turn("say: x")
    server.signal(signal.SIGTERM)
    ends_well(server)
    log = server.stderr()
    assert "ERROR" not in log and "panicked" not in log, log
    found = subprocess.run(["find", t.store, "-name", "*.live", "-size", "+0"], text=True,
                           capture_output=True, timeout=WAIT_SECS).stdout
    eq(found, "", "journals that were not emptied")
