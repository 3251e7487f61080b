// What is said: Markdown as it streams, code, links, reasoning, pictures, drafts.

import { eq, ok, until } from "./harness.mjs";

const MARKDOWN = [
  "# A heading",
  "Some **bold** and *slanted* words, `code` and a [link](https://example.org/a).",
  "- one\\n- two",
  "| a | b |\\n|---|---|\\n| 1 | 2 |",
  "> quoted",
  '```rust\\n// why\\nfn main() { println!("<b>"); }\\n```',
].join("\\n\\n");

export default {
  async "Markdown is shown as nodes, code is highlighted and can be copied"(s) {
    await s.server();
    const page = await s.page();
    await page.say(`say: ${MARKDOWN}`);
    const said = page.agent("A heading");
    await page.sees(said.getByRole("heading", { name: "A heading" }));
    await page.idle();
    eq(await said.locator("strong").textContent(), "bold");
    eq(await said.locator("em").textContent(), "slanted");
    eq(await said.getByRole("listitem").allTextContents(), ["one", "two"]);
    eq(await said.getByRole("cell").allTextContents(), ["1", "2"]);
    eq((await said.locator("blockquote").textContent()).trim(), "quoted");
    const link = said.getByRole("link", { name: "link" });
    eq(await link.getAttribute("href"), "https://example.org/a");
    ok((await link.getAttribute("rel")).includes("noopener"), "a link tells its target nothing");
    const code = said.locator("pre code");
    eq((await code.textContent()).trimEnd(), '// why\nfn main() { println!("<b>"); }');
    ok((await code.locator("span").count()) >= 3, "comment, keyword and string are told apart");
    const copied = await page.copiedBy(said.getByRole("button", { name: /copy (the )?code/i }));
    eq(copied.trimEnd(), '// why\nfn main() { println!("<b>"); }', "the copied code");
  },

  async "a message comes while it is written"(s) {
    await s.server();
    const page = await s.page();
    await page.say("stream: 60 20 50");
    const said = page.conversation.locator(".agent-message");
    await page.sees(said);
    const length = async () => (await said.textContent()).length;
    const early = await until(length, "the first words");
    await page.running();
    const later = await until(async () => (await length()) > early && length(), "more words");
    ok(later > early, "it grows while the turn runs");
    await page.idle();
    eq((await page.copied()).length, 1200, "all of it came");
  },

  async "the source of a message can be copied"(s) {
    const server = await s.server();
    const page = await s.page();
    await page.say(`say: ${MARKDOWN}`);
    const copied = await page.copied();
    eq([copied], await server.texts(await page.session()), "the clipboard has what the log has");
  },

  async "reasoning is folded, and opens"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("think: I weigh **both** sides.");
    const thought = page.conversation.locator("details.reasoning");
    await page.sees(thought);
    eq(await thought.evaluate((node) => node.open), false, "folded at first");
    ok(!(await thought.getByText("I weigh").isVisible()), "its text is out of sight");
    await thought.locator("summary").click();
    await page.sees(thought.getByText("I weigh"));
    eq(await thought.locator("strong").textContent(), "both");
  },

  async "a conversation is there again after a reload"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("think: hm\nrun: echo from-the-tool", "as it was");
    const before = await page.conversation.innerText();
    await page.raw.reload();
    await page.sees(page.agent("as it was"));
    const after = () => page.conversation.innerText();
    // How long something took is known to whoever was there.
    const plain = (text) => text.replace(/( for)? \d+(\.\d+)? ?m?s\b/g, "").replace(/\s+/g, " ");
    await until(
      async () => plain(await after()) === plain(before),
      async () => `the same after a reload:\n${plain(before)}\n${plain(await after())}`,
    );
  },

  async "Shift and Enter make a new line, and the settings can swap that"(s) {
    await s.server();
    const page = await s.page();
    await page.field.pressSequentially("say: first");
    await page.field.press("Shift+Enter");
    await page.field.pressSequentially("say: second");
    eq(await page.field.inputValue(), "say: first\nsay: second");
    await page.field.press("Enter");
    await page.sees(page.agent("second"));
    await page.button("Settings").click();
    await page.raw.getByLabel(/Ctrl\+Enter sends/).check();
    await page.button("Done").click();
    await page.field.fill("say: third");
    await page.field.press("Enter");
    eq(await page.field.inputValue(), "say: third\n", "Enter is a new line now");
    await page.field.press("Control+Enter");
    await page.sees(page.agent("third"));
  },

  async "a draft is kept for each session"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x");
    await page.field.fill("half a thought");
    await page.raw.reload();
    await page.sees(page.agent("THE END"));
    eq(await page.field.inputValue(), "half a thought", "the draft of this session");
    await page.button("New session").first().click();
    eq(await page.field.inputValue(), "", "a new session has none of it");
  },

  async "a picture goes with a message"(s) {
    await s.server();
    const page = await s.page();
    const png = await page.raw.evaluate(() => {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = 24;
      canvas.getContext("2d").fillRect(4, 4, 12, 12);
      return canvas.toDataURL("image/png").split(",")[1];
    });
    const file = { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") };
    await page.raw.locator('input[type="file"]').setInputFiles(file);
    await page.sees(page.raw.getByRole("img", { name: "dot.png" }));
    await page.say("say: seen");
    await page.sees(page.agent("seen"));
    const { events } = await s.last.ask("GET", `/sessions/${await page.session()}`);
    ok(JSON.stringify(events).includes(png.slice(0, 60)), "the log has the picture");
    ok(!(await page.raw.getByRole("button", { name: "Remove dot.png" }).isVisible()), "it is gone");
  },

  async "the newest is in sight, unless somebody reads further up"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("stream: 300 30 0", "FIRST");
    const box = page.conversation;
    const fromEnd = () => box.evaluate((n) => n.scrollHeight - n.scrollTop - n.clientHeight);
    await until(async () => (await fromEnd()) < 60, "the end is in sight");
    await page.say("stream: 100 30 40");
    await page.running();
    await box.hover();
    await page.raw.mouse.wheel(0, -1500);
    await until(async () => (await fromEnd()) > 400, "scrolled up");
    const jump = page.button(/newest/i);
    await page.sees(jump);
    const top = await box.evaluate((node) => node.scrollTop);
    await page.idle();
    const moved = Math.abs((await box.evaluate((node) => node.scrollTop)) - top);
    ok(moved < 60, `what is read stays where it is; it moved by ${moved}`);
    await jump.click();
    await until(async () => (await fromEnd()) < 60, "the end again");
  },
};
