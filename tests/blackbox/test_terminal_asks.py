"""The terminal client in tmux: approvals by one key, questions, plans, and who was faster."""

from harness import eq, eventually
from talk import of, talks
from terminal import input_line, only_session, open_terminal

KEYS = "y allow"


def files(t):
    return sorted(path.name for path in t.work.iterdir())


def asked(t, script="run: touch a\\nsay: rest"):
    """A terminal in which something is asked."""
    terminal = open_terminal(t)
    terminal.paste(script.replace("\\n", "\n"))
    terminal.key("Enter")
    terminal.shows(KEYS)
    return terminal


def test_what_would_run_is_shown(t):
    terminal = asked(t)
    seen = terminal.all()
    for text in ("? Bash needs your leave  risk: medium", "  │ touch a", f"  in {t.work}",
                 "`touch` is not on the list", "always covers `touch` with any other words"):
        assert text in seen, f"{text!r} is not in:\n{seen}"


def test_y_allows(t):
    terminal = asked(t)
    terminal.key("y")
    terminal.has("✓ allowed", "\nrest\n", "tokens in")
    eq(files(t), ["a"], "files")


def test_a_allows_always(t):
    terminal = asked(t)
    terminal.key("a")
    terminal.has("✓ always allowed in this session", "\nrest\n", "tokens in")
    terminal.turn("run: touch b")
    eq(files(t), ["a", "b"], "files")


def test_n_denies(t):
    terminal = asked(t)
    terminal.key("n")
    terminal.has("✗ denied", "\nrest\n", "tokens in")
    eq(files(t), [], "files")


def test_r_denies_with_a_reason(t):
    terminal = asked(t)
    terminal.key("r")
    terminal.shows("reason ›")
    terminal.key("Escape")
    terminal.shows(KEYS)
    terminal.key("r")
    terminal.shows("reason ›")
    terminal.say("not today")
    terminal.has("✗ denied: not today", "  └ not today", "\nrest\n", "tokens in")
    eq(files(t), [], "files")


def test_s_stops(t):
    terminal = asked(t)
    terminal.key("s")
    seen = terminal.has("✗ denied, and the turn stopped", "tokens in")
    assert "\nrest\n" not in seen, seen
    eq(files(t), [], "files")


def test_e_explains_and_asks_again(t):
    terminal = asked(t)
    terminal.key("e")
    terminal.has("This runs touch a: the program")
    terminal.shows(KEYS)
    terminal.key("y")
    terminal.has("✓ allowed", "\nrest\n", "tokens in")
    eq(files(t), ["a"], "files")


def test_a_line_that_is_being_written_is_no_answer(t):
    terminal = open_terminal(t)
    terminal.paste("run: until [ -e go ]; do sleep 0.05; done; touch b\nrun: touch a")
    terminal.key("Enter")
    terminal.shows(KEYS)
    terminal.key("y")
    terminal.has("✓ allowed")
    terminal.type("my line")
    terminal.shows("› my line")
    (t.work / "go").touch()
    terminal.shows("? something is asked; Esc puts your line aside")
    terminal.type(" yes and no")
    terminal.shows("› my line yes and no")
    eq(files(t), ["b", "go"], "nothing was answered")
    terminal.key("Escape")
    terminal.shows(KEYS)
    terminal.key("y")
    eventually(lambda: files(t) == ["a", "b", "go"], "it runs")
    terminal.shows("› my line yes and no")


def test_a_word_is_no_answer(t):
    terminal = asked(t)
    terminal.type("say: something")
    terminal.shows("› say: something", "something is asked")
    eq(files(t), [], "files")
    terminal.key("Enter")
    terminal.shows("queued 1: say: something", KEYS)
    terminal.key("y")
    terminal.has("✓ allowed", "\nsomething\n")


def test_a_paste_is_no_answer(t):
    terminal = asked(t)
    terminal.paste("yes\nplease")
    terminal.shows("› yes\n  please", "something is asked")
    eq(files(t), [], "files")
    terminal.key("C-c")
    terminal.shows(KEYS)


def test_interrupting_withdraws_what_is_asked(t):
    terminal = asked(t)
    terminal.key("C-c")
    terminal.has("■ Interrupted")
    terminal.shows_no(KEYS)
    terminal.turn("say: on we go")


@talks
def test_what_was_asked_before_is_asked_who_comes(s):
    server = s.server()
    client = s.unified(session="open")
    client.asked("run: touch a\nsay: rest")
    terminal = open_terminal(s.t, "--session", "open", server=server)
    terminal.shows(KEYS, "waiting for you")
    eq(terminal.all().count("needs your leave"), 1, "times that it is asked")
    terminal.key("y")
    terminal.has("✓ allowed", "\nrest\n")
    client.until_end()
    eq(files(s.t), ["a"], "files")


@talks
def test_another_client_was_faster(s):
    server = s.server()
    terminal = open_terminal(s.t, server=server)
    terminal.say("run: touch a")
    terminal.shows(KEYS)
    session = only_session(server)
    other = s.unified(f"/unified?session_id={session}", session, name="ann")
    request = other.until("control_request")[-1]
    other.decide(request, "deny", explanation="mine")
    terminal.has("✗ denied elsewhere, by ann (unified): mine")
    terminal.shows_no(KEYS)
    other.until_end()


@talks
def test_a_reason_is_not_asked_for_any_more_when_another_was_faster(s):
    server = s.server()
    terminal = open_terminal(s.t, server=server)
    terminal.say("run: touch a")
    terminal.shows(KEYS)
    terminal.key("r")
    terminal.shows("reason ›")
    terminal.type("becau")
    session = only_session(server)
    other = s.unified(f"/unified?session_id={session}", session, name="ann")
    other.decide(other.until("control_request")[-1], "allow")
    other.until_end()
    terminal.has("✓ allowed elsewhere, by ann")
    terminal.until(lambda seen: input_line(seen) == "", "an empty line")


@talks
def test_questions_by_number_and_in_words(s):
    server = s.server()
    terminal = open_terminal(s.t, server=server)
    terminal.say("ask: Which colour? | red | blue")
    seen = terminal.shows("? Which colour?", "1 red", "2 blue", "answer with a number")
    terminal.say("7")
    terminal.shows("give a number from 1 to 2", "› 7")
    terminal.key("C-u")
    terminal.say("2")
    seen = terminal.has("✓ answered: blue", "tokens in")
    terminal.say("ask: Which colour? | red | blue")
    terminal.until(lambda seen: seen.count("answer with a number") == 1, "asked again")
    terminal.say("green, of course")
    terminal.has("✓ answered: green, of course")
    client = s.watcher(only_session(server), since=0)
    answers = [frame["message"] for frame in of(client.until(
        lambda frame: frame.get("message") == "green, of course"), "approval_settled")]
    eq(answers, ["blue", "green, of course"], "answers")


def test_several_questions_and_several_answers(t):
    terminal = open_terminal(t)
    option = lambda label: '{"label":"%s","description":"it is %s"}' % (label, label)
    first = '{"question":"Which of these?","multiSelect":true,"options":[%s,%s,%s]}' % tuple(
        map(option, "xyz"))
    second = '{"question":"And this?","options":[%s,%s]}' % tuple(map(option, "pq"))
    terminal.paste('tool: ask_user {"questions":[%s,%s]}' % (first, second))
    terminal.key("Enter")
    terminal.shows("? Which of these?", "1 x  it is x", "answer with numbers")
    terminal.say("1 3")
    terminal.shows("? And this?", "answer with a number")
    terminal.say("2")
    seen = terminal.has("✓ answered")
    assert all(word in seen[seen.index("✓ answered"):] for word in "xzq"), seen


def test_plans_are_approved_or_sent_back(t):
    terminal = open_terminal(t)
    terminal.paste("plan: # The way\\n1. look\\n2. do\nsay: went on")
    terminal.key("Enter")
    terminal.shows("The way", "1. look", "y approve the plan", "r send it back")
    terminal.key("r")
    terminal.shows("what to change ›")
    terminal.say("look twice")
    terminal.has("✗ denied: look twice", "\nwent on\n", "tokens in")
    terminal.say("plan: 1. look twice")
    terminal.shows("y approve the plan")
    terminal.key("y")
    terminal.has("✓ allowed")


def test_an_answer_is_withdrawn_at_once(t):
    terminal = asked(t)
    for key in ("C-c", "Escape"):
        terminal.key("y", key)
        terminal.shows("not answered", KEYS)
        # It is no hint of a moment ago the next time.
        terminal.key("C-l")
        terminal.shows_no("not answered")
    eq(files(t), [], "files")
    terminal.shows(KEYS)
    terminal.key("y")
    terminal.has("✓ allowed", "\nrest\n", "tokens in")
    eq(files(t), ["a"], "files")
