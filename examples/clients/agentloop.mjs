// One turn in AgentLoop: node agentloop.mjs [--yes] [--url URL] [--session ID] MESSAGE
import { on, once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import WebSocket from "ws";

const options = { url: { type: "string" }, session: { type: "string" }, yes: { type: "boolean" } };
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const { url = "ws://127.0.0.1:8080", session = crypto.randomUUID(), yes } = values;
const headers = { Authorization: `Bearer ${process.env.POLYLOOP_TOKEN}` };
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const show = (text) => process.stdout.write(text);

async function person(prompt, otherwise) {
  show(`${prompt} `);
  return (await lines.next()).value?.trim() || otherwise;
}

function send(type, payload) {
  socket.send(JSON.stringify({ id: crypto.randomUUID(), type, payload }));
}

let last;
function showItem({ type, id, content, name = "shell", arguments: call, action, output }) {
  if (last && last !== id) show("\n"); // The pieces of one message share its id.
  last = type === "message" ? id : null;
  if (type === "message") show(content[0].text);
  else if (output) show(`${JSON.parse(output).output.trimEnd()}\n`);
  else show(`[${name}] ${call ?? JSON.stringify(action)}\n`);
}

async function turn(frames) {
  const say = (text) => send("user_input", { input: [{ type: "input_text", text }] });
  let running, failed = say(positionals.join(" "));
  for await (const [frame] of frames) {
    const { type, id, cursor, payload } = JSON.parse(frame);
    if (type === "loading_state") running = payload.loading;
    if (type === "error") failed = `${payload.message}: ${payload.details.error}`;
    if (type === "response_item") {
      showItem(payload);
      // A question is all of its entry; of a plan's there is more to come: the request.
      if (payload.id.startsWith("ask_") && !cursor) last = say(await person("\n>", "no answer"));
    } else if (type === "approval_request") {
      const prompt = `\n${JSON.stringify(payload.command)} allow? [y/N]`;
      const review = yes || /^y/i.test(await person(prompt, "n")) ? "yes" : "no-continue";
      last = send("approval_response", { review, requestId: id }) ?? (yes && last);
    }
    if (type === "agent_finished" || (failed && !running)) return failed ?? void show("\n");
  }
  return "the connection ended before the turn did";
}

const socket = new WebSocket(`${url}/agentloop/${session}`, { headers });
const frames = on(socket, "message", { close: ["close"] });
const why = await once(socket, "open").then(() => turn(frames)).catch(String);
if (why) console.error(why);
process.exitCode = why ? 1 : 0;
process.stdin.destroy();
socket.close();
