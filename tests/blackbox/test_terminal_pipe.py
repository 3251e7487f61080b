"""The terminal client without a terminal: what goes where, and the exit status."""

import contextlib
import datetime
import http.server
import ipaddress
import json
import signal
import socket
import ssl
import subprocess
import threading

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness import eq
from talk import of, talks
from test_model_faults import begin
from terminal import Piped, Terminal, environment, piped, session_of, sessions

NOBODY = "Nobody could be asked"


def files(t):
    return sorted(path.name for path in t.work.iterdir())


def test_the_answer_alone_is_on_standard_output(t):
    server = t.server()
    script = "say: looking\nrun: echo hello\nsay: The **answer**.\\nIn two."
    code, out, err = piped(t, server, script)
    eq((code, out), (0, "The **answer**.\nIn two.\n"), "status and answer")
    for line in ("session: ", "looking", "● Bash  echo hello"):
        assert line in err, err


def test_the_message_comes_from_arguments_and_standard_input(t):
    server = t.server()
    eq(piped(t, server, stdin="say: from input")[:2], (0, "from input\n"))
    eq(piped(t, server, "say:", "from", "words")[:2], (0, "from words\n"))
    code, out, err = piped(t, server, "think: about this", "-", stdin="say: both\n")
    eq((code, out), (0, "both\n"))
    said = server.client(f"/unified?session_id={session_of(err)}&since=0", checked=False)
    started = said.until("turn_started")[-1]
    eq(started["message"], "think: about this\n\nsay: both", "the message")


def test_a_session_is_gone_on_with(t):
    server = t.server()
    _, _, err = piped(t, server, "say: one")
    session = session_of(err)
    code, out, err = piped(t, server, "--session", session, "say: two")
    eq((code, out, session_of(err)), (0, "two\n", session))
    eq([one["id"] for one in sessions(server)], [session], "sessions")


def test_a_named_session_is_made_only_when_asked(t):
    server = t.server()
    code, out, err = piped(t, server, "--session", "mine", "say: x")
    eq((code, out), (2, ""))
    assert "there is no session \"mine\"; --new makes it" in err, err
    eq(piped(t, server, "--session", "mine", "--new", "say: x")[:2], (0, "x\n"))
    code, _, err = piped(t, server, "--session", "mine", "--new", "say: x")
    eq(code, 2, "exit status")
    assert "already" in err, err


def test_events_are_printed_as_they_came(t):
    server = t.server()
    code, out, err = piped(t, server, "--json", "say: x\nrun: echo y")
    eq(code, 0, "exit status")
    events = [json.loads(line) for line in out.splitlines()]
    kinds = [event["type"] for event in events]
    eq((kinds[0], kinds[-1]), ("session_init", "turn_completed"), "first and last")
    for kind in ("turn_started", "assistant_message", "tool_started", "command_output",
                 "tool_completed", "token_usage"):
        assert kind in kinds, kinds
    eq({event["session_id"] for event in events}, {session_of(err)}, "session")


def test_what_needs_leave_is_denied_and_the_model_is_told(t):
    server = t.server()
    code, out, err = piped(t, server, "run: touch a\nsay: end")
    eq((code, out, files(t)), (3, "end\n", []))
    assert "Bash: denied, because nobody could be asked" in err, err
    client = server.client(f"/unified?session_id={session_of(err)}&since=0", checked=False)
    denied = client.until("tool_completed")[-1]
    assert NOBODY in denied["error"], denied


def test_questions_and_plans_do_not_block(t):
    server = t.server()
    code, out, err = piped(t, server, "ask: Which? | a | b\nsay: end")
    eq((code, out), (3, "end\n"))
    assert "nobody is there: Which?" in err, err
    code, out, err = piped(t, server, "plan: 1. do it\nsay: end")
    eq((code, out), (3, "end\n"))
    assert "1. do it" in err and "the plan was sent back" in err, err


def test_a_failed_turn_is_1(t):
    code, out, err = piped(t, t.server(), "stream: 2 10 1\n& fail: 500")
    eq(code, 1, "exit status")
    assert "error: 500" in err or "error:" in err, err


def test_wrong_usage_is_2(t):
    server = t.server()
    for words, says in (([], "there is no message"),
                        (["--session", "../x", "hi"], "is no session id"),
                        (["--url", "nowhere", "hi"], "--url"), (["--new", "hi"], "--session"),
                        (["--nonsense"], "--nonsense")):
        code, out, err = piped(t, server, *words)
        eq((code, out), (2, ""), f"{words}")
        assert says in err, err
    code, _, err = Piped(t, server, stdin=subprocess.PIPE).end(None)
    eq(code, 2, "an empty input")
    done = subprocess.run([Piped.program(t), "chat"], input=b"\xff\xfe", capture_output=True,
                          env=environment(t, server), timeout=30)
    eq(done.returncode, 2, "what is no text")
    assert b"UTF-8" in done.stderr, done.stderr


def test_no_server_is_4_and_says_what_to_do(t):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        code, out, err = piped(t, None, "--url", url, "hi")
    eq((code, out), (4, ""))
    for words in (url, "polyloop demo", "polyloop serve", "--url"):
        assert words in err, err


class Silent(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing about it."""

    def log_message(self, *_):
        pass


def test_what_is_no_polyloop_is_4(t):
    web = http.server.HTTPServer(("127.0.0.1", 0), Silent)
    t.closing.append(web.server_close)
    t.closing.append(web.shutdown)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    code, _, err = piped(t, None, "--url", f"http://127.0.0.1:{web.server_port}", "hi")
    eq(code, 4, "exit status")
    assert "is no Polyloop server" in err, err


def test_a_token_is_shown_and_kept_secret(t):
    token = "a-token-of-some-length"
    server = t.server(env={"POLYLOOP_TOKEN": token})
    code, _, err = piped(t, server, "say: x")
    eq(code, 4, "exit status without a token")
    assert "POLYLOOP_TOKEN" in err, err
    eq(piped(t, server, "say: x", env={"POLYLOOP_TOKEN": token})[:2], (0, "x\n"))
    code, out, err = piped(t, server, "--token", token, "say: x")
    eq((code, out), (0, "x\n"))
    assert token not in err, err


@talks
def test_interrupted_elsewhere_is_5(s):
    server = s.server()
    client = s.unified(session="shared", complete=False)
    client.turn("say: before")
    run = Piped(s.t, server, "--session", "shared", "stream: 100000 10 20")
    client.until("assistant_message")
    client.send("interrupt", reason="not now")
    code, out, err = run.end()
    eq(code, 5, "exit status")
    assert out.startswith("0000000 "), out
    assert "Interrupted: not now" in err, err


@talks
def test_ctrl_c_interrupts_the_turn_and_is_130(s):
    server = s.server()
    client = s.unified(session="shared", complete=False)
    client.turn("say: before")
    run = Piped(s.t, server, "--session", "shared", "stream: 100000 10 20")
    client.until("assistant_message")
    run.process.send_signal(signal.SIGINT)
    code, _, _ = run.end()
    eq(code, 130, "exit status")
    frames = client.until_end()
    eq([frame["code"] for frame in of(frames, "turn_failed")], ["interrupted"], "its end")


@talks
def test_a_busy_session_is_waited_for(s):
    server = s.server()
    client = s.unified(session="busy")
    request = client.asked("run: until test -e go; do sleep 0.1; done\nsay: other")
    client.decide(request, "allow")
    client.until("approval_settled")
    run = Piped(s.t, server, "--session", "busy", "say: mine")
    client.until("message_queued")
    (s.t.work / "go").touch()
    code, out, err = run.end()
    eq((code, out), (0, "mine\n"))
    assert "waits for its turn" in err, err


@talks
def test_a_message_behind_what_is_asked_is_taken_back(s):
    server = s.server()
    client = s.unified(session="busy")
    request = client.asked("run: touch a\nsay: other")
    code, out, err = piped(s.t, server, "--session", "busy", "say: mine")
    eq((code, out), (3, ""))
    assert "waits for somebody's answer (Bash)" in err and "was not said" in err, err
    client.until("message_dropped")
    client.decide(request, "allow")
    client.until_end()
    eq(files(s.t), ["a"], "what others are asked is not denied")


@talks
def test_a_waiting_message_that_is_taken_out_is_5(s):
    server = s.server()
    client = s.unified(session="busy")
    request = client.asked("run: until test -e go; do sleep 0.1; done")
    client.decide(request, "allow")
    client.until("approval_settled")
    run = Piped(s.t, server, "--session", "busy", "say: mine")
    queued = client.until("message_queued")[-1]
    client.send("cancel", target_id=queued["message_id"])
    code, out, _ = run.end()
    eq((code, out), (5, ""))
    (s.t.work / "go").touch()
    client.until_end()


def test_a_reader_that_has_enough_is_no_trouble(t):
    server = t.server()
    run = Piped(t, server, "--json", "stream: 3000 100 1")
    run.process.stdout.readline()
    run.process.stdout.close()
    err = run.process.stderr.read()
    eq(run.process.wait(60), 141, "exit status")
    assert "panicked" not in err and "error" not in err, err


def test_hostile_output_on_a_terminal_and_exact_output_in_a_pipe(t):
    server = t.server()
    evil = "say: a\x1b[2J\x1b]0;pwned\x07b"
    eq(piped(t, server, evil)[1], "a\x1b[2J\x1b]0;pwned\x07b\n", "what scripts get is exact")
    (t.dir / "message").write_text(evil)
    terminal = Terminal(t, server, shell=True)
    terminal.say(f"{Piped.program(t)} chat < {t.dir}/message")
    terminal.shows("\na␛[2J␛]0;pwned␇b")
    (t.dir / "message").write_text("say: c\x9b2J\u202ed\x7f")
    terminal.say(f"{Piped.program(t)} chat --json < {t.dir}/message")
    terminal.has(r'"text":"c\u009b2J\u202ed\u007f')


@talks
def test_what_a_failed_attempt_wrote_is_no_answer(s):
    model = begin(s, "responses", MODEL_RETRIES=2)
    answer = {"blocks": [{"say": "Alpha bravo charlie."}]}
    model.script([{**answer, "cut_block": [0, 11]}, answer])
    code, out, err = piped(s.t, s.last, "go")
    eq((code, out), (0, "Alpha bravo charlie.\n"))
    assert "retrying" in err, err


def test_a_message_that_is_too_long_is_not_sent(t):
    server = t.server(env={"MAX_MESSAGE_BYTES": 4096})
    code, out, err = piped(t, server, stdin="say: " + "x" * 5000)
    eq((code, out), (2, ""))
    assert "MAX_MESSAGE_BYTES" in err and "4096" in err, err
    eq(sessions(server), [], "sessions")


def test_a_wait_for_input_is_told(t):
    server = t.server()
    run = Piped(t, server, "say: x", "-", stdin=subprocess.PIPE)
    told = run.process.stderr.readline()
    assert "standard input" in told, told
    run.process.stdin.close()
    eq(run.rest()[:2], (0, "x\n"))


def test_words_leave_standard_input_to_others(t):
    server = t.server()
    run = Piped(t, server, "say: x", stdin=subprocess.PIPE)
    # Its input stays open, and is not waited for.
    eq(run.process.wait(60), 0, "exit status")
    eq(run.process.stdout.read(), "x\n", "the answer")
    loop = 'while read -r word; do "$0" chat "say: $word"; done'
    done = subprocess.run(["sh", "-c", loop, Piped.program(t)], input="one\ntwo\nthree\n",
                          env=environment(t, server), cwd=t.start, capture_output=True, text=True,
                          timeout=60)
    eq(done.stdout, "one\ntwo\nthree\n", "every line of the loop")


def test_the_help_says_how_it_ends(t):
    shown = t.program("chat", "--help")
    eq(shown.returncode, 0, "exit code")
    for words in ("Exit status: 0 done", "POLYLOOP_TOKEN", "POLYLOOP_URL", "--session <ID>",
                  "--json"):
        assert words in shown.stdout, shown.stdout


def certificate(directory):
    """A certificate for 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name)
            .public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1)).add_extension(address, False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .sign(key, hashes.SHA256()))
    files = directory / "cert.pem", directory / "key.pem"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()))
    return files


def test_https_is_spoken_and_certificates_are_checked(t):
    server = t.server()
    cert, key = certificate(t.dir)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    front = socket.create_server(("127.0.0.1", 0))
    t.closing.append(front.close)
    threading.Thread(target=forward, args=(front, context, server), daemon=True).start()
    url = f"https://127.0.0.1:{front.getsockname()[1]}"
    code, out, err = piped(t, None, "--url", url, "say: x", env={"SSL_CERT_FILE": cert})
    eq((code, out), (0, "x\n"), f"status and answer; {err}")
    code, _, err = piped(t, None, "--url", url, "say: x")
    eq(code, 4, "exit status with a certificate that nobody vouches for")
    assert "certificate" in err, err


def forward(front, context, server):
    """What comes over TLS goes on to the server, and back."""
    while True:
        try:
            stream, _ = front.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(stream, context, server), daemon=True).start()


def serve(stream, context, server):
    try:
        stream = context.wrap_socket(stream, server_side=True)
    except OSError:
        return
    back = server.socket()
    back.settimeout(None)

    def copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    other = threading.Thread(target=copy, args=(back, stream), daemon=True)
    other.start()
    copy(stream, back)
