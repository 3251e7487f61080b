// node dialects.mjs URL DIALECT TEXT [WAY]: one turn in a dialect, as a client of it would be
// written in JavaScript. What needs approval is approved. WAY says how the dialect is chosen:
// "subprotocol" (default), "query", "path" or "first" (by the first message alone).

import { WebSocket, report } from "./client.mjs";

const WAIT_MS = 30_000;
const [base, dialect, text, way = "subprotocol"] = process.argv.slice(2);
const SESSION = "node";

const ADDRESSES = {
  subprotocol: [`${base}/`, [`other.v9`, `${dialect}.v1`]],
  query: [`${base}/ws?protocol=${dialect}`, []],
  path: [`${base}/${dialect}`, []],
  first: [`${base}/`, []],
};

/** How each dialect says something, is asked, answers, and tells that it is done. */
const CLIENTS = {
  agentloop: {
    say: (text) => ({
      id: crypto.randomUUID(),
      type: "user_input",
      payload: {
        input: [{ type: "message", role: "user", content: [{ type: "input_text", text }] }],
      },
    }),
    asked: (m) => m.type === "approval_request" && m.payload.command,
    answer: (m) => ({
      id: crypto.randomUUID(),
      type: "approval_response",
      payload: { review: "yes", requestId: m.id },
    }),
    piece: (m) =>
      m.type === "response_item" && m.payload.role === "assistant"
        ? m.payload.content.map((part) => part.text).join("")
        : "",
    done: (m) => m.type === "agent_finished",
  },
  unified: {
    say: (content) => ({ type: "user_message", id: "msg-1", session_id: SESSION, content }),
    asked: (m) => m.type === "control_request" && m.input,
    answer: (m) => ({
      type: "permission_response",
      id: "msg-2",
      session_id: m.session_id,
      request_id: m.request_id,
      decision: "allow",
    }),
    piece: (m) => (m.type === "assistant_message" ? m.text : ""),
    done: (m) => m.type === "turn_completed",
  },
  loom: {
    say: (message) => ({
      type: "run", id: "1", message, agent: "react", thread_id: SESSION, approvals: true,
    }),
    asked: (m) => m.event?.type === "tool_approval" && m.event.arguments,
    answer: (m) => ({
      type: "tool_approval_response",
      id: "2",
      run_id: m.id,
      call_id: m.event.call_id,
      approved: true,
    }),
    piece: (m) => (m.event?.type === "message_chunk" ? m.event.content : ""),
    done: (m) => m.type === "run_end",
  },
  chat: {
    say: (message) => ({ type: "chat", message, session_id: SESSION }),
    asked: () => false,
    piece: (m) => (m.type === "agent_message" ? m.message : ""),
    done: (m) => m.type === "agent_message",
  },
};

const client = CLIENTS[dialect];
const [address, subprotocols] = ADDRESSES[way];
const socket = new WebSocket(address, subprotocols);
const result = { types: [], asked: [], text: "", messages: [] };
const late = setTimeout(() => {
  process.stderr.write(`not in time; came: ${result.types}\n`);
  process.exit(1);
}, WAIT_MS);

const send = (message) => {
  result.messages.push({ in: message });
  socket.send(JSON.stringify(message));
};

socket.on("open", () => {
  result.protocol = socket.protocol;
  send(client.say(text));
});
socket.on("message", (data, isBinary) => {
  const message = JSON.parse(data.toString());
  result.messages.push({ out: message });
  result.types.push(isBinary ? "binary" : message.type);
  result.text += client.piece(message);
  const asked = client.asked(message);
  if (asked) {
    result.asked.push(asked);
    send(client.answer(message));
  }
  if (client.done(message)) {
    result.done = true;
    socket.close(1000);
  }
});
socket.on("error", (error) => {
  process.stderr.write(`${error}\n`);
  process.exit(1);
});
socket.on("close", (code) => {
  clearTimeout(late);
  report({ ...result, code });
});
