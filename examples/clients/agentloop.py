"""One turn in AgentLoop: python agentloop.py [--yes] [--url URL] [--session ID] MESSAGE"""
import argparse, json, os, sys

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

words = argparse.ArgumentParser()
words.add_argument("--url", default="ws://127.0.0.1:8080")
words.add_argument("--session", default=os.urandom(16).hex())
words.add_argument("--yes", action="store_true", help="allow all that is asked")
words.add_argument("message")
words = words.parse_args()
token = {"Authorization": f"Bearer {os.environ.get('POLYLOOP_TOKEN')}"}

def person(prompt, otherwise):
    print(prompt, end=" ", flush=True)
    return sys.stdin.readline().strip() or otherwise

def send(kind, **payload):
    socket.send(json.dumps({"id": os.urandom(8).hex(), "type": kind, "payload": payload}))

def show(item, last):
    # The pieces of one message share its id, so another id begins another line.
    print("\n" * (last not in (None, item["id"])), end="")
    if item["type"] == "message":
        print(item["content"][0]["text"], end="", flush=True)
        return item["id"]
    call = f"[{item.get('name', 'shell')}] {item.get('arguments') or item.get('action')}"
    print(json.loads(item["output"])["output"].rstrip() if "output" in item else call)

def turn(messages):
    send("user_input", input=[{"type": "input_text", "text": words.message}])
    last = running = failed = None
    for message in messages:
        kind, payload = message["type"], message.get("payload")
        if kind == "loading_state":
            running = payload["loading"]
        elif kind == "response_item":
            last = show(payload, last)
            # A question is all of its entry; of a plan's there is more to come: the request.
            if payload["id"].startswith("ask_") and "cursor" not in message:
                said = {"type": "input_text", "text": person("\n>", "no answer")}
                last = send("user_input", input=[said])
        elif kind == "approval_request":
            yes = words.yes or person(f"\n{payload['command']} allow? [y/N]", "n").lower() == "y"
            review = "yes" if yes else "no-continue"
            last = send("approval_response", review=review, requestId=message["id"]) or words.yes and last
        elif kind == "error":
            failed = f"{payload['message']}: {payload['details']['error']}"
        if kind == "agent_finished" or failed and not running:
            return failed or print()
    return "the connection ended before the turn did"

try:
    url = f"{words.url}/agentloop/{words.session}"
    with connect(url, additional_headers=token, max_size=None) as socket:
        sys.exit(turn(map(json.loads, socket)))
except (OSError, WebSocketException) as error:
    sys.exit(f"{words.url}: {error}")
