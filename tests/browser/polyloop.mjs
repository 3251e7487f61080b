// One running `polyloop serve`, and a place for it.
//
// Knows the program's path, its standard output, its files and its sockets, and nothing else of it.
// Every process is ended by its id.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, closeSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const START_MS_MAX = 30_000;
const LOG_LINES_SHOWN = 30;

export class Server {
  constructor(program, place, { env = {}, store = true, command = "serve" } = {}) {
    this.command = command;
    this.program = program;
    this.place = place;
    this.log = join(place, "stderr");
    this.work = join(place, "work");
    this.store = join(place, "store");
    for (const folder of [this.work, join(place, "start"), join(place, "home")]) {
      mkdirSync(folder, { recursive: true });
    }
    this.env = {
      PATH: process.env.PATH,
      HOME: join(place, "home"),
      LANG: "C.UTF-8",
      PROVIDER: "offline",
      WORKING_DIRECTORY: this.work,
      ...(store ? { SESSION_STORE_PATH: this.store } : {}),
      ...env,
    };
  }

  /** Starts it; port 0 takes any. One that does not come up is ended. */
  async begin(port) {
    if (this.isOver) throw new Error("the test is over, and its servers with it");
    const log = openSync(this.log, "a");
    this.process = spawn(this.program, [this.command, "--port", String(port)], {
      cwd: join(this.place, "start"),
      env: this.env,
      stdio: ["ignore", "pipe", log],
    });
    closeSync(log);
    this.ended = once(this.process, "exit");
    // A program that cannot be run has no exit.
    this.ended.catch(() => {});
    this.port = await this.address().catch(async (error) => {
      if (this.process.pid) await this.kill();
      throw error;
    });
    this.origin = `http://127.0.0.1:${this.port}`;
  }

  address() {
    return new Promise((resolve, reject) => {
      let told = "";
      const fail = (why) => reject(new Error(`${why}: ${told}\n${this.said()}`));
      const timer = setTimeout(() => fail("the server said no address in time"), START_MS_MAX);
      this.process.stdout.on("data", (part) => {
        told += part;
        const found = /http:\/\/[^:/\s]+:(\d+)/.exec(told);
        if (found) resolve(Number(found[1]));
        if (found) clearTimeout(timer);
      });
      this.process.once("exit", (code) => fail(`the server ended with ${code}`));
      this.process.once("error", (error) => fail(error.message));
    });
  }

  /** For good: a test that goes on after its time was up starts it no more. */
  async end() {
    this.isOver = true;
    if (this.process?.pid) await this.kill();
  }

  /** As a power cut would. */
  async kill() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill("SIGKILL");
      await this.ended;
    }
  }

  /** Again on the same port, with the same files. */
  async again() {
    await this.begin(this.port);
  }

  async ask(method, path, body) {
    const answer = await fetch(`${this.origin}${path}`, {
      method,
      headers: body ? { "content-type": "application/json" } : {},
      body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 300)}`);
    return text ? JSON.parse(text) : null;
  }

  /** The assistant's texts of a session as its log has them, in order. */
  async texts(session) {
    const { events } = await this.ask("GET", `/sessions/${session}`);
    const items = new Map();
    for (const { message_data: message } of events) {
      const { type, role, id, content } = message?.payload ?? {};
      if (type !== "message" || role !== "assistant") continue;
      items.set(id, (items.get(id) ?? "") + content.map((part) => part.text).join(""));
    }
    return [...items.values()];
  }

  said() {
    const lines = readFileSync(this.log, "utf8").split("\n");
    return lines.slice(-LOG_LINES_SHOWN).join("\n");
  }
}
