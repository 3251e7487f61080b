// Makes the README's pictures of the page, from the running product.
//
//     node screenshots.mjs --polyloop PATH --node-modules DIR --into DIR [--page DIR]
//
// A scripted model on this machine does a small piece of work, up to where it asks for leave.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { closeBrowser, ok, options, Scene, theBrowser } from "./harness.mjs";
import { Model } from "./model.mjs";

const BYTES_MAX = 80_000;
const SCRIPT = '#!/bin/sh\n# Greets.\nset -eu\n\necho "Hello, world!"\n';
const BEFORE = 'echo "Hello, world!"';
const AFTER = 'for name in "${@:-world}"; do\n  echo "Hello, $name!"\ndone';
const OTHERS = ["Why is the build slow?", "Compare three ways to store settings", "Release notes"];
const ASKED = "Let greet.sh greet everyone by name";

const TODOS = ["Read the script", "Take names as arguments", "Check both ways"].map(
  (content, at) => ({
    id: String(at),
    content,
    status: ["completed", "in_progress", "pending"][at],
    priority: "medium",
  }),
);

/** The work, as the model does it. */
const WORK = [
  {
    say: "I look at the script first.",
    calls: [
      ["read", { path: "greet.sh" }],
      ["todo_write", { todos: TODOS }],
    ],
    usage: [9_800, 90],
  },
  {
    say: "It greets one and the same. I let it go through its arguments; `${@:-world}` stands in where there are **none**:",
    calls: [["edit", { path: "greet.sh", old_string: BEFORE, new_string: AFTER }]],
    usage: [24_300, 210],
  },
  {
    say: "Now both ways, with names and without:\n\n```sh\nsh greet.sh Ada Grace   # one line each\nsh greet.sh             # Hello, world!\n```",
    calls: [["bash", { command: "chmod +x greet.sh && ./greet.sh Ada Grace" }]],
    usage: [41_800, 160],
  },
];

async function ready(scene, looks) {
  const model = await Model.start(scene, "local-coder");
  const server = await scene.server();
  await server.kill();
  const [table, work] = [join(scene.place, "models.json"), join(tmpdir(), "greetings")];
  // It is seen in the picture, so it has a name that can be read; one that is there is not ours.
  mkdirSync(work);
  scene.closing.push(() => rmSync(work, { recursive: true }));
  writeFileSync(
    table,
    JSON.stringify([{ match: "local-coder", context: 128_000, input_usd: 0.6, output_usd: 2.4 }]),
  );
  writeFileSync(join(work, "greet.sh"), SCRIPT);
  const env = { ...model.env, MODELS_FILE: table, WORKING_DIRECTORY: work };
  const running = await scene.server({ env });
  for (const title of OTHERS) await running.ask("POST", "/sessions", { title });
  model.answers(...WORK);
  const page = await scene.page(looks);
  await page.chooseFrom("Permission mode", "acceptEdits");
  await page.say(ASKED);
  await page.sees(page.button("Allow once"));
  if (looks.phone) await page.region("To-do list").getByRole("button").first().click();
  await page.raw.mouse.move(0, 0);
  await page.raw.evaluate(() => document.fonts.ready);
  return page;
}

/** A picture as WebP, which the browser itself makes. */
async function webp(png) {
  const context = await (await theBrowser()).newContext();
  const page = await context.newPage();
  const made = await page.evaluate(
    async (source) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height);
      canvas.getContext("2d").drawImage(image, 0, 0);
      const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.86 });
      return [...new Uint8Array(await blob.arrayBuffer())];
    },
    `data:image/png;base64,${png.toString("base64")}`,
  );
  await context.close();
  return Buffer.from(made);
}

async function take(name, looks, into) {
  const scene = new Scene(name);
  try {
    const page = await ready(scene, looks);
    const picture = await webp(await page.raw.screenshot());
    ok(
      picture.length <= BYTES_MAX,
      `${name}.webp has ${picture.length} bytes; at most ${BYTES_MAX}`,
    );
    writeFileSync(join(into, `${name}.webp`), picture);
    console.log(`${name}.webp  ${picture.length} bytes`);
    await scene.check();
  } finally {
    await scene.close();
  }
}

const WORDS = {
  polyloop: { type: "string" },
  "node-modules": { type: "string" },
  into: { type: "string" },
  page: { type: "string" },
};
const { values } = parseArgs({ options: WORDS });
options.set(values);
mkdirSync(values.into, { recursive: true });
const WIDE = { context: { viewport: { width: 1280, height: 1000 } } };
try {
  await take("light", WIDE, values.into);
  await take("dark", { ...WIDE, dark: true }, values.into);
  await take("phone", { phone: true }, values.into);
} finally {
  await closeBrowser();
}
