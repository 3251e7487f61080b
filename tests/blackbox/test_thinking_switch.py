"""One memory for all ways to think: agents take turns in one conversation, whichever dialect says
so, and what one said the others know. Forks, undo, lists of messages and exports hold."""

import json

from frames import said
from harness import eq
from loomtalk import loom, numbered, watch
from strategies import AGENTS, Thinker, call, world
from talk import of, spoken, talks, the
from test_models import unasked
from thinking import MESSAGE, Case

ORDER = ["react", "tot", "got", "dup", "react", "got", "tot", "dup"]
LAST = {"react": "Well.", "tot": "The way is A, A2.", "dup": "The number is 7.",
        "got": "Together: the sum is 3; alpha ok"}


def knows_all(case, at):
    """Whoever is asked last knows what everybody said before, and every message is there once."""
    messages = case.model.asked()[-1].messages
    whole = "\n".join(str(one.get("content")) for one in messages)
    for before in range(at):
        assert LAST[ORDER[before]] in whole, f"turn {at} does not know what turn {before} said"
        eq(whole.count(f"Message {before}."), 1, f"turn {at}: message {before}")


@talks
def test_on_a_loom_thread(s):
    case = Case(s, "react")
    client = loom(s, complete=False)
    for at, agent in enumerate(ORDER):
        client.send("run", message=f"Message {at}.", agent=agent, thread_id=case.session)
        frames = client.until_end()
        eq(frames[-1].get("reply"), LAST[agent], f"{at}: {agent}, {frames[-1]}")
        knows_all(case, at)
    ran = case.ran()
    eq(ran.count("alpha"), 2, f"each command ran once a turn: {ran}")


@talks
def test_in_a_session(s):
    case = Case(s, "react")
    for at, agent in enumerate(ORDER):
        case.client.send("set_agent", agent=agent)
        case.client.until("session_info")
        eq(case.server.get(f"/sessions/{case.session}").json["agent"], agent, "as it is told")
        eq(case.turn(f"Message {at}."), LAST[agent], f"{at}: {agent}")
        knows_all(case, at)
        if at % 3 == 1:
            case.kill()
            eq(case.server.get(f"/sessions/{case.session}").json["agent"], agent, "after a kill")


@talks
def test_by_configuration(s):
    for agent in ("dup", "tot", "got"):
        model = Thinker(world, test=s.t)
        server = s.server(env=model.settings(AGENT=agent, ALLOW_BYPASS="true"))
        session = unasked(server)
        eq(server.get(f"/sessions/{session}").json["agent"], agent, "the session's agent")
        eq(said(s.agentloop(session, complete=False).turn("Message."))[-1], LAST[agent], agent)
        chat = s.chat(session=session, complete=False)
        eq(chat.turn("Message.")[-1]["message"], LAST[agent], agent)
        # A session may want another, and that holds whatever the server's is.
        other = unasked(server, agent="react")
        eq(server.get(f"/sessions/{other}").json["agent"], "react", "the session's agent")
        eq(said(s.agentloop(other, complete=False).turn("Message."))[-1], "Well.", "react")
        server.kill()


@talks
def test_an_agent_that_nobody_knows(s):
    server = s.server()
    made = server.http("POST", "/sessions", body=json.dumps({"agent": "cot"}))
    eq(made.status, 400, f"{made}")
    client = loom(s, complete=False)
    for fields, told in [
        ({"agent": "cot"}, "agent: "),
        ({"agent": "tot", "tot": {"beam": 0}}, "tot.beam: 0 is out of range; use 1 to 100"),
        ({"agent": "tot", "tot": {"beams": 1}}, "tot.beams: unknown field `beams`"),
        ({"agent": "tot", "tot": {"search": "wide"}}, "tot.search: unknown variant `wide`"),
        ({"agent": "tot", "tot": {"prune": 2}}, "tot.prune: 2 is out of range; use 0 to 1"),
        ({"agent": "got", "got": {"nodes": 101}}, "got.nodes: 101 is out of range; use 1 to 100"),
        ({"agent": "got", "got": {"adaptive": "yes"}}, "got.adaptive: "),
        ({"agent": "got", "got": {"adaptive": True}, "got_adaptive": False}, "give one"),
        ({"agent": "react", "max_turns": 0}, "max_turns: "),
    ]:
        client.send("run", message="x", **fields)
        error = client.error()["error"]
        assert error.startswith("parse error: ") and told in error, f"{fields}: {error}"
        client.still_open()


@talks
def test_a_run_says_how_far_it_goes(s):
    case = Case(s, "react")
    client = loom(s, complete=False)

    def asked(agent, **fields):
        before = len(case.model.asked())
        client.send("run", message="Go.", agent=agent, **fields)
        last = client.until_end()[-1]
        ended = last["type"] == "run_end" or f"after {fields.get('max_turns')} model" in last["error"]
        assert ended, f"{agent}, {fields}: {last}"
        return [one.kind for one in case.model.asked()[before:]]

    eq(asked("tot").count("value"), 3 + 4, "two of three are followed, to their ends")
    eq(asked("tot", tot={"beam": 1}).count("value"), 3 + 2, "one is followed")
    eq(asked("tot", tot={"depth": 1}).count("value"), 3, "none is followed")
    eq(asked("tot", tot={"samples": 2, "depth": 1}).count("value"), 6, "two opinions of each")
    eq(asked("tot", tot={"judge": "vote", "samples": 3, "depth": 1}).count("vote"), 3, "votes")
    eq(asked("got").count("judge"), 0, "not adaptive")
    assert asked("got", got_adaptive=True).count("judge") > 0, "adaptive"
    assert asked("got", got={"adaptive": True}).count("judge") > 0, "adaptive"
    eq(asked("got", got={"attempts": 1}).count("score"), 0, "one attempt each")
    eq(asked("got", got={"refine": 0}).count("refine"), 0, "nothing is worked over")
    eq(len(asked("got", max_turns=4)), 4, "so many calls")


@talks
def test_a_fork_at_every_entry(s):
    for name in ("dup", "tot", "got_adaptive"):
        case = Case(s, name)
        want = case.turn()
        last = case.frames[-1]["seq"]
        for seq in range(1, last + 1, 7):
            made = case.server.http("POST", f"/sessions/{case.session}:fork?at={seq}")
            assert made.status in (200, 201, 400, 409), f"{name} at {seq}: {made}"
            if made.status >= 400:
                continue
            fork = made.json["id"]
            client = s.watcher(fork, complete=False)
            client.send("set_agent", agent="react")
            eq(spoken(client.turn("Hello."))[-1], "Well.", f"{name} forked at {seq}")
            client.drop()
        eq(case.turn("Once more."), want, f"{name}: the session that was forked")
        case.server.kill()
        (s.work / "ran").unlink()


def edits(asked):
    if asked.kind == "task" and asked.about == "count alpha" and not asked.since:
        return [call("write_file", path="made.txt", content="by alpha\n")]
    return world(asked)


@talks
def test_edits_of_a_sub_task_are_taken_back(s):
    case = Case(s, "got", answers=edits)
    case.turn()
    eq((s.work / "made.txt").read_text(), "by alpha\n", "what the sub-task wrote")
    undone = case.server.http("POST", f"/sessions/{case.session}:undo")
    eq(undone.status, 200, f"{undone}")
    assert not (s.work / "made.txt").exists(), "it is taken back"
    case.client.until("notice")
    case.client.send("set_agent", agent="react")
    case.client.turn("Hello.")
    assert "made.txt" in case.model.asked()[-1].whole(), "the model is told"


@talks
def test_messages_are_what_people_and_agents_said(s):
    database = s.t.dir / "messages.db"
    case = Case(s, "react", USER_MESSAGE_DB=database)
    client = loom(s, complete=False)
    for at, agent in enumerate(ORDER[:4]):
        client.send("run", message=f"Message {at}.", agent=agent, thread_id=case.session)
        client.until_end()
    listed = client.ask("user_messages", thread_id=case.session)["messages"]
    told = [(one["role"], one["content"]) for one in listed]
    want = []
    for at, agent in enumerate(ORDER[:4]):
        want += [("user", f"Message {at}."), ("assistant", LAST[agent])]
    eq(told, want, "messages")


@talks
def test_files_of_such_sessions_are_sound(s):
    for name in AGENTS:
        case = Case(s, name)
        case.turn()
        case.client.drop()
        case.server.kill()
        where = {"SESSION_STORE_PATH": s.store}
        checked = s.t.program("sessions", "check", env=where)
        eq(checked.returncode, 0, f"{name}: {checked.stdout}{checked.stderr}")
        shown = s.t.program("sessions", "show", case.session, env=where)
        eq(shown.returncode, 0, f"{name}: {shown.stderr}")
        exported = s.t.program("sessions", "export", case.session, env=where)
        eq(exported.returncode, 0, f"{name}: {exported.stderr}")
        want = {"dup": "The number is 7.", "got": "Together", "got_adaptive": "Together"}
        for told in (shown.stdout, exported.stdout):
            assert want.get(name, "The way is") in told, f"{name}: {told[-500:]}"
        (s.work / "ran").unlink()
