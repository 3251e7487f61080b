"""A conversation in the agent chat: python chat.py [--url URL] [--session ID] [MESSAGE]

Each line that is typed is said next, so questions and plans are answered by typing; the end of the
input ends it. Chat clients cannot approve: leave is given in another client of the session.
"""
import argparse, json, os, sys

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

words = argparse.ArgumentParser()
words.add_argument("--url", default="ws://127.0.0.1:8080")
words.add_argument("--session", default=os.urandom(16).hex())
words.add_argument("message", nargs="?")
words = words.parse_args()
token = {"Authorization": f"Bearer {os.environ.get('POLYLOOP_TOKEN')}"}

def messages():
    """What the person says, one message after the other."""
    if words.message:
        yield words.message
    while line := (print("> ", end="", flush=True), sys.stdin.readline())[1]:
        if line.strip():
            yield line

def answered(socket):
    """Shows what happens up to the answer; what went wrong, if something did."""
    for event in map(json.loads, socket):
        # The room hears of other sessions too; an error of ours may have none.
        if event.get("session_id", words.session) != words.session:
            continue
        match event["type"]:
            case "agent_thinking": print(f"({event['reasoning']})")
            case "tool_call": print(f"[{event['tool_name']}] {event['tool_args']}")
            case "tool_result": print(event["result"])
            case "agent_message": return print(event["message"])
            case "error":
                print(event["error"], file=sys.stderr)
                return 1
    return "the connection ended before the answer came"

try:
    with connect(f"{words.url}/chat", additional_headers=token, max_size=None) as socket:
        failed = None
        for message in messages():
            chat = {"type": "chat", "message": message, "session_id": words.session}
            socket.send(json.dumps(chat))
            failed = answered(socket)
        sys.exit(failed)
except (OSError, WebSocketException) as error:
    sys.exit(f"{words.url}: {error}")
