"""A model that answers by what it is asked, so that every way to think can be played with it.

    model = Thinker(test=t)
    held = model.hold("value", "B")      # the next one that weighs B waits before it answers
    ... a server with model.settings() runs a turn ...
    held.reached(); server.kill(); held.release()

It speaks the chat interface of OpenAI on a socket of its own and shares nothing with the program:
what a question is about is read from its text. Equal questions get equal answers, in whatever
order they come.
"""

import http.server
import json
import re
import select
import socket
import threading
import time

WAIT_SECS = 30.0
PIECE_CHARS = 12
# So often it is looked whether whoever asked is still there.
GONE_SECS = 0.05

# What a question looks like, and what kind it then is.
QUESTIONS = [
    ("question", r"what is its core question"),
    ("information", r"Which information bears on the core question"),
    ("expand", r"Propose up to \d+ different next steps"),
    ("value", r"How promising is this way"),
    ("vote", r"Which of these ways is the best"),
    ("plan", r"Plan at most \d+ sub-tasks"),
    ("judge", r"Reply with one word: simple or complex"),
    ("score", r"How good is this result of a sub-task"),
    ("refine", r"Improve this result of a sub-task"),
    ("summary", r"Summarise the conversation above"),
]
# What it could not be read from is asked once more, behind what was said.
AGAIN = "Reply again, exactly in the form I asked for"
TASK = "Your sub-task: "
EXPLAINED = "Before deciding on that call I was told: "
RESUMED = "Go on with the work that was interrupted."
GATHERED = "Put the results together and answer"
FOLLOW = {"path": "Several ways were weighed", "solve": "You have looked at the problem",
          "gather": GATHERED}
# How such a note ends.
ENDS = {"path": "with tools where they help, and answer.",
        "solve": "with tools where they help, and answer.", "gather": " what was asked for."}


class Asked:
    """One request: its kind, what it is about, and what was done since."""

    def __init__(self, number, body):
        self.number, self.body = number, body
        self.messages = [m for m in body["messages"] if m["role"] != "system"]
        self.tools = [tool["function"]["name"] for tool in body.get("tools") or []]
        self.kind, self.about, self.since = self._read()
        self.at = time.monotonic()
        self.is_open = True

    def _read(self):
        texts = [(at, text(m)) for at, m in enumerate(self.messages) if m["role"] == "user"]
        for at, said in reversed(texts):
            results = [m for m in self.messages[at:] if m["role"] == "tool"]
            if TASK in said and GATHERED not in said.rpartition(TASK)[2]:
                task = said.rpartition(TASK)[2].partition("\n")[0]
                if not self._asks(said.rpartition(TASK)[2]):
                    return "task", task, results
            for kind, beginning in FOLLOW.items():
                if beginning in said and not self._asks(said.rpartition(beginning)[2]):
                    # What is said behind a note is said since.
                    since = said.rpartition(beginning)[2].partition(ENDS[kind])[2]
                    since = since.replace(RESUMED, "").strip()
                    return ("think", since, results) if since else (kind, "", results)
            if kind := self._asks(said):
                return kind, about(kind, said), results
            if said.strip() == RESUMED or AGAIN in said or said.startswith(EXPLAINED):
                continue
            return "think", said, results
        return "think", "", []

    def _asks(self, said):
        return next((kind for kind, words in QUESTIONS if re.search(words, said)), None)

    def whole(self):
        return "\n".join(text(m) for m in self.messages)

    def __repr__(self):
        return f"{self.kind} {self.about!r} after {len(self.since)} results"


def text(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)


def about(kind, said):
    """What a question is about: the last thought, or the sub-task."""
    if kind in ("expand", "value"):
        # An earlier search may have left a note with steps of its own.
        told = max(said.rfind(words) for words in ("No step was taken yet", "The steps so far:"))
        steps = re.findall(r"^\d+\. (.*)$", said[told:], re.M)
        return steps[-1] if steps else ""
    if kind in ("judge", "score", "refine", "plan"):
        found = re.search(r"(?:sub-tasks is: |The sub-task: |split it\s+further: )(.*)", said)
        return found[1] if found else ""
    return ""


def call(name, **args):
    """What the model answers with where it uses a tool."""
    return {"name": name, "arguments": json.dumps(args)}


def bash(command):
    return call("bash", command=command)


class Rule:
    """Something that happens to the next requests of a kind."""

    def __init__(self, kind, about, does, times, **more):
        self.kind, self.about, self.does, self.left = kind, about, does, times
        self.more = more
        self.came, self.may_go = threading.Event(), threading.Event()

    def reached(self):
        assert self.came.wait(WAIT_SECS), f"no request of {self.kind} {self.about} came"
        return self

    def release(self):
        self.may_go.set()


class Thinker:
    """A running model; it ends with its test. `answers` says what it says: a function of `Asked`
    that gives a text, a list of calls, or a reply with `say`, `calls`, `usage`."""

    def __init__(self, answers, test=None):
        self.answers = answers
        self.requests, self.rules = [], []
        self.lock = threading.Lock()
        self.open, self.open_most = 0, 0
        thinker = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                thinker._serve(self, body)

            def log_message(self, *_):
                pass

        class Served(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 128

            def handle_error(self, *_):
                pass  # A client that was killed is no fault of ours.

        self.server = Served(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        if test is not None:
            test.closing.append(self.stop)

    def stop(self):
        for rule in self.rules:
            rule.release()
        self.server.shutdown()
        self.server.server_close()

    def settings(self, **more):
        return {"PROVIDER": "openai", "OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "k",
                "OPENAI_WIRE_API": "chat", "MODEL": "thinker", **more}

    def hold(self, kind, about=None, pieces=0, times=1):
        """The next of a kind waits, after so many pieces of its answer."""
        return self._rule(Rule(kind, about, "hold", times, pieces=pieces))

    def fault(self, kind, about=None, status=None, cut=None, instead=None, times=1):
        """The next of a kind gets an error status, is cut after so many pieces, or another
        answer."""
        rule = Rule(kind, about, "fault", times, status=status, cut=cut, instead=instead)
        return self._rule(rule)

    def _rule(self, rule):
        with self.lock:
            self.rules.append(rule)
        return rule

    def asked(self, kind=None):
        with self.lock:
            return [one for one in self.requests if kind in (None, one.kind)]

    def asked_now(self):
        """The same, for who is asked."""
        return list(self.requests)

    def _applies(self, asked):
        for rule in self.rules:
            fits = rule.kind == asked.kind and rule.about in (None, asked.about)
            if fits and rule.left:
                rule.left -= 1
                return rule
        return None

    def _serve(self, handler, body):
        with self.lock:
            asked = Asked(len(self.requests), body)
            self.requests.append(asked)
            rule = self._applies(asked)
            self.open += 1
            self.open_most = max(self.open_most, self.open)
        try:
            self._answer(handler, asked, rule)
        except OSError:
            pass
        finally:
            self._over(asked)

    def _over(self, asked):
        """Before the last words are sent: whoever reads them may ask again at once."""
        with self.lock:
            self.open -= asked.is_open
            asked.is_open = False

    def _answer(self, handler, asked, rule):
        more = rule.more if rule else {}
        if more.get("status"):
            rule.came.set()
            self._over(asked)
            return refuse(handler, more["status"])
        reply = self.answers(asked) if more.get("instead") is None else more["instead"]
        chunks = list(streamed(reply))
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for at, chunk in enumerate([*chunks, None]):
            if rule and rule.does == "hold" and at == min(more["pieces"], len(chunks)):
                handler.wfile.flush()
                rule.came.set()
                wait_with(handler.connection, rule.may_go)
            if rule and more.get("cut") == at:
                rule.came.set()
                handler.wfile.flush()
                self._over(asked)
                return handler.connection.close()
            if chunk is not None:
                handler.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                handler.wfile.flush()
        self._over(asked)
        handler.wfile.write(b"data: [DONE]\n\n")
        return handler.wfile.flush()


def wait_with(connection, may_go):
    """Waits as long as there is somebody to answer to."""
    end = time.monotonic() + WAIT_SECS * 4
    while not may_go.wait(GONE_SECS) and time.monotonic() < end:
        readable, _, _ = select.select([connection], [], [], 0)
        if readable and not connection.recv(1, socket.MSG_PEEK):
            raise ConnectionError("whoever asked is gone")


def streamed(reply):
    """A reply as the pieces of a stream."""
    if isinstance(reply, str):
        reply = {"say": reply}
    elif isinstance(reply, list):
        reply = {"calls": reply}

    def chunk(delta, finish=None, **more):
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return {"id": "c", "object": "chat.completion.chunk", "model": "thinker",
                "choices": choices, **more}

    yield chunk({"role": "assistant"})
    said = reply.get("say", "")
    for at in range(0, len(said), PIECE_CHARS):
        yield chunk({"content": said[at:at + PIECE_CHARS]})
    calls = reply.get("calls", [])
    for at, one in enumerate(calls):
        yield chunk({"tool_calls": [{"index": at, "id": f"call_{at}", "type": "function",
                                     "function": one}]})
    yield chunk({}, reply.get("finish", "tool_calls" if calls else "stop"))
    counted = reply.get("usage", (10, 5))
    yield {"id": "c", "object": "chat.completion.chunk", "model": "thinker", "choices": [],
           "usage": {"prompt_tokens": counted[0], "completion_tokens": counted[1],
                     "total_tokens": sum(counted)}}


def refuse(handler, status):
    words = json.dumps({"error": {"message": f"refused with {status}", "type": "x"}}).encode()
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(words)))
    handler.end_headers()
    handler.wfile.write(words)


# A small world that all ways to think can be tried in. What it says depends on what was asked
# alone, and its answers tell which way was taken.

THOUGHTS = {"": ["A", "B", "C"]}
VALUES = {"A": "likely", "B": "sure", "C": "impossible"}
PLAN = [
    {"id": "alpha", "task": "count alpha"},
    {"id": "beta", "task": "count beta", "attempts": 2, "refine": 1},
    {"id": "gamma", "task": "add up", "needs": ["alpha", "beta"]},
    {"id": "delta", "task": "check alpha", "needs": ["alpha"]},
]
INNER = [{"id": "one", "task": "beta one"}, {"id": "two", "task": "beta two"}]


def ran(name):
    """A command that leaves a trace, and goes on for as long as a file is there."""
    return bash(f"echo {name} >> ran; touch at-{name}; while [ -e hold-{name} ]; "
                "do sleep 0.02; done")


def plan(nodes):
    return f"Here is my plan:\n```json\n{json.dumps({'nodes': nodes})}\n```"


def world(asked):
    done = len(asked.since)
    if asked.kind == "question":
        return "Which number is in the file?"
    if asked.kind == "information":
        return '{"constraints": ["it is whole"], "context": "number.txt"}'
    if asked.kind == "expand":
        if not asked.about and "at-" not in asked.whole() and not results(asked):
            return [call("ls", path=".")]
        last = [] if not asked.about else [asked.about + one for one in "12"]
        ways = [{"thought": way, "final": bool(last)} for way in last or THOUGHTS[""]]
        return json.dumps({"thoughts": ways})
    if asked.kind == "value":
        return f"Let me see.\n{VALUES.get(asked.about, 'likely' if '1' in asked.about else 'sure')}"
    if asked.kind == "vote":
        return "The best is 2."
    if asked.kind == "plan":
        return plan(INNER if asked.about else PLAN)
    if asked.kind == "judge":
        return "complex" if asked.about == "count beta" else "simple"
    if asked.kind == "score":
        return "7"
    if asked.kind == "refine":
        return "beta is 2, surely"
    if asked.kind == "summary":
        return "They want to know the number."
    if asked.kind == "task":
        if asked.about == "count alpha" and not done:
            return [ran("alpha")]
        return {"count alpha": "alpha is 1", "count beta": "beta is 2", "check alpha": "alpha ok",
                "beta one": "one is 1", "beta two": "two is 1", "add up": "the sum is 3",
                }.get(asked.about, "done")
    if asked.kind == "gather":
        if done == 0 and "beta one" not in asked.whole().rpartition(GATHERED)[0].rpartition(
                "What they came to:")[2]:
            return [ran("gather")]
        return "Together: " + "; ".join(found(asked))
    if asked.kind == "path":
        if not done:
            return [ran("path")]
        note = asked.whole().rpartition(FOLLOW["path"])[2]
        return "The way is " + ", ".join(re.findall(r"^\d+\. (\w+)$", note, re.M)) + "."
    if asked.kind == "solve":
        return "The number is 7." if done else [ran("solve")]
    return "Well." if done or "Run" not in asked.about else [ran("think")]


def results(asked):
    return [one for one in asked.messages if one["role"] == "tool"]


def found(asked):
    """What the sub-tasks came to, as a note tells it."""
    note = asked.whole().rpartition("What they came to:")[2].rpartition(GATHERED)[0]
    return re.findall(r"\):\n(.*)", note)


# Every way to think: how it is asked for, and how its answer in that world begins.
AGENTS = {
    "dup": {"agent": "dup"},
    "tot": {"agent": "tot"},
    "tot_depth": {"agent": "tot", "env": {"TOT_SEARCH": "depth", "TOT_ACCEPT": "1"}},
    "tot_vote": {"agent": "tot", "env": {"TOT_JUDGE": "vote", "TOT_SAMPLES": "3"}},
    "got": {"agent": "got"},
    "got_adaptive": {"agent": "got", "env": {"GOT_ADAPTIVE": "true"}},
}
