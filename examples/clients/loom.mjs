// One run in Loom: node loom.mjs [--yes] [--url URL] [--session ID] [--agent KIND] MESSAGE
import { on, once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import WebSocket from "ws";

const text = { type: "string" };
const options = { url: text, session: text, agent: text, yes: { type: "boolean" } };
const { values, positionals } = parseArgs({ options, allowPositionals: true });
// The session is the run's thread, which remembers; a run without one does not.
const { url = "ws://127.0.0.1:8080", session, agent = "react", yes } = values;
const headers = { Authorization: `Bearer ${process.env.POLYLOOP_TOKEN}` };
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const show = (text) => process.stdout.write(text);

async function person(prompt, otherwise) {
  show(`${prompt} `);
  return (await lines.next()).value?.trim() || otherwise;
}

/** Whether a call may run, and what is said to it: questions and plans are calls too. */
async function answer(name, { questions = [] }) {
  if (name === "ask_user") {
    for (const { question, options } of questions)
      show([question, ...options.map(({ label }) => label)].join("\n- ") + "\n");
    return { approved: true, message: await person(">", "no answer") };
  }
  const said = yes ? "y" : await person("Allow this? [y/n/why not]", "n");
  return { approved: said === "y", message: ["y", "n"].includes(said) ? null : said };
}

async function run(send, frames) {
  // Without "approvals" nobody is asked, and what needs leave is denied.
  const message = positionals.join(" ");
  send({ type: "run", message, agent, approvals: true, thread_id: session });
  for await (const [data] of frames) {
    const frame = JSON.parse(data);
    const { type, content, name, call_id, ...event } = frame.event ?? frame;
    if (type === "message_chunk" || type === "tool_output") show(content);
    if (type === "tool_call") show(`\n[${name}] ${JSON.stringify(event.arguments)}\n`);
    if (type === "tool_end" && event.is_error) show(`[failed] ${event.result}\n`);
    if (type === "tool_approval") {
      const said = await answer(name, event.arguments);
      send({ type: "tool_approval_response", run_id: frame.id, call_id, ...said });
    }
    if (type === "error") return event.error;
    if (type === "run_end") return void show("\n");
  }
  return "the connection ended before the run did";
}

const socket = new WebSocket(`${url}/loom`, { headers });
const frames = on(socket, "message", { close: ["close"] });
const send = (message) => socket.send(JSON.stringify({ id: crypto.randomUUID(), ...message }));
const why = await once(socket, "open").then(() => run(send, frames)).catch(String);
if (why) console.error(why);
process.exitCode = why ? 1 : 0;
process.stdin.destroy();
socket.close();
