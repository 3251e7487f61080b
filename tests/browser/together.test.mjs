// Several clients in one session: each follows what the others do.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { eq, ok, options, until } from "./harness.mjs";
import { Client } from "./client.mjs";

async function named(page, name) {
  await page.button("Settings").click();
  await page.raw.getByLabel("Your name").fill(name);
  await page.raw.getByLabel("Your name").press("Tab");
  await page.button("Done").click();
}

async function two(s) {
  await s.server();
  const [ann, bob] = [await s.page(), await s.page()];
  await named(ann, "Ann");
  await named(bob, "Bob");
  await ann.turn("say: x", "BEGUN");
  await bob.raw.goto(`${s.last.origin}/#s=${await ann.session()}`);
  await bob.sees(bob.agent("BEGUN"));
  return { ann, bob };
}

export default {
  async "what waits is allowed on one page, and the other follows"(s) {
    const { ann, bob } = await two(s);
    await ann.say("run: touch a\nsay: THE END");
    await bob.hasText(bob.card, "touch a");
    await bob.button("Allow once").click();
    for (const page of [ann, bob]) {
      await page.sees(page.agent("THE END"));
      await page.region("Waiting for you").waitFor({ state: "hidden" });
      await page.hasText(page.tool("touch a"), "Allowed by Bob");
    }
    await ann.sees(ann.toasts.getByText("Allowed by Bob"));
    ok(existsSync(join(s.last.work, "a")), "it ran");
  },

  async "both see the same text while it streams"(s) {
    const { ann, bob } = await two(s);
    await bob.say("stream: 150 20 10");
    await ann.running();
    await ann.idle();
    await bob.idle();
    eq(await ann.copied(), await bob.copied(), "the same text");
    await ann.hasText(ann.user("stream: 150"), "Bob");
  },

  async "a question and the queue are everybody's"(s) {
    const { ann, bob } = await two(s);
    await ann.say("ask: Which? | red | green\nsay: THE END");
    await bob.sees(bob.card);
    await ann.say("say: of Ann");
    await bob.hasText(bob.region("Messages that wait"), "of Ann");
    await bob.button("Take out: say: of Ann").click();
    await ann.region("Messages that wait").waitFor({ state: "hidden" });
    await bob.card.getByRole("radio", { name: "red" }).check();
    await bob.card.getByRole("button", { name: "Answer", exact: true }).click();
    await ann.sees(ann.agent("THE END"));
    await ann.hasText(ann.conversation, "Answered by Bob");
  },

  async "a title, a mode and to-dos change on both"(s) {
    const { ann, bob } = await two(s);
    await ann.menu("Rename");
    await ann.raw.getByRole("textbox", { name: "Title" }).fill("Ours");
    await ann.raw.getByRole("textbox", { name: "Title" }).press("Enter");
    await bob.sees(bob.raw.getByRole("heading", { name: "Ours" }));
    await ann.chooseFrom("Permission mode", "acceptEdits");
    const mode = bob.raw.getByLabel("Permission mode", { exact: true });
    await until(
      async () => (await mode.inputValue()) === "acceptEdits",
      "the mode on the other page",
    );
    const todos = {
      todos: [{ id: "1", content: "Ours to do", status: "pending", priority: "low" }],
    };
    await ann.turn(`tool: todo_write ${JSON.stringify(todos)}`);
    await bob.hasText(bob.region("To-do list"), "Ours to do");
  },

  async "a client of another dialect is in the same conversation"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x", "BEGUN");
    const WebSocket = options.need("ws");
    const url = `${s.last.origin.replace("http", "ws")}/agentloop/${await page.session()}?name=Loop`;
    const other = new WebSocket(url);
    s.closing.push(() => other.terminate());
    const heard = [];
    other.on("message", (data) => heard.push(JSON.parse(data)));
    await new Promise((opened) => other.once("open", opened));
    const input = [{ type: "input_text", text: "run: touch b\nsay: by agentloop" }];
    other.send(JSON.stringify({ id: "1", type: "user_input", payload: { input } }));
    await page.hasText(page.card, "touch b");
    await page.button("Allow once").click();
    await page.sees(page.agent("by agentloop"));
    await until(() => heard.some((message) => message.type === "agent_finished"), "its turn ends");
  },

  async "an answer that comes second is refused, and told"(s) {
    const { ann } = await two(s);
    await ann.say("run: touch a\nsay: THE END");
    await ann.sees(ann.card);
    const other = await Client.attach(s, await ann.session(), { name: "Eve" });
    const { request_id } = await other.next("control_request");
    other.send("permission_response", { request_id, decision: "deny" });
    await ann.region("Waiting for you").waitFor({ state: "hidden" });
    await ann.hasText(ann.tool("touch a"), "Denied by Eve");
    other.send("permission_response", { request_id, decision: "allow" });
    await other.next("error");
    ok(!existsSync(join(s.last.work, "a")), "the first answer counts");
  },
};
