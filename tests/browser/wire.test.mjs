// The wire view: this session's frames as any of the four dialects carries them.

import { eq, options, until } from "./harness.mjs";

const PATHS = {
  unified: (id) => `/unified?session_id=${id}&since=0`,
  agentloop: (id) => `/agentloop/${id}?since=0`,
  loom: (id) => `/loom?thread_id=${id}&since=0`,
  chat: (id) => `/chat?session_id=${id}&since=0`,
};

async function watched(s) {
  await s.server();
  const page = await s.page();
  await page.turn("think: hm\nrun: echo from-the-tool", "BEFORE");
  await page.button("Wire view").click();
  const view = page.raw.getByRole("complementary", { name: "Wire view" });
  await page.sees(view);
  return { page, view, rows: view.locator("li.wire-row") };
}

/** What a client of the dialect is sent that comes now and replays everything. */
async function replayed(s, dialect, id) {
  const WebSocket = options.need("ws");
  const url = s.last.origin.replace("http", "ws") + PATHS[dialect](id);
  const socket = new WebSocket(url, `${dialect}.v1`);
  s.closing.push(() => socket.terminate());
  const frames = [];
  socket.on("message", (data) => frames.push(JSON.parse(data)));
  const end = {
    unified: "turn_completed",
    agentloop: "agent_finished",
    loom: "run_end",
    chat: "agent_message",
  };
  await until(() => frames.some((frame) => frame.type === end[dialect]), `a replay in ${dialect}`);
  socket.terminate();
  return frames;
}

/** What is about a connection and not about the session. */
const own = ({ type }) => !["session_init", "heartbeat", "context_info"].includes(type);
/** All of a frame but its own name and how far it reaches within an item, in one order. */
const says = ({ id, cursor, ...frame }) => JSON.stringify(Object.entries(frame).sort());

export default {
  async "every dialect's frames, as a client of it is sent them"(s) {
    const { page, view, rows } = await watched(s);
    const id = await page.session();
    for (const dialect of Object.keys(PATHS)) {
      await view.getByRole("tab", { name: dialect }).click();
      const want = (await replayed(s, dialect, id)).filter(own).map(says);
      const shown = async () => {
        const text = await page.copiedBy(view.getByRole("button", { name: /Copy all/ }));
        return text
          .split("\n")
          .map((line) => JSON.parse(line))
          .filter(own)
          .map(says);
      };
      await until(
        async () => (await rows.count()) >= want.length,
        `${want.length} rows of ${dialect}`,
      );
      eq((await shown()).slice(0, want.length), want, `frames of ${dialect}`);
    }
  },

  async "frames come live in every dialect"(s) {
    const { page, view, rows } = await watched(s);
    const live = {
      unified: "turn_completed",
      agentloop: "agent_finished",
      loom: "run_end",
      chat: "agent_message",
    };
    for (const [dialect, type] of Object.entries(live)) {
      await view.getByRole("tab", { name: dialect }).click();
      await page.hasText(view, "live");
      const ends = rows.filter({ hasText: type });
      const before = await until(() => ends.count(), `an end in ${dialect}`);
      await page.turn("say: once more", dialect);
      await until(async () => (await ends.count()) === before + 1, `another ${type} in ${dialect}`);
    }
  },

  async "a frame is unfolded and copied as it is"(s) {
    const { page, rows } = await watched(s);
    const row = rows.filter({ hasText: "tool_completed" }).first();
    await row.getByRole("button", { expanded: false }).click();
    await page.hasText(row.locator("pre"), "from-the-tool");
    const copied = JSON.parse(await page.copiedBy(row.getByRole("button", { name: /Copy this/ })));
    eq(
      [copied.type, copied.result.trim()],
      ["tool_completed", "from-the-tool"],
      "the copied frame",
    );
    eq(copied.session_id, await page.session(), "its session");
  },

  async "what the page sends is shown too, in unified"(s) {
    const { page, rows } = await watched(s);
    await page.turn("say: x", "SENT BY THE PAGE");
    const sent = rows.filter({ hasText: "user_message" }).filter({ hasText: "SENT BY THE PAGE" });
    await page.sees(sent.first());
    await page.hasText(sent.first(), "sent");
  },

  async "frames are filtered, and the view is paused"(s) {
    const { page, view, rows } = await watched(s);
    await page.hasText(view, "live");
    await view.getByRole("searchbox").fill("from-the-tool");
    await until(async () => {
      const seen = await rows.filter({ visible: true }).count();
      return seen > 0 && seen < (await rows.count());
    }, "only frames that match are in sight");
    await view.getByRole("searchbox").fill("");
    await page.button("Pause", view).click();
    const before = await rows.count();
    await page.turn("say: x", "WHILE PAUSED");
    eq(await rows.count(), before, "nothing came while it was paused");
    await view.getByRole("button", { name: /Go on/ }).click();
    await until(async () => (await rows.count()) > before, "what waited came");
    await page.button("Pause", view).click();
    await view.getByRole("tab", { name: "loom" }).click();
    await page.sees(rows.filter({ hasText: "run_end" }).first());
    await page.button("Close the wire view").click();
    await view.waitFor({ state: "hidden" });
  },
};
