// One turn in the unified dialect: node unified.mjs [--yes] [--url URL] [--session ID] MESSAGE
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

async function choose({ question, options, multiSelect }) {
  const listed = options.map(({ label }, at) => `${at + 1}. ${label}\n`);
  const said = await person(`${question}\n${listed.join("")}>`, "no answer");
  return said.split(multiSelect ? /\s*,\s*/ : /$/).map((one) => options[one - 1]?.label ?? one);
}

async function turn(send, frames, mine = crypto.randomUUID()) {
  send({ type: "user_message", id: mine, content: positionals.join(" ") });
  let running = false;
  for await (const [frame] of frames) {
    const { type, request_id, ...event } = JSON.parse(frame);
    running ||= type === "turn_started" && event.client_ref === mine; // or another client's
    if (!running) if (type === "error") return event.message; else continue;
    if (type === "assistant_message") show(event.text + (event.is_final ? "\n" : ""));
    if (type === "tool_started") show(`[${event.tool_name}] ${JSON.stringify(event.arguments)}\n`);
    if (type === "command_output") show(event.output);
    if (type === "tool_completed" && event.error) show(`[failed] ${event.error}\n`);
    if (type === "control_request") {
      const allowed = yes || (await person("Allow this? [y/N]", "n")).toLowerCase() === "y";
      send({ type: "permission_response", request_id, decision: allowed ? "allow" : "deny" });
    } else if (type === "ask_user_question") {
      const answers = event.questions.map((_, question_index) => ({ question_index }));
      for (const [at, one] of event.questions.entries()) answers[at].selected = await choose(one);
      send({ type: "user_question_response", request_id, answers });
    } else if (type === "exit_plan_mode") {
      const said = yes ? "y" : await person(`${event.plan}\nGo ahead? [y/why not]`, "no");
      const not = said === "y" ? {} : { approved: false, feedback: said };
      send({ type: "plan_approval_response", request_id, approved: true, ...not });
    }
    if (type === "turn_completed" || type === "turn_failed") return event.error;
  }
  return "the connection ended before the turn did";
}

const socket = new WebSocket(`${url}/unified`, { headers });
const frames = on(socket, "message", { close: ["close"] });
const send = (message) => socket.send(JSON.stringify({ session_id: session, ...message }));
const why = await once(socket, "open").then(() => turn(send, frames)).catch(String);
process.exitCode = why ? (console.error(why), 1) : 0;
process.stdin.destroy();
socket.close();
