"""One turn in the unified dialect: python unified.py [--yes] [--url URL] [--session ID] MESSAGE"""
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

def choose(question):
    labels = {str(at): option["label"] for at, option in enumerate(question["options"], 1)}
    listed = "".join(f"\n  {at}. {label}" for at, label in labels.items())
    said = person(f"{question['question']}{listed}\n>", "no answer")
    several = said.split(",") if question["multiSelect"] else [said]
    return [labels.get(one.strip(), one.strip()) for one in several]

def turn(send, events):
    send(type="user_message", id=(mine := os.urandom(8).hex()), content=words.message)
    running = False
    for event in events:
        waits = {"request_id": event.get("request_id")}
        if event["type"] == "turn_started": running = event.get("client_ref") == mine
        if not running and event["type"] != "error": continue  # another client's turn
        match event["type"]:
            case "assistant_message": print(event["text"], end="\n" * event["is_final"], flush=True)
            case "tool_started": print(f"[{event['tool_name']}] {json.dumps(event['arguments'])}")
            case "command_output": print(event["output"], end="", flush=True)
            case "tool_completed" if event["error"]: print(f"[failed] {event['error']}")
            case "control_request":
                yes = words.yes or person("Allow this? [y/N]", "n").lower() == "y"
                send(type="permission_response", **waits, decision="allow" if yes else "deny")
            case "ask_user_question":
                chosen = enumerate(map(choose, event["questions"]))
                answers = [{"question_index": at, "selected": labels} for at, labels in chosen]
                send(type="user_question_response", **waits, answers=answers)
            case "exit_plan_mode":
                said = words.yes and "y" or person(f"{event['plan']}\nGo ahead? [y/why not]", "no")
                why_not = {} if said == "y" else {"feedback": said}
                send(type="plan_approval_response", **waits, approved=not why_not, **why_not)
            case "turn_completed": return 0
            case "turn_failed": return event["error"]
            case "error" if not running: return event["message"]
    return "the connection ended before the turn did"

try:
    with connect(f"{words.url}/unified", additional_headers=token, max_size=None) as socket:
        send = lambda **message: socket.send(json.dumps({"session_id": words.session, **message}))
        sys.exit(turn(send, map(json.loads, socket)))
except (OSError, WebSocketException) as error:
    sys.exit(f"{words.url}: {error}")
