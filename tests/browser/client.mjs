// A unified client without a page: another person in the session, or a recorder of what was sent.

import { options, until, WAIT_MS } from "./harness.mjs";

export class Client {
  /** Attaches, and has been answered when it returns. */
  static async attach(scene, session, { name, since } = {}) {
    const WebSocket = options.need("ws");
    const query = new URLSearchParams({ session_id: session, ...(name ? { name } : {}) });
    if (since !== undefined) query.set("since", since);
    const url = `${scene.last.origin.replace("http", "ws")}/unified?${query}`;
    const client = new Client(new WebSocket(url, "unified.v1"), session);
    scene.closing.push(() => client.socket.terminate());
    await client.next("session_init");
    return client;
  }

  constructor(socket, session) {
    Object.assign(this, { socket, session, seen: [], read: 0, sent: 0 });
    socket.on("message", (data) => this.seen.push(JSON.parse(data)));
    socket.on("error", (error) => this.seen.push({ type: "broken", message: String(error) }));
  }

  send(type, fields = {}) {
    this.sent += 1;
    const id = `other-${this.sent}`;
    this.socket.send(JSON.stringify({ type, id, session_id: this.session, ...fields }));
    return id;
  }

  say(content) {
    return this.send("user_message", { content });
  }

  /** The next frame of a type, behind what was read before. */
  async next(type) {
    const types = [type].flat();
    const find = () => {
      const at = this.seen.findIndex((frame, at) => at >= this.read && types.includes(frame.type));
      if (at < 0) return null;
      this.read = at + 1;
      return this.seen[at];
    };
    const came = () =>
      this.seen
        .slice(this.read)
        .map((frame) => frame.type)
        .join(" ");
    return until(find, () => `${types}; came: ${came()}`, WAIT_MS);
  }

  /** Says something and waits for the turn's end. */
  async turn(content) {
    this.say(content);
    return this.next(["turn_completed", "turn_failed"]);
  }
}
