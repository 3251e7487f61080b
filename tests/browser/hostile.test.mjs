// Hostile content everywhere a stranger's words can stand: it is shown, and does nothing.

import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { eq, ok } from "./harness.mjs";
import { Client } from "./client.mjs";

const MARK = "pwned";
const HTML = `<img src=x onerror="window.${MARK}=1"><script>window.${MARK}=1</script><svg onload="window.${MARK}=1">`;
const MARKDOWN = [
  HTML,
  `[a](javascript:window.${MARK}=1)`,
  `[b](data:text/html,<script>top.${MARK}=1</script>)`,
  "![c](https://elsewhere.invalid/c.png)",
  `<a href="javascript:window.${MARK}=1">d</a>`,
  "[e](//elsewhere.invalid)",
  "<https://elsewhere.invalid/f>",
  `\`\`\`html"><script>window.${MARK}=1</script>\\n${HTML}\\n\`\`\``,
  '<style>body{display:none}</style><base href="https://elsewhere.invalid/">',
  '<form action="https://elsewhere.invalid"><button>go</button></form>',
  "<iframe src=https://elsewhere.invalid></iframe><link rel=stylesheet href=https://elsewhere.invalid/s.css>",
].join("\\n\\n");

/** Nothing ran, and no element came of a stranger's words. */
async function harmless(page) {
  const found = await page.raw.evaluate((mark) => {
    const made = [
      ...document.querySelectorAll(
        "#app script, #app iframe, #app object, #app base, #app style, #app form[action], #app link",
      ),
    ];
    const bad = [...document.querySelectorAll("#app a[href]")]
      .map((a) => a.getAttribute("href"))
      .filter((href) => !/^(https?:\/\/|mailto:|#)/i.test(href));
    const handlers = [...document.querySelectorAll("#app *")].filter((node) =>
      [...node.attributes].some(({ name }) => name.startsWith("on")),
    );
    const images = [...document.querySelectorAll("#app img")]
      .map((img) => img.getAttribute("src"))
      .filter((src) => !src.startsWith("/page/") && !src.startsWith("data:image/"));
    return {
      ran: window[mark],
      made: made.map((node) => node.outerHTML),
      bad,
      images,
      handlers: handlers.length,
    };
  }, MARK);
  eq(found, { made: [], bad: [], images: [], handlers: 0 }, "what came of hostile words");
}

export default {
  async "script in Markdown"(s) {
    await s.server();
    const page = await s.page();
    await page.turn(`say: ${MARKDOWN}`);
    await page.hasText(page.conversation, "onerror=");
    await harmless(page);
    for (const link of await page.agent("onerror").getByRole("link").all()) {
      ok(/^https?:/.test(await link.getAttribute("href")), "only links to the web are links");
    }
  },

  async "script in reasoning, a plan, a question, to-dos and a command"(s) {
    await s.server();
    const page = await s.page();
    const todos = { todos: [{ id: "1", content: HTML, status: "pending", priority: "high" }] };
    const questions = [
      {
        header: HTML,
        question: HTML,
        multiSelect: false,
        options: [
          { label: HTML, description: HTML },
          { label: "b", description: "" },
        ],
      },
    ];
    await page.say(
      [
        `think: ${HTML}`,
        `tool: todo_write ${JSON.stringify(todos)}`,
        `run: echo '${HTML}'`,
        `tool: ask_user ${JSON.stringify({ questions })}`,
        `plan: # ${HTML}`,
        "say: THE END",
      ].join("\n"),
    );
    await page.sees(page.card);
    await page.hasText(page.card, "onerror=");
    await page.card.getByRole("radio").first().check();
    await page.card.getByRole("button", { name: "Answer", exact: true }).click();
    await page.sees(page.card.getByRole("heading", { name: "The agent has a plan" }));
    await page.button("Approve").click();
    await page.sees(page.agent("THE END"));
    for (const folded of await page.conversation.locator("details:not([open]) > summary").all())
      await folded.click();
    await harmless(page);
  },

  async "script in a tool's name and arguments"(s) {
    await s.server();
    const page = await s.page();
    await page.say(
      `tool: ${HTML.replaceAll(" ", "\u00a0")} {"a":"<script>window.pwned=1</script>"}\nsay: THE END`,
    );
    await page.sees(page.agent("THE END"));
    for (const folded of await page.conversation.locator("details:not([open]) > summary").all())
      await folded.click();
    await harmless(page);
  },

  async "script in a file's name, and an edit of it"(s) {
    await s.server();
    const page = await s.page();
    await page.chooseFrom("Permission mode", "acceptEdits");
    const path = `<img src=x onerror=window.${MARK}=1>.html`;
    const write = JSON.stringify({ path, content: `${HTML}\n` });
    const edit = JSON.stringify({
      path,
      old_string: "window",
      new_string: "top",
      replace_all: true,
    });
    await page.turn(
      `tool: write_file ${write}\ntool: edit ${edit}\ntool: read ${JSON.stringify({ path })}`,
    );
    await page.hasText(page.conversation, "onerror=");
    for (const folded of await page.conversation.locator("details:not([open]) > summary").all())
      await folded.click();
    await harmless(page);
  },

  async "script in a title, a name, a queued message and the search"(s) {
    await s.server();
    const page = await s.page();
    await page.turn("say: x");
    const id = await page.session();
    await s.last.ask("PATCH", `/sessions/${id}`, { title: HTML });
    await page.hasText(page.list, "onerror=");
    const other = await Client.attach(s, id, { name: `<b onclick=window.${MARK}=1>Eve</b>` });
    other.say(`run: touch a # ${HTML}`);
    await page.sees(page.card);
    other.say(`say: ${HTML}`);
    await page.hasText(page.region("Messages that wait"), "onerror=");
    await page.raw.getByRole("searchbox").first().fill(HTML);
    await page.hasText(page.list, "onerror=");
    await page.raw.getByRole("searchbox").first().fill("");
    const { request_id } = await other.next("control_request");
    other.send("permission_response", { request_id, decision: "deny", explanation: HTML });
    await page.hasText(page.tool("touch a"), "Eve");
    await harmless(page);
  },

  async "script in a session's id, in the address and in the store"(s) {
    s.expect(/status of 40[04]/);
    const server = await s.server();
    await server.kill();
    mkdirSync(server.store, { recursive: true });
    writeFileSync(join(server.store, `<img src=x onerror=window.${MARK}=1>.jsonl`), '{"x":1}\n');
    writeFileSync(join(server.store, "..%2f<b>.jsonl"), "not json\n");
    await server.again();
    for (const id of [
      HTML,
      "../../etc/passwd",
      "a".repeat(5000),
      "%00",
      "%E0%A4%A",
      "javascript:alert(1)",
    ]) {
      const page = await s.page({ path: `/#s=${encodeURIComponent(id)}` });
      await page.sees(page.raw.getByText(/That is not a session/));
      await harmless(page);
      await page.raw.context().close();
    }
    const page = await s.page({ path: "/#s=%E0%A4%A" });
    await page.sees(page.raw.getByText(/That is not a session/));
    await harmless(page);
  },

  async "control and direction characters are made visible"(s) {
    await s.server();
    const page = await s.page();
    await page.say(
      "run: printf 'a\\033[31mred\\033[0m \\033]0;title\\007 b\\u202etxt.exe\\u202c\\bc\\n'\nsay: THE END",
    );
    await page.sees(page.agent("THE END"));
    const shown = await page.tool("printf").locator("pre.output").textContent();
    ok(shown.includes("red"), `colours are understood: ${JSON.stringify(shown)}`);
    ok(
      !/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069]/.test(shown),
      `no control or direction character is left: ${JSON.stringify(shown)}`,
    );
    await page.button("New session").first().click();
    await page.say("run: touch 'a\u202egnp.sh'\nsay: THE END");
    await page.sees(page.card);
    const asked = await page.card.textContent();
    ok(
      !/[\u202a-\u202e\u2066-\u2069]/.test(asked),
      `none in what is asked: ${JSON.stringify(asked)}`,
    );
  },

  async "another page cannot use the server"(s) {
    const server = await s.server();
    s.expect(/.*/);
    const other = createServer((_, answer) =>
      answer.setHeader("content-type", "text/html").end("<p>evil"),
    );
    await new Promise((ready) => other.listen(0, "127.0.0.1", ready));
    s.closing.push(() => other.close());
    const page = await s.page({ at: `http://127.0.0.1:${other.address().port}` });
    const got = await page.raw.evaluate(async (origin) => {
      const read = await fetch(`${origin}/sessions`).then(
        (a) => a.text(),
        () => "refused",
      );
      const made = await fetch(`${origin}/sessions`, {
        method: "POST",
        mode: "no-cors",
        body: "{}",
      }).then(
        (a) => a.status,
        () => "refused",
      );
      const socket = await new Promise((done) => {
        const ws = new WebSocket(`${origin.replace("http", "ws")}/unified?session_id=x`);
        ws.onopen = () => done("open");
        ws.onerror = () => done("refused");
      });
      return { read, made, socket };
    }, server.origin);
    eq([got.read, got.socket], ["refused", "refused"], "reading and speaking");
    const { sessions } = await server.ask("GET", "/sessions");
    eq(sessions, [], "nothing was made");
  },
};
