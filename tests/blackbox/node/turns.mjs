// node turns.mjs URL TASK: plays the task's turns, answers approvals with its reviews in order,
// and reports what a user would have seen.

import { Connection, Screen, report } from "./client.mjs";

const [url, task] = process.argv.slice(2);
const { turns, reviews = [] } = JSON.parse(task);
const connection = await Connection.open(url);
const screen = new Screen();
const result = { order: screen.order, commands: [], loading: [], errors: [], responseIds: [] };

async function turn(text) {
  connection.say(text);
  let failed = false;
  for (;;) {
    const { type, payload, id } = await connection.next();
    if (type === "response_item") {
      screen.item(payload);
    } else if (type === "loading_state") {
      result.loading.push(payload.loading);
      if (!payload.loading && failed) return;
    } else if (type === "approval_request") {
      screen.pendingApproval = true;
      screen.order.push("approval_request");
      result.commands.push(payload.command);
      const review = reviews.shift();
      connection.send("approval_response", { ...review, ...(review.named && { requestId: id }) });
      screen.decided();
    } else if (type === "agent_finished") {
      result.responseIds.push(payload.responseId);
      return;
    } else if (type === "error") {
      failed = true;
      result.errors.push(payload.message);
    }
  }
}

for (const text of turns) {
  await turn(text);
  screen.finish();
}
const messages = Object.fromEntries(screen.messages.map(({ id, text }) => [id, text]));
report({ ...result, shown: screen.shown, messages });
