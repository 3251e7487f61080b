"""`polyloop sessions`: lists, shows, checks, mends and exports without a server."""

import json
import shutil

from frames import said
from harness import eq

LONG = "x" * 70_000


def sessions(t, *words, code=0, store=None):
    env = {"SESSION_STORE_PATH": store or t.store}
    result = t.program("sessions", *words, env=env)
    assert "panicked" not in result.stderr and "\x1b" not in result.stdout, result
    eq(result.returncode, code, f"exit code of {words}: {result.stdout}{result.stderr}")
    return result


def talk(t, session="s1"):
    """A session with a tool call, a long text and a title, and its server."""
    server = t.server()
    client = server.client(f"/ws/{session}")
    client.say("think: hm\nsay: begin\nrun: touch a\nsay: the end")
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    eq(said(client.turn(f"say: {LONG}")), [LONG])
    client.turn("say: \x1b[31mred\x07")
    body = json.dumps({"title": "About a file"})
    eq(server.http("PATCH", f"/sessions/{session}", body=body).status, 200, "a title")
    return server


def snapshot(folder):
    return {path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


def test_reading_while_a_server_runs_changes_nothing(t):
    server = talk(t)
    before = snapshot(t.store)
    listed = json.loads(sessions(t, "list", "--json").stdout)
    eq(listed, server.get("/sessions").json, "the list")
    eq(listed["sessions"][0]["title"], "About a file", "its title")
    table = sessions(t, "list").stdout
    assert "About a file" in table and "s1" in table, table
    shown = sessions(t, "show", "s1").stdout
    for word in ("About a file", "say: begin", "the end", "Tool bash", "touch a", "\\u{1b}[31m"):
        assert word in shown, f"{word} is not in:\n{shown[:3000]}"
    written = sessions(t, "export", "s", "--format", "markdown").stdout
    assert written.startswith("# About a file\n") and "## Agent" in written, written[:500]
    assert len(written) < 2 * len(LONG) + 20_000, "outputs are bounded"
    lines = [json.loads(one) for one in sessions(t, "export", "s1").stdout.splitlines()]
    eq(lines, server.events("s1"), "the lines")
    checked = sessions(t, "check").stdout
    assert "1 sessions looked at, 0 damaged; a server uses the store" in checked, checked
    eq(snapshot(t.store), before, "the store")


def test_an_export_is_a_session(t):
    server = talk(t)
    events = server.events()
    server.kill()
    other = t.dir / "other"
    other.mkdir()
    (other / "copy.jsonl").write_text(sessions(t, "export", "s1").stdout)
    sessions(t, "check", store=other)
    server = t.server(env={"SESSION_STORE_PATH": other})
    eq(server.events("copy")[: len(events)], events, "what was exported")
    eq(said(server.client("/ws/copy").turn("say: goes on")), ["goes on"])


def test_damage_is_found_and_mended(t):
    server = talk(t)
    server.kill()
    sessions(t, "check")
    path = t.store / "s1.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    # A line in the middle cannot be read, an entry is missing, a long text is gone, the end torn.
    named = [one for one in lines if b'"event":' in one]
    middle, gone = named[len(named) // 2], named[len(named) // 2 + 4]
    torn = b'{"timestamp":"2025-'
    path.write_bytes(whole.replace(middle, b"\x00" * 40 + b"\n").replace(gone, b"") + torn)
    (blob, *_) = sorted((t.store / "s1.blobs").iterdir())
    blob.rename(t.dir / "blob")
    told = sessions(t, "check", code=1).stdout
    for words in ("s1: DAMAGED", "are missing before this line", "one of its texts is missing",
                  "torn by a crash", f"line {len(lines)}"):
        assert words in told, f"{words!r} is not in:\n{told}"
    (report,) = [json.loads(one) for one in sessions(t, "check", "--json", code=1).stdout.splitlines()]
    eq(report["id"], "s1", "the report's session")
    assert all(f["weight"] in ("damage", "note") for f in report["findings"]), report

    (t.dir / "blob").rename(blob)
    before = path.read_bytes()
    mended = sessions(t, "repair").stdout
    assert f"{len(torn)} torn bytes at the end were moved to s1-" in mended, mended
    (kept,) = t.store.glob("s1-*.bak")
    eq(kept.read_bytes(), torn, "what was cut off")
    eq(path.read_bytes(), before[: -len(torn)], "nothing else is changed")
    told = sessions(t, "check", code=1).stdout
    assert "torn" not in told and "are missing" in told, told
    path.write_bytes(whole)
    sessions(t, "repair", "s1")
    eq(path.read_bytes(), whole, "a whole file stays as it is")
    assert "0 damaged" in sessions(t, "check").stdout


def test_repair_is_for_one_alone(t):
    server = talk(t)
    told = sessions(t, "repair", code=1).stderr
    assert "another server is using it" in told, told
    server.kill()
    sessions(t, "repair")


def test_a_stale_index_is_named_and_made_anew(t):
    server = t.server()
    client = server.client()
    for _ in range(2):
        client.turn("say: " + "y" * 60_000)
    client.close()
    server.signal(15)
    server.process.wait(30)
    index = t.store / "s1.index"
    assert index.is_file(), "a long session has an index"
    sessions(t, "check")
    good = index.read_bytes()
    index.write_bytes(good.replace(b'"bytes":', b'"bytes":1', 1))
    assert "does not fit the file" in sessions(t, "check").stdout
    assert "the index was made anew" in sessions(t, "repair").stdout
    assert "note" not in sessions(t, "check").stdout
    shutil.rmtree(t.store)


def test_words_that_make_no_sense(t):
    t.store.mkdir()
    for words in (("show", "nobody"), ("export", "nobody"), ("check", "nobody")):
        assert "no session's id is" in sessions(t, *words, code=2).stderr
    result = t.program("sessions", "list")
    eq(result.returncode, 2, "without a store")
    assert "SESSION_STORE_PATH" in result.stderr, result
    help_text = t.program("sessions", "--help").stdout
    for word in ("list", "check", "repair", "show", "export", "Examples:"):
        assert word in help_text, help_text
    sessions(t, "list", store=t.dir / "nowhere", code=1)
