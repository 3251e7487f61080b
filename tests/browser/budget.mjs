// What the page weighs and how smoothly it goes: its first load, 10,000 items, 5 MB of text and of
// output. Prints a table, and JSON where asked.
//
//     node budget.mjs --polyloop PATH --node-modules DIR [--json FILE] [--page DIR]
//
// Asserts nothing: how fast a machine is says little about whether a change is right.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { closeBrowser, options, Scene, until } from "./harness.mjs";
import { longSession } from "./long.mjs";

const ITEMS = 10_000;
const LONG_MS = 180_000;

/** In the page, before anything else: when the first frame came, and every task that was long. */
function watch() {
  window.__budget = { tasks: [], firstFrame: null, firstItem: null };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.__budget.tasks.push(duration);
  }).observe({ type: "longtask", buffered: true });
  const Socket = window.WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...words) {
      super(...words);
      this.addEventListener("message", () => {
        window.__budget.firstFrame ??= performance.now();
      });
    }
  };
  new MutationObserver(() => {
    if (document.querySelector("article")) window.__budget.firstItem ??= performance.now();
  }).observe(document, { childList: true, subtree: true });
}

async function opened(scene, path) {
  scene.init = watch;
  return scene.page({ path, context: { reducedMotion: "no-preference" } });
}

/** Megabytes of script memory once garbage is gone. */
function memory(page) {
  return page.raw.evaluate(async () => {
    for (let times = 0; times < 3; times += 1) {
      window.gc?.();
      await new Promise((done) => setTimeout(done, 50));
    }
    return performance.memory.usedJSHeapSize / 1e6;
  });
}

/** The longest stall, and the time of all stalls together, while something is done. */
async function stalls(page, run) {
  await page.raw.evaluate(() => {
    window.__budget.tasks.length = 0;
  });
  const began = performance.now();
  await run();
  const tasks = await page.raw.evaluate(() => window.__budget.tasks);
  return {
    seconds: (performance.now() - began) / 1000,
    longest_ms: Math.round(Math.max(0, ...tasks)),
    stalled_ms: Math.round(tasks.reduce((sum, one) => sum + one, 0)),
    stalls: tasks.length,
  };
}

async function firstLoad(scene) {
  await scene.server();
  const page = await opened(scene, "/");
  await page.sees(page.field);
  await page.raw.waitForLoadState("networkidle");
  return page.raw.evaluate(() => {
    const parts = [
      ...performance.getEntriesByType("navigation"),
      ...performance.getEntriesByType("resource"),
    ];
    const files = parts.filter(({ name }) => /\/page\/|\/$/.test(name));
    const paint = performance
      .getEntriesByType("paint")
      .find(({ name }) => name === "first-contentful-paint");
    const sum = (what) => parts.reduce((total, part) => total + part[what], 0);
    return {
      requests: parts.length,
      files: files.length,
      transferred_bytes: sum("transferSize"),
      decoded_bytes: sum("decodedBodySize"),
      first_paint_ms: Math.round(paint?.startTime ?? 0),
      loaded_ms: Math.round(performance.getEntriesByType("navigation")[0].loadEventEnd),
    };
  });
}

async function longList(scene) {
  const server = await scene.server();
  await server.kill();
  mkdirSync(server.store, { recursive: true });
  writeFileSync(join(server.store, "long.jsonl"), longSession(ITEMS));
  await server.again();
  const page = await opened(scene, "/#s=long");
  await until(() => page.raw.evaluate(() => window.__budget.firstItem), "the first item");
  await until(() => page.raw.evaluate(() => window.__budget.firstFrame), "the first frame");
  const times = await page.raw.evaluate(() => window.__budget);
  const first = page.conversation.getByText("item 0 ", { exact: false });
  const up = await stalls(page, () =>
    until(
      async () => {
        await page.conversation.evaluate((node) => {
          node.scrollTop = 0;
        });
        return first.count();
      },
      "the first of all items",
      LONG_MS,
    ),
  );
  const heap = await memory(page);
  const through = await stalls(page, () => glide(page));
  return {
    first_item_ms: Math.round(times.firstItem),
    first_frame_ms: Math.round(times.firstFrame),
    memory_mb: heap,
    nodes: await page.raw.evaluate(() => document.querySelectorAll("*").length),
    up,
    through,
  };
}

/** Scrolls from the top to the end, a view every frame. */
function glide(page) {
  return page.conversation.evaluate(
    (node) =>
      new Promise((done) => {
        const step = () => {
          const before = node.scrollTop;
          node.scrollTop += node.clientHeight;
          if (node.scrollTop === before) done();
          else requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
      }),
  );
}

async function much(scene, script) {
  await scene.server();
  const page = await opened(scene, "/");
  const measured = await stalls(page, async () => {
    await page.say(script);
    // Only a message that is whole can be copied.
    const whole = page.conversation
      .locator(".agent-message")
      .last()
      .getByRole("button", { name: "Copy message" });
    await whole.waitFor({ state: "attached", timeout: LONG_MS });
    await page.idle();
  });
  return { ...measured, memory_mb: await memory(page) };
}

async function measured(name, run) {
  const scene = new Scene(name);
  try {
    return await run(scene);
  } finally {
    await scene.close();
  }
}

function table(found) {
  const rows = [];
  const add = (what, value) => rows.push([what, String(value)]);
  const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
  const { first, long, text, output } = found;
  add("first load: requests", first.requests);
  add("first load: transferred", kB(first.transferred_bytes));
  add("first load: decoded", kB(first.decoded_bytes));
  add("first load: first paint", `${first.first_paint_ms} ms`);
  add("first load: loaded", `${first.loaded_ms} ms`);
  add(`${ITEMS} items: first item shown`, `${long.first_item_ms} ms`);
  add(`${ITEMS} items: first live frame`, `${long.first_frame_ms} ms`);
  add(`${ITEMS} items: script memory, all loaded`, `${long.memory_mb.toFixed(1)} MB`);
  add(`${ITEMS} items: elements in the document`, long.nodes);
  const told = (what, one) => {
    add(`${what}: took`, `${one.seconds.toFixed(1)} s`);
    add(`${what}: longest stall`, `${one.longest_ms} ms`);
    add(`${what}: stalls over 50 ms`, `${one.stalls}, ${one.stalled_ms} ms together`);
  };
  told(`${ITEMS} items, scrolled to the first`, long.up);
  told(`${ITEMS} items, scrolled through, a view a frame`, long.through);
  told("5 MB of text streamed", text);
  add("5 MB of text streamed: script memory", `${text.memory_mb.toFixed(1)} MB`);
  told("5 MB of output", output);
  add("5 MB of output: script memory", `${output.memory_mb.toFixed(1)} MB`);
  const wide = Math.max(...rows.map(([what]) => what.length));
  return rows.map(([what, value]) => `${what.padEnd(wide)}  ${value}`).join("\n");
}

const WORDS = {
  polyloop: { type: "string" },
  "node-modules": { type: "string" },
  json: { type: "string" },
  page: { type: "string" },
};
const { values } = parseArgs({ options: WORDS });
options.set(values);
const outputs = Array.from(
  { length: 20 },
  (_, at) => `run: seq ${1_000_000 + at} ${1_032_000 + at}`,
).join("\n");
try {
  const found = {
    first: await measured("first load", firstLoad),
    long: await measured("many items", longList),
    text: await measured("much text", (scene) => much(scene, "stream: 5000 1000 0")),
    output: await measured("much output", (scene) => much(scene, `${outputs}\nsay: THE END`)),
  };
  console.log(table(found));
  if (values.json) writeFileSync(values.json, `${JSON.stringify(found, null, 2)}\n`);
} finally {
  await closeBrowser();
}
