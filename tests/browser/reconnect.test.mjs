// The connection: a server that is killed in mid-stream, a network that is cut, and not one
// character lost or shown twice.

import { eq, ok, until } from "./harness.mjs";
import { Network } from "./cut.mjs";

const LOST = /ERR_|WebSocket connection|Failed to load resource/;

// So high that everything is in sight, and so in the document.
const HIGH = { width: 1280, height: 20_000 };

/** The agent's messages in the page, by what their copy buttons give. */
async function sources(page, count) {
  await page.count(page.conversation.locator(".agent-message"), count, "messages");
  const found = [];
  for (const one of await page.conversation.locator(".agent-message").all()) {
    found.push(await page.copied(one));
  }
  return found;
}

/** What the page shows is what the log has; and what a reload shows is the same. So many messages of
 * the user there are, and each of these words is the agent's once. */
async function isWhole(s, page, said, ...once) {
  const texts = await s.last.texts(await page.session());
  for (const word of once)
    eq(texts.filter((text) => text === word).length, 1, `${word} in the log`);
  await page.raw.setViewportSize(HIGH);
  const same = async (what) => {
    eq(await sources(page, texts.length), texts, what);
    eq(
      await page.conversation.locator(".user-message").count(),
      said,
      `messages of the user, ${what}`,
    );
    for (const word of once) eq(await page.agent(word).count(), 1, `${word}, ${what}`);
  };
  await same("what is shown, beside the log");
  await page.raw.reload();
  await same("the same after a reload");
}

export default {
  async "the server is killed in mid-stream, and started again"(s) {
    s.expect(LOST);
    const server = await s.server();
    const page = await s.page();
    await page.say("stream: 2000 20 5");
    const said = page.conversation.locator(".agent-message");
    const length = () =>
      said
        .last()
        .textContent()
        .then((text) => text.length);
    await page.sees(said);
    await until(async () => (await length()) > 500, "the stream is under way");
    await server.kill();
    const shown = await length();
    await page.sees(page.button(/now/));
    await server.again();
    await page.hasText(page.conversation, "Interrupted");
    await page.idle();
    ok((await length()) >= shown, "what was shown is still shown");
    await page.button("Resume").click();
    await page.running();
    await until(async () => (await said.count()) > 1 || (await length()) > shown, "it goes on");
    await server.kill();
    await server.again();
    await page.button("Resume").waitFor();
    await page.turn("say: x", "THE END");
    await isWhole(s, page, 2, "THE END");
  },

  async "the server is killed again and again"(s) {
    s.expect(LOST);
    const server = await s.server({ env: { AUTO_RESUME: "true" } });
    const page = await s.page();
    await page.say(
      "stream: 300 20 5\nrun: echo one\nstream: 300 20 5\nrun: echo two\nsay: THE END",
    );
    for (let kills = 0; kills < 4; kills += 1) {
      const before = (await page.conversation.innerText()).length;
      await until(
        async () => (await page.conversation.innerText()).length > before + 200,
        "more came",
      );
      await server.kill();
      await server.again();
    }
    await until(async () => {
      if (await page.button("Resume").isVisible()) await page.button("Resume").click();
      return page.agent("THE END").count();
    }, "the end");
    await page.idle();
    await isWhole(s, page, 1, "THE END");
  },

  async "the network is cut and restored while an answer streams"(s) {
    s.expect(LOST);
    const server = await s.server();
    const network = await Network.before(s, server);
    const page = await s.page({ at: network.origin });
    await page.say("stream: 400 20 10");
    await until(async () => (await page.conversation.innerText()).length > 500, "it streams");
    network.cut();
    await page.sees(page.button(/now/));
    await until(async () => {
      const { sessions } = await server.ask("GET", "/sessions");
      return sessions[0].status === "idle";
    }, "the turn ends without the page");
    network.restore();
    await page
      .button(/now/)
      .click({ timeout: 2000 })
      .catch(() => {});
    await page.idle();
    eq((await page.copied()).length, 8000, "all of it is there");
    await isWhole(s, page, 1);
  },

  async "the browser goes offline and comes back"(s) {
    s.expect(LOST);
    await s.server();
    const page = await s.page();
    await page.turn("say: x", "BEFORE");
    await page.raw.context().setOffline(true);
    await s.last.kill();
    await page.sees(page.button(/now/));
    await s.last.again();
    await page.raw.context().setOffline(false);
    await page.button(/now/).waitFor({ state: "hidden" });
    await page.turn("say: y", "AFTER");
    await isWhole(s, page, 2, "BEFORE", "AFTER");
  },

  async "a connection that breaks at any byte loses and doubles nothing"(s) {
    s.expect(LOST);
    const server = await s.server();
    const network = await Network.before(s, server);
    const page = await s.page({ at: network.origin });
    await page.turn("say: x", "BEFORE");
    const opened = network.opened;
    // Numbers that are no pattern of the frames', the same in every run.
    let seed = 7;
    network.breakAfter(() => 700 + ((seed = (seed * 48271) % 2147483647) % 9000));
    await page.say("stream: 300 40 20\nrun: seq 1 200\nstream: 100 40 20\nsay: THE END");
    await until(async () => {
      const now = page.button(/now/);
      if (await now.isVisible()) await now.click({ timeout: 1000 }).catch(() => {});
      return page.agent("THE END").count();
    }, "the end");
    network.breakAfter(null);
    ok(network.opened - opened > 5, `it broke often: ${network.opened - opened} connections`);
    await page.idle();
    await isWhole(s, page, 2, "BEFORE", "THE END");
    const output = await page.tool("seq 1 200").locator("pre.output").textContent();
    eq(
      output.trim().split(/\s+/).map(Number),
      Array.from({ length: 200 }, (_, at) => at + 1),
      "output",
    );
  },

  async "what is said without a connection is sent once it is back, and once"(s) {
    s.expect(LOST);
    const server = await s.server();
    const network = await Network.before(s, server);
    const page = await s.page({ at: network.origin });
    await page.turn("say: x", "BEFORE");
    network.cut();
    await page.sees(page.button(/now/));
    await page.say("say: SAID WHILE OFFLINE");
    await page.hasText(page.user("SAID WHILE OFFLINE"), "Sending…");
    network.restore();
    await page.sees(page.agent("SAID WHILE OFFLINE"));
    await page.idle();
    eq(await page.user("SAID WHILE OFFLINE").count(), 1, "it is shown once");
    const texts = await server.texts(await page.session());
    eq(texts.filter((text) => text === "SAID WHILE OFFLINE").length, 1, "it was said once");
  },

  async "the time to the next try is shown, and grows"(s) {
    s.expect(LOST);
    const server = await s.server();
    const page = await s.page();
    await page.turn("say: x", "BEFORE");
    await server.kill();
    const state = page.head.locator("button.connection");
    const waits = new Set();
    await until(
      async () => {
        const found = /(\d+) s/.exec((await state.textContent().catch(() => "")) ?? "");
        if (found) waits.add(Number(found[1]));
        return Math.max(0, ...waits) >= 3;
      },
      () => `waits that grow: ${[...waits]}`,
    );
    await server.again();
    await state.click({ timeout: 1000 }).catch(() => {});
    await state.waitFor({ state: "hidden" });
  },

  async "a server that kept nothing comes back: both pages show what it has now"(s) {
    s.expect(LOST);
    const server = await s.server({ store: false });
    const [ann, bob] = [await s.page(), await s.page()];
    // More than what is said anew: that less is there is how a page knows.
    await ann.turn("run: echo one\nrun: echo two\nsay: one", "BEFORE");
    const id = await ann.session();
    await bob.raw.goto(`${server.origin}/#s=${id}`);
    await bob.sees(bob.agent("BEFORE"));
    await bob.raw.context().setOffline(true);
    await server.kill();
    await ann.sees(ann.button(/now/));
    await bob.sees(bob.button(/now/));
    await server.again();
    // Whoever comes first speaks before the other is back.
    await ann.button(/now/).click({ timeout: 2000 }).catch(() => {});
    await ann.turn("say: x", "ANEW");
    await bob.raw.context().setOffline(false);
    await bob.button(/now/).click({ timeout: 2000 }).catch(() => {});
    for (const page of [ann, bob]) {
      await page.sees(page.agent("ANEW"));
      await page.count(page.user("ANEW"), 1, "messages of Ann");
      await page.count(page.agent("BEFORE"), 0, "messages that are forgotten");
    }
  },
};
