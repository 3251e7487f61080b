"""The checker accepts what it must accept and finds what it must find. No server is needed.

Found by run.py like every other test here, and by `python -m unittest test_checker -v`, which
names each transcript and each fault.
"""

import copy
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

import checker
from checker.selftest import faults_agentloop, faults_chat, faults_loom, faults_unified
from checker.selftest.mutate import GOOD, Fault, Steps, load

HERE = Path(__file__).resolve().parent
FAULTS: dict[str, list[Fault]] = {
    "agentloop": faults_agentloop.FAULTS,
    "unified": faults_unified.FAULTS,
    "loom": faults_loom.FAULTS,
    "chat": faults_chat.FAULTS,
}


def good(dialect: str) -> Iterator[tuple[str, Steps]]:
    """The good transcripts of a dialect, by name."""
    for path in sorted(GOOD.glob(f"{dialect}_*.jsonl")):
        yield path.stem.removeprefix(f"{dialect}_"), load(path)


def accepted(dialect: str, steps: Steps, complete: bool = True, what: str = "") -> None:
    problems = checker.check(dialect, steps, complete=complete)
    assert not problems, f"{dialect} {what}: a good transcript is accused: {problems}"


def every_prefix(dialect: str, name: str, steps: Steps) -> None:
    """A transcript that stops in the middle is as good as the whole."""
    for end in range(len(steps) + 1):
        accepted(dialect, steps[:end], complete=False, what=f"{name}, first {end} steps")


def every_resumption(dialect: str, name: str, steps: Steps) -> None:
    """Whoever resumes a session gets the rest of it, from wherever it was left."""
    sessions = {step["out"].get("session_id") for step in steps if "out" in step}
    path = f"/{dialect}?protocol={dialect}&session_id={{}}&since=1"
    for session in sessions - {None}:
        whole = [step for step in steps if _belongs(step, session)]
        for start in range(len(whole)):
            opened: Steps = [{"open": {"path": path.format(session)}}]
            accepted(dialect, opened + whole[start:], what=f"{name}, {session} from {start}")


def _belongs(step: dict, session: str) -> bool:
    """What a silent client sees of one session, without answers to requests."""
    frame = step.get("out", {})
    return frame.get("session_id") == session and frame["type"] != "error"


def fault_is_found(dialect: str, fault: Fault) -> None:
    steps = load(GOOD / f"{dialect}_{fault.good}.jsonl")
    before = copy.deepcopy(steps)
    mutated = fault.mutate(steps)
    assert mutated != before, f"{dialect} {fault.name}: the mutation changes nothing"
    problems = checker.check(dialect, mutated)
    found = any(fault.word in problem for problem in problems)
    assert found, f"{dialect} {fault.name}: no problem says {fault.word!r}: {problems}"
    assert all(problem.startswith("step ") for problem in problems), problems


def places(value: object, path: tuple = ()) -> Iterator[tuple]:
    """The way to every value inside a value."""
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from places(value[key], (*path, key))


def never_raises(dialect: str, steps: Steps) -> None:
    """Whatever stands anywhere, the checker says what is wrong instead of failing itself."""
    for path in places(steps):
        for value in (None, [], 7):
            spoilt = copy.deepcopy(steps)
            owner = spoilt
            for key in path[:-1]:
                owner = owner[key]
            owner[path[-1]] = value
            checker.check(dialect, spoilt)


def _cases(dialect: str) -> Iterator[tuple[str, Callable[[], None]]]:
    for name, steps in good(dialect):
        yield f"good {name}", lambda n=name, s=steps: accepted(dialect, s, what=n)
        yield f"every prefix of {name}", lambda n=name, s=steps: every_prefix(dialect, n, s)
        # A failed turn's error is not told from an answer when it is left out.
        if not any(step.get("out", {}).get("type") == "error" for step in steps):
            yield f"every resumption of {name}", (
                lambda n=name, s=steps: every_resumption(dialect, n, s)
            )
    for fault in FAULTS[dialect]:
        yield f"fault: {fault.name}", lambda f=fault: fault_is_found(dialect, f)


def _all_of(dialect: str) -> None:
    wrong = []
    for name, case in _cases(dialect):
        try:
            case()
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


def test_agentloop_transcripts_and_faults(t=None):
    _all_of("agentloop")


def test_unified_transcripts_and_faults(t=None):
    _all_of("unified")


def test_loom_transcripts_and_faults(t=None):
    _all_of("loom")


def test_chat_transcripts_and_faults(t=None):
    _all_of("chat")


def test_fault_names_are_unique(t=None):
    for dialect, faults in FAULTS.items():
        names = [fault.name for fault in faults]
        assert len(names) == len(set(names)), f"{dialect}: a fault is named twice"


def test_nothing_makes_it_raise(t=None):
    for dialect in FAULTS:
        never_raises(dialect, max((steps for _, steps in good(dialect)), key=len))


def test_command_line(t=None):
    def run(dialect: str, *files: Path) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "checker", dialect, *map(str, files)]
        return subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=60)

    fine = run("chat", *sorted(GOOD.glob("chat_*.jsonl")))
    assert (fine.returncode, fine.stdout) == (0, ""), fine
    lines = (GOOD / "chat_conversation.jsonl").read_text(encoding="utf-8").splitlines(True)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "bad.jsonl"
        path.write_text("".join(lines[:-2]), encoding="utf-8")
        bad = run("chat", path)
        assert bad.returncode == 1 and "bad.jsonl: step 13 (end): unfinished" in bad.stdout, bad
        path.write_text("no json\n", encoding="utf-8")
        assert run("chat", path).returncode == 1
    assert run("nonsense", GOOD / "chat_room.jsonl").returncode == 2


def load_tests(loader, tests, pattern):
    """For unittest: every transcript and every fault is a test of its own."""
    suite = unittest.TestSuite()
    for dialect in FAULTS:
        for name, case in _cases(dialect):
            suite.addTest(unittest.FunctionTestCase(case, description=f"{dialect}: {name}"))
    for function in (
        test_fault_names_are_unique, test_nothing_makes_it_raise, test_command_line,
    ):
        suite.addTest(unittest.FunctionTestCase(function))
    return suite
