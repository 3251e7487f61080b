// Drives the page of a real `polyloop` in a real Chromium.
//
//     node run.mjs --polyloop PATH --node-modules DIR [--only NAME] [--jobs 2] [--page DIR] [-v]
//
// Runs every test of the files *.test.mjs beside it, each with a server, a store and a browser
// profile of its own. `--page` takes the page's files from a folder instead of the program, to try
// a change without building.

import { readdir } from "node:fs/promises";
import { parseArgs } from "node:util";
import { options, closeBrowser, closeScenes, Scene } from "./harness.mjs";

// No test takes nearly as long; one that does is stuck.
const TEST_SECS_MAX = 120;
const WORDS = {
  polyloop: { type: "string" },
  "node-modules": { type: "string" },
  only: { type: "string", default: "" },
  jobs: { type: "string", default: "2" },
  page: { type: "string" },
  verbose: { type: "boolean", short: "v", default: false },
};

/** Tests as {name, run}, in the order of their files. */
async function find(only) {
  const folder = new URL(".", import.meta.url);
  const files = (await readdir(folder)).filter((name) => name.endsWith(".test.mjs")).sort();
  const tests = [];
  for (const file of files) {
    const { default: found } = await import(new URL(file, folder));
    for (const [name, run] of Object.entries(found)) {
      tests.push({ name: `${file.replace(".test.mjs", "")}: ${name}`, run });
    }
  }
  return tests.filter(({ name }) => name.includes(only));
}

/** Null, or what went wrong. */
async function tried({ name, run }) {
  const scene = new Scene(name);
  let timer;
  const late = new Promise((_, reject) => {
    const error = new Error(`not within ${TEST_SECS_MAX} s`);
    timer = setTimeout(() => reject(error), TEST_SECS_MAX * 1000);
  });
  try {
    await Promise.race([run(scene), late]);
    await scene.check();
    return null;
  } catch (error) {
    return [error.stack ?? String(error), await scene.shown()].join("\n");
  } finally {
    clearTimeout(timer);
    await scene.close();
  }
}

async function worker(tests, results) {
  for (let next; (next = tests.shift());) {
    const began = performance.now();
    const wrong = await tried(next);
    const secs = ((performance.now() - began) / 1000).toFixed(1);
    console.log(`${wrong ? "FAIL" : "ok  "}  ${next.name} (${secs} s)`);
    if (wrong) console.log(wrong.replace(/^/gm, "      "));
    results.push(wrong === null);
  }
}

async function main() {
  const { values } = parseArgs({ options: WORDS });
  if (!values.polyloop || !values["node-modules"]) {
    throw new Error("--polyloop and --node-modules are needed; `cargo xtask ci` knows them");
  }
  options.set(values);
  const tests = await find(values.only);
  const results = [];
  const began = performance.now();
  await Promise.all(Array.from({ length: Number(values.jobs) }, () => worker(tests, results)));
  await closeBrowser();
  const passed = results.filter(Boolean).length;
  const secs = ((performance.now() - began) / 1000).toFixed(0);
  console.log(`${passed} passed, ${results.length - passed} failed in ${secs} s`);
  return results.length > 0 && passed === results.length;
}

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, async () => {
    await closeScenes();
    await closeBrowser();
    process.exit(1);
  });
}
process.exitCode = (await main()) ? 0 : 1;
