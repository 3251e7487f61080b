// Turns: stop and resume, messages that wait, failures, the meter, compaction, modes and agents.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eq, until } from "./harness.mjs";
import { Model } from "./model.mjs";

const LONG = "stream: 100000 10 20";
const meter = (page) => page.head.locator("button.meter");

export default {
  async "a turn is stopped and resumed"(s) {
    await s.server();
    const page = await s.page();
    await page.say(`${LONG}\nsay: THE END`);
    await page.sees(page.conversation.locator(".agent-message"));
    await page.stop.click();
    await page.idle();
    await page.hasText(page.conversation, "Interrupted");
    await page.button("Resume").click();
    await page.running();
    await page.button("Resume").waitFor({ state: "hidden" });
    await page.stop.click();
    await page.idle();
  },

  async "Escape stops a turn"(s) {
    await s.server();
    const page = await s.page();
    await page.say(LONG);
    await page.sees(page.conversation.locator(".agent-message"));
    await page.raw.keyboard.press("Escape");
    await page.idle();
    await page.hasText(page.conversation, "Interrupted");
  },

  async "messages wait in the queue, and can be taken out"(s) {
    await s.server();
    const page = await s.page();
    await page.say("run: touch a\nsay: FIRST");
    await page.sees(page.card);
    for (const word of ["one", "two", "three"]) await page.say(`say: ${word}`);
    const queue = page.region("Messages that wait");
    await page.count(queue.getByRole("listitem"), 3, "messages that wait");
    await page.raw.reload();
    await page.count(queue.getByRole("listitem"), 3, "messages that wait, after a reload");
    await page.button("Take out: say: two").click();
    await page.count(queue.getByRole("listitem"), 2, "messages that wait");
    await page.button("Allow once").click();
    await page.sees(page.agent("three"));
    await page.idle();
    const said = await page.conversation.locator(".agent-message").allTextContents();
    eq(
      said.map((text) => /FIRST|one|two|three/.exec(text)?.[0]),
      ["FIRST", "one", "three"],
      "answers",
    );
    await queue.waitFor({ state: "hidden" });
  },

  async "a failed turn says why and what to do"(s) {
    await s.server();
    const page = await s.page();
    await page.say("fail: 500");
    const failure = page.conversation.locator(".failure");
    await page.sees(failure);
    await page.hasText(failure, "500 Internal Server Error");
    await page.hasText(failure, "continue");
    await page.idle();
    await page.turn("say: better");
  },

  async "a retry is told of, what it replaces is struck, and what it cost is shown"(s) {
    const model = await Model.start(s);
    const server = await s.server();
    await server.kill();
    const table = join(s.place, "models.json");
    writeFileSync(table, JSON.stringify([{ match: "small", input_usd: 1000, output_usd: 1000 }]));
    await s.server({ env: { ...model.env, MODELS_FILE: table } });
    const page = await s.page();
    model.answers({ say: "begun, and cut", cut: true }, { say: "whole" });
    await page.say("go");
    await page.sees(page.conversation.locator('.line-item[data-code="retry"]').first());
    await page.sees(page.conversation.locator(".agent-message.is-struck", { hasText: "begun" }));
    await page.sees(page.agent("whole"));
    await page.idle();
    await page.hasText(meter(page), "$");
    await meter(page).click();
    await page.hasText(page.dialog(), "$");
  },

  async "the meter shows how full the window is, and warns"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x");
    await page.hasText(meter(page), "%");
    for (const [tokens, level] of [
      [104_000, "medium"],
      [117_000, "high"],
      [123_000, "critical"],
    ]) {
      await page.button("New session").first().click();
      await page.turn(`usage: ${tokens} 100`, level);
      await until(
        async () => (await meter(page).getAttribute("data-level")) === level,
        async () => `level ${level}: ${await meter(page).getAttribute("data-level")}`,
      );
    }
    await meter(page).click();
    const details = page.dialog();
    await page.sees(details);
    await page.hasText(details, "128,000");
    await page.hasText(details, "Instructions and tools");
  },

  async "a conversation is compacted when asked"(s) {
    await s.server();
    const page = await s.page();
    for (const word of ["one", "two", "three"]) await page.turn(`stream: 100 100 0`, word);
    await page.menu("Compact the context");
    await page.hasText(page.conversation, "made shorter");
    await page.idle();
    await page.turn("say: on we go", "still here");
  },

  async "the permission mode is chosen, and the server confirms it"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x");
    await page.chooseFrom("Permission mode", "dontAsk");
    await page.turn("run: touch a", "denied");
    await page.hasText(page.tool("touch a"), "Not run");
    await page.raw.reload();
    await page.sees(page.agent("denied"));
    const mode = page.raw.getByLabel("Permission mode", { exact: true });
    await until(async () => (await mode.inputValue()) === "dontAsk", "the mode after a reload");
    eq(await mode.locator('option[value="bypass"]').count(), 0, "no mode that the server refuses");
  },

  async "the agent and the model are chosen"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x");
    await page.chooseFrom("Agent", "dup");
    const id = await page.session();
    const told = async () => (await s.last.ask("GET", `/sessions/${id}`)).agent;
    await page.turn("say: understood", "with dup");
    eq(await told(), "dup", "the session's agent");
    eq(await page.raw.getByLabel("Model", { exact: true }).inputValue(), "offline", "the model");
  },

  async "a session works in the folder that was chosen"(s) {
    const server = await s.server();
    await server.kill();
    const other = join(s.place, "other");
    mkdirSync(other);
    await s.server({ env: { WORKSPACE_ROOTS: other } });
    const page = await s.page();
    await page.raw.getByLabel(/Works in/).fill(other);
    await page.turn("run: pwd");
    await page.hasText(page.tool("pwd").locator("pre.output"), other);
    await page.hasText(page.head, "other");
    await page.button("New session").first().click();
    await page.raw.getByLabel(/Works in/).fill("/etc");
    s.expect(/status of 400/);
    await page.field.fill("say: no");
    await page.field.press("Enter");
    await page.sees(page.toasts.getByText(/could not be begun.*\/etc/));
    eq(await page.field.inputValue(), "say: no", "what was written is not lost");
  },
};
