"""What a server says of itself before anyone speaks, and the files of its page."""

import re

from harness import eq

TOKEN = "correct-horse-battery-staple-42"


def test_what_the_server_is(t):
    answer = t.server().get("/about")
    eq(answer.status, 200, "status")
    about = answer.json
    version = t.program("--version").stdout.split()[-1]
    eq((about["name"], about["version"]), ("polyloop", version), "who it is")
    eq((about["provider"], about["model"], about["agent"]), ("offline", "offline", "react"),
       "what it runs")
    eq(about["permission_mode"], "manual", "mode")
    eq([mode["mode"] for mode in about["modes"]],
       ["manual", "acceptEdits", "auto", "plan", "dontAsk"], "modes")
    eq([kind["agent"] for kind in about["agents"]], ["react", "dup", "tot", "got"], "agents")
    for told in about["modes"] + about["agents"]:
        assert len(told["says"]) > 10, told
    eq(about["dialects"], ["agentloop", "unified", "loom", "chat"], "dialects")
    eq(about["workspace_roots"], [], "roots")
    eq(about["keeps_sessions"], True, "keeps sessions")
    eq(about["limits"], {"message_bytes": 8388608, "queued_messages": 32}, "limits")
    assert isinstance(about["sandbox"], bool), about


def test_it_says_what_it_was_told(t):
    more = t.dir / "more"
    more.mkdir()
    work = t.dir / "elsewhere"
    work.mkdir()
    server = t.server(store=False, env={
        "ALLOW_BYPASS": "true", "AGENT": "tot", "TOOL_USE_APPROVAL_MODE": "full-auto",
        "WORKSPACE_ROOTS": str(more), "WORKING_DIRECTORY": str(work),
        "MAX_MESSAGE_BYTES": "4096", "MAX_QUEUED_MESSAGES": "3"})
    about = server.get("/about").json
    eq([mode["mode"] for mode in about["modes"]][-1], "bypass", "modes")
    eq((about["agent"], about["permission_mode"]), ("tot", "auto"), "defaults")
    eq((about["working_directory"], about["workspace_roots"]),
       (str(work.resolve()), [str(more.resolve())]), "folders")
    eq(about["keeps_sessions"], False, "keeps sessions")
    eq(about["limits"], {"message_bytes": 4096, "queued_messages": 3}, "limits")


def test_every_mode_and_agent_that_is_offered_is_taken(t):
    server = t.server(env={"ALLOW_BYPASS": "true"})
    about = server.get("/about").json
    for mode in about["modes"]:
        for kind in about["agents"]:
            body = f'{{"permission_mode": "{mode["mode"]}", "agent": "{kind["agent"]}"}}'
            eq(server.http("POST", "/sessions", body=body).status, 201, body)


def test_models_that_can_be_run(t):
    eq(t.server().get("/models").json,
       {"default": "offline",
        "models": [{"model": "offline", "provider": "offline", "context_window": 128000}]},
       "offline")
    keys = {"PROVIDER": "", "MODEL": "claude-sonnet-5-5", "ANTHROPIC_API_KEY": "sk-none",
            "OPENAI_API_KEY": "sk-none"}
    server = t.server(store=False, env=keys)
    listed = server.get("/models").json
    eq(listed["default"], "claude-sonnet-5-5", "default")
    eq(listed["models"][0]["model"], "claude-sonnet-5-5", "the default comes first")
    names = [model["model"] for model in listed["models"]]
    eq(len(set(names)), len(names), "each once")
    eq({model["provider"] for model in listed["models"]}, {"anthropic", "openai"}, "providers")
    eq(server.get("/about").json["provider"], "anthropic", "provider")
    windows = {model["model"]: model["context_window"] for model in listed["models"]}
    eq(windows["gpt-4o"], 128000, "a window")
    assert "sk-none" not in server.get("/models").text + server.get("/about").text, "a key"
    for name in names:
        eq(server.http("POST", "/sessions", body=f'{{"model": "{name}"}}').status, 201, name)


def test_models_of_a_server_at_home_are_those_that_were_named(t):
    table = t.dir / "models.json"
    table.write_text('[{"match": "little", "context": 4000}, {"match": "other*", "context": 9}]')
    server = t.server(env={"PROVIDER": "openai", "MODEL": "mine", "MODELS_FILE": str(table),
                           "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
                           "OPENAI_WIRE_API": "chat"})
    eq(server.get("/models").json,
       {"default": "mine",
        "models": [{"model": "mine", "provider": "openai", "context_window": 32000},
                   {"model": "little", "provider": "openai", "context_window": 4000}]},
       "models")


def parts(server, **headers):
    home = server.get("/", **headers)
    eq(home.status, 200, "the page")
    found = re.findall(r'(?:src|href)="(/page/[^"]+)"', home.text)
    assert found, home.text
    return home, found


def test_the_page_loads_only_from_here(t):
    server = t.server()
    home, found = parts(server)
    policy = home.headers["content-security-policy"]
    assert "script-src 'self';" in policy and "unsafe" not in policy, policy
    assert not re.search(r"<style|<script(?![^>]*src=)|style=|\son\w+=", home.text), home.text
    kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for path in found:
        answer = server.get(path)
        eq(answer.status, 200, path)
        eq(answer.headers["content-type"].split(";")[0], kinds[path.rsplit(".")[-1]], path)
        eq(answer.headers["content-security-policy"], policy, path)
        eq(answer.headers["x-content-type-options"], "nosniff", path)
        eq(answer.headers["cache-control"], "no-cache", path)
        tag = answer.headers["etag"]
        again = server.get(path, **{"If-None-Match": f'"x", W/{tag}'})
        eq((again.status, again.text, again.headers["etag"]), (304, "", tag), path)
        eq(server.get(path, **{"If-None-Match": '"x"'}).status, 200, path)
        eq(server.http("POST", path).status, 405, path)


def test_the_page_s_folder_gives_nothing_else(t):
    server = t.server()
    for path in ("/page", "/page/", "/page/index.html", "/page/token.html", "/page/../page.rs",
                 "/page/..%2fpage.rs", "/page//etc/passwd", "/page/nothing.js", "/page/main.js/"):
        answer = server.get(path)
        eq((answer.status, answer.json), (404, {"error": "Not Found"}), path)


def test_with_a_token_everything_needs_it(t):
    server = t.server(env={"POLYLOOP_TOKEN": TOKEN})
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    _, found = parts(server, **bearer)
    for path in [*found, "/about", "/models"]:
        eq(server.get(path).status, 401, path)
        eq(server.get(path, **bearer).status, 200, path)
        eq(server.get(path, Cookie=f"polyloop_{server.address.rsplit(':')[-1]}={TOKEN}").status,
           200, path)
        eq(server.get(path, Origin="https://evil.example", **bearer).status, 403, path)
