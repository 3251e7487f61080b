"""Fetching from the web: asked about in every dialect, refused where it would reach home."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import eq
from loomtalk import event, loom, reply
from talk import of, talks, the

PAGE = b"<title>T</title><script>x()</script><h1>One</h1><a href='/two'>two</a>"
HERE = {"WEB_PRIVATE_ADDRESSES": "true"}
REFUSED = "WEB_PRIVATE_ADDRESSES=true"


class Site:
    """A web server on loopback that keeps the requests it got."""

    def __init__(self):
        seen = self.seen = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(f"{self.command} {self.path}")
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(PAGE)))
                self.end_headers()
                self.wfile.write(PAGE)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def url(self, path="/"):
        return f"http://{self.host}{path}"


@contextlib.contextmanager
def site():
    site = Site()
    try:
        yield site
    finally:
        site.http.shutdown()
        site.http.server_close()


def fetch(url, **args):
    return f"tool: web_fetcher {json.dumps({'url': url, **args})}"


@talks
def test_private_addresses_are_refused_and_nobody_is_asked(s):
    s.server()
    with site() as web:
        port = web.host.split(":")[1]
        script = [fetch(f"http://{host}:{port}/") for host in ("127.0.0.1", "2130706433", "[::1]")]
        frames = s.unified().turn("\n".join([*script, "say: end"]))
        done = of(frames, "tool_completed")
        eq([one["success"] for one in done], [False] * 3, "success")
        assert all(REFUSED in one["error"] for one in done), done
        frames = loom(s).turn(fetch(f"http://localhost:{port}/") + "\nsay: end", approvals=True)
        end = event(frames, "tool_end")
        assert end["is_error"] and REFUSED in end["result"], end
        eq(web.seen, [], "requests")


@talks
def test_a_fetch_is_asked_about_and_always_covers_the_host(s):
    s.server(env=HERE)
    with site() as web:
        client = s.unified()
        request = client.asked(fetch(web.url("/one")) + "\nsay: end")
        context = request["context"]
        eq((request["tool_name"], context["risk_level"]), ("WebFetch", "high"), "request")
        eq(context["description"], f"fetches from {web.host}", "description")
        eq(context["command"], ["web_fetcher", "GET", web.url("/one")], "command")
        eq(web.seen, [], "before the answer")
        client.decide(request, "allow_always")
        done = the(client.until_end(), "tool_completed")
        eq(done["result"], f"Title: T\n\n# One\n\n[two]({web.url('/two')})\n", "result")
        client.turn(fetch(web.url("/two")) + "\nsay: end")
        eq(web.seen, ["GET /one", "GET /two"], "requests")
        request = client.asked(fetch(web.url(), method="POST", body="x") + "\nsay: end")
        eq(request["context"]["description"], f"sends data to {web.host}", "a POST")
        client.decide(request, "deny")
        assert not the(client.until_end(), "tool_completed")["success"]
        eq(len(web.seen), 2, "requests after the denial")


@talks
def test_loom_clients_are_asked_too_even_in_full_auto(s):
    s.server("--tool-use-approval-mode", "full-auto", env=HERE)
    with site() as web:
        client = loom(s)
        request = client.asked(fetch(web.url("/one")) + "\nsay: done")
        eq((request["event"]["name"], request["event"]["arguments"]),
           ("web_fetcher", {"url": web.url("/one")}), "what is asked")
        eq(web.seen, [], "before the answer")
        client.answer(request, True)
        frames = client.until_end()
        eq((event(frames, "tool_end")["is_error"], reply(frames)), (False, "done"))
        eq(web.seen, ["GET /one"], "requests")


@talks
def test_the_server_is_never_fetched_from(s):
    server = s.server(env=HERE)
    client = s.unified()
    port = server.url("/").split(":")[2].split("/")[0]
    frames = client.turn(fetch(f"http://127.0.0.1:{port}/sessions") + "\nsay: end")
    error = the(frames, "tool_completed")["error"]
    assert "this server's own address" in error, error
    request = client.asked(fetch(f"http://localhost:{port}/sessions") + "\nsay: end")
    client.decide(request, "allow")
    error = the(client.until_end(), "tool_completed")["error"]
    assert "this server's own address" in error, error
