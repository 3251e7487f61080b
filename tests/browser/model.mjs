// A model's server on this machine, which answers what a test tells it to, over OpenAI's chat
// interface: for what the offline model has no word for, as an answer that is cut and asked again.

import { createServer } from "node:http";
import { once } from "node:events";

export class Model {
  static async start(scene) {
    const model = new Model();
    model.server.listen(0, "127.0.0.1");
    await once(model.server, "listening");
    scene.closing.push(() => model.server.close());
    const { port } = model.server.address();
    model.env = {
      PROVIDER: "openai",
      OPENAI_WIRE_API: "chat",
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      MODEL: "small",
    };
    return model;
  }

  constructor() {
    this.script = [];
    this.server = createServer((request, answer) => {
      request.resume();
      request.on("end", () => this.reply(answer));
    });
  }

  /** What the next calls get: `{say}`, with `cut` where the answer breaks off. */
  answers(...script) {
    this.script.push(...script);
  }

  reply(answer) {
    const { say, cut } = this.script.shift() ?? { say: "I have no more to say." };
    const send = (part) => answer.write(`data: ${JSON.stringify(part)}\n\n`);
    const head = { id: "chat-1", object: "chat.completion.chunk", model: "small" };
    answer.writeHead(200, { "content-type": "text/event-stream" });
    send({ ...head, choices: [{ index: 0, delta: { role: "assistant", content: say } }] });
    if (cut) return setTimeout(() => answer.destroy(), 100);
    send({ ...head, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
    send({ ...head, choices: [], usage });
    answer.end("data: [DONE]\n\n");
  }
}
