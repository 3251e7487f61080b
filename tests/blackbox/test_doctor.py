"""`polyloop doctor`: what it finds and says; that it shows no secret and changes nothing."""

import contextlib
import http.server
import json
import os
import socket
import threading

from harness import eq

SECRETS = {
    "OPENAI_API_KEY": "sk-fake-openai-0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-fake-0123456789",
    "GOOGLE_API_KEY": "AIza-fake-0123456789",
    "POLYLOOP_TOKEN": "fake-token-0123456789abcdef",
    "HTTPS_PROXY": "http://fake-user:fake-password@127.0.0.1:9",
}
SECRET_PARTS = [*SECRETS.values(), "fake-password", "fake-user"]


def no_secret(result):
    for secret in SECRET_PARTS:
        assert secret not in result.stdout + result.stderr, f"{secret} is shown: {result}"


def doctor(t, *flags, env=None):
    """The report as JSON, after a look at the text of the same run."""
    env = {"PORT": "0", **(env or {})}
    text = t.program("doctor", *flags, env=env)
    result = t.program("doctor", "--json", *flags, env=env)
    for run in (text, result):
        no_secret(run)
        assert "panicked" not in run.stderr and "\x1b" not in run.stdout, run
    eq(text.returncode, result.returncode, "exit codes of both forms")
    report = json.loads(result.stdout)
    eq(report["ok"], result.returncode == 0, f"ok with exit code {result.returncode}")
    for check in report["checks"]:
        word = {"ok": "ok", "warn": "warn", "fail": "FAIL"}[check["status"]]
        lines = [line for line in text.stdout.splitlines() if line.startswith(word)]
        # Ports and process ids may differ between two runs, the thing does not.
        assert any(check["thing"] in line for line in lines), f"{check} is not in: {text.stdout}"
    return report


def lines(report, thing):
    return [(c["status"], c["text"]) for c in report["checks"] if c["thing"] == thing]


def line(report, thing):
    (found,) = lines(report, thing) or [(None, f"no {thing} in {report['checks']}")]
    return found


def expect(report, thing, status, *words):
    found = [text for was, text in lines(report, thing) if was == status
             and all(word in text for word in words)]
    assert found, f"no {status} line of {thing} with {words} in {lines(report, thing)}"


def failed(report):
    return [c for c in report["checks"] if c["status"] == "fail"]


def setting(report, name):
    found = [row for row in report["settings"] if row["name"] == name]
    return (found[0]["value"], found[0]["source"]) if found else None


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def provider(status=200, models=("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-flash"), raw=None):
    """A provider that knows only its list of models; gives its address and what it was asked."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, dict(self.headers.items())))
            names = [{"id": name, "name": f"models/{name}"} for name in models]
            body = raw if raw is not None else json.dumps({"data": names}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tree(directory):
    return sorted((str(p), p.stat().st_mtime_ns) for p in directory.rglob("*") if p.is_file())


def test_a_good_setup(t):
    (t.start / ".env").write_text("LOG_LEVEL=debug\n")
    env = {"SESSION_STORE_PATH": t.store, "TODOS_STORE_PATH": t.todos,
           "USER_MESSAGE_DB": t.dir / "messages.db", "MEMORY_DB": t.dir / "memories.db", **SECRETS}
    t.store.mkdir()
    before = tree(t.dir)
    report = doctor(t, "--chat-broadcast", "session", env=env)
    eq(failed(report), [], "failures")
    eq(tree(t.dir), before, "files that it left or changed")
    assert not t.todos.exists(), "it made a directory"
    eq(setting(report, "CHAT_BROADCAST"), ("session", "flag"))
    eq(setting(report, "PROVIDER"), ("offline", "environment"))
    eq(setting(report, "LOG_LEVEL"), ("debug", ".env"))
    eq(setting(report, "HOST"), ("127.0.0.1", "default"))
    for name in SECRETS:
        eq(setting(report, name), ("set", "environment"), name)
    eq(setting(report, "ALLOWED_HOSTS"), None, "a setting that is not set")
    eq(report["model"]["provider"], "offline", "provider")
    expect(report, "configuration", "ok")
    expect(report, ".env", "ok", str(t.start / ".env"))
    expect(report, "working directory", "ok", str(t.work))
    expect(report, "endpoint", "ok", "offline")
    expect(report, "sandbox", "ok", "works")
    expect(report, "session store", "ok", str(t.store))
    expect(report, "todos store", "ok", str(t.todos))
    expect(report, "message database", "ok", "messages.db")
    expect(report, "memories", "ok", "memories.db")
    expect(report, "token", "ok", "POLYLOOP_TOKEN")
    expect(report, "port", "ok")


def test_a_broken_setup(t):
    """Everything that is wrong is told, and what can be looked at is looked at."""
    (t.dir / "file").write_text("")
    env = {"PROVIDER": None, "MODEL": "gpt-4o", "LOG_FORMAT": "xml", "PORT": "http",
           "WORKING_DIRECTORY": t.dir / "nowhere", "SESSION_STORE_PATH": t.dir / "file",
           "TODOS_STORE_PATH": t.dir / "file/below", "USER_MESSAGE_DB": t.work,
           "MEMORY_DB": t.work,
           "TOOL_USE_APPROVAL_MODE": "yolo", "OPENAI_BASE_URL": "https://fake-user@a.example"}
    report = doctor(t, env=env)
    eq(report["ok"], False, "ok")
    expect(report, "configuration", "fail", "PORT", "http")
    expect(report, "configuration", "fail", "LOG_FORMAT", "xml", "json")
    expect(report, "configuration", "fail", "nowhere")
    expect(report, "configuration", "fail", "OPENAI_BASE_URL")
    expect(report, "configuration", "fail", "OPENAI_API_KEY", "polyloop demo")
    expect(report, "configuration", "warn", "TOOL_USE_APPROVAL_MODE", "yolo")
    expect(report, "session store", "fail", str(t.dir / "file"), "SESSION_STORE_PATH")
    expect(report, "todos store", "fail", str(t.dir / "file/below"), "TODOS_STORE_PATH")
    expect(report, "message database", "fail", str(t.work), "USER_MESSAGE_DB")
    expect(report, "memories", "fail", str(t.work), "MEMORY_DB")
    expect(report, "sandbox", "ok", "works")
    eq(os.listdir(t.work), [], "files that it left")


def test_a_shared_store_needs_a_build_that_knows_it(t):
    env = {"STORE": "nats://127.0.0.1:1"}
    report = doctor(t, env=env)
    eq([c["thing"] for c in failed(report)], ["session store"], "what failed")
    expect(report, "session store", "fail", "--features nats")
    result = t.program("serve", "--port", "0", env=env)
    assert result.returncode != 0 and "--features nats" in result.stderr, result


def test_no_key(t):
    env = {"PROVIDER": None, "SESSION_STORE_PATH": t.store}
    report = doctor(t, env=env)
    eq([c["thing"] for c in failed(report)], ["configuration"], "what failed")
    expect(report, "configuration", "fail", "OPENAI_API_KEY")
    expect(report, "provider", "ok", "openai")
    expect(report, "endpoint", "warn", "key")
    eq(report["model"]["base_url"], "https://api.openai.com/v1", "base URL")
    eq(report["model"]["provider_from"], "default", "where the provider comes from")


def test_nobody_at_the_base_url(t):
    port = closed_port()
    for name, model, path in (("OPENAI", "gpt-4o", "/v1"), ("ANTHROPIC", "claude-x", ""),
                              ("GOOGLE", "gemini-x", "")):
        env = {"PROVIDER": None, "MODEL": model, f"{name}_API_KEY": SECRETS[f"{name}_API_KEY"],
               f"{name}_BASE_URL": f"http://127.0.0.1:{port}{path}"}
        report = doctor(t, env=env)
        eq([c["thing"] for c in failed(report)], ["endpoint"], "what failed")
        expect(report, "endpoint", "fail", f"127.0.0.1:{port}", f"{name}_BASE_URL")


def test_a_host_without_a_name_and_one_without_tls(t):
    env = {"PROVIDER": "openai", "OPENAI_API_KEY": SECRETS["OPENAI_API_KEY"]}
    report = doctor(t, env={**env, "OPENAI_BASE_URL": "https://nowhere.invalid/v1"})
    expect(report, "endpoint", "fail", "nowhere.invalid")
    with provider() as (url, asked):
        report = doctor(t, env={**env, "OPENAI_BASE_URL": url.replace("http:", "https:")})
        expect(report, "endpoint", "fail", url.removeprefix("http://"))
        eq(asked, [], "what was sent in clear text")


def test_a_provider_that_says_nothing(t):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        result = t.program("doctor", "--json", "--port", "0",
                           env={"PROVIDER": "openai", "OPENAI_BASE_URL": f"http://{address}/v1"})
        eq(result.returncode, 1, "exit code")
        expect(json.loads(result.stdout), "endpoint", "fail", address)


def test_a_provider_that_answers(t):
    cases = (("OPENAI", "gpt-4o", "/v1", "/v1/models", "authorization"),
             ("ANTHROPIC", "claude-sonnet-4-5", "", "/v1/models", "x-api-key"),
             ("GOOGLE", "gemini-2.5-flash", "", "/v1beta/models", "x-goog-api-key"))
    for name, model, path, wanted, header in cases:
        key = SECRETS[f"{name}_API_KEY"]
        with provider() as (url, asked):
            env = {"PROVIDER": None, "MODEL": model, f"{name}_API_KEY": key,
                   f"{name}_BASE_URL": url + path}
            report = doctor(t, env=env)
        eq(failed(report), [], "failures")
        expect(report, "provider", "ok", name.lower(), model)
        expect(report, "endpoint", "ok", url)
        expect(report, "model list", "ok", model)
        eq(report["model"]["base_url"], url + path, "base URL")
        eq(report["model"]["name"], model, "model")
        assert report["model"]["card"]["context"] >= 128_000, report["model"]
        for target, headers in asked:
            eq(target.split("?")[0], wanted, "path")
            sent = {name.lower(): value for name, value in headers.items()}
            eq(sent[header].removeprefix("Bearer "), key, header)


def test_what_a_provider_may_say(t):
    env = {"PROVIDER": "openai", "MODEL": "gpt-9", "OPENAI_API_KEY": SECRETS["OPENAI_API_KEY"]}
    cases = (
        (dict(), ("endpoint", "ok"), ("model list", "warn", "gpt-9", "gpt-4o")),
        (dict(raw=b"<html>hello</html>"), ("endpoint", "ok"), ("model list", "warn", "gpt-9")),
        (dict(status=401), ("endpoint", "fail", "OPENAI_API_KEY", "401")),
        (dict(status=403), ("endpoint", "fail", "OPENAI_API_KEY", "403")),
        (dict(status=404), ("endpoint", "warn", "404", "OPENAI_BASE_URL")),
        (dict(status=503), ("endpoint", "warn", "503")),
        # A provider that repeats the key, and what a terminal would obey.
        (dict(models=(SECRETS["OPENAI_API_KEY"], "\x1b[2J\nok    all is well")),
         ("model list", "warn", "gpt-9")),
    )
    for said, *expected in cases:
        with provider(**said) as (url, _):
            report = doctor(t, env={**env, "OPENAI_BASE_URL": f"{url}/v1"})
        for thing, status, *words in expected:
            expect(report, thing, status, *words)
        wrong = said.get("status") in (401, 403)
        eq(report["ok"], not wrong, f"ok with {said}")


def test_a_server_of_one_s_own_wants_no_key(t):
    with provider(models=("llama3:latest",)) as (url, asked):
        env = {"PROVIDER": None, "MODEL": "llama3", "OPENAI_BASE_URL": f"{url}/v1",
               "OPENAI_WIRE_API": "chat"}
        report = doctor(t, env=env)
    eq(failed(report), [], "failures")
    expect(report, "model list", "ok", "llama3")
    expect(report, "model card", "warn", "MODELS_FILE")
    eq((report["model"]["wire_api"], report["model"]["card"]["context"]), ("chat", 32_000))
    assert all("authorization" not in map(str.lower, headers) for _, headers in asked), asked


def test_the_proxy_is_used(t):
    """A proxy gets what goes to http URLs, and nothing of what NO_PROXY names."""
    with provider() as (proxy, asked):
        env = {"PROVIDER": None, "MODEL": "gpt-4o", "OPENAI_BASE_URL": "http://models.example/v1",
               "http_proxy": proxy.replace("http://", "http://fake-user:fake-password@")}
        report = doctor(t, env=env)
        expect(report, "endpoint", "ok", "models.example")
        assert asked and all(path == "http://models.example/v1/models" for path, _ in asked), asked
        del asked[:]
        port = closed_port()
        env = {**env, "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "no_proxy": "127.0.0.1"}
        expect(doctor(t, env=env), "endpoint", "fail", f"127.0.0.1:{port}")
        eq(asked, [], "what the proxy was asked")


def test_a_key_in_clear_text(t):
    with provider() as (proxy, _):
        env = {"PROVIDER": None, "MODEL": "gpt-4o", "OPENAI_BASE_URL": "http://models.example/v1",
               "OPENAI_API_KEY": SECRETS["OPENAI_API_KEY"], "HTTP_PROXY": proxy}
        report = doctor(t, env=env)
    eq(failed(report), [], "failures")
    expect(report, "configuration", "warn", "OPENAI_BASE_URL", "models.example", "https")


def test_a_running_server(t):
    """Its store and its port are in use, not broken; it does not notice."""
    server = t.server()
    client = server.client()
    env = {"SESSION_STORE_PATH": t.store, "PORT": str(server.port)}
    report = doctor(t, env=env)
    eq(failed(report), [], "failures")
    expect(report, "session store", "warn", str(t.store), "in use")
    expect(report, "port", "warn", str(server.port))
    client.still_open()
    server.kill()
    report = doctor(t, env=env)
    expect(report, "session store", "ok", str(t.store))


def test_a_port_that_another_program_has(t):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        report = doctor(t, env={"PORT": str(port)})
        eq([c["thing"] for c in failed(report)], ["port"], "what failed")
        expect(report, "port", "fail", str(port), "--port")


def test_the_token_and_the_address(t):
    expect(doctor(t), "token", "warn", "every program", "127.0.0.1")
    report = doctor(t, env={"HOST": "0.0.0.0"})
    expect(report, "configuration", "fail", "POLYLOOP_TOKEN")
    report = doctor(t, env={"HOST": "0.0.0.0", "POLYLOOP_TOKEN": SECRETS["POLYLOOP_TOKEN"]})
    eq(failed(report), [], "failures")
    report = doctor(t, env={"POLYLOOP_TOKEN": "sh0rt tok"})
    expect(report, "configuration", "fail", "POLYLOOP_TOKEN")
    assert "sh0rt" not in str(report), report


def test_a_broken_env_file(t):
    secret = SECRETS["OPENAI_API_KEY"]
    (t.start / ".env").write_text(f"LOG_LEVEL=debug\nOPENAI_API_KEY={secret} and more\n")
    report = doctor(t)
    eq([c["thing"] for c in failed(report)], [".env"], "what failed")
    expect(report, ".env", "fail", "line 2")


def test_a_file_of_models(t):
    models = t.dir / "models.json"
    env = {"MODELS_FILE": models, "PROVIDER": None, "MODEL": "llama3",
           "OPENAI_BASE_URL": f"http://127.0.0.1:{closed_port()}/v1"}
    models.write_text('[{"match": "llama*", "context": 9999, "output": 99}]')
    report = doctor(t, env=env)
    card = report["model"]["card"]
    eq((card["context"], card["output"]), (9999, 99), "the card")
    expect(report, "model card", "ok", "9999")
    models.write_text('[{"match": "llama*"}, {"match": "x", "contxt": 1}]')
    expect(doctor(t, env=env), "configuration", "fail", "MODELS_FILE", str(models), "row 2",
           "contxt")


def test_the_help_of_the_doctor(t):
    result = t.program("doctor", "--help")
    eq(result.returncode, 0, "exit code")
    for word in ("--json", "--session-store-path", "--openai-base-url", "Examples:"):
        assert word in result.stdout, f"{word} is not in the help"
