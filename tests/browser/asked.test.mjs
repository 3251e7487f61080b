// Questions as forms, plans to approve or to send back.

import { eq, ok, until } from "./harness.mjs";

const question = (text, labels, several = false) => ({
  header: text.slice(0, 6),
  question: text,
  multiSelect: several,
  options: labels.map((label) => ({ label, description: `it is ${label}` })),
});
const ask = (...questions) => `tool: ask_user ${JSON.stringify({ questions })}\nsay: THE END`;

async function answered(s, page) {
  await page.sees(page.agent("THE END"));
  const log = JSON.stringify(await s.last.ask("GET", `/sessions/${await page.session()}`));
  return /The user answered[^"]*/.exec(log)?.[0] ?? log.slice(-2000);
}

export default {
  async "one of several options"(s) {
    await s.server();
    const page = await s.page();
    await page.say("ask: Which colour? | red | green\nsay: THE END");
    await page.sees(page.card.getByRole("heading", { name: "The agent has a question" }));
    const send = page.card.getByRole("button", { name: "Answer", exact: true });
    ok(await send.isDisabled(), "nothing to send yet");
    await page.card.getByRole("radio", { name: "green" }).check();
    await send.click();
    ok((await answered(s, page)).includes("green"), "the agent is told");
    await page.hasText(page.conversation, "Answered");
  },

  async "several options and several questions"(s) {
    await s.server();
    const page = await s.page();
    await page.say(
      ask(question("Which ones?", ["red", "green", "blue"], true), question("And?", ["yes", "no"])),
    );
    await page.hasText(page.card, "it is blue");
    await page.card.getByRole("checkbox", { name: "red" }).check();
    await page.card.getByRole("checkbox", { name: "blue" }).check();
    ok(
      await page.card.getByRole("button", { name: "Answer", exact: true }).isDisabled(),
      "one question is open",
    );
    await page.card.getByRole("radio", { name: "no" }).check();
    await page.card.getByRole("button", { name: "Answer", exact: true }).click();
    const told = await answered(s, page);
    ok(told.includes("red") && told.includes("blue") && told.includes("no"), told);
  },

  async "in one's own words"(s) {
    await s.server();
    const page = await s.page();
    await page.say("ask: Which colour? | red | green\nsay: THE END");
    await page.card.getByRole("radio", { name: "red" }).check();
    await page.card.getByRole("textbox").fill("a dark turquoise");
    ok(
      !(await page.card.getByRole("radio", { name: "red" }).isChecked()),
      "words replace the option",
    );
    await page.card.getByRole("textbox").press("Enter");
    ok((await answered(s, page)).includes("a dark turquoise"), "the agent is told");
  },

  async "by a digit and Enter"(s) {
    await s.server();
    const page = await s.page();
    await page.say("ask: Which colour? | red | green\nsay: THE END");
    await page.card.focus();
    const second = page.card.getByRole("radio", { name: "green" });
    await until(async () => {
      await page.raw.keyboard.press("2");
      return second.isChecked();
    }, "the digit chooses");
    await page.raw.keyboard.press("Enter");
    ok((await answered(s, page)).includes("green"), "the agent is told");
  },

  async "a question that is not answered is withdrawn"(s) {
    await s.server();
    const page = await s.page();
    await page.say("ask: Which colour? | red | green\nsay: THE END");
    await page.button("Do not answer").click();
    await page.sees(page.agent("THE END"));
    await page.region("Waiting for you").waitFor({ state: "hidden" });
  },

  async "a plan is sent back with words, then approved"(s) {
    await s.server();
    const page = await s.page();
    await page.say("plan: # First\\n1. look\nplan: # Second\\n1. look\\n2. act\nsay: THE END");
    await page.sees(page.card.getByRole("heading", { name: "First" }));
    await page.button("Send back…").click();
    await page.raw.getByLabel(/What should be different/).fill("say what you do then");
    await page.button("Send back", page.card).click();
    await page.sees(page.card.getByRole("heading", { name: "Second" }));
    await page.button("Approve").click();
    await page.sees(page.agent("THE END"));
    const log = JSON.stringify(await s.last.ask("GET", `/sessions/${await page.session()}`));
    ok(log.includes("say what you do then"), "the agent was told what should be different");
  },

  async "a plan is approved with the mode that comes after"(s) {
    await s.server();
    const page = await s.page();
    await page.chooseFrom("Permission mode", "plan");
    await page.say('plan: # Do it\ntool: write_file {"path":"a","content":"x"}\nsay: THE END');
    await page.card.getByRole("combobox").selectOption("acceptEdits");
    await page.button("Approve").click();
    await page.sees(page.agent("THE END"));
    eq(
      await page.raw.getByLabel("Permission mode", { exact: true }).inputValue(),
      "acceptEdits",
      "the mode",
    );
    await page.hasText(page.tool("Write"), "Done");
  },
};
