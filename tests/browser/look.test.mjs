// How it looks: themes, narrow windows, what the server's answer says of the page.

import { eq, ok, until } from "./harness.mjs";

const ground = (page) => page.raw.evaluate(() => getComputedStyle(document.body).backgroundColor);
const brightness = (colour) =>
  colour
    .match(/\d+/g)
    .slice(0, 3)
    .reduce((sum, part) => sum + Number(part), 0) / 3;

export default {
  async "the theme follows the system, and a choice is kept"(s) {
    await s.server();
    const page = await s.page({ dark: true });
    await page.sees(page.field);
    ok(brightness(await ground(page)) < 80, "dark where the system is dark");
    await page.button("Settings").click();
    await page.raw.getByLabel("Light", { exact: true }).check();
    await page.button("Done").click();
    ok(brightness(await ground(page)) > 180, "light where light was chosen");
    await page.raw.reload();
    ok(brightness(await ground(page)) > 180, "and still after a reload");
  },

  async "on a phone the list is a drawer, and all of it fits"(s) {
    await s.server();
    const page = await s.page({ phone: true });
    await page.turn("run: echo a-very-long-line-without-a-space-" + "x".repeat(300), "FIRST");
    await page.fits();
    await page.button("Sessions").first().click();
    await page.sees(page.raw.getByRole("searchbox").first());
    await page.fits();
    await page.button("New session").first().click();
    await page.sees(page.raw.getByRole("heading", { name: "What shall the agent do?" }));
    await page.say("run: touch a\nsay: THE END");
    await page.sees(page.card);
    await page.fits();
    const [card, window] = await Promise.all([
      page.button("Allow once").boundingBox(),
      page.raw.viewportSize(),
    ]);
    ok(card.y + card.height <= window.height, "the answer is within reach");
    ok(card.height >= 30, `large enough to touch: ${card.height}`);
    await page.button("Allow once").tap();
    await page.sees(page.agent("THE END"));
  },

  async "at 360 pixels, and at a quarter of a screen"(s) {
    await s.server();
    const page = await s.page();
    await page.turn(
      "say: | a | b | c | d | e | f | g | h | i | j |\\n|-|-|-|-|-|-|-|-|-|-|\\n| aaaaaaaaaaaaaa | b | cccccccccccccccccc | d | e | f | g | hhhhhhhhhhhhhhhhhh | i | j |",
    );
    for (const size of [
      { width: 360, height: 640 },
      { width: 640, height: 400 },
      { width: 900, height: 500 },
    ]) {
      await page.raw.setViewportSize(size);
      await page.fits();
      ok(await page.field.isVisible(), `the field is in sight at ${size.width}`);
    }
  },

  async "the policy is strict, and nothing comes from elsewhere"(s) {
    const server = await s.server();
    const answer = await fetch(server.origin);
    const policy = answer.headers.get("content-security-policy");
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
    ]) {
      ok(policy.includes(rule), `${rule} in ${policy}`);
    }
    ok(!/unsafe|\*|https?:/.test(policy), `nothing loose in ${policy}`);
    const page = await s.page();
    await page.sees(page.field);
    const loaded = await page.raw.evaluate(() =>
      performance.getEntriesByType("resource").map(({ name }) => name),
    );
    ok(loaded.length > 5 && loaded.every((url) => url.startsWith(server.origin)), `${loaded}`);
    const scripts = await page.raw.evaluate(
      () => [...document.scripts].filter((one) => !one.src).length,
    );
    eq(scripts, 0, "scripts inside the document");
  },

  async "the checks themselves see a fault"(s) {
    await s.server();
    const page = await s.page();
    await page.sees(page.field);
    await page.raw.evaluate(() => {
      const img = document.createElement("img");
      img.src = "https://elsewhere.invalid/x.png";
      document.body.append(img);
      const script = document.createElement("script");
      script.textContent = "1";
      document.body.append(script);
      setTimeout(() => {
        throw new Error("on purpose");
      });
    });
    await until(
      () =>
        ["policy: img-src", "policy: script-src", "script error"].every((word) =>
          s.problems.some((told) => told.startsWith(word)),
        ),
      () => `${s.problems}`,
    );
    let failed = false;
    await s.check().catch(() => {
      failed = true;
    });
    ok(failed, "the scene fails a test whose page did this");
    s.problems.length = 0;
  },

  async "a server with a token asks for it, and then all works"(s) {
    const token = "a-token-for-the-page-0123456789";
    s.expect(/status of 401/);
    await s.server({ env: { POLYLOOP_TOKEN: token } });
    const page = await s.page();
    await page.sees(page.raw.getByText(/token/i).first());
    eq(await page.raw.locator("#app").count(), 0, "the page itself is not shown");
    await page.raw.goto(`${s.last.origin}/?token=${token}`);
    await page.turn("say: x", "LET IN");
    ok(!page.raw.url().includes(token), "the token is not in the address");
    await page.raw.reload();
    await page.sees(page.agent("LET IN"));
  },
};
