// What a new session offers to try: each does what it says.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eq, ok, until } from "./harness.mjs";

async function tried(s, title) {
  await s.server();
  const page = await s.page();
  await page.button(title).click();
  await page.session();
  return page;
}

/** Allows everything that is asked, until there is nothing more. */
async function allowAll(page, done) {
  await until(async () => {
    const allow = page.button("Allow once");
    if (await allow.isVisible()) await allow.click({ timeout: 1000 }).catch(() => {});
    return done();
  }, "it goes on when it is allowed");
}

const CHECKS = {
  async "Text with code"(s, page) {
    await page.sees(page.conversation.locator("pre code"));
    await page.sees(page.conversation.getByRole("cell").first());
  },
  async "Run a command"(s, page) {
    await allowAll(page, async () =>
      (
        await page
          .tool("line")
          .locator("pre.output")
          .textContent()
          .catch(() => "")
      ).includes("line 5"),
    );
  },
  async "Ask for approval"(s, page) {
    await page.hasText(page.card, "touch hello.txt");
    await page.button("Allow once").click();
    await page.hasText(page.tool("hello.txt").locator("pre.output"), "hello.txt");
    ok(existsSync(join(s.last.work, "hello.txt")), "the file is there");
  },
  async "Edit a file"(s, page) {
    const file = join(s.last.work, "greet.sh");
    await allowAll(
      page,
      async () => existsSync(file) && readFileSync(file, "utf8").includes("stars you"),
    );
    await page.sees(page.conversation.locator(".diff-row.removed").first());
  },
  async "Answer a question"(s, page) {
    await page.card.getByRole("radio", { name: "green" }).check();
    await page.card.getByRole("button", { name: "Answer", exact: true }).click();
    await page.sees(page.agent("Thank you"));
  },
  async "Approve a plan"(s, page) {
    await page.sees(page.card.getByRole("heading", { name: "What I would do" }));
    await page.button("Approve", page.card).click();
    await page.sees(page.agent("The plan is agreed"));
  },
  async "Keep a to-do list"(s, page) {
    await page.hasText(page.region("To-do list"), "Write the new part");
  },
  async "See it think"(s, page) {
    await page.sees(page.agent("42"));
    await page.conversation.locator("details.reasoning summary").click();
    await page.sees(
      page.conversation.locator("details.reasoning").getByText(/shortest true answer/),
    );
  },
  async "Several calls at once"(s, page) {
    await until(
      async () => (await page.conversation.locator("details.tool").count()) >= 3,
      "three cards",
    );
  },
  async "Search over thoughts"(s, page) {
    await page.sees(page.conversation.locator("details.reasoning").first());
    await page.sees(page.conversation.locator(".agent-message").last());
    await page.idle();
    eq((await s.last.ask("GET", `/sessions/${await page.session()}`)).agent, "tot", "the agent");
  },
  async "A graph of sub-tasks"(s, page) {
    await page.sees(page.conversation.locator(".agent-message").last());
    await page.idle();
    eq((await s.last.ask("GET", `/sessions/${await page.session()}`)).agent, "got", "the agent");
  },
  async "A failing model"(s, page) {
    await page.hasText(page.conversation.locator(".failure"), "429");
  },
  async "A long answer to stop"(s, page) {
    await page.running();
    await page.raw.keyboard.press("Escape");
    await page.button("Resume").click();
    await page.running();
    await page.stop.click();
    await page.idle();
  },
  async "Fill the window"(s, page) {
    const meter = page.head.locator("button.meter");
    await until(async () => (await meter.getAttribute("data-level")) === "high", "the meter warns");
  },
  async "Hostile text"(s, page) {
    await page.hasText(page.conversation, "<script>");
    eq(await page.conversation.locator("script, img").count(), 0, "elements of it");
  },
};

const tests = Object.fromEntries(
  Object.entries(CHECKS).map(([title, check]) => [
    title,
    async (s) => {
      const page = await tried(s, title);
      await check(s, page);
    },
  ]),
);

export default {
  ...tests,
  async "the demo's address opens with them"(s) {
    await s.server({ command: "demo" });
    const page = await s.page();
    await page.sees(page.raw.getByText(/This is the offline model/));
    await page.button("Text with code").click();
    await page.sees(page.conversation.locator("pre code"));
    eq((await s.last.ask("GET", "/about")).keeps_sessions, true, "the demo keeps its sessions");
  },

  async "all that are offered are tried here"(s) {
    await s.server();
    const page = await s.page();
    const titles = page.raw.locator("button.suggestion .suggestion-title");
    await page.sees(titles.first());
    eq((await titles.allTextContents()).sort(), Object.keys(CHECKS).sort(), "suggestions");
  },
};
