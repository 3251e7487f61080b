// The list of sessions: search, new, rename, archive, fork, where each stands.

import { eq, ok, until } from "./harness.mjs";
import { Client } from "./client.mjs";

async function begun(page, title, script = "say: x") {
  await page.button("New session").first().click();
  await page.turn(script, title);
  await page.menu("Rename");
  const field = page.raw.getByRole("textbox", { name: "Title" });
  await field.fill(title);
  await field.press("Enter");
  await page.sees(page.row(title));
  return page.session();
}

export default {
  async "sessions are listed, searched and opened"(s) {
    await s.server();
    const page = await s.page();
    const first = await begun(page, "Apples and pears");
    await begun(page, "Bridges", "say: a bridge over water");
    await page.raw.getByRole("searchbox").fill("APPLES");
    await page.row("Bridges").waitFor({ state: "hidden" });
    await page.row("Apples").click();
    await page.sees(page.agent("Apples and pears"));
    eq(await page.session(), first, "the one that was found is open");
    await page.raw.getByRole("searchbox").fill("no such thing");
    await page.sees(page.list.getByText("Nothing matches"));
    await page.raw.getByRole("searchbox").fill("");
    await page.sees(page.row("Bridges"));
  },

  async "a session is renamed in the head and in the list"(s) {
    await s.server();
    const page = await s.page();
    const id = await begun(page, "First name");
    await page.head.getByRole("button", { name: /First name/ }).click();
    const field = page.raw.getByRole("textbox", { name: "Title" });
    await field.fill("Second name");
    await field.press("Enter");
    await page.sees(page.row("Second name"));
    await page.button("More for Second name").click();
    await page.raw.getByRole("menuitem", { name: "Rename" }).click();
    await page.dialog().getByRole("textbox").fill("Third name");
    await page.button("Rename", page.dialog()).click();
    await page.sees(page.row("Third name"));
    await page.sees(page.raw.getByRole("heading", { name: "Third name" }));
    const { sessions } = await s.last.ask("GET", "/sessions");
    eq(sessions.find((one) => one.id === id).title, "Third name", "the server knows");
  },

  async "a session is archived"(s) {
    await s.server();
    const page = await s.page();
    const id = await begun(page, "To be put away");
    await page.button("More for To be put away").click();
    await page.raw.getByRole("menuitem", { name: "Archive" }).click();
    await page.button("Archive", page.dialog()).click();
    await page.row("To be put away").waitFor({ state: "detached" });
    await page.sees(page.toasts.getByText(/archived/));
    const { sessions } = await s.last.ask("GET", "/sessions");
    ok(!sessions.some((one) => one.id === id), "the server has it no longer");
    await page.sees(page.raw.getByRole("heading", { name: "New session" }));
  },

  async "a session is forked, and goes its own way"(s) {
    const server = await s.server();
    const page = await s.page();
    const id = await begun(page, "The trunk");
    await page.turn("say: later", "LATER");
    await page.agent("The trunk").hover();
    await page.agent("The trunk").getByRole("button", { name: /Fork/ }).click();
    await until(async () => (await page.session()) !== id, "the fork is open");
    await page.sees(page.agent("The trunk"));
    eq(await page.agent("LATER").count(), 0, "what came after is not in it");
    await page.turn("say: another way", "ON THE BRANCH");
    const texts = await server.texts(id);
    ok(!texts.join().includes("ON THE BRANCH"), "the trunk knows nothing of it");
    await page.menu("Fork");
    await page.sees(page.toasts.getByText(/fork/).first());
  },

  async "the list says which session works and which waits"(s) {
    await s.server();
    const page = await s.page();
    await begun(page, "Stays open");
    const other = await Client.attach(s, "elsewhere", { name: "Ann" });
    other.say("run: touch a");
    await other.next("control_request");
    await page.sees(page.list.getByRole("link", { name: /touch a.*waits for you/s }));
    other.send("interrupt");
    await other.next("turn_failed");
    await page.sees(page.list.getByRole("link", { name: /touch a.*idle/s }));
  },

  async "an address of no session says so, and can begin it"(s) {
    await s.server();
    s.expect(/status of 404/);
    const page = await s.page({ path: "/#s=not-there" });
    await page.sees(page.raw.getByText("There is no such session"));
    await page.button("Begin it under this id").click();
    await page.turn("say: here", "BEGUN");
    eq(await page.session(), "not-there", "its id");
    await page.raw.evaluate(() => {
      location.hash = "#s=" + encodeURIComponent("../etc/<b>x");
    });
    await page.sees(page.raw.getByText("That is not a session"));
    await page.sees(page.raw.getByText("../etc/<b>x"));
  },
};
