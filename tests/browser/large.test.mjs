// Much of everything: 5 MB of output, 5 MB of text, 10,000 items. The document stays small, nothing
// is lost, and the page answers.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eq, ok, until } from "./harness.mjs";
import { longSession } from "./long.mjs";

const NODES_MAX = 15_000;
// What takes seconds on a machine that has nothing else to do.
const MUCH_MS = 90_000;
const nodes = (page) => page.raw.evaluate(() => document.querySelectorAll("*").length);

/** All that the server sent of commands' output in this session. */
function outputs(page) {
  return page.raw.evaluate(async () => {
    const id = decodeURIComponent(location.hash.slice(3));
    let [before, found] = ["", []];
    do {
      const answer = await fetch(
        `/sessions/${id}/frames?limit=1000${before && `&before=${before}`}`,
      );
      const page = await answer.json();
      const parts = page.frames.filter(({ type }) => type === "command_output");
      found = [...parts.map(({ output }) => output), ...found];
      before = page.before;
    } while (before !== null);
    return found.join("");
  });
}

/** Remembers the item in the middle of the view; where it stands. */
function kept(box) {
  return box.evaluate((node) => {
    const { top, height } = node.getBoundingClientRect();
    const items = [...node.querySelectorAll("article")];
    window.__kept = items.find((one) => one.getBoundingClientRect().bottom > top + height / 3);
    return window.__kept.getBoundingClientRect().top;
  });
}

function keptAt(page) {
  return page.raw.evaluate(() => window.__kept.getBoundingClientRect().top);
}

/** Until two looks find the list at the same height. */
async function settled(page) {
  const place = () =>
    page.conversation.evaluate(
      (node) =>
        new Promise((done) => {
          const look = () => done(`${node.scrollHeight} ${node.scrollTop}`);
          requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(look)));
        }),
    );
  let last = "";
  await until(async () => last === (last = await place()), "the list stands still");
}

export default {
  async "5 MB of output, of which the server shows a part"(s) {
    await s.server();
    const page = await s.page();
    await page.say("run: seq 1000000 1700000\nsay: THE END");
    await page.sees(page.agent("THE END"));
    await page.idle();
    const card = page.tool("seq 1000000 1700000");
    const shown = await card.locator("pre.output").textContent();
    ok(/more bytes of output are not shown/.test(shown), `it says so: …${shown.slice(-90)}`);
    const copied = await page.copiedBy(card.getByRole("button", { name: /Copy the output/ }));
    eq(copied, await outputs(page), "all that the server sent can be copied");
    await page.turn("say: and on", "STILL ALIVE");
  },

  async "5 MB of output that is all shown"(s) {
    await s.server();
    const page = await s.page();
    // Each as much as the server shows of one command.
    const runs = Array.from(
      { length: 20 },
      (_, at) => `run: seq ${1_000_000 + at} ${1_032_000 + at}`,
    );
    await page.say(`${runs.join("\n")}\nsay: THE END`);
    await page.agent("THE END").waitFor({ timeout: MUCH_MS });
    await page.idle();
    ok((await nodes(page)) < NODES_MAX, `the document is small: ${await nodes(page)}`);
    const card = page.tool("seq 1000019 1032019");
    await page.hasText(card.locator("pre.output"), "1032019");
    const text = await card.locator("pre.output").textContent();
    ok(text.length < 100_000, `a part of it is in the document: ${text.length}`);
    const copied = await page.copiedBy(card.getByRole("button", { name: /Copy the output/ }));
    eq(copied.trim().split("\n").length, 32_001, "lines that can be copied");
    ok((await outputs(page)).length > 5_000_000, "5 MB came");
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
    const newest = page.conversation.getByText("item 9999", { exact: false }).first();
    await newest.waitFor({ timeout: MUCH_MS });
    ok((await nodes(page)) < NODES_MAX, `the document is small: ${await nodes(page)}`);
    const box = page.conversation;
    const first = page.conversation.getByText("item 0 ", { exact: false });
    await until(
      async () => {
        await box.evaluate((node) => {
          node.scrollTop = 0;
        });
        return first.count();
      },
      "the very first item",
      MUCH_MS,
    );
    ok((await nodes(page)) < NODES_MAX, `the document is small: ${await nodes(page)}`);
    await page.button(/newest/i).click();
    await page.sees(newest);
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
    await settled(page);
    // Near the top of what is loaded the next page is fetched, and what is in sight must not jump.
    await box.hover();
    for (let steps = 0; steps < 40; steps += 1) {
      const before = await kept(box);
      await page.raw.mouse.wheel(0, -300);
      await settled(page);
      const moved = (await keptAt(page)) - before;
      ok(Math.abs(moved - 300) < 30, `step ${steps}: what was read moved by ${moved}, not 300`);
    }
  },
};
