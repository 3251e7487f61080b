// Everybody can use it: axe finds nothing serious, in light and dark, on a phone, in every state.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eq, ok, options } from "./harness.mjs";

let source;
/** Serious and critical findings of the whole page as it stands. */
async function findings(page) {
  source ??= readFileSync(join(options.modules, "axe-core/axe.min.js"), "utf8");
  await page.raw.evaluate(source);
  const found = await page.raw.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => ({
      id,
      impact,
      at: nodes
        .slice(0, 4)
        .map((node) => `${node.target.join(" ")}: ${node.any[0]?.message ?? ""}`),
    }));
  });
  return found.filter(({ impact }) => impact === "serious" || impact === "critical");
}

async function clean(page, what) {
  eq(await findings(page), [], `axe, ${what}`);
}

const RICH =
  'think: hm\nsay: # Title\\n\\ntext `code` [link](https://example.org)\\n\\n- a\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\\n```js\\nconst a = "b"; // c\\n```\nrun: ls no-such\ntool: todo_write {"todos":[{"id":"1","content":"Look","status":"completed","priority":"high"},{"id":"2","content":"Go","status":"in_progress","priority":"high"}]}\ntool: write_file {"path":"a.txt","content":"one\\n"}\ntool: edit {"path":"a.txt","old_string":"one","new_string":"two"}';

/** Walks through every state of the page, looking at each. */
async function walk(s, settings) {
  await s.server();
  const page = await s.page(settings);
  await page.sees(page.raw.getByRole("heading", { name: "What shall the agent do?" }));
  await clean(page, "an empty page");
  await page.chooseFrom("Permission mode", "acceptEdits");
  await page.turn(RICH);
  for (const folded of await page.conversation.locator("details:not([open]) > summary").all())
    await folded.click();
  await clean(page, "a conversation");
  await page.say("run: touch a\nsay: THEN");
  await page.sees(page.card);
  await page.say("say: waits");
  await page.sees(page.region("Messages that wait"));
  await clean(page, "an approval and the queue");
  await page.button("Deny…").click();
  await clean(page, "a denial");
  await page.button("Deny", page.card).click();
  await page.sees(page.agent("waits"));
  await page.say("ask: Which? | red | green\nplan: # Plan\\n\\n1. one\nfail: 500");
  await page.sees(page.card.getByRole("radio").first());
  await clean(page, "a question");
  await page.card.getByRole("radio").first().check();
  await page.card.getByRole("button", { name: "Answer", exact: true }).click();
  await page.sees(page.card.getByRole("heading", { name: "The agent has a plan" }));
  await clean(page, "a plan");
  await page.button("Approve").click();
  await page.sees(page.conversation.locator(".failure"));
  await clean(page, "a failure");
  return page;
}

async function floats(page) {
  await page.head.locator("button.meter").click();
  await page.hasText(page.dialog(), "Instructions and tools");
  await clean(page, "the context's details");
  await page.raw.keyboard.press("Escape");
  await page.head.getByRole("button", { name: "More", exact: true }).click();
  await clean(page, "a menu");
  await page.raw.keyboard.press("Escape");
  await page.head.getByRole("button", { name: "Wire view" }).click();
  await page.sees(page.raw.locator("li.wire-row").first());
  await page.raw.locator("li.wire-row button.wire-line").first().click();
  await clean(page, "the wire view");
  await page.button("Close the wire view").click();
}

async function dialogs(page) {
  await page.button("Settings").click();
  await page.sees(page.dialog());
  await clean(page, "the settings");
  await page.raw.keyboard.press("Escape");
  await page.button("Keyboard shortcuts").click();
  await page.sees(page.dialog());
  await clean(page, "the shortcuts");
  await page.raw.keyboard.press("Escape");
}

export default {
  async "in light"(s) {
    const page = await walk(s, {});
    await floats(page);
    await dialogs(page);
  },

  async "in dark"(s) {
    const page = await walk(s, { dark: true });
    await floats(page);
    await dialogs(page);
  },

  async "on a phone"(s) {
    const page = await walk(s, { phone: true });
    await page.fits();
    await page.button("Sessions").first().click();
    await page.sees(page.raw.getByRole("searchbox").first());
    await clean(page, "the drawer");
    await dialogs(page);
  },

  async "axe itself sees a fault"(s) {
    await s.server();
    const page = await s.page();
    await page.sees(page.field);
    await page.raw.evaluate(() => {
      const button = document.createElement("button");
      document.querySelector("main").append(button);
    });
    const found = await findings(page);
    ok(
      found.some(({ id }) => id === "button-name"),
      `a button without a name: ${JSON.stringify(found)}`,
    );
  },
};
