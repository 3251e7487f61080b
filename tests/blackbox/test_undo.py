"""Taking file edits back: `POST /sessions/{id}:undo`, all files or none, and never over somebody
else's change."""

import hashlib
import json
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from harness import eq
from loomtalk import loom
from talk import of, talks, the

AUTO = ("--tool-use-approval-mode", "auto-edit")


def call(name, **args):
    return f"tool: {name} {json.dumps(args)}"


def undo(server, session="s1", query="", status=200):
    answer = server.http("POST", f"/sessions/{session}:undo{query}")
    eq(answer.status, status, f"undo: {answer}")
    return answer.json


def tree(path):
    """Everything below a path: contents and modes of files, and directories."""
    found = {}
    for place in sorted(path.rglob("*")):
        name = str(place.relative_to(path))
        if place.is_symlink():
            found[name] = ("link", os.readlink(place))
        elif place.is_dir():
            found[name] = "directory"
        else:
            digest = hashlib.sha256(place.read_bytes()).hexdigest()[:12]
            found[name] = (place.read_bytes()[:20], digest, oct(place.stat().st_mode & 0o7777))
    return found


def changed(answer):
    return sorted((file["operation"], file["path"]) for file in answer["files"])


def filled(work):
    (work / "kept.txt").write_text("one\ntwo\nthree\n")
    (work / "run.sh").write_text("#!/bin/sh\necho hi\n")
    (work / "run.sh").chmod(0o750)
    (work / "moved.txt").write_text("moves\n")
    (work / "patched.txt").write_text("a\nb\nc\n")
    (work / "gone.bin").write_bytes(bytes(range(256)) * 40)
    (work / "gone.bin").chmod(0o640)
    (work / "folder" / "inner").mkdir(parents=True)
    (work / "folder" / "x.txt").write_text("x\n")


EDITS = [
    call("edit", path="kept.txt", oldString="two", newString="2"),
    call("multiedit", path="kept.txt", edits=[{"oldString": "one", "newString": "1"}]),
    call("write_file", path="new/deep/made.txt", content="made\n"),
    call("write_file", path="run.sh", content="#!/bin/sh\necho bye\n"),
    call("move_file", source="moved.txt", target="other/place.txt"),
    call("delete_file", path="gone.bin"),
    call("create_dir", path="empty/dir"),
    call("apply_patch", patch="*** Begin Patch\n*** Update File: patched.txt\n@@\n a\n-b\n+B\n c\n"
                              "*** Add File: added.txt\n+added\n*** End Patch\n"),
]


def test_a_turn_is_taken_back_with_all_its_kinds_of_edits_and_put_in_place_again(t):
    server = t.server(*AUTO)
    filled(t.work)
    before = tree(t.work)
    client = server.client()
    client.turn("\n".join([*EDITS, "say: done"]))
    after = tree(t.work)
    assert "new/deep/made.txt" in after and "gone.bin" not in after, after
    answer = undo(server)
    eq(tree(t.work), before, "after the undo")
    eq(changed(answer), [
        ("create", "gone.bin"), ("create", "moved.txt"), ("delete", "added.txt"),
        ("delete", "new/deep/made.txt"), ("delete", "other/place.txt"), ("update", "kept.txt"),
        ("update", "patched.txt"), ("update", "run.sh")])
    eq(sorted(answer["removed"]), ["empty", "empty/dir", "new", "new/deep", "other"], "directories")
    eq(answer["skipped"], [], "skipped")
    assert "commands" in answer["note"], answer
    again = undo(server, query=f"?item={answer['seq']}")
    eq(tree(t.work), after, "after the undo of the undo")
    undo(server, query=f"?item={again['seq']}")
    eq(tree(t.work), before, "after the undo of that")


def test_each_undo_goes_one_turn_further_back(t):
    server = t.server(*AUTO)
    client = server.client()
    for number in range(3):
        client.turn(call("write_file", path="a.txt", content=f"{number}\n") + "\nsay: done")
        client.turn("say: nothing")
    for left in ("1\n", "0\n"):
        undo(server)
        eq((t.work / "a.txt").read_text(), left)
    undo(server)
    assert not (t.work / "a.txt").exists()
    assert "left to take back" in undo(server, status=409)["error"]


def test_a_file_that_was_changed_since_stops_it_and_nothing_is_half_done(t):
    server = t.server(*AUTO)
    (t.work / "a.txt").write_text("a\n")
    (t.work / "b.txt").write_text("b\n")
    client = server.client()
    client.turn("\n".join([
        call("write_file", path="a.txt", content="A\n"),
        call("write_file", path="b.txt", content="B\n"),
        call("write_file", path="c.txt", content="C\n"),
        call("delete_file", path="a.txt"),
        "say: done"]))
    (t.work / "b.txt").write_text("mine\n")
    (t.work / "a.txt").write_text("new\n")
    before = tree(t.work)
    answer = undo(server, status=409)
    eq(sorted(c["path"] for c in answer["conflicts"]), ["a.txt", "b.txt"], f"{answer}")
    assert all(c["reason"] for c in answer["conflicts"]) and answer["error"], answer
    eq(tree(t.work), before, "nothing was changed")
    (t.work / "b.txt").write_text("B\n")
    (t.work / "a.txt").unlink()
    undo(server)
    eq((t.work / "b.txt").read_text(), "b\n")
    eq((t.work / "a.txt").read_text(), "a\n")
    assert not (t.work / "c.txt").exists()


def test_a_link_in_the_way_is_never_followed(t):
    server = t.server(*AUTO)
    outside = t.dir / "outside"
    outside.mkdir()
    (outside / "f.txt").write_text("B\n")
    (t.work / "d").mkdir()
    (t.work / "d" / "f.txt").write_text("b\n")
    server.client().turn(call("write_file", path="d/f.txt", content="B\n") + "\nsay: done")
    (t.work / "d" / "f.txt").rename(t.work / "f.txt")
    (t.work / "d").rmdir()
    (t.work / "d").symlink_to(outside)
    answer = undo(server, status=409)
    assert "link" in json.dumps(answer["conflicts"]), answer
    eq((outside / "f.txt").read_text(), "B\n", "outside")


def test_what_somebody_put_into_a_new_directory_stays(t):
    server = t.server(*AUTO)
    server.client().turn(call("write_file", path="new/a.txt", content="a\n") + "\nsay: done")
    (t.work / "new" / "mine.txt").write_text("mine\n")
    answer = undo(server)
    eq(sorted(tree(t.work)), ["new", "new/mine.txt"], "left")
    eq([s["path"] for s in answer["skipped"]], ["new"], f"{answer}")


def test_large_and_binary_files_come_back_and_the_next_server_can_do_it(t):
    server = t.server(*AUTO)
    large = os.urandom(3 * 1024 * 1024)
    (t.work / "large.bin").write_bytes(large)
    (t.work / "text.txt").write_text("line\n" * 400_000)
    before = tree(t.work)
    server.client().turn("\n".join([
        call("delete_file", path="large.bin"),
        call("edit", path="text.txt", oldString="line\nline\n", newString="x\n", replaceAll=True),
        "say: done"]))
    server.kill()
    server = t.server(*AUTO)
    undo(server)
    eq(tree(t.work), before, "after the undo")


def test_what_commands_did_is_not_taken_back_and_said_so(t):
    server = t.server("--tool-use-approval-mode", "auto-edit")
    client = server.client()
    client.say("\n".join([
        call("write_file", path="a.txt", content="a\n"),
        call("bash", command="echo made > by_command.txt"),
        "say: done"]))
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    answer = undo(server)
    eq(sorted(tree(t.work)), ["by_command.txt"], "left")
    assert "commands" in answer["note"], answer


def test_bad_and_unfitting_requests(t):
    server = t.server(*AUTO)
    client = server.client()
    client.turn("say: hello")
    eq(server.http("POST", "/sessions/nobody:undo").status, 404)
    eq(server.http("POST", "/sessions/.bad:undo").status, 400)
    for query in ("?turn=x", "?item=0", "?item=-1", "?turn=1&item=2"):
        undo(server, query=query, status=400)
    undo(server, status=409)
    assert "number" in undo(server, query="?item=3", status=409)["error"]
    client.turn(call("write_file", path="a.txt", content="a\n") + "\nsay: done")
    client.say("stream: 600 12 100")
    client.until("loading_state")
    assert "running" in undo(server, status=409)["error"]
    eq((t.work / "a.txt").read_text(), "a\n")


@talks
def test_each_dialect_tells_it_and_the_model_knows(s):
    s.server(*AUTO)
    server = s.t.servers[-1]
    unified, agentloop = s.unified(), s.agentloop()
    chat = s.chat(session="s1")
    unified.turn(call("write_file", path="a.txt", content="a\n") + "\nsay: done")
    answer = undo(server)
    frames = unified.until("notice")
    told = the(frames, "file_changed")
    eq((told["path"], told["operation"]), (str(s.t.work / "a.txt"), "delete"))
    notice = the(frames, "notice")
    eq(notice["code"], "undone")
    assert "a.txt removed" in notice["text"], notice
    events = server.events()
    undone = [e["event"] for e in events if (e.get("event") or {}).get("type") == "undone"]
    eq((len(undone), undone[0]["files"][0]["path"], undone[0]["by"]["via"]), (1, "a.txt", "rest"))
    eq(answer["seq"], [e["seq"] for e in events if (e.get("event") or {}).get("type") == "undone"][0])
    system = [m for m in server.messages() if "a.txt removed" in json.dumps(m)]
    eq(len(system), 1, "one message of the other dialect")
    eq(system[0]["type"], "response_item")


def test_a_batch_and_a_tree_are_taken_back(t):
    server = t.server(*AUTO)
    filled(t.work)
    before = tree(t.work)
    calls = [{"tool": "write_file", "parameters": {"path": "one.txt", "content": "1\n"}},
             {"tool": "edit", "parameters": {"path": "kept.txt", "oldString": "two",
                                             "newString": "2"}}]
    client = server.client()
    client.say("\n".join([
        call("batch", calls=calls), call("delete_file", path="folder", recursive=True),
        "say: done"]))
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    assert "folder" not in tree(t.work) and "one.txt" in tree(t.work), tree(t.work)
    undo(server)
    eq(tree(t.work), before, "after the undo")


def test_whatever_a_killed_server_was_doing_can_be_taken_back(t):
    dice = random.Random(5)
    (t.work / "a.txt").write_text("before\n")
    (t.work / "b.bin").write_bytes(bytes(range(256)) * 3000)
    before = tree(t.work)
    changed_and_taken_back = 0
    for number in range(12):
        server = t.server(*AUTO)
        client = server.client(f"/ws/k{number}")
        client.say("\n".join([
            call("write_file", path="a.txt", content=f"{number}\n"),
            call("write_file", path=f"new{number}/c.txt", content="c\n"),
            call("delete_file", path="b.bin"), "say: done"]))
        client.until("loading_state")
        time.sleep(dice.random() * 0.12)
        server.kill()
        server = t.server(*AUTO)
        left = tree(t.work)
        answer = server.http("POST", f"/sessions/k{number}:undo")
        if left != before:
            eq(answer.status, 200, f"{answer}")
            changed_and_taken_back += 1
        eq(tree(t.work), before, f"round {number}: {answer}")
        server.kill()
    assert changed_and_taken_back >= 3, f"only {changed_and_taken_back} rounds say anything"


def kinds(server, session="s1"):
    return [e["event"]["type"] for e in server.events(session) if e.get("event")]


def delete_tree(server, path, session="s1"):
    client = server.client(f"/ws/{session}")
    client.say(call("delete_file", path=path, recursive=True) + "\nsay: done")
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    return client


def without_last_entry(t, session="s1"):
    """The log as a kill leaves it that came right before its last entry."""
    path = t.store / f"{session}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    while '"undone"' not in lines[-1].decode():
        lines.pop()
    path.write_bytes(b"".join(lines[:-1]))
    (t.store / f"{session}.index").unlink(missing_ok=True)


def test_links_of_a_deleted_tree_come_back_and_go_again(t):
    server = t.server(*AUTO)
    (t.work / "d" / "inner").mkdir(parents=True)
    (t.work / "d" / "f.txt").write_text("f\n")
    (t.work / "d" / "to_f").symlink_to("f.txt")
    (t.work / "d" / "inner" / "dangling").symlink_to("/nowhere/at/all")
    (t.work / "d" / "inner" / "up").symlink_to("..")
    for name in ("пример.txt", "a\\b 'c'", "\u202eevil.txt"):
        (t.work / "d" / name).write_text(name)
    before = tree(t.work)
    delete_tree(server, "d")
    eq(tree(t.work), {}, "deleted")
    answer = undo(server)
    eq(tree(t.work), before, f"after the undo: {answer}")
    eq(answer["skipped"], [], "skipped")
    again = undo(server, query=f"?item={answer['seq']}")
    eq(tree(t.work), {}, f"after the undo of the undo: {again}")
    undo(server, query=f"?item={again['seq']}")
    eq(tree(t.work), before, "after the undo of that")


def test_a_link_that_somebody_made_instead_is_left_alone(t):
    server = t.server(*AUTO)
    (t.work / "d").mkdir()
    (t.work / "d" / "l").symlink_to("a")
    (t.work / "d" / "f.txt").write_text("f\n")
    delete_tree(server, "d")
    (t.work / "d").mkdir()
    (t.work / "d" / "l").symlink_to("b")
    before = tree(t.work)
    answer = undo(server, status=409)
    eq([c["path"] for c in answer["conflicts"]], ["d/l"], f"{answer}")
    eq(tree(t.work), before, "nothing was changed")
    (t.work / "d" / "l").unlink()
    answer = undo(server)
    (t.work / "d" / "l").unlink()
    (t.work / "d" / "l").symlink_to("mine")
    undo(server, query=f"?item={answer['seq']}", status=409)
    eq(os.readlink(t.work / "d" / "l"), "mine")
    eq((t.work / "d" / "f.txt").read_text(), "f\n", "nothing of it was done")


def test_what_was_not_kept_stops_an_undo_before_anything_is_changed(t):
    server = t.server(*AUTO)
    (t.work / "d").mkdir()
    (t.work / "d" / "small.txt").write_text("small\n")
    os.mkfifo(t.work / "d" / "pipe")
    with open(t.work / "d" / "big.bin", "wb") as file:
        file.truncate(33 * 1024 * 1024)
    client = delete_tree(server, "d")
    assert "cannot be undone" in json.dumps(server.messages()), "the result says so"
    client.turn(call("write_file", path="d/small.txt", content="other\n") + "\nsay: done")
    undo(server)
    answer = undo(server, status=409)
    eq(sorted(c["path"] for c in answer["conflicts"]), ["d/big.bin", "d/pipe"], f"{answer}")
    assert all("not kept" in c["reason"] for c in answer["conflicts"]), answer
    assert not (t.work / "d" / "small.txt").exists(), "nothing was brought back"


def test_a_command_that_changed_an_edited_file_is_a_conflict(t):
    server = t.server(*AUTO)
    (t.work / "b.txt").write_text("b\n")
    client = server.client()
    client.say("\n".join([
        call("write_file", path="a.txt", content="a\n"),
        call("write_file", path="b.txt", content="B\n"),
        call("bash", command="echo more >> a.txt; echo x > c.txt"), "say: done"]))
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    before = tree(t.work)
    answer = undo(server, status=409)
    eq([c["path"] for c in answer["conflicts"]], ["a.txt"], f"{answer}")
    eq(tree(t.work), before, "nothing was changed")
    (t.work / "a.txt").write_text("a\n")
    answer = undo(server)
    eq([(s["path"], "command" in s["reason"]) for s in answer["skipped"]], [("c.txt", True)])
    eq(sorted(tree(t.work)), ["b.txt", "c.txt"])
    eq((t.work / "b.txt").read_text(), "b\n")


def test_a_kill_right_after_the_files_loses_nothing(t):
    server = t.server(*AUTO)
    filled(t.work)
    (t.work / "folder" / "link").symlink_to("x.txt")
    before = tree(t.work)
    client = server.client()
    client.say("\n".join([*EDITS, call("delete_file", path="folder", recursive=True),
                          "say: done"]))
    client.until("approval_request")
    client.review("yes")
    client.until_end()
    after = tree(t.work)
    undo(server)
    eq(tree(t.work), before)
    server.kill()
    without_last_entry(t)
    # What comes after the files may not have been done either.
    (t.work / "folder" / "link").unlink()
    (t.work / "empty" / "dir").mkdir(parents=True)
    server = t.server(*AUTO)
    server.client().turn("say: on")
    eq(kinds(server).count("undone"), 1, f"{kinds(server)}")
    eq(tree(t.work), before, "ended")
    undone = [e["seq"] for e in server.events() if (e.get("event") or {}).get("type") == "undone"]
    undo(server, query=f"?item={undone[0]}")
    eq(tree(t.work), after, "redo")


def test_a_kill_right_before_the_files_is_told_and_it_can_be_asked_for_again(t):
    server = t.server(*AUTO)
    (t.work / "a.txt").write_text("a\n")
    client = server.client()
    client.turn(call("write_file", path="a.txt", content="A\n") + "\nsay: done")
    undo(server)
    server.kill()
    without_last_entry(t)
    (t.work / "a.txt").write_text("A\n")
    server = t.server(*AUTO)
    watcher = server.client()
    watcher.turn("say: on")
    eq(kinds(server).count("undo_failed"), 1, f"{kinds(server)}")
    told = [m for m in server.messages() if "in place still" in json.dumps(m)]
    eq(len(told), 1, "told to people")
    eq((t.work / "a.txt").read_text(), "A\n")
    undo(server)
    eq((t.work / "a.txt").read_text(), "a\n")


def test_kills_at_any_moment_of_an_undo_of_many_files(t):
    dice = random.Random(11)
    count = 600  # More than a patch may name.
    (t.work / "d").mkdir()
    for number in range(count):
        (t.work / "d" / f"{number}.txt").write_text(f"{number}\n")
    before, gone, became = tree(t.work), {}, []
    server = t.server(*AUTO)
    delete_tree(server, "d", "k")
    eq(tree(t.work), gone)
    began = time.monotonic()
    item, in_place = undo(server, "k")["seq"], False
    took = time.monotonic() - began
    for number in range(6):
        path = f"/sessions/k:undo?item={item}"
        asked = threading.Thread(target=quietly, args=(server, path))
        asked.start()
        time.sleep(dice.random() * 1.3 * took)
        server.kill()
        asked.join()
        server = t.server(*AUTO)
        server.client("/ws/k").turn("say: on")
        found, told = tree(t.work), kinds(server, "k")
        assert found in (before, gone), f"round {number}: {len(found)} of {count} files"
        eq(told.count("undo_started"), told.count("undone") + told.count("undo_failed"), "ended")
        seqs = [e["seq"] for e in server.events("k")
                if (e.get("event") or {}).get("type") == "undone"]
        now = "undone" if seqs and seqs[-1] != item else "not"
        eq(found, (before if in_place else gone) if now == "undone" else
           (gone if in_place else before), f"round {number}: the log says {now}")
        became.append(now)
        if now == "undone":
            item, in_place = seqs[-1], not in_place
    assert {"undone", "not"} == set(became), became


def quietly(server, path):
    try:
        server.http("POST", path)
    except Exception:  # It was killed.
        pass


def test_a_fork_may_take_back_what_was_edited_before_it_and_each_edit_goes_once(t):
    server = t.server(*AUTO)
    (t.work / "a.txt").write_text("a\n")
    client = server.client()
    client.turn(call("write_file", path="a.txt", content="A\n") + "\nsay: done")
    fork = server.http("POST", "/sessions/s1:fork").json["id"]
    first = undo(server)
    eq((t.work / "a.txt").read_text(), "a\n")
    other = undo(server, fork)
    eq((other["files"], other["skipped"]), ([], []), "it was back already")
    undo(server, query=f"?item={first['seq']}")
    eq((t.work / "a.txt").read_text(), "A\n")
    undo(server, fork, query=f"?item={other['seq']}")
    eq((t.work / "a.txt").read_text(), "A\n", "nothing was done, so nothing is taken back")
    server.client(f"/ws/{fork}").turn(
        call("write_file", path="a.txt", content="fork\n") + "\nsay: done")
    eq([c["path"] for c in undo(server, status=409)["conflicts"]], ["a.txt"])
    undo(server, fork)
    eq((t.work / "a.txt").read_text(), "A\n")


def test_a_folder_that_was_moved_a_file_that_became_something_else_and_one_that_is_closed(t):
    server = t.server(*AUTO)
    (t.work / "a.txt").write_text("a\n")
    client = server.client()
    client.turn(call("write_file", path="a.txt", content="A\n") + "\nsay: done")
    (t.work / "a.txt").unlink()
    (t.work / "a.txt").mkdir()
    assert "a.txt" in json.dumps(undo(server, status=409)["conflicts"])
    (t.work / "a.txt").rmdir()
    (t.work / "a.txt").symlink_to("/etc/passwd")
    assert "a.txt" in json.dumps(undo(server, status=409)["conflicts"])
    (t.work / "a.txt").unlink()
    (t.work / "a.txt").write_text("A\n")
    (t.work / "a.txt").chmod(0o444)
    assert "a.txt" in json.dumps(undo(server, status=409)["conflicts"])
    (t.work / "a.txt").chmod(0o644)
    elsewhere = t.dir / "elsewhere"
    t.work.rename(elsewhere)
    assert undo(server, status=409)["conflicts"]
    eq((elsewhere / "a.txt").read_text(), "A\n")
    elsewhere.rename(t.work)
    undo(server)
    eq((t.work / "a.txt").read_text(), "a\n")


def test_undo_while_an_approval_waits_and_two_at_once(t):
    server = t.server(*AUTO)
    client = server.client()
    client.turn(call("write_file", path="a.txt", content="A\n") + "\nsay: done")
    turn = [e["seq"] for e in server.events() if (e.get("event") or {}).get("type") == "turn_started"][0]
    client.say(call("bash", command="touch x") + "\nsay: done")
    client.until("approval_request")
    assert "running" in undo(server, status=409)["error"]
    client.review("yes")
    client.until_end()
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(server.http, "POST", f"/sessions/s1:undo?turn={turn}") for _ in range(8)]
        statuses = sorted(one.result().status for one in asked)
    eq(statuses, [200] + [409] * 7)
    eq(kinds(server).count("undone"), 1)
    assert not (t.work / "a.txt").exists()


def test_a_file_that_somebody_made_again_what_it_was_is_no_conflict(t):
    server = t.server(*AUTO)
    (t.work / "a.txt").write_text("1\n")
    (t.work / "b.txt").write_text("b\n")
    server.client().turn("\n".join([
        call("write_file", path="a.txt", content="2\n"),
        call("write_file", path="a.txt", content="3\n"),
        call("write_file", path="b.txt", content="B\n"), "say: done"]))
    (t.work / "a.txt").write_text("1\n")
    answer = undo(server)
    eq(changed(answer), [("update", "b.txt")])
    eq(((t.work / "a.txt").read_text(), (t.work / "b.txt").read_text()), ("1\n", "b\n"))


def test_a_tree_of_many_directories_comes_back(t):
    server = t.server(*AUTO)
    for number in range(1100):
        folder = t.work / "d" / str(number % 40) / str(number)
        folder.mkdir(parents=True)
        (folder / "f").write_text(str(number))
    before = tree(t.work)
    delete_tree(server, "d")
    undo(server)
    eq(tree(t.work) == before, True, "after the undo")
