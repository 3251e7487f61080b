// Much of everything: 5 MB of output, 5 MB of text, 10,000 items. The document stays small, nothing
// is lost, and the page answers.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eq, ok, until } from "./harness.mjs";
import { longSession } from "./long.mjs";

const NODES_MAX = 15_000;
const nodes = (page) => page.raw.evaluate(() => document.querySelectorAll("*").length);

export default {
  async "5 MB of output"(s) {
    await s.server();
    const page = await s.page();
    await page.chooseFrom("Permission mode", "acceptEdits");
    await page.say("run: seq 1000000 1700000\nsay: THE END");
    await page.button("Allow once").click({ timeout: 3000 }).catch(() => {});
    await page.sees(page.agent("THE END"));
    await page.idle();
    const card = page.tool("seq 1000000 1700000");
    const shown = await card.locator("pre.output").textContent();
    ok(shown.includes("1700000"), `the end of it is shown: …${shown.slice(-60)}`);
    ok((await nodes(page)) < NODES_MAX, `the document is small: ${await nodes(page)}`);
    ok(shown.length < 1_000_000, `a part of it is in the document: ${shown.length}`);
    const copied = await page.copiedBy(card.getByRole("button", { name: /Copy the output/ }));
    const client = await page.raw.evaluate(async () => {
      const id = decodeURIComponent(location.hash.slice(3));
      const { frames } = await (await fetch(`/sessions/${id}/frames?limit=1000`)).json();
      return frames.filter(({ type }) => type === "command_output").map(({ output }) => output).join("");
    });
    eq(copied.length, client.length, "all that the server sent can be copied");
    await page.turn("say: and on", "STILL ALIVE");
  },

  async "5 MB of text in one message"(s) {
    const server = await s.server();
    const page = await s.page();
    await page.say("stream: 5000 1000 0");
    await page.sees(page.conversation.locator(".agent-message"));
    await page.idle();
    const [text] = await until(async () => {
      const texts = await server.texts(await page.session());
      return texts[0]?.length === 5_000_000 && texts;
    }, "the whole text in the log");
    const copied = await page.copied();
    ok(copied === text, `all of it came: ${copied.length} of ${text.length}`);
    ok((await nodes(page)) < NODES_MAX, `the document is small: ${await nodes(page)}`);
    await page.turn("say: and on", "STILL ALIVE");
  },

  async "10,000 items: the newest at once, the oldest by scrolling, the document small"(s) {
    const server = await s.server();
    await server.kill();
    mkdirSync(server.store, { recursive: true });
    writeFileSync(join(server.store, "long.jsonl"), longSession(10_000));
    await server.again();
    const page = await s.page({ path: "/#s=long" });
    await page.sees(page.conversation.getByText("item 9999", { exact: false }).first());
    ok((await nodes(page)) < NODES_MAX, `the document is small: ${await nodes(page)}`);
    const box = page.conversation;
    const first = page.conversation.getByText("item 0 ", { exact: false });
    await until(async () => {
      await box.evaluate((node) => { node.scrollTop = 0; });
      return first.count();
    }, "the very first item", 90_000);
    ok((await nodes(page)) < NODES_MAX, `the document is small: ${await nodes(page)}`);
    await page.button(/newest/i).click();
    await page.sees(page.conversation.getByText("item 9999", { exact: false }).first());
    await page.turn("say: and on", "STILL ALIVE");
  },

  async "what is read stays where it is while older pages come"(s) {
    const server = await s.server();
    await server.kill();
    mkdirSync(server.store, { recursive: true });
    writeFileSync(join(server.store, "long.jsonl"), longSession(2_000));
    await server.again();
    const page = await s.page({ path: "/#s=long" });
    await page.sees(page.conversation.getByText("item 1999", { exact: false }).first());
    const box = page.conversation;
    // Near the top of what is loaded: the next page is fetched, and what is in sight must not jump.
    for (let steps = 0; steps < 40; steps += 1) {
      const seen = await box.evaluate((node) => {
        const top = node.getBoundingClientRect().top;
        const items = [...node.querySelectorAll("article")];
        const item = items.find((one) => one.getBoundingClientRect().bottom > top + 50);
        window.__kept = item;
        return item && item.getBoundingClientRect().top;
      });
      await box.evaluate((node) => { node.scrollBy(0, -300); });
      await page.raw.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const now = await page.raw.evaluate(() => window.__kept.isConnected && window.__kept.getBoundingClientRect().top);
      if (now === false) continue;
      ok(Math.abs(now - seen - 300) < 30 || (await box.evaluate((node) => node.scrollTop)) === 0,
        `step ${steps}: what was read moved by ${now - seen}, not 300`);
    }
  },
};
