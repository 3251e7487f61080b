"""got works on all that is ready at the same time, and on nothing before it is."""

from graph import CYCLE, LEVELS, PLAN, Graph, answers, told
from harness import Options, eq

TASKS = {level: [node["task"] for node in PLAN if node["task"].startswith(level)]
         for level in LEVELS}


def show(what, frames):
    Options.tell(f"{what}:")
    for line in told(frames):
        Options.tell(f"  {line}")


def test_a_level_is_open_as_a_whole_and_the_next_is_not(t):
    graph = Graph(t, answers())
    held = {task: graph.model.hold("task", task) for tasks in TASKS.values() for task in tasks}
    graph.begin()
    for level, tasks in TASKS.items():
        # Each waits for the model at the same time as the others, or this never comes to pass.
        for task in tasks:
            held[task].reached()
        begun = {one.about for one in graph.model.asked("task")}
        later = {task for other in LEVELS[LEVELS.index(level) + 1:] for task in TASKS[other]}
        eq(begun & later, set(), f"what began before {level} was done")
        for task in tasks:
            held[task].release()
    frames = graph.end()
    show("eight sub-tasks", frames)
    eq(frames[-1]["type"], "run_end", f"end {frames[-1]}")
    eq(graph.model.open_most, 3, "most calls that were open at once")
    eq(len(graph.model.asked()), 10, "calls")


def test_one_that_is_slow_holds_only_what_needs_it(t):
    graph = Graph(t, answers())
    slow = graph.model.hold("task", TASKS["level one"][0])
    behind = graph.model.hold("task", TASKS["level two"][1])
    graph.begin()
    slow.reached()
    # It needs the other two, and they are done.
    behind.reached()
    begun = {one.about for one in graph.model.asked("task")}
    eq(begun & {TASKS["level two"][0], TASKS["level two"][2]}, set(), "what needs the slow one")
    slow.release()
    behind.release()
    eq(graph.end()[-1]["type"], "run_end", "end")


def test_no_more_calls_at_once_than_are_set(t):
    for most in (1, 2):
        graph = Graph(t, answers(delay_secs=0.005), MAX_CALLS_AT_ONCE=most)
        eq(graph.run()[-1]["type"], "run_end", "end")
        eq(graph.model.open_most, most, f"most calls at once, of {most}")
        eq(len(graph.model.asked()), 10, "calls")
        graph.server.kill()


def test_one_that_fails_fails_only_what_needs_it(t):
    graph = Graph(t, answers())
    graph.model.fault("task", TASKS["level two"][0], status=500, times=100)
    frames = graph.run()
    show("one that fails for good", frames)
    lines = told(frames)
    failed = [line for line in lines if line.startswith("got_node_failed")]
    assert any("id=b1" in line for line in failed), lines
    eq(frames[-1]["type"], "run_end", f"end {frames[-1]}")
    asked = {one.about for one in graph.model.asked("task")}
    assert TASKS["level three"][0] not in asked, "what needs it is not tried"
    assert TASKS["level three"][1] in asked, "what does not need it is done"


def test_a_cycle_is_told_once_and_then_cut(t):
    graph = Graph(t, answers(CYCLE))
    frames = graph.run()
    show("a cycle", frames)
    notices = [line for line in told(frames) if line.startswith("notice")]
    eq(len(graph.model.asked("plan")), 2, "how often a plan was asked for")
    again = graph.model.asked("plan")[1].whole()
    assert "cycle" in again, "the model is told what is wrong"
    assert any("cycle" in line for line in notices), notices
    eq(frames[-1]["type"], "run_end", f"end {frames[-1]}")


def test_a_complex_one_becomes_a_graph_of_its_own(t):
    task = TASKS["level two"][1]
    graph = Graph(t, answers(complex_task=task))
    frames = graph.run(got_adaptive=True)
    show("one that is complex", frames)
    expanded = [line for line in told(frames) if line.startswith("got_expand")]
    eq(len(expanded), 1, f"nested graphs: {expanded}")
    assert "node_id=b2" in expanded[0] and "nodes_added=3" in expanded[0], expanded
    eq(frames[-1]["type"], "run_end", f"end {frames[-1]}")
