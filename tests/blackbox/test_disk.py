"""Disks that are full, cannot be written or do not flush; files that were cut, and clocks that
jumped."""

import contextlib
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

from frames import item_text, said
from harness import Options, eq

DENY = [sys.executable, str(Path(__file__).with_name("deny.py"))]
FDATASYNC, EIO = 75, 5


def mount(t, size="1m"):
    """A small file system for the store; false where nobody may mount one."""
    t.store.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(t.store)],
                          capture_output=True, text=True)
    if made.returncode:
        Options.tell(f"not run: no file system can be mounted: {made.stderr.strip()}")
        print("      not run: it takes leave to mount a file system", flush=True)
        return False
    t.closing.append(lambda: unmount(t))
    return True


def unmount(t):
    subprocess.run(["umount", "-l", str(t.store)], capture_output=True, check=False)


def kept(server, session="s1"):
    return [m["payload"] for m in server.messages(session) if m.get("type") == "response_item"]


def test_a_full_disk_is_told_and_loses_nothing(t):
    if not mount(t):
        return
    server = t.server()
    client = server.client(checked=False)
    eq(said(client.turn("say: before")), ["before"])
    filler = t.store / "filler"
    with filler.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
    # What is left of the last page may still take a word or two.
    failed = None
    for n in range(200):
        client.say(f"say: {n} " + "w" * 2000)
        frames = []
        while not failed:
            frame = client.recv()
            frames.append(frame)
            if frame["type"] == "error":
                failed = frame
            if frame["type"] == "agent_finished":
                break
        if failed:
            break
    assert failed, "nobody said that the disk is full"
    Options.tell(f"the client saw: {failed['payload']}")
    assert "No space left" in json.dumps(failed) or "store" in json.dumps(failed), failed
    eq(server.get("/healthz").status, 200, "the server lives")
    shown = [item_text(i) for i in kept(server) if i.get("role") == "assistant"]
    assert "before" in shown, "the session can be read"
    # Another server, of which nothing is known yet, would find the same.
    filler.unlink()
    again = server.client("/ws/s1", checked=False)
    eq(said(again.turn("say: after")), ["after"], "with space again the session goes on")
    server.kill()
    checked = t.program("sessions", "check", env={"SESSION_STORE_PATH": t.store})
    eq(checked.returncode, 0, f"every line is whole: {checked.stdout}")


def test_a_store_that_cannot_be_written_is_said_at_the_start(t):
    if not mount(t):
        return
    subprocess.run(["mount", "-o", "remount,ro", str(t.store)], check=True)
    result = t.program("serve", "--port", "0", env={"SESSION_STORE_PATH": t.store})
    eq(result.returncode, 1, "exit code")
    (line,) = [one for one in result.stderr.splitlines() if one.startswith("error:")]
    assert "SESSION_STORE_PATH" in line and "Read-only" in line, line


def test_a_store_that_becomes_read_only_refuses_and_can_be_read(t):
    if not mount(t):
        return
    server = t.server()
    client = server.client(checked=False)
    eq(said(client.turn("say: before")), ["before"])
    client.close()
    server.kill()
    server = t.server()
    # The server has files open in it, so that it cannot be changed itself; what is opened from
    # now on is found in a second mount of it, which can.
    for words in (["--bind", str(t.store), str(t.store)], ["-o", "remount,ro,bind", str(t.store)]):
        subprocess.run(["mount", *words], check=True)
    t.closing.append(lambda: unmount(t))
    answer = server.http("POST", "/sessions")
    eq(answer.status, 500, "a new session")
    assert "store" in answer.json["error"], answer.json
    Options.tell(f"whoever makes a session sees: {answer.json}")
    assert "Read-only file system" in server.stderr(), server.stderr()
    assert any(item_text(i) == "before" for i in kept(server)), "it can be read"
    eq(len(server.get("/sessions").json["sessions"]), 1, "and listed")
    subprocess.run(["umount", str(t.store)], check=True)
    eq(said(server.client().turn("say: after")), ["after"], "and goes on when it can be written")


def test_a_flush_that_fails_is_told_and_nothing_is_acknowledged(t):
    t.before = [*DENY, f"{FDATASYNC}:{EIO}", "--"]
    server = t.server()
    answer = server.http("POST", "/sessions")
    eq(answer.status, 500, "a session that cannot be kept is not made")
    assert "store" in answer.json["error"], answer.json
    eq(server.get("/healthz").status, 200, "the server lives")
    assert "Input/output error" in server.stderr(), server.stderr()
    server.kill()
    t.before = []
    server = t.server()
    eq(server.http("POST", "/sessions").status, 201, "with a sound disk")


def test_what_is_only_named_like_a_session_holds_up_nobody(t):
    server = t.server()
    server.client().turn("say: mine")
    os.mkfifo(t.store / "pipe.jsonl")
    (t.store / "folder.jsonl").mkdir()
    (t.store / "nowhere.jsonl").symlink_to(t.dir / "nothing")
    eq([s["id"] for s in server.get("/sessions").json["sessions"]], ["s1"], "the list")
    eq(server.get("/sessions/pipe").status, 404, "a pipe")
    eq(server.get("/sessions/folder").status, 404, "a folder")
    refused = server.client("/ws/pipe", checked=False).error()
    assert "pipe" in json.dumps(refused), refused
    listed = t.program("sessions", "list", env={"SESSION_STORE_PATH": t.store})
    eq((listed.returncode, "pipe" in listed.stdout), (0, False), listed.stdout)


def test_a_second_server_is_refused(t):
    first = t.server()
    first.client().turn("say: mine")
    result = t.program("serve", "--port", "0", env={"SESSION_STORE_PATH": t.store})
    eq(result.returncode, 1, "exit code")
    assert "another server is using it" in result.stderr, result.stderr


def test_a_file_cut_at_every_byte_of_its_last_lines_resumes(t):
    server = t.server()
    client = server.client("/ws/whole")
    client.turn("say: one")
    client.turn("think: hm\nsay: two")
    server.kill()
    whole = (t.store / "whole.jsonl").read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    entries = [json.loads(one) for one in whole.splitlines()]
    first = ends[-4]
    for cut in range(first, len(whole)):
        (t.store / f"cut-{cut}.jsonl").write_bytes(whole[:cut])
    server = t.server()
    told = 0
    for cut in range(first, len(whole)):
        name = f"cut-{cut}"
        torn = cut not in ends and cut + 1 not in ends
        lines = sum(1 for end in ends if end <= cut + 1)
        client = server.client(f"/ws/{name}", checked=False)
        eq(said(client.turn("say: on")), ["on"], name)
        client.close()
        events = server.events(name)
        eq(events[:lines], entries[:lines], f"{name}: every whole line")
        notices = [m for m in server.messages(name) if m.get("type") == "response_item"
                   and "was damaged" in (item_text(m["payload"]) or "")]
        eq(len(notices), int(torn), f"{name}: notices")
        told += len(notices)
        seqs = [e["seq"] for e in events if "event" in e]
        eq(seqs, list(range(1, len(seqs) + 1)), f"{name}: numbers without a gap")
    Options.tell(f"{len(whole) - first} cuts, {told} notices")
    assert told > 100, told


def shifted(line, delta):
    event = json.loads(line)
    at = datetime.datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00")) + delta
    event["timestamp"] = at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def test_a_clock_that_jumps_turns_nothing_around(t):
    """What was written when the clock was a year ahead, or a day behind, is what the file says."""
    for name, delta in (("ahead", datetime.timedelta(days=365)),
                        ("behind", datetime.timedelta(days=-1))):
        server = t.server()
        client = server.client(f"/ws/{name}")
        client.turn("run: echo one\nsay: first")
        server.kill()
        path = t.store / f"{name}.jsonl"
        path.write_text("".join(shifted(one, delta) + "\n" for one in path.read_text().splitlines()))
        server = t.server()
        client = server.client(f"/ws/{name}")
        client.turn("think: hm\nrun: echo two\nsay: second")
        events = server.events(name)
        times = [e["timestamp"] for e in events]
        eq(times, sorted(times), f"{name}: times never go back")
        seqs = [e["seq"] for e in events]
        eq(seqs, sorted(seqs), f"{name}: the order is the numbers'")
        durations = [v for e in events for v in numbers(e, "duration_ms")]
        assert durations and min(durations) >= 0, durations
        (info,) = [s for s in server.get("/sessions").json["sessions"] if s["id"] == name]
        assert info["start_time"] <= info["last_update_time"], info
        server.kill()


def numbers(value, name):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == name and isinstance(inner, (int, float)):
                yield inner
            yield from numbers(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, name)


