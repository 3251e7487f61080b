// Approvals: what is shown, and every answer, by mouse and by key.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { eq, ok, until } from "./harness.mjs";

async function asked(s, script = "run: touch a\nsay: THE END") {
  const server = await s.server();
  const page = await s.page();
  await page.say(script);
  await page.sees(page.card);
  return { server, page, made: (name) => existsSync(join(server.work, name)) };
}

/** Keys of a card count only once it has stood there a moment. */
async function press(page, key, done) {
  await page.card.focus();
  await until(async () => {
    await page.raw.keyboard.press(key);
    return done();
  }, `the key ${key} does something`);
}

export default {
  async "a request shows what, where, the risk and why"(s) {
    const { server, page } = await asked(s);
    await page.sees(page.card.getByRole("heading", { name: "Allow Bash?" }));
    for (const words of [
      "touch a",
      server.work,
      "Medium risk",
      "not on the list",
      "“Always” covers",
    ]) {
      await page.hasText(page.card, words);
    }
    await page.hasText(page.tool("touch a"), "Waits for you");
    await page.hasText(page.row(/touch a/), "1");
    ok((await page.raw.title()).startsWith("(1)"), "the window's title counts what waits");
  },

  async "what is dangerous is said to be"(s) {
    const { page } = await asked(s, "run: sudo rm -rf /etc\nsay: THE END");
    await page.hasText(page.card, "High risk");
    await page.button("Stop", page.card).click();
    await page.idle();
  },

  async "allow once"(s) {
    const { page, made } = await asked(s, "run: touch a\nrun: touch b\nsay: THE END");
    await page.button("Allow once").click();
    await page.hasText(page.card, "touch b");
    ok(made("a") && !made("b"), "only the first ran");
    await page.hasText(page.tool("touch a"), "Allowed");
    await page.button("Allow once").click();
    await page.sees(page.agent("THE END"));
    ok(made("b"), "the second ran");
    await page.region("Waiting for you").waitFor({ state: "hidden" });
  },

  async "always covers what it says it covers"(s) {
    const { page, made } = await asked(s, "run: touch a\nrun: touch b\nrun: mkdir c\nsay: THE END");
    await page.hasText(page.card, "`touch` with any other words".replaceAll("`", ""));
    await page.button("Always").click();
    await page.hasText(page.card, "mkdir c");
    ok(made("a") && made("b") && !made("c"), "touch is not asked about again, mkdir is");
    await page.button("Deny…").click();
    await page.button("Deny", page.card).click();
    await page.sees(page.agent("THE END"));
  },

  async "deny with a reason, which the agent is told"(s) {
    const { server, page, made } = await asked(s);
    await page.button("Deny…").click();
    await page.raw.getByLabel(/Reason for denying/).fill("use mkdir, please");
    await page.button("Deny", page.card).click();
    await page.sees(page.agent("THE END"));
    ok(!made("a"), "it did not run");
    const log = JSON.stringify(await server.ask("GET", `/sessions/${await page.session()}`));
    ok(log.includes("use mkdir, please"), "the reason is in the log");
    await page.hasText(page.tool("touch a"), "use mkdir, please");
  },

  async "stop ends the turn"(s) {
    const { page, made } = await asked(s);
    await page.button("Stop", page.card).click();
    await page.idle();
    ok(!made("a"), "it did not run");
    eq(await page.agent("THE END").count(), 0, "and the agent did not go on");
  },

  async "explain, and it is asked again"(s) {
    const { page, made } = await asked(s);
    await page.button("Explain").click();
    await page.sees(page.conversation.locator(".agent-message"));
    await page.hasText(page.card, "It was explained");
    await page.button("Allow once").click();
    await page.sees(page.agent("THE END"));
    ok(made("a"), "then it ran");
  },

  async "each answer has a key"(s) {
    const { page, made } = await asked(s, "run: touch a\nrun: mkdir b\nrun: mkdir c\nsay: THE END");
    await press(page, "y", () => made("a"));
    await page.hasText(page.card, "mkdir b");
    await press(page, "n", () => page.raw.getByLabel(/Reason for denying/).isVisible());
    await page.raw.keyboard.type("no folders");
    await page.raw.keyboard.press("Enter");
    await page.hasText(page.card, "mkdir c");
    await press(
      page,
      "e",
      async () => (await page.conversation.locator(".agent-message").count()) > 0,
    );
    await page.hasText(page.card, "It was explained");
    await press(page, "s", () => page.stop.isHidden());
    ok(!made("b") && !made("c"), "neither folder was made");
  },

  async "always by its key"(s) {
    const { page, made } = await asked(s, "run: touch a\nrun: touch b\nsay: THE END");
    await press(page, "a", () => made("b"));
    await page.sees(page.agent("THE END"));
  },

  async "an edit is asked about as a diff"(s) {
    const { server, page } = await asked(
      s,
      'tool: write_file {"path":"a.txt","content":"one\\ntwo\\n"}\nsay: THE END',
    );
    await page.sees(page.card.locator(".diff-row.added", { hasText: "two" }));
    await page.hasText(page.card, "a.txt");
    await page.button("Allow once").click();
    await page.sees(page.agent("THE END"));
    ok(existsSync(join(server.work, "a.txt")), "it was written");
  },

  async "an edit is asked about with every line, and every line whole"(s) {
    const long = `${"x".repeat(5_000)}THE VERY END`;
    const patch = `*** Begin Patch\n*** Add File: a.sql\n+-- kept\n+++ counted\n+${long}\n*** End Patch`;
    const { page } = await asked(s, `tool: apply_patch ${JSON.stringify({ patch })}\nsay: THE END`);
    const rows = page.card.locator(".diff-row.added code");
    await page.count(rows, 3, "added lines");
    eq(await rows.allTextContents(), ["-- kept", "++ counted", long], "the lines");
    ok(
      await rows.last().evaluate((node) => node.getBoundingClientRect().right <= innerWidth),
      "a long line is wrapped",
    );
    eq(
      await page.card.getByText("Begin Patch").count(),
      0,
      "what was understood is not shown twice",
    );
  },

  async "a request is there again after a reload and after a restart"(s) {
    s.expect(/ERR_CONNECTION_REFUSED|WebSocket connection|Failed to load resource/);
    const { server, page, made } = await asked(s);
    await page.raw.reload();
    await page.hasText(page.card, "touch a");
    await server.kill();
    await server.again();
    await page.hasText(page.card, "touch a");
    await until(async () => {
      await page
        .button("Allow once")
        .click({ timeout: 500 })
        .catch(() => {});
      return made("a");
    }, "it can be allowed after the restart");
    await page.sees(page.agent("THE END"));
  },
};
