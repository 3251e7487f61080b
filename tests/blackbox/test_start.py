"""Starting: configuration, its errors, and where values come from."""

import os
import signal

from frames import outputs, said
from harness import eq, eventually

SEED_FLAGS = ["openai-api-key", "anthropic-api-key", "google-api-key", "provider", "model",
              "google-application-credentials", "instructions-file-path", "tool-use-approval-mode",
              "working-directory", "session-store-path", "todos-store-path", "context-strategy",
              "context-compaction-threshold", "log-level", "host", "port", "addr",
              "polyloop-token", "allowed-origins", "allowed-hosts", "allow-bypass",
              "approval-timeout-secs", "auto-resume", "agent"]
MODEL_FLAGS = ["openai-base-url", "anthropic-base-url", "google-base-url", "openai-wire-api",
               "models-file", "https-proxy", "http-proxy", "no-proxy", "model-idle-timeout-secs",
               "model-retries"]


def strategy(server):
    client = server.client()
    client.send("get_context_info")
    return client.recv()["payload"]["strategy"]


def refused(result, *words):
    """The program ended with an error that names these."""
    assert result.returncode not in (0, 101) and result.returncode > 0, result
    for word in words:
        assert word in result.stderr, f"{word!r} is not in: {result.stderr}"
    assert "panicked" not in result.stderr, result.stderr


def test_help(t):
    top = t.program("--help")
    eq(top.returncode, 0, "exit code")
    for word in ("serve", "demo", "doctor", "polyloop"):
        assert word in top.stdout, top.stdout
    serve = t.program("serve", "--help")
    eq(serve.returncode, 0, "exit code")
    missing = [flag for flag in SEED_FLAGS + MODEL_FLAGS if f"--{flag}" not in serve.stdout]
    eq(missing, [], "flags that the help does not know")
    for word in ("suggest", "auto-edit", "full-auto", "threshold", "dummy", "8080", "127.0.0.1"):
        assert word in serve.stdout, f"{word} is not in the help"
    demo = t.program("demo", "--help")
    eq(demo.returncode, 0, "exit code")
    assert "--port" in demo.stdout, demo.stdout
    version = t.program("--version")
    eq((version.returncode, version.stdout.split()[0]), (0, "polyloop"), "version")


def test_wrong_words_on_the_command_line(t):
    for words in (["sreve"], ["serve", "--nope"], ["serve", "--port"], []):
        result = t.program(*words)
        assert result.returncode > 0 and result.stderr, f"{words}: {result}"


def test_it_says_where_it_listens(t):
    server = t.server("--host", "127.0.0.1")
    assert f"http://{server.address}" in server.stdout(), server.stdout()
    eventually(lambda: str(t.store) in server.stdout(), "it says where sessions are kept")


def test_without_a_provider_it_needs_a_key(t):
    for env, key in (({}, "OPENAI_API_KEY"), ({"MODEL": "claude-3-5-sonnet-20241022"},
                     "ANTHROPIC_API_KEY"), ({"MODEL": "gemini-1.5-pro"}, "GOOGLE_API_KEY"),
                     ({"PROVIDER": "anthropic"}, "ANTHROPIC_API_KEY")):
        result = t.program("serve", "--port", "0", env={"PROVIDER": None, **env})
        refused(result, key, "polyloop demo")


def test_bad_values_name_the_variable_the_value_and_what_is_allowed(t):
    cases = [
        ({"PORT": "http"}, ["PORT", "http"]), ({"PORT": "65536"}, ["PORT", "65536", "65535"]),
        ({"HOST": "no host"}, ["HOST", "no host"]), ({"PROVIDER": "acme"}, ["acme", "openai"]),
        ({"CONTEXT_STRATEGY": "x1"}, ["CONTEXT_STRATEGY", "x1", "threshold", "dummy"]),
        ({"CONTEXT_COMPACTION_THRESHOLD": "1.5"}, ["CONTEXT_COMPACTION_THRESHOLD", "1.5"]),
        ({"LOG_LEVEL": "loud"}, ["LOG_LEVEL", "loud", "debug"]),
        ({"WORKING_DIRECTORY": "/no/such/dir"}, ["orking", "/no/such/dir"]),
        ({"MAX_QUEUED_MESSAGES": "0"}, ["MAX_QUEUED_MESSAGES", "0"]),
        ({"ALLOW_BYPASS": "perhaps"}, ["ALLOW_BYPASS", "perhaps", "true"]),
        ({"APPROVAL_TIMEOUT_SECS": "-5"}, ["APPROVAL_TIMEOUT_SECS", "-5"]),
        ({"ALLOWED_ORIGINS": "evil.example/x"}, ["ALLOWED_ORIGINS", "evil.example/x"]),
        ({"OPENAI_BASE_URL": "localhost/v1"}, ["OPENAI_BASE_URL", "localhost/v1", "https://"]),
        ({"OPENAI_WIRE_API": "soap"}, ["OPENAI_WIRE_API", "soap", "responses", "chat"]),
        ({"MODEL_RETRIES": "11"}, ["MODEL_RETRIES", "11", "10"]),
        ({"MODELS_FILE": "/no/such/file"}, ["MODELS_FILE", "/no/such/file"]),
        ({"PROVIDER": "google", "GOOGLE_APPLICATION_CREDENTIALS": "/no/such/account"},
         ["GOOGLE_APPLICATION_CREDENTIALS", "/no/such/account"]),
    ]
    for env, words in cases:
        # A flag would win over the variable, and the variable would not be looked at.
        refused(t.program("serve", env={"PORT": "0", **env}), *words)
    refused(t.program("serve", "--addr", "nowhere"), "addr", "nowhere")


def test_a_bad_secret_is_not_repeated(t):
    result = t.program("serve", "--port", "0", env={"POLYLOOP_TOKEN": "sh0rt tok"})
    refused(result, "POLYLOOP_TOKEN")
    assert "sh0rt" not in result.stderr + result.stdout, result
    for name, value in (("OPENAI_BASE_URL", "https://me:sh0rt@models.example/v1"),
                        ("HTTPS_PROXY", "socks5://me:sh0rt@proxy.example"),
                        ("ANTHROPIC_API_KEY", "sh0rt and spaced"),
                        ("GOOGLE_APPLICATION_CREDENTIALS", '{"private_key": "sh0rt"}')):
        result = t.program("serve", "--port", "0", env={"PROVIDER": "google", name: value})
        refused(result, name)
        assert "sh0rt" not in result.stderr + result.stdout, result


def test_the_rows_of_a_file_of_models_are_checked(t):
    (t.dir / "models.json").write_text('[{"match": "a"}, {"match": "b", "output": "64k"}]')
    result = t.program("serve", "--port", "0", env={"MODELS_FILE": t.dir / "models.json"})
    refused(result, "MODELS_FILE", str(t.dir / "models.json"), "row 2", "output", "64k")


def test_a_server_of_one_s_own_needs_no_key(t):
    server = t.server(env={"PROVIDER": None, "MODEL": "llama3", "LOG_LEVEL": "warn",
                           "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    eventually(lambda: "llama3" in server.stdout(), "it says which model it has")
    eq(server.stderr(), "", "warnings")


def test_a_key_in_clear_text_is_warned_of(t):
    server = t.server(env={"PROVIDER": "openai", "OPENAI_API_KEY": "sk-fake-0123456789",
                           "OPENAI_BASE_URL": "http://models.example/v1"})
    log = server.stderr() + server.stdout()
    for word in ("OPENAI_BASE_URL", "models.example", "OPENAI_API_KEY", "https"):
        assert word in log, f"{word!r} is not in: {log}"
    assert "sk-fake" not in log, log


def test_an_invalid_approval_mode_is_reported_and_means_suggest(t):
    server = t.server(env={"TOOL_USE_APPROVAL_MODE": "yolo"})
    log = server.stderr() + server.stdout()
    for word in ("TOOL_USE_APPROVAL_MODE", "yolo", "suggest", "auto-edit", "full-auto"):
        assert word in log, f"{word!r} is not in: {log}"
    client = server.client()
    client.say("run: touch a")
    client.until("approval_request")


def test_a_missing_instructions_file_is_reported(t):
    server = t.server(env={"INSTRUCTIONS_FILE_PATH": t.dir / "nowhere.txt"})
    assert str(t.dir / "nowhere.txt") in server.stderr() + server.stdout(), server.stderr()
    eq(said(server.client().turn("say: fine")), ["fine"])


def test_where_values_come_from(t):
    (t.start / ".env").write_text("# a comment\nCONTEXT_STRATEGY=dummy\nexport LOG_LEVEL='debug'\n")
    eq(strategy(t.server()), "DummyContextManager", "from .env")
    eq(strategy(t.server(store=False, env={"CONTEXT_STRATEGY": "threshold"})),
       "ThresholdContextManager", "the environment wins over .env")
    flag = t.server("--context-strategy", "dummy", store=False,
                    env={"CONTEXT_STRATEGY": "threshold"})
    eq(strategy(flag), "DummyContextManager", "a flag wins over the environment")


def test_the_working_directory_s_env_file_is_not_read(t):
    (t.work / ".env").write_text("CONTEXT_STRATEGY=dummy\nPORT=broken\n")
    eq(strategy(t.server()), "ThresholdContextManager", "strategy")


def test_the_env_file_does_not_reach_commands(t):
    (t.start / ".env").write_text("SOME_SECRET=from-dot-env\nOPENAI_API_KEY=from-dot-env\n")
    client = t.server().client()
    client.say("run: env")
    client.until("approval_request")
    client.review("yes")
    assert "from-dot-env" not in str(client.until_end()), "it is in a command's environment"


def test_a_relative_working_directory(t):
    (t.start / "project").mkdir()
    server = t.server(env={"WORKING_DIRECTORY": "project"})
    (output,) = outputs(server.client().turn("run: pwd"))
    eq(output["output"], f"{t.start / 'project'}\n", "pwd")


def test_sessions_in_memory(t):
    server = t.server(store=False)
    told = lambda: "memory" in server.stdout() + server.stderr()
    eventually(told, "it says that nothing is kept")
    created = server.http("POST", "/sessions")
    eq(created.status, 201, "status")
    client = server.client("/ws/s1")
    eq(said(client.turn("say: here")), ["here"])
    ids = {s["id"] for s in server.get("/sessions").json["sessions"]}
    eq(ids, {created.json["id"], "s1"}, "the list")
    texts = [m["payload"]["content"][0]["text"] for m in server.messages("s1")
             if m.get("type") == "response_item"]
    eq(texts, ["here"], "GET")
    back = server.client("/ws/s1?since=0")
    eq(said(back.until_end()), ["here"], "a replay")
    client.close()
    back.close()
    eventually(lambda: server.http("DELETE", "/sessions/s1").status == 204, "archived")
    eq(server.get("/sessions/s1").status, 404, "GET afterwards")
    eq(list(t.dir.rglob("*.jsonl")), [], "files")


def test_a_second_server_on_the_same_store(t):
    server = t.server()
    result = t.program("serve", "--port", "0", env={"SESSION_STORE_PATH": t.store})
    refused(result, "SESSION_STORE_PATH", str(t.store))
    eq(len(result.stderr.strip().splitlines()), 1, f"lines of {result.stderr!r}")
    eq(said(server.client().turn("say: fine")), ["fine"], "the first one")
    server.signal(signal.SIGTERM)
    eq(server.process.wait(30), 0, "exit code")
    eq(said(t.server().client().turn("say: mine")), ["mine"], "the store is free again")


def test_stores_that_cannot_be_used(t):
    (t.dir / "file").write_text("")
    for name in ("SESSION_STORE_PATH", "TODOS_STORE_PATH"):
        for path in (t.dir / "file", t.dir / "file/below", "/proc/none"):
            result = t.program("serve", "--port", "0", env={name: path})
            refused(result, name, str(path))
            eq(len(result.stderr.strip().splitlines()), 1, f"lines of {result.stderr!r}")


def test_stores_are_made(t):
    deep = t.dir / "a/b/c"
    server = t.server(env={"SESSION_STORE_PATH": deep, "TODOS_STORE_PATH": t.dir / "d/e"})
    server.client().turn("say: x")
    assert (deep / "s1.jsonl").is_file() and (t.dir / "d/e/s1.md").is_file()


def test_a_port_that_is_taken(t):
    server = t.server()
    result = t.program("serve", "--port", str(server.port), env={"SESSION_STORE_PATH": None})
    refused(result, str(server.port))


def test_addr(t):
    server = t.server("--addr", "127.0.0.1:0")
    eq(server.host, "127.0.0.1", "host")
    eq(server.get("/healthz").status, 200, "status")


def test_session_files_are_for_their_owner_only(t):
    server = t.server(todos=True)
    server.client().turn("say: private")
    mode = os.stat(t.store / "s1.jsonl").st_mode & 0o077
    eq(oct(mode), "0o0", "what others may do with a session's file")
