"""Keys and tokens of the server reach neither commands nor logs nor clients."""

from frames import outputs, said
from harness import eq

KEYS = {
    "OPENAI_API_KEY": "sk-fake-openai-0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-fake-0123456789",
    "GOOGLE_API_KEY": "AIza-fake-0123456789",
    "POLYLOOP_TOKEN": "fake-token-0123456789abcdef",
    "AWS_SECRET_ACCESS_KEY": "fake-aws-0123456789",
    "SOME_PASSWORD": "fake-password-0123456789",
}


def started(t):
    server = t.server(env={**KEYS, "LOG_LEVEL": "trace"})
    client = server.client(f"/ws/s1?token={KEYS['POLYLOOP_TOKEN']}")
    return server, client


def ran(client, script):
    client.say(script)
    frames = client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
    while frames[-1]["type"] == "approval_request":
        client.review("yes")
        frames += client.until(lambda f: f["type"] in ("approval_request", "agent_finished"))
    return "".join(output["output"] for output in outputs(frames))


def leaks(text):
    return [name for name, value in KEYS.items() if value in text]


def test_commands_do_not_see_the_server_s_environment(t):
    server, client = started(t)
    for script in ("run: env", "run: cat /proc/self/environ", "run: printenv",
                   "run: bash -c 'export -p; set'", "run: cat /proc/$$/environ | cat -v"):
        output = ran(client, script)
        assert "PATH" in output, f"{script} shows an environment: {output!r}"
        eq(leaks(output), [], f"leaked by {script}")
    eq(said(client.turn("say: end")), ["end"])


def test_commands_do_not_see_it_in_their_parent_either(t):
    _, client = started(t)
    output = ran(client, "run: cat /proc/$PPID/environ; cat /proc/$PPID/cmdline; ps -ef")
    eq(leaks(output), [], "leaked")


def test_they_are_in_no_log_line_and_no_file(t):
    server, client = started(t)
    client.turn("say: hello\nfail: 500")
    ran(client, "run: env")
    client.ws.send(f'{{"broken {KEYS["OPENAI_API_KEY"][:3]}')
    client.error()
    server.get(f"/sessions?token={KEYS['POLYLOOP_TOKEN']}")
    server.http("GET", "/sessions", {"Authorization": f"Bearer {KEYS['POLYLOOP_TOKEN']}"})
    client.close()
    eq(leaks(server.stderr() + server.stdout()), [], "in the log")
    for path in t.store.rglob("*"):
        if path.is_file():
            eq(leaks(path.read_text(errors="replace")), [], f"in {path.name}")


def test_the_command_line_shows_none(t):
    server, _ = started(t)
    words = open(f"/proc/{server.process.pid}/cmdline").read()
    eq(leaks(words), [], "on the command line")
