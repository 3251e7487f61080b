// What one test has: a place, servers, browser profiles and pages, all ended with it.
//
// Every page is watched: a request to another origin, a violation of the content security policy,
// an error of a script or on the console fails the test, unless the test said that it expects it.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, extname, join, resolve } from "node:path";
import { Page } from "./page.mjs";
import { Server } from "./polyloop.mjs";

// Generous: a busy machine must not fail a test.
export const WAIT_MS = Number(process.env.WAIT_MS ?? 30_000);
const POLL_MS = 20;
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--js-flags=--expose-gc",
  "--enable-precise-memory-info",
];
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** What the runner was told. */
export const options = {
  set(words) {
    Object.assign(this, words);
    this.modules = resolve(words["node-modules"]);
    this.polyloop = resolve(words.polyloop);
  },
  /** A package of the folder that the runner was given. */
  need(name) {
    return createRequire(join(this.modules, "_.js"))(name);
  },
};

// A page from a folder comes from no address, and would not be let near a loopback one.
const FOLDER_FLAGS = [
  "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets",
];

let browser;
export function theBrowser() {
  const { chromium } = options.need("playwright-core");
  const args = options.page ? [...FLAGS, ...FOLDER_FLAGS] : FLAGS;
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  browser ??= chromium.launch({ executablePath, args });
  return browser;
}

export async function closeBrowser() {
  await (await browser)?.close();
}

const scenes = new Set();
export async function closeScenes() {
  await Promise.all([...scenes].map((scene) => scene.close()));
}

/** Waits until the probe gives something true, and returns that. */
export async function until(probe, what, ms = WAIT_MS) {
  const end = performance.now() + ms;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (performance.now() > end) {
      const told = typeof what === "function" ? await what() : what;
      throw new Error(`not within ${ms / 1000} s: ${told}`);
    }
    await new Promise((wake) => setTimeout(wake, POLL_MS));
  }
}

export function eq(got, want, what = "value") {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)];
  if (a !== b) throw new Error(`${what}:\n  got  ${a}\n  want ${b}`);
}

export function ok(is, what) {
  if (!is) throw new Error(what);
}

export class Scene {
  constructor(name) {
    Object.assign(this, { name, servers: [], contexts: [], pages: [], closing: [] });
    this.problems = [];
    this.expected = [];
    this.origins = new Set();
    scenes.add(this);
  }

  /** A server of this test's own; `env` is for it. */
  async server(settings = {}) {
    this.isOpen();
    this.place ??= await mkdtemp(join(tmpdir(), "polyloop-page-"));
    const server = new Server(options.polyloop, this.place, settings);
    // Known before it is up: whatever comes, it is ended with the test.
    this.servers.push(server);
    await server.begin(settings.port ?? 0);
    this.origins.add(server.origin);
    this.last = server;
    return server;
  }

  /** A test that goes on after its time was up gets nothing more. */
  isOpen() {
    ok(!this.closed, `${this.name}: the test is over`);
  }

  /** Problems that a test causes on purpose: what they say, as a pattern. */
  expect(...patterns) {
    this.expected.push(...patterns);
  }

  /** A person's browser: what it keeps is its own. `at` is where the page is, if not the server. */
  async page({ at, path = "/", phone = false, dark = false, context: settings = {} } = {}) {
    this.isOpen();
    const context = await (
      await theBrowser()
    ).newContext({
      viewport: phone ? { width: 390, height: 844 } : { width: 1280, height: 800 },
      hasTouch: phone,
      isMobile: phone,
      colorScheme: dark ? "dark" : "light",
      reducedMotion: "reduce",
      ...settings,
    });
    this.contexts.push(context);
    context.setDefaultTimeout(WAIT_MS);
    if (options.page) await context.route(ownFile, fromFolder);
    const origin = at ?? this.last.origin;
    this.origins.add(origin);
    return this.open(context, `${origin}${path}`);
  }

  /** Another page of the same person. */
  async open(context, address) {
    const raw = await context.newPage();
    await this.watch(raw);
    if (this.init) await raw.addInitScript(this.init);
    const page = new Page(raw, this);
    this.pages.push(page);
    await raw.goto(address);
    return page;
  }

  async watch(raw) {
    const told = (what) => this.problems.push(what);
    raw.on("pageerror", (error) => told(`script error: ${error.stack ?? error}`));
    raw.on("console", (message) => {
      if (message.type() !== "error") return;
      told(`console error: ${message.text()} ${message.location().url ?? ""}`);
    });
    raw.on("request", (request) => this.reached(request.url()));
    raw.on("websocket", (socket) => this.reached(socket.url().replace(/^ws/, "http")));
    raw.on("dialog", (dialog) => {
      told(`a dialog of the browser: ${dialog.message()}`);
      dialog.dismiss();
    });
    raw.on("popup", (popup) => told(`a window was opened: ${popup.url()}`));
    await raw.exposeFunction("__told", told);
    await raw.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        window.__told(`policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
      window.__copied = null;
      navigator.clipboard.writeText = async (text) => {
        window.__copied = text;
      };
    });
  }

  reached(url) {
    if (url.startsWith("data:") || url.startsWith("blob:")) return;
    const { origin } = new URL(url);
    if (!this.origins.has(origin)) this.problems.push(`a request left the page: ${url}`);
  }

  /** Fails the test if a page did what none may. */
  async check() {
    const unexpected = this.problems.filter((told) => !this.expected.some((one) => one.test(told)));
    ok(unexpected.length === 0, `the page did what it must not:\n${unexpected.join("\n")}`);
  }

  /** What helps to see why a test failed. */
  async shown() {
    const parts = this.problems.map((told) => `told: ${told}`);
    for (const page of this.pages) parts.push(await page.shown().catch(String));
    for (const server of this.servers) parts.push(`the server said:\n${server.said()}`);
    return parts.join("\n");
  }

  async close() {
    scenes.delete(this);
    this.closed = true;
    for (const context of this.contexts) await context.close().catch(() => {});
    for (const close of this.closing) await close();
    for (const server of this.servers) await server.end();
    if (this.place) await rm(this.place, { recursive: true, force: true });
  }
}

function ownFile(url) {
  return url.pathname === "/" || url.pathname.startsWith("/page/");
}

/** The page's own files from a folder, under the policy that the server's answer has. */
async function fromFolder(route) {
  const { pathname } = new URL(route.request().url());
  const name = pathname === "/" ? "index.html" : basename(pathname);
  const answer = await route.fetch().catch(() => null);
  if (!answer) return route.abort("connectionrefused");
  if (answer.status() !== 200 && pathname === "/") return route.fulfill({ response: answer });
  const policy = answer.headers()["content-security-policy"];
  const body = await readFile(join(options.page, name)).catch(() => null);
  if (body === null) return route.fulfill({ status: 404, body: "" });
  await route.fulfill({
    status: 200,
    body,
    headers: {
      "content-type": TYPES[extname(name)] ?? "application/octet-stream",
      ...(policy ? { "content-security-policy": policy } : {}),
    },
  });
}
