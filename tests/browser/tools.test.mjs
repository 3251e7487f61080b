// Tool calls as cards: live output, failures, diffs, undo, to-dos, agents that search.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eq, ok, until } from "./harness.mjs";

const TODOS = JSON.stringify({
  todos: [
    { id: "1", content: "Look around", status: "completed", priority: "high" },
    { id: "2", content: "Write it", status: "in_progress", priority: "high" },
    { id: "3", content: "Try it", status: "pending", priority: "low" },
  ],
});
const WRITE = 'tool: write_file {"path":"a.txt","content":"one\\ntwo\\nthree\\n"}';
const EDIT = 'tool: edit {"path":"a.txt","old_string":"two","new_string":"2"}';

/** Lets edits run unasked. */
async function editing(page) {
  await page.chooseFrom("Permission mode", "acceptEdits");
}

export default {
  async "output is shown while a command runs"(s) {
    const server = await s.server();
    const page = await s.page();
    // It goes on when the test says so: no clock decides what is seen.
    await page.say("run: echo begun; until [ -e go ]; do sleep 0.05; done; echo over\nsay: done");
    await page.button("Allow once").click();
    const card = page.tool("echo begun");
    await page.hasText(card.locator("pre.output"), "begun");
    ok(!(await card.locator("pre.output").textContent()).includes("over"), "not yet over");
    await page.hasText(card, "Running");
    writeFileSync(join(server.work, "go"), "");
    await page.hasText(card.locator("pre.output"), "over");
    await page.sees(page.agent("done"));
    await page.hasText(card, "Done");
  },

  async "a command that fails says so"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("run: ls no-such-file");
    const card = page.tool("no-such-file");
    await page.hasText(card, "Failed");
    await page.hasText(card, "No such file or directory");
  },

  async "edits are diffs, and can be undone"(s) {
    const server = await s.server();
    const page = await s.page();
    await editing(page);
    await page.turn(`${WRITE}\n${EDIT}`);
    const edit = page.tool("Edit").filter({ hasText: "a.txt" });
    await page.sees(edit.locator(".diff-row.removed", { hasText: "two" }));
    await page.sees(edit.locator(".diff-row.added", { hasText: "2" }));
    await page.sees(page.tool("Write").locator(".diff-row.added", { hasText: "three" }));
    eq(readFileSync(join(server.work, "a.txt"), "utf8"), "one\n2\nthree\n", "the file");
    await page.menu("Undo the newest edits");
    await page.button("Undo", page.dialog()).click();
    await until(() => !existsSync(join(server.work, "a.txt")), "both edits are taken back");
    await page.sees(page.toasts.getByText(/taken back/i));
  },

  async "several calls in one reply have a card each"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("run: echo aaa\n&run: echo bbb\n&run: echo ccc");
    for (const word of ["aaa", "bbb", "ccc"]) {
      await page.hasText(page.tool(`echo ${word}`), "Done");
    }
    await page.count(page.conversation.locator("details.tool"), 3, "cards");
  },

  async "the to-do list is shown, and follows"(s) {
    await s.server();
    const page = await s.page();
    await page.turn(`tool: todo_write ${TODOS}`);
    const todos = page.region("To-do list");
    await page.sees(todos);
    for (const word of ["Look around", "Write it", "Try it"]) await page.hasText(todos, word);
    await page.hasText(todos, "1 of 3");
    await page.raw.reload();
    await page.hasText(todos, "Try it");
    await page.turn(`tool: todo_write ${TODOS.replaceAll("pending", "completed")}`, "AGAIN");
    await page.hasText(todos, "2 of 3");
  },

  async "files that a call changed are told of"(s) {
    await s.server();
    const page = await s.page();
    await editing(page);
    await page.turn(
      'tool: write_file {"path":"b.txt","content":"x"}\ntool: delete_file {"path":"b.txt"}',
    );
    await page.hasText(page.tool("Delete"), "b.txt");
  },

  async "an agent that searches tells of its way, folded, and answers"(s) {
    await s.server();
    const page = await s.page();
    await page.chooseFrom("Agent", "tot");
    await page.say("Which is the best way to sort three cards?");
    await page.sees(page.conversation.locator("details.reasoning").first());
    await page.sees(page.conversation.locator(".agent-message").last());
    await page.idle();
    const { agent } = await s.last.ask("GET", `/sessions/${await page.session()}`);
    eq(agent, "tot", "the session's agent");
  },
};
