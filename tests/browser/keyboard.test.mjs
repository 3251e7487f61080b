// By keyboard alone: a whole approval, the ways around, and what is focused when.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { eq, ok, until } from "./harness.mjs";

const focused = (page) =>
  page.raw.evaluate(() => {
    const node = document.activeElement;
    return node?.getAttribute("aria-label") || node?.textContent?.trim() || node?.tagName;
  });

/** Presses Tab until what is focused has this name. */
async function tabTo(page, name, key = "Tab") {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.raw.keyboard.press(key);
    if ((await focused(page))?.includes(name)) return;
  }
  throw new Error(`${name} is not reached by ${key}; last: ${await focused(page)}`);
}

/** A key of which the browser would make another character, on the message field. */
const dispatch = (page, key) =>
  page.field.evaluate((node, init) => {
    node.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...init }));
  }, key);

/** Keys of a card count only once it has stood there a moment. */
async function settled(page) {
  const since = await page.raw.evaluate(() => performance.now());
  await until(
    () => page.raw.evaluate((from) => performance.now() - from > 1_000, since),
    "a moment",
  );
}

export default {
  async "a whole approval, from an empty page, without a mouse"(s) {
    const server = await s.server();
    const page = await s.page();
    await until(async () => (await focused(page)) === "Message", "the message field has the focus");
    await page.raw.keyboard.type("run: touch by-keyboard");
    await page.raw.keyboard.press("Shift+Enter");
    await page.raw.keyboard.type("say: THE END");
    await page.raw.keyboard.press("Enter");
    await page.sees(page.card);
    await until(
      () => page.card.evaluate((node) => node.contains(document.activeElement)),
      "the card has the focus",
    );
    await tabTo(page, "Allow once");
    await page.raw.keyboard.press("Enter");
    await page.sees(page.agent("THE END"));
    ok(existsSync(join(server.work, "by-keyboard")), "it ran");
    await until(
      async () => (await focused(page)) === "Message",
      "and the field has the focus again",
    );
  },

  async "what comes first is a way to skip to the message field"(s) {
    await s.server();
    const page = await s.page();
    await page.sees(page.field);
    await tabTo(page, "Skip to the message field", "Shift+Tab");
    ok(await page.raw.getByRole("link", { name: /^Skip/ }).isVisible(), "it is seen when focused");
    await page.raw.keyboard.press("Enter");
    await until(async () => (await focused(page)) === "Message", "the field is focused");
  },

  async "shortcuts, and the list of them"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x");
    const press = async (key) => {
      await page.raw.evaluate(() => document.activeElement.blur());
      await page.raw.keyboard.press(key);
    };
    await press("?");
    await page.sees(page.dialog().getByRole("heading", { name: "Keyboard shortcuts" }));
    await page.raw.keyboard.press("Escape");
    await page.dialog().waitFor({ state: "detached" });
    await press("/");
    await until(async () => (await focused(page)) === "Search sessions", "the search is focused");
    await press("w");
    await page.sees(page.raw.getByRole("complementary", { name: "Wire view" }));
    await press("w");
    await page.raw.getByRole("complementary", { name: "Wire view" }).waitFor({ state: "hidden" });
    await press("c");
    await page.sees(page.dialog());
    await page.raw.keyboard.press("Escape");
    await press("t");
    eq(await page.raw.evaluate(() => document.documentElement.dataset.theme), "dark", "the theme");
    await press("n");
    await page.sees(page.raw.getByRole("heading", { name: "What shall the agent do?" }));
    await press("j");
    await page.sees(page.agent("THE END"));
    await press("m");
    await until(async () => (await focused(page)) === "Message", "the field is focused");
    await page.raw.keyboard.type("n w ?");
    eq(await page.field.inputValue(), "n w ?", "letters in a field are text");
  },

  async "a menu and a dialog give the focus back"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x");
    const more = page.head.getByRole("button", { name: "More", exact: true });
    await more.focus();
    await page.raw.keyboard.press("Enter");
    await until(async () => (await focused(page)) === "Rename", "the first entry is focused");
    await page.raw.keyboard.press("ArrowDown");
    eq(await focused(page), "Fork");
    await page.raw.keyboard.press("Escape");
    eq(await focused(page), "More", "the button has the focus again");
    await page.button("Settings").focus();
    await page.raw.keyboard.press("Enter");
    await page.sees(page.dialog());
    await page.raw.keyboard.press("Escape");
    await until(async () => (await focused(page)) === "Settings", "the button has the focus again");
  },

  async "screen readers are told what happens"(s) {
    await s.server();
    const page = await s.page();
    const told = [];
    await page.raw.exposeFunction("__heard", (text) => told.push(text));
    await page.raw.evaluate(() => {
      for (const region of document.querySelectorAll('[role="status"], [role="alert"]')) {
        const tell = () => region.textContent && window.__heard(region.textContent);
        new MutationObserver(tell).observe(region, {
          childList: true,
          subtree: true,
          characterData: true,
        });
      }
    });
    await page.say("run: touch a\nsay: THE END");
    await page.sees(page.card);
    await until(
      () => told.some((text) => text.includes("Allow Bash")),
      () => `the request: ${told}`,
    );
    await page.button("Allow once").click();
    await page.sees(page.agent("THE END"));
    await until(
      () => told.some((text) => /done.*The agent said: THE END/i.test(text)),
      () => `the end: ${told}`,
    );
  },

  async "what is typed in the field answers nothing, and no card takes the focus from it"(s) {
    const server = await s.server();
    const page = await s.page();
    await page.say("stream: 15 10 100\nrun: touch a\nsay: THE END");
    // Written and taken out again: the field is empty, and somebody is at it.
    await until(async () => {
      await page.raw.keyboard.press("y");
      await page.raw.keyboard.press("Backspace");
      return page.card.isVisible();
    }, "the request");
    eq(await focused(page), "Message", "the field keeps the focus");
    await settled(page);
    await dispatch(page, { altKey: true, code: "KeyA", key: "å" });
    await dispatch(page, { altKey: true, code: "KeyS", key: "ß" });
    await dispatch(page, { altKey: true, code: "KeyE", key: "Dead" });
    await dispatch(page, { altKey: true, code: "KeyY", key: "y", repeat: true });
    ok(await page.button("Allow once").isEnabled(), "nothing was answered");
    await dispatch(page, { altKey: true, code: "KeyY", key: "y" });
    await page.sees(page.agent("THE END"));
    ok(existsSync(join(server.work, "a")), "it ran");
  },

  async "a key that is held down allows one request, and N is no new session there"(s) {
    const server = await s.server();
    const page = await s.page();
    await page.say("run: touch a\nrun: touch b\nsay: THE END");
    await page.sees(page.card);
    await page.card.focus();
    await settled(page);
    const id = await page.session();
    await page.raw.keyboard.down("y");
    await page.hasText(page.card, "touch b");
    await page.card.focus();
    await settled(page);
    for (let held = 0; held < 5; held += 1) await page.raw.keyboard.down("y");
    await page.raw.keyboard.up("y");
    ok(await page.button("Allow once").isEnabled(), "the second request waits");
    ok(!existsSync(join(server.work, "b")), "and did not run");
    await page.raw.keyboard.press("s");
    await page.raw.keyboard.press("n");
    await page.idle();
    eq(await page.session(), id, "the session is still open");
  },

  async "single letters can be turned off"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x");
    const id = await page.session();
    await page.button("Settings").click();
    await page.raw.getByLabel(/^Off; only with Alt/).check();
    await page.button("Done", page.dialog()).click();
    await page.raw.evaluate(() => document.activeElement.blur());
    await page.raw.keyboard.press("t");
    await page.raw.keyboard.press("n");
    eq(await page.session(), id, "no new session");
    eq(
      await page.raw.evaluate(() => document.documentElement.dataset.theme ?? "none"),
      "none",
      "the theme",
    );
  },
};
