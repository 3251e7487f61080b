// A conversation in the agent chat: node chat.mjs [--url URL] [--session ID] [MESSAGE]
//
// Each line that is typed is said next, so questions and plans are answered by typing; the end of
// the input ends it. Chat clients cannot approve: leave is given in another client of the session.
import { on, once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import WebSocket from "ws";

const options = { url: { type: "string" }, session: { type: "string" } };
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const { url = "ws://127.0.0.1:8080", session = crypto.randomUUID() } = values;
const headers = { Authorization: `Bearer ${process.env.POLYLOOP_TOKEN}` };
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** What the person says, one message after the other. */
async function* messages() {
  if (positionals.length) yield positionals.join(" ");
  for (;;) {
    process.stdout.write("> ");
    const { value: line, done } = await lines.next();
    if (done) return;
    if (line.trim()) yield line;
  }
}

/** Shows what happens up to the answer; what went wrong, if something did. */
async function answered(frames) {
  for (let next; !(next = await frames.next()).done; ) {
    const { type, session_id = session, ...event } = JSON.parse(next.value[0]);
    // The room hears of other sessions too; an error of ours may have none.
    if (session_id !== session) continue;
    if (type === "agent_thinking") console.log(`(${event.reasoning})`);
    if (type === "tool_call") console.log(`[${event.tool_name}] ${event.tool_args}`);
    if (type === "tool_result") console.log(event.result);
    if (type === "agent_message") return void console.log(event.message);
    if (type === "error") return event.error;
  }
  return "the connection ended before the answer came";
}

async function talk(socket, frames) {
  await once(socket, "open");
  let wrong;
  for await (const message of messages()) {
    socket.send(JSON.stringify({ type: "chat", message, session_id: session }));
    wrong = await answered(frames);
    if (wrong) console.error(wrong);
  }
  return wrong ? 1 : 0;
}

const socket = new WebSocket(`${url}/chat`, { headers });
const talked = talk(socket, on(socket, "message", { close: ["close"] }));
process.exitCode = await talked.catch((error) => console.error(`${url}: ${error.message}`) ?? 1);
process.stdin.destroy();
socket.close();
