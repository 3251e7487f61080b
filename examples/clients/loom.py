"""One run in Loom: python loom.py [--yes] [--url URL] [--session ID] [--agent KIND] MESSAGE"""
import argparse, json, os, sys

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

words = argparse.ArgumentParser()
words.add_argument("--url", default="ws://127.0.0.1:8080")
words.add_argument("--session", help="a thread, which remembers; without one the run does not")
words.add_argument("--agent", default="react", choices=["react", "dup", "tot", "got"])
words.add_argument("--yes", action="store_true", help="allow all that is asked")
words.add_argument("message")
words = words.parse_args()
token = {"Authorization": f"Bearer {os.environ.get('POLYLOOP_TOKEN')}"}

def person(prompt, otherwise):
    print(prompt, end=" ", flush=True)
    return sys.stdin.readline().strip() or otherwise

def answer(name, arguments):
    """Whether a call may run, and what is said to it: questions and plans are calls too."""
    if name == "ask_user":
        for question in arguments["questions"]:
            labels = [option["label"] for option in question["options"]]
            print(question["question"], *labels, sep="\n- ")
        return True, person(">", "no answer")
    said = "y" if words.yes else person("Allow this? [y/n/why not]", "n")
    return said == "y", None if said in ("y", "n") else said

def run(send, frames):
    # Without "approvals" nobody is asked, and what needs leave is denied.
    thread = {"thread_id": words.session} if words.session else {}
    send(type="run", message=words.message, agent=words.agent, approvals=True, **thread)
    for frame in frames:
        event = frame.get("event", {})
        match event.get("type", frame["type"]):
            case "message_chunk": print(event["content"], end="", flush=True)
            case "tool_call": print(f"\n[{event['name']}] {json.dumps(event['arguments'])}")
            case "tool_output": print(event["content"], end="", flush=True)
            case "tool_end" if event["is_error"]: print(f"[failed] {event['result']}")
            case "tool_approval":
                approved, said = answer(event["name"], event["arguments"])
                send(type="tool_approval_response", run_id=frame["id"], call_id=event["call_id"],
                     approved=approved, message=said)
            case "error": return frame["error"]
            case "run_end": return print()
    return "the connection ended before the run did"

try:
    with connect(f"{words.url}/loom", additional_headers=token, max_size=None) as socket:
        send = lambda **message: socket.send(json.dumps({"id": os.urandom(8).hex(), **message}))
        sys.exit(run(send, map(json.loads, socket)))
except (OSError, WebSocketException) as error:
    sys.exit(f"{words.url}: {error}")
