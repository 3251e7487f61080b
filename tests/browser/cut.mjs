// A network between a page and its server that can be cut, and break off after so many bytes.

import { createServer, connect } from "node:net";
import { once } from "node:events";

export class Network {
  static async before(scene, server) {
    const network = new Network(server);
    network.listener.listen(0, "127.0.0.1");
    await once(network.listener, "listening");
    network.origin = `http://127.0.0.1:${network.listener.address().port}`;
    scene.closing.push(() => network.end());
    return network;
  }

  constructor(server) {
    Object.assign(this, { server, up: true, breaks: null, opened: 0 });
    this.pairs = new Set();
    this.listener = createServer((near) => this.join(near));
  }

  join(near) {
    if (!this.up) return near.destroy();
    this.opened += 1;
    const far = connect(this.server.port, "127.0.0.1");
    const pair = { near, far, left: this.breaks?.() ?? Infinity };
    this.pairs.add(pair);
    const end = () => {
      near.destroy();
      far.destroy();
      this.pairs.delete(pair);
    };
    for (const side of [near, far]) {
      side.on("error", end);
      side.on("close", end);
    }
    near.on("data", (data) => far.write(data));
    far.on("data", (data) => {
      if (pair.left <= 0) return;
      near.write(data.subarray(0, pair.left));
      pair.left -= data.length;
      // What was sent still arrives: a break is an end in the middle of something.
      if (pair.left <= 0) near.end(end);
    });
  }

  /** Ends every connection, and refuses new ones. */
  cut() {
    this.up = false;
    for (const { near, far } of this.pairs) {
      near.destroy();
      far.destroy();
    }
  }

  restore() {
    this.up = true;
  }

  /** Every connection from now on ends after so many bytes of the server's, as `bytes()` says. */
  breakAfter(bytes) {
    this.breaks = bytes;
    this.cut();
    this.restore();
  }

  end() {
    this.cut();
    this.listener.close();
  }
}
