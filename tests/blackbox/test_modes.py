"""The table of modes, cell by cell, as a unified and as an AgentLoop client see it: what runs, what
is asked about, what is denied and what runs in the sandbox; and that a request says why."""

import json
import os
import socket

import ground
from frames import outputs
from harness import eq
from talk import of, talks, the
from test_web import Site

# What a cell says. A command that is `sandboxed` ran there; one that is `stopped` did too, could
# not do what it was to do, and then somebody was asked.
TABLE = """
          suggest   auto-edit full-auto bypass    plan      dontAsk   risk
read      run       run       run       run       run       run       -
safe      run       run       run       run       run       run       -
inside    ask       run       run       run       denied    denied    medium
protected ask       ask       ask       run       denied    denied    high
outside   ask       ask       ask       run       denied    denied    high
away      ask       ask       ask       run       denied    denied    medium
command   ask       ask       sandboxed run       denied    denied    medium
beyond    ask       ask       stopped   run       denied    denied    medium
network   ask       ask       stopped   run       denied    denied    high
web       ask       ask       ask       run       denied    denied    high
remember  ask       run       run       run       denied    denied    medium
batch     ask       ask       sandboxed run       denied    denied    medium
own       denied    denied    denied    denied    denied    denied    -
"""
# The modes by the words of the unified dialect.
WORDS = {"suggest": "manual", "auto-edit": "acceptEdits", "full-auto": "auto", "bypass": "bypass",
         "plan": "plan", "dontAsk": "dontAsk"}
NETWORK = os.readlink("/proc/self/ns/net")


def table():
    """For each mode, and for the risk, the word of each kind of call."""
    modes, *rows = [line.split() for line in TABLE.strip().splitlines()]
    return {mode: {name: cells[at] for name, *cells in rows} for at, mode in enumerate(modes)}


def call(name, **args):
    return f"tool: {name} {json.dumps(args)}"


def scripts(t, tag, port, web):
    """For each row a script, and the file that is there if and only if it did what it is for."""
    outside = t.outside / tag
    return {
        "read": (call("read", path="a.txt"), None),
        "safe": ("run: cat a.txt | wc -l", None),
        "inside": (call("write_file", path=tag, content="x"), t.work / tag),
        "protected": (call("write_file", path=f".env.{tag}", content="x"), t.work / f".env.{tag}"),
        "outside": (call("write_file", path=f"../outside/{tag}", content="x"), outside),
        "away": (call("read", path="../outside/canary"), None),
        "command": (f"run: touch made-{tag}; readlink /proc/self/ns/net", t.work / f"made-{tag}"),
        "beyond": (f"run: touch {outside}-beyond", t.outside / f"{tag}-beyond"),
        "network": (f"run: echo hi > /dev/tcp/127.0.0.1/{port}", None),
        "web": (call("web_fetcher", url=web.url(f"/{tag}")), None),
        "remember": (call("remember", key=tag, value="x"), None),
        "batch": (call("batch", calls=[{"tool": "bash", "parameters": {
            "command": f"touch batch-{tag}; readlink /proc/self/ns/net"}}]),
            t.work / f"batch-{tag}"),
        "own": (call("read", path=f"{t.store}/{tag}.jsonl"), None),
    }


def by_unified(client, script):
    """What becomes of a script's call: a word, the result, and the request if there was one."""
    client.say(script)
    frames = client.until(
        lambda f: f["type"] in ("control_request", "turn_completed", "turn_failed"))
    if frames[-1]["type"] == "control_request":
        begun = "outside the sandbox?" in frames[-1]["context"]["description"]
        client.decide(frames[-1], "deny_stop")
        client.until_end()
        return "stopped" if begun else "ask", "", frames[-1]
    eq(frames[-1]["type"], "turn_completed", f"end of {script}")
    done = the(frames, "tool_completed")
    if not done["success"] and done["result"] is None:
        return "denied", done["error"], None
    return "run", str(done["result"]), None


def by_agentloop(client, script):
    client.say(script)
    frames = client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
    if frames[-1]["type"] == "approval_request":
        begun = any(f["type"] == "response_item" and f["payload"]["type"] == "function_call"
                    for f in frames)
        client.review("no-exit", requestId=frames[-1]["id"])
        client.until_end()
        return "stopped" if begun else "ask", "", frames[-1]
    (output,) = outputs(frames)
    if output["metadata"]["exit_code"] == 0:
        return "run", output["output"], None
    return "denied", output["output"], None


def away_from_here(output):
    links = [word for word in output.split() if word.startswith("net:[")]
    return links and links[0] != NETWORK


def play(s, row, tag, client, by, reached):
    """All calls in one mode; gives the requests that were made."""
    requests, (listener, web) = {}, reached
    for kind, (script, made) in scripts(s.t, tag, listener.getsockname()[1], web).items():
        word, told, request = by(client, script)
        what = f"{tag}, {kind}"
        if word == "run" and away_from_here(told):
            word = "sandboxed"
        eq(word, row[kind], f"{what}: {told or request}")
        if made:
            eq(made.exists(), word in ("run", "sandboxed"), f"{what}: {made.name} is there")
        if word == "denied":
            wanted = "server's own files" if kind == "own" else ""
            assert told and wanted in told, f"{what} says why: {told!r}"
        if kind == "network":
            eq(came(listener), int(word == "run"), f"{what}: who came")
        if kind == "web":
            eq(f"GET /{tag}" in web.seen, word == "run", f"{what}: who came")
        requests[kind] = request
    return requests


def came(listener):
    count = 0
    while True:
        try:
            listener.accept()[0].close()
            count += 1
        except BlockingIOError:
            return count


def place(s):
    """Furnishes the test's place; gives what can be reached from it."""
    ground.settle(s.t)
    s.work, s.store = s.t.work, s.t.store
    (s.work / "a.txt").write_text("needle\n")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    web = Site()
    s.t.closing += [listener.close, web.http.shutdown, web.http.server_close]
    return listener, web


HERE = {"WEB_PRIVATE_ADDRESSES": "true", "ALLOW_BYPASS": "true"}


@talks
def test_the_table_in_unified(s):
    reached, risks = place(s), table()["risk"]
    s.server(env=HERE)
    for mode, word in WORDS.items():
        client = s.unified(session=f"u-{mode}", full_auto=True)
        client.start(permission_mode=word)
        requests = play(s, table()[mode], f"u-{mode}", client, by_unified, reached)
        for kind, request in requests.items():
            if request is None:
                continue
            why = request["context"]
            eq(why["risk_level"], risks[kind], f"{mode}, {kind}: risk")
            for name in ("description", "covers"):
                said = why[name]
                assert said and "\n" not in said, f"{mode}, {kind}: {name} is a line: {why}"
            if kind in ("protected", "outside", "away"):
                real = {"protected": f" .env.u-{mode}", "outside": s.t.outside / f"u-{mode}",
                        "away": s.t.outside / "canary"}[kind]
                assert str(real) in why["description"], f"{kind}: names the path: {why}"
            if table()[mode][kind] == "stopped":
                assert "sandbox" in why["description"], f"{mode}, {kind}: {why}"


@talks
def test_the_table_in_agentloop(s):
    """Its clients have no word for a mode: another sets it, and it is the session's."""
    reached = place(s)
    s.server(env=HERE)
    for mode, word in WORDS.items():
        session = f"a-{mode}"
        other = s.unified(session=session, full_auto=True)
        other.start(permission_mode=word)
        client = s.agentloop(session, full_auto=True)
        play(s, table()[mode], session, client, by_agentloop, reached)
        other.drop()


@talks
def test_the_servers_own_mode_in_agentloop(s):
    """The three modes that a server can be started in."""
    reached = place(s)
    for mode in ("suggest", "auto-edit", "full-auto"):
        server = s.server("--tool-use-approval-mode", mode, env=HERE)
        client = s.agentloop(f"o-{mode}", full_auto=True)
        play(s, table()[mode], f"o-{mode}", client, by_agentloop, reached)
        server.stop()


@talks
def test_a_denial_gives_advice_by_mode(s):
    s.server()
    for mode, word in (("plan", "plan"), ("dontAsk", "granted")):
        client = s.unified(session=f"s-{mode}")
        client.start(permission_mode=mode)
        for script in ("run: touch made", call("write_file", path="made", content="x")):
            done = the(client.turn(script), "tool_completed")
            assert not done["success"] and word in done["error"], f"{mode}: {done}"
    assert not (s.work / "made").exists()


@talks
def test_a_grant_speaks_for_a_call_in_every_mode_but_plan(s):
    s.server()
    client = s.unified(full_auto=True)
    client.start()
    request = client.asked("run: touch granted")
    assert "touch" in request["context"]["covers"], request
    client.decide(request, "allow_always")
    client.until_end()
    for word in ("acceptEdits", "auto", "dontAsk", "plan"):
        client.send("set_permission_mode", mode=word)
        client.until("session_info")
        done = of(client.turn(f"run: touch granted-{word}"), "tool_completed")[0]
        eq(done["success"], word != "plan", f"{word}: {done}")
        eq((s.work / f"granted-{word}").exists(), word != "plan", word)
