// The page as a person meets it: by roles and names, and by a few classes where things have none.

import { ok, until, WAIT_MS } from "./harness.mjs";

const TEXT_SHOWN = 1_500;

export class Page {
  constructor(raw, scene) {
    Object.assign(this, { raw, scene });
  }

  region(name) {
    return this.raw.getByRole("region", { name, exact: true });
  }

  /** A button by the beginning of its name, or by a pattern. */
  button(name, within = this.raw) {
    const begins = (words) => new RegExp(`^${words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`);
    return within.getByRole("button", { name: typeof name === "string" ? begins(name) : name });
  }

  get conversation() {
    return this.raw.getByRole("log", { name: "Conversation" });
  }

  get field() {
    return this.raw.getByRole("textbox", { name: "Message", exact: true });
  }

  get card() {
    return this.region("Waiting for you").getByRole("article");
  }

  get list() {
    return this.raw.getByRole("navigation", { name: "Sessions" });
  }

  get head() {
    return this.raw.locator("#head");
  }

  /** What ends the turn; an approval's card has a button of that name too. */
  get stop() {
    return this.button("Stop", this.raw.locator("#composer"));
  }

  get toasts() {
    return this.raw.locator("#toasts");
  }

  /** A line of the list of sessions. */
  row(title) {
    return this.list.getByRole("link", { name: title });
  }

  agent(text) {
    return this.conversation.locator(".agent-message", { hasText: text });
  }

  user(text) {
    return this.conversation.locator(".user-message", { hasText: text });
  }

  tool(text) {
    return this.conversation.locator("details.tool", { hasText: text });
  }

  /** The session's id, once there is one. */
  async session() {
    const id = () => this.raw.evaluate(() => decodeURIComponent(location.hash.slice(3)));
    return until(id, "the address names a session");
  }

  async say(text) {
    await this.field.fill(text);
    await this.field.press("Enter");
    await until(async () => (await this.field.inputValue()) === "", "the message was taken");
  }

  /** Says something and waits for what is said at its end. */
  async turn(script, end = "THE END") {
    await this.say(`${script}\nsay: ${end}`);
    await this.agent(end).last().waitFor();
    await this.idle();
  }

  /** No turn runs. */
  async idle() {
    await this.stop.waitFor({ state: "hidden" });
  }

  async running() {
    await this.stop.waitFor();
  }

  /** The source of the newest whole message of the agent, by its copy button. */
  async copied(locator = this.conversation.locator(".agent-message").last()) {
    const button = locator.getByRole("button", { name: "Copy message" });
    await button.waitFor({ state: "attached" });
    return this.copiedBy(button);
  }

  /** What a copy button hands to the clipboard, which itself is shared with every other browser. */
  async copiedBy(button) {
    await this.raw.evaluate(() => {
      window.__copied = null;
    });
    await button.evaluate((node) => node.click());
    const read = () => this.raw.evaluate(() => window.__copied);
    await until(async () => (await read()) !== null, "something was copied");
    return read();
  }

  async chooseFrom(name, value) {
    await this.raw.getByLabel(name, { exact: true }).first().selectOption(value);
  }

  /** An entry of the session's menu in the head. */
  async menu(entry) {
    await this.head.getByRole("button", { name: "More", exact: true }).click();
    await this.raw.getByRole("menuitem", { name: entry }).click();
  }

  dialog() {
    return this.raw.getByRole("dialog");
  }

  async hasText(locator, text) {
    await until(
      async () => (await locator.textContent())?.includes(text),
      async () => `${JSON.stringify(text)} in ${JSON.stringify(await locator.textContent())}`,
    );
  }

  /** That something is there and stays out of sight of nobody. */
  async sees(locator) {
    await locator.waitFor({ timeout: WAIT_MS });
  }

  async count(locator, want, what) {
    await until(
      async () => (await locator.count()) === want,
      async () => `${want} ${what}; there are ${await locator.count()}`,
    );
  }

  /** Nothing reaches beyond the window's width. */
  async fits() {
    const wide = await this.raw.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return scrollWidth > clientWidth ? `${scrollWidth} in ${clientWidth}` : "";
    });
    ok(wide === "", `the page is wider than its window: ${wide}`);
  }

  async shown() {
    const text = await this.raw.evaluate(() => document.body.innerText);
    const name = this.scene.name.replace(/[^a-z0-9]+/gi, "-");
    if (process.env.SHOTS) await this.raw.screenshot({ path: `${process.env.SHOTS}/${name}.png` });
    return `the page at ${this.raw.url()} shows:\n${text.slice(-TEXT_SHOWN)}`;
  }
}
