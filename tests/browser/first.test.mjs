// What is written goes where it was written: a first message while another session is opened,
// two at once, pictures, a title that is being changed.

import { eq, ok, until } from "./harness.mjs";

const PICTURE = {
  name: "dot.png",
  mimeType: "image/png",
  buffer: Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  ),
};

/** Holds the page's next request for a new session until `release` is called. */
async function held(page) {
  let release;
  const freed = new Promise((resolve) => {
    release = resolve;
  });
  let asked = 0;
  await page.raw.route("**/sessions", async (route) => {
    if (route.request().method() === "POST") {
      asked += 1;
      await freed;
    }
    await route.continue();
  });
  return { release, asked: () => asked };
}

async function sessionsOf(server) {
  return (await server.ask("GET", "/sessions")).sessions;
}

async function other(page) {
  await page.turn("say: x", "THE OTHER");
  const id = await page.session();
  await page.button("New session").first().click();
  await page.sees(page.raw.getByRole("heading", { name: "What shall the agent do?" }));
  return id;
}

export default {
  async "a first message does not go into a session that is opened meanwhile"(s) {
    const server = await s.server();
    const page = await s.page();
    const id = await other(page);
    const { release, asked } = await held(page);
    await page.field.fill("say: FOR A NEW ONE");
    await page.field.press("Enter");
    await until(asked, "a session is asked for");
    await page.row(/x/).first().click();
    await page.sees(page.agent("THE OTHER"));
    await page.field.fill("a draft of the other");
    release();
    await until(async () => (await sessionsOf(server)).length === 2, "the new session was made");
    await page.sees(page.toasts.getByText(/was not sent/));
    eq(await page.session(), id, "the other session stays open");
    eq(await page.user("FOR A NEW ONE").count(), 0, "and was not spoken to");
    eq(await page.field.inputValue(), "a draft of the other", "its draft stays");
    await page.row(/FOR A NEW ONE/).click();
    await until(
      async () => (await page.field.inputValue()) === "say: FOR A NEW ONE",
      "the message is the draft of the new session",
    );
    await page.field.press("Enter");
    await page.sees(page.agent("FOR A NEW ONE"));
    await page.row(/x/).first().click();
    await until(
      async () => (await page.field.inputValue()) === "a draft of the other",
      "the draft of the other",
    );
    await page.raw.reload();
    await until(
      async () => (await page.field.inputValue()) === "a draft of the other",
      "also after a reload",
    );
  },

  async "two first messages and two clicks make one session"(s) {
    const server = await s.server();
    const page = await s.page();
    const { release, asked } = await held(page);
    await page.field.fill("say: ONE");
    await page.field.press("Enter");
    await until(asked, "a session is asked for");
    await page.field.fill("say: TWO");
    await page.field.press("Enter");
    await page.field.fill("and a draft");
    release();
    await page.sees(page.agent("ONE"));
    await page.sees(page.agent("TWO"));
    await page.idle();
    eq((await sessionsOf(server)).length, 1, "sessions");
    eq(await page.field.inputValue(), "and a draft", "what was written meanwhile stays");
    await page.raw.reload();
    await until(
      async () => (await page.field.inputValue()) === "and a draft",
      "also after a reload",
    );
    await page.button("New session").first().click();
    eq(await page.field.inputValue(), "", "and it is no draft of the next session");
    await page.raw.locator(".suggestion").first().dblclick();
    await page.sees(page.conversation.locator(".user-message"));
    await page.session();
    await page.count(page.conversation.locator(".user-message"), 1, "message of the user");
    eq((await sessionsOf(server)).length, 2, "sessions after the double click");
  },

  async "pictures stay with the session where they were attached"(s) {
    const server = await s.server();
    const page = await s.page();
    const id = await other(page);
    await page.raw.locator('input[type="file"]').setInputFiles(PICTURE);
    await page.sees(page.raw.getByAltText("dot.png"));
    await page.row(/x/).first().click();
    await page.sees(page.agent("THE OTHER"));
    eq(await page.raw.getByAltText("dot.png").count(), 0, "pictures in the other session");
    await page.turn("say: y", "WITHOUT");
    const log = JSON.stringify(await server.ask("GET", `/sessions/${id}`));
    ok(!log.includes("iVBORw0KGgo"), "the picture did not go to the other session");
    await page.button("New session").first().click();
    await page.sees(page.raw.getByAltText("dot.png"));
  },

  async "a title that is being written is no other session's"(s) {
    const server = await s.server();
    const page = await s.page();
    const id = await other(page);
    await page.turn("say: x", "THE SECOND");
    const before = (await sessionsOf(server)).map((one) => [one.id, one.title]).sort();
    await page.menu("Rename");
    const field = page.raw.getByRole("textbox", { name: "Title" });
    await field.fill("A new name");
    await page.raw.evaluate((to) => {
      location.hash = `#s=${to}`;
    }, id);
    await page.sees(page.agent("THE OTHER"));
    await field.waitFor({ state: "hidden" });
    await page.raw.keyboard.press("Enter");
    await page.turn("say: x", "AFTER");
    eq((await sessionsOf(server)).map((one) => [one.id, one.title]).sort(), before, "the titles");
  },

  async "archiving a session leaves the one alone that was opened while it was asked"(s) {
    const server = await s.server();
    const page = await s.page();
    const id = await other(page);
    await page.turn("say: x", "TO BE PUT AWAY");
    const away = await page.session();
    await page.menu("Archive");
    await page.sees(page.dialog());
    await page.raw.evaluate((to) => {
      location.hash = `#s=${to}`;
    }, id);
    await page.sees(page.agent("THE OTHER"));
    await page.button("Archive", page.dialog()).click();
    await until(async () => !(await sessionsOf(server)).some((one) => one.id === away), "archived");
    eq(await page.session(), id, "the other session is open");
    await page.turn("say: x", "AND STILL ANSWERS");
  },
};
