// An AgentLoop client as its protocol's document tells client authors to write one: pieces of a
// message are put together by item id, shell items wait while an approval is pending, and a lost
// connection is opened again where it broke off.

import { createRequire } from "node:module";
import { join } from "node:path";

const WAIT_MS = 30_000;
const require = createRequire(join(process.env.TEST_NODE_MODULES, "_.js"));
export const WebSocket = require("ws");

/** Puts streamed messages together, and keeps what a terminal would show. */
export class Screen {
  constructor() {
    this.open = new Map();
    this.shown = "";
    this.messages = [];
    this.pendingApproval = false;
    this.heldBack = [];
    this.order = [];
  }

  item(item) {
    const isShell = item.type === "local_shell_call" || item.type === "local_shell_call_output";
    if (this.pendingApproval && isShell) {
      this.heldBack.push(item);
      return;
    }
    if (item.type === "message" && item.role === "assistant") {
      this.piece(item);
    } else {
      this.order.push(item.type === "message" ? item.role : item.type);
    }
  }

  piece(item) {
    const parts = Array.isArray(item.content) ? item.content : [item.content ?? ""];
    const text = parts.map((part) => part.text ?? part).join("");
    let message = this.open.get(item.id);
    if (!message) {
      message = { id: item.id, text: "", hasPrefix: false };
      this.open.set(item.id, message);
      this.messages.push(message);
      this.order.push("assistant");
    }
    if (!message.hasPrefix && text.trim()) {
      this.shown += "assistant: ";
      message.hasPrefix = true;
    }
    message.text += text;
    if (message.hasPrefix) this.shown += text;
  }

  /** A turn ended: what was open is whole. */
  finish() {
    for (const message of this.open.values()) {
      if (message.hasPrefix) this.shown += "\n";
    }
    this.open.clear();
  }

  decided() {
    this.pendingApproval = false;
    const held = this.heldBack;
    this.heldBack = [];
    held.forEach((item) => this.item(item));
  }
}

/** One connection; messages are taken one by one, in order, each within a deadline. */
export class Connection {
  static async open(url) {
    const socket = new WebSocket(url);
    const connection = new Connection(socket);
    await within(new Promise((done, fail) => {
      socket.once("open", done);
      socket.once("error", fail);
    }), `open ${url}`);
    return connection;
  }

  constructor(socket) {
    this.socket = socket;
    this.waiting = [];
    this.arrived = [];
    socket.on("message", (data) => {
      const message = JSON.parse(data.toString());
      if (typeof message.id !== "string" || typeof message.type !== "string") {
        throw new Error(`no valid message: ${data}`);
      }
      const taker = this.waiting.shift();
      if (taker) taker(message);
      else this.arrived.push(message);
    });
    socket.on("error", () => {});
  }

  send(type, payload) {
    this.socket.send(JSON.stringify({ id: crypto.randomUUID(), type, payload }));
  }

  say(text) {
    const content = [{ type: "input_text", text }];
    this.send("user_input", { input: [{ type: "message", role: "user", content }] });
  }

  next() {
    if (this.arrived.length > 0) return Promise.resolve(this.arrived.shift());
    return within(new Promise((taker) => this.waiting.push(taker)), "a message");
  }
}

function within(promise, what) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not in time: ${what}`)), WAIT_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export function report(result) {
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
}
