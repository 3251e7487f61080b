// A model's server on this machine, which answers what a test tells it to, over OpenAI's chat
// interface: for what the offline model has no word for, as an answer that is cut and asked again.

import { createServer } from "node:http";
import { once } from "node:events";

export class Model {
  static async start(scene, name = "small") {
    const model = new Model(name);
    model.server.listen(0, "127.0.0.1");
    await once(model.server, "listening");
    scene.closing.push(() => model.server.close());
    const { port } = model.server.address();
    model.env = {
      PROVIDER: "openai",
      OPENAI_WIRE_API: "chat",
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      MODEL: name,
    };
    return model;
  }

  constructor(name) {
    this.name = name;
    this.script = [];
    this.server = createServer((request, answer) => {
      request.resume();
      request.on("end", () => this.reply(answer));
    });
  }

  /**
   * What the next calls get: `{say, calls}`, with `cut` where the answer breaks off, and `usage` as
   * [input, output]. A call is [name, arguments].
   */
  answers(...script) {
    this.script.push(...script);
  }

  reply(answer) {
    const {
      say = "",
      calls = [],
      cut,
      usage = [100, 10],
    } = this.script.shift() ?? { say: "That is all." };
    const head = { id: "chat-1", object: "chat.completion.chunk", model: this.name };
    const send = (part) => answer.write(`data: ${JSON.stringify({ ...head, ...part })}\n\n`);
    const delta = (part, finish_reason = null) =>
      send({ choices: [{ index: 0, delta: part, finish_reason }] });
    answer.writeHead(200, { "content-type": "text/event-stream" });
    delta({ role: "assistant", content: say });
    if (cut) return setTimeout(() => answer.destroy(), 100);
    for (const [index, [name, words]] of calls.entries()) {
      this.called = (this.called ?? 0) + 1;
      const call = { name, arguments: JSON.stringify(words) };
      delta({
        tool_calls: [{ index, id: `call_${this.called}`, type: "function", function: call }],
      });
    }
    delta({}, calls.length ? "tool_calls" : "stop");
    const [prompt_tokens, completion_tokens] = usage;
    const total_tokens = prompt_tokens + completion_tokens;
    send({ choices: [], usage: { prompt_tokens, completion_tokens, total_tokens } });
    answer.end("data: [DONE]\n\n");
  }
}
