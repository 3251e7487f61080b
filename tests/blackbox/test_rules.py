"""The rules file: what it allows, asks about and denies in each mode; that a bad one stops the
start; that the log tells by which rule; that the agent cannot touch it."""

import json

import ground
from harness import eq, eventually
from talk import of, spoken, talks, the

RULES = """\
# says  about   what
allow   command touch allowed
allow   tool    create_dir
allow   path    docs
ask     command wc
ask     tool    glob
ask     path    asked
deny    command rm
deny    tool    move_file
deny    path    closed
"""

# A command that is `sandboxed` ran there; `hidden` is one that ran there and found nothing.
TABLE = """
                suggest auto-edit full-auto dontAsk plan   bypass
allow-command   run     run       run       run     denied run
allow-tool      run     run       run       run     denied run
allow-path      run     run       run       run     denied run
ask-command     ask     ask       ask       denied  ask    ask
ask-tool        ask     ask       ask       denied  ask    ask
ask-path-read   ask     ask       ask       denied  ask    ask
ask-path-named  ask     ask       ask       denied  denied ask
ask-path-write  ask     ask       ask       denied  denied ask
deny-command    denied  denied    denied    denied  denied denied
deny-wrapped    denied  denied    denied    denied  denied denied
deny-inside     denied  denied    denied    denied  denied denied
deny-hidden     ask     ask       ask       denied  denied ask
deny-tool       denied  denied    denied    denied  denied denied
deny-path-read  denied  denied    denied    denied  denied denied
deny-path-named denied  denied    denied    denied  denied denied
meant-by-a-glob ask     ask       hidden    denied  denied run
deny-path-write denied  denied    denied    denied  denied denied
not-about-it    ask     ask       sandboxed denied  denied run
"""
WORDS = {"suggest": "manual", "auto-edit": "acceptEdits", "full-auto": "auto", "bypass": "bypass",
         "plan": "plan", "dontAsk": "dontAsk"}


def call(name, **args):
    return f"tool: {name} {json.dumps(args)}"


CALLS = {
    "allow-command": "run: touch allowed allowed-MODE",
    "allow-tool": call("create_dir", path="made-MODE"),
    "allow-path": call("write_file", path="docs/MODE", content="x"),
    "ask-command": "run: cat a.txt | wc -l",
    "ask-tool": call("glob", pattern="*.txt"),
    "ask-path-read": call("read", path="asked/a.txt"),
    "ask-path-named": "run: cat asked/a.txt",
    "ask-path-write": call("write_file", path="asked/MODE", content="x"),
    "deny-command": "run: rm a.txt",
    "deny-wrapped": "run: env X=1 nice rm -f a.txt",
    "deny-inside": "run: echo $(bash -c 'rm a.txt')",
    "deny-hidden": "run: x=rm; $x a.txt",
    "deny-tool": call("move_file", source="a.txt", target="b.txt"),
    "deny-path-read": call("read", path="closed/a.txt"),
    "deny-path-named": "run: cat closed/a.txt",
    "meant-by-a-glob": "run: cat clos*/a.txt",
    "deny-path-write": call("write_file", path="closed/MODE", content="x"),
    "not-about-it": "run: touch else-MODE",
}
CANARY = "canary-in-a-denied-place"


def rules(t, text=RULES, name="own.rules"):
    file = t.start / name
    file.write_text(text)
    return {"RULES_FILE": file, "LOG_FORMAT": "json", "ALLOW_BYPASS": "true"}


def furnish(t):
    for name in ("docs", "asked", "closed"):
        (t.work / name).mkdir()
    (t.work / "a.txt").write_text("needle\n")
    (t.work / "asked/a.txt").write_text("needle\n")
    (t.work / "closed/a.txt").write_text(f"needle {CANARY}\n")


def outcome(client, script):
    client.say(script)
    frames = client.until(
        lambda f: f["type"] in ("control_request", "turn_completed", "turn_failed"))
    if frames[-1]["type"] == "control_request":
        client.decide(frames[-1], "deny_stop")
        client.until_end()
        return "ask", frames[-1]
    done = the(frames, "tool_completed")
    if not done["success"] and done["result"] is None:
        return "hidden" if "No such file" in done["error"] else "denied", done["error"]
    return "run", done["result"]


@talks
def test_the_table(s):
    furnish(s.t)
    s.server(env=rules(s.t))
    head, *rows = [line.split() for line in TABLE.strip().splitlines()]
    eq([row[0] for row in rows], list(CALLS), "rows")
    for at, mode in enumerate(head, 1):
        client = s.unified(session=f"s-{mode}", full_auto=True)
        client.start(permission_mode=WORDS[mode])
        for name, *cells in rows:
            word, told = outcome(client, CALLS[name].replace("MODE", mode))
            want = cells[at - 1].replace("sandboxed", "run")
            eq(word, want, f"{mode}, {name}: {told}")
            if name.startswith("deny") and word == "denied" and name != "deny-hidden":
                assert "the rules of this server deny it" in told, f"{mode}, {name}: {told}"
        # A rule is about what a command names. What a glob stands for is known to the judge and
        # closed in the sandbox; in bypass there is neither.
        if mode != "bypass":
            assert CANARY not in json.dumps(client.seen), f"{mode}: what is denied was read"
    eq((s.work / "a.txt").read_text(), "needle\n", "what nobody may delete")
    eq(sorted(p.name for p in (s.work / "closed").iterdir()), ["a.txt"], "what nobody may change")


@talks
def test_what_reads_many_files_passes_by(s):
    furnish(s.t)
    s.server(env=rules(s.t))
    client = s.unified()
    for script in (call("grep", pattern="needle"), call("ls", path="."),
                   call("grep", pattern="needle", path="."), "run: grep -rn needle .",
                   "run: cat */a.txt", "run: ls -R", "run: find . -name a.txt -exec cat {} +"):
        client.say(script)
        frames = client.until(lambda f: f["type"] in ("control_request", "turn_completed"))
        if frames[-1]["type"] == "control_request":
            client.decide(frames[-1], "deny_stop")
            client.until_end()
        assert CANARY not in json.dumps(client.seen), f"{script}: what is denied was read"


@talks
def test_what_is_denied_is_hidden_in_the_sandbox(s):
    ground.settle(s.t)
    s.work = s.t.work
    furnish(s.t)
    s.server(env=rules(s.t))
    client = s.unified(full_auto=True)
    client.start(permission_mode="auto")
    tries = "d=clo; cat ${d}sed/a.txt; cat */a.txt; grep -r canary .; tar c . | strings; exit 0"
    client.say(call("bash", command=f"touch x; {tries}"))
    frames = client.until(lambda f: f["type"] in ("control_request", "turn_completed"))
    if frames[-1]["type"] == "control_request":  # What it runs cannot be seen, and rm is denied.
        client.decide(frames[-1], "deny_stop")
        client.until_end()
    (s.t.work / "look").write_text(tries)
    frames = client.turn("run: touch x; bash look")
    assert the(frames, "tool_completed")["success"], frames
    heard = json.dumps(client.seen)
    assert "needle" in heard and CANARY not in heard, heard


@talks
def test_the_log_names_the_rule_and_who_decided_and_no_arguments(s):
    furnish(s.t)
    server = s.server(env=rules(s.t, RULES + "allow command touch canary-argument\n"))
    client = s.unified(name="Ada", full_auto=True)
    client.start()
    client.turn("run: touch canary-argument")
    client.turn("run: rm canary-argument")
    client.decide(client.asked(call("write_file", path="canary-argument-2", content="canary")),
                  "deny", explanation="canary-words")
    client.until_end()
    client.decide(client.asked("run: mkdir canary-argument-3"), "allow_always")
    client.until_end()
    client.turn("run: mkdir canary-argument-4")
    client.send("set_permission_mode", mode="auto")
    client.until("session_info")
    client.turn("run: cp a.txt canary-argument-5")
    # Refused in every mode, unreadable, of no tool, stopped by the sandbox.
    client.turn(call("read", path=str(s.store / "canary-argument-6")))
    client.turn(call("bash", command="touch x", workdir="canary-argument-7"))
    client.turn(call("no_such_tool", x="canary-argument-8"))
    client.turn(call("apply_patch", patch="*** Begin Patch\n*** canary-argument-9"))
    client.decide(client.asked("run: touch /usr/canary-argument-10"), "deny_stop")
    client.until_end()
    client.turn("run: touch last")
    wanted = [
        {"message": "a call runs", "tool": "bash", "by": "a rule",
         "rule": "allow command touch canary-argument", "sandboxed": False},
        {"message": "a call was denied", "tool": "bash", "rule": "deny    command rm"},
        {"message": "a person decided", "tool": "write_file", "decision": "no"},
        {"message": "a person decided", "tool": "bash", "decision": "always"},
        {"message": "a call runs", "tool": "bash", "by": "a person", "sandboxed": False},
        {"message": "a call runs", "tool": "bash", "by": "an earlier always"},
        {"message": "a call runs", "tool": "bash", "by": "the session's mode", "sandboxed": True},
        {"message": "a call was denied", "tool": "read"},
        {"message": "the sandbox stopped a call", "tool": "bash"},
    ]
    eventually(lambda: "the sandbox stopped a call" in server.stderr(), "the log tells of all")
    lines = [json.loads(line) for line in server.stderr().splitlines()]
    for want in wanted:
        found = [line for line in lines if holds(line, want)]
        assert found, f"{want} is not in the log: {server.stderr()}"
        if want["message"] == "a person decided":
            assert "Ada" in json.dumps(found[0]), f"who: {found[0]}"
    # The rule that was written is the operator's own; what the call said is the session's.
    told = server.stderr().replace("allow command touch canary-argument", "")
    assert "canary" not in told, f"arguments are in the log: {told}"


def holds(line, want):
    """Whether a line of the log has these fields, wherever they stand in it."""
    fields = {**line, **line.get("fields", {})}
    return all(fields.get(name) == value for name, value in want.items())


def test_a_bad_file_stops_the_start_with_line_numbers(t):
    bad = "allow command ls\nfoo command ls\n\n# fine\nallow tool nonsense\ndeny path ../x\nask\n"
    env = {**rules(t, bad), "SESSION_STORE_PATH": t.store}
    result = t.program("serve", "--port", "0", env=env)
    assert result.returncode != 0, result
    for number in (2, 5, 6, 7):
        assert f"line {number}:" in result.stderr, f"line {number} of {result.stderr}"
    assert "line 1:" not in result.stderr and "line 3:" not in result.stderr, result.stderr
    assert "RULES_FILE" in result.stderr, result.stderr
    assert not t.store.exists(), "nothing was made"
    missing = t.program("serve", "--port", "0", env={"RULES_FILE": t.start / "missing"})
    assert missing.returncode != 0 and "missing" in missing.stderr, missing
    checked = t.program("check-rules", "own.rules")
    eq(checked.returncode, 1, "check-rules")
    for number in (2, 5, 6, 7):
        assert f"line {number}:" in checked.stderr, checked


def test_the_start_says_which_rules_hold(t):
    server = t.server(env=rules(t))
    eventually(lambda: str(t.start / "own.rules") in server.stdout(), "the start names the file")
    checked = t.program("check-rules", "own.rules")
    eq((checked.returncode, len(checked.stdout.splitlines())), (0, 10), checked.stdout)
    told = t.program("check-command", "--rules", "own.rules", "rm -rf x")
    assert told.stdout.startswith("deny: by the rule `deny    command rm`"), told


OWN = ["own.rules", ".env"]


@talks
def test_its_own_files_are_closed_where_the_server_works_in_its_start_directory(s):
    """The most careless way to start it: keys, rules and work in one directory."""
    ground.settle(s.t)
    t = s.t
    (t.start / ".env").write_text("ANTHROPIC_API_KEY=canary-key\n")
    (t.start / "notes.txt").write_text("needle\n")
    env = {**rules(t, "# canary-rule\n"), "WORKING_DIRECTORY": t.start,
           "MEMORY_DB": t.data / "memory.db"}
    before = ground.prints(*[t.start / name for name in OWN])
    s.server(env=env)
    for mode in ("manual", "acceptEdits", "auto", "bypass", "dontAsk", "plan"):
        client = s.unified(session=f"s-{mode}", full_auto=True)
        client.start(permission_mode=mode)
        scripts = [call("grep", pattern="canary"), call("grep", pattern="canary", path=".env")]
        for name in (*OWN, "../store/s-manual.jsonl", "../data/memory.db"):
            scripts += [
                call("read", path=name), call("read", path=str(t.start / name)),
                call("write_file", path=name, content="x"), call("delete_file", path=name),
                call("edit", path=name, oldString="canary", newString="x"),
                call("move_file", source=name, target="mine"),
                call("move_file", source="notes.txt", target=name),
            ]
        # In bypass a command may do what the server's user may: that is what bypass is.
        if mode != "bypass":
            scripts += [f"run: cat {OWN[0]}", f"run: cat {OWN[1]}", "run: cat *.rules .e*",
                        "run: grep -rn canary .", "run: grep -rn canary . ../store; touch x",
                        "run: cp .env copy; cat copy", "run: echo x >> own.rules",
                        "run: ln .env hard; cat hard; ln -s own.rules soft; cat soft",
                        "run: mv .env away; mv own.rules away", "run: rm -rf ../store own.rules"]
        for script in scripts:
            client.say(script)
            while client.until(lambda f: f["type"] in ("control_request", "turn_completed"))[
                    -1]["type"] == "control_request":
                client.decide(client.seen[-1], "deny")
            heard = [f for f in client.seen if f["type"] in ("tool_completed", "command_output")]
            assert "canary-" not in json.dumps(heard), f"{mode}: {script}: {heard[-1]}"
            changed = ground.differences(before, ground.prints(*[t.start / name for name in OWN]))
            eq(changed, [], f"{mode}: {script}")
        eq(spoken(client.turn("say: usable")), ["usable"], mode)
    assert of(client.seen, "tool_completed"), "calls were made"
