// The wire view's listening: it comes back with the page's own connection.

import assert from 'node:assert/strict';
import test from 'node:test';

import { WireFeed } from '../../crates/server/src/page/wire-feed.js';
import { settled } from './stand-in.mjs';

async function listening(t) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const sockets = [];
  globalThis.location = { href: 'http://127.0.0.1:1/', protocol: 'http:' };
  const page = JSON.stringify({ frames: [], seq: 4, before: null });
  globalThis.fetch = async () => ({ ok: true, status: 200, text: async () => page });
  globalThis.WebSocket = class {
    static CLOSED = 3;

    constructor(address) {
      Object.assign(this, { address: String(address), readyState: 3 });
      sockets.push(this);
    }

    close() {
      this.isClosed = true;
    }
  };
  const states = [];
  const feed = new WireFeed('s', 'loom', { frames() {}, state: (text) => states.push(text) });
  t.after(() => feed.close());
  await feed.open();
  await settled();
  sockets[0].onopen();
  return { feed, sockets, states };
}

test('a dead network is believed to the page’s own connection', async (t) => {
  const { feed, sockets, states } = await listening(t);
  assert.equal(states.at(-1), 'live');
  feed.follow({ state: 'waiting', why: 'The server has gone silent' });
  assert.match(states.at(-1), /gone silent/);
  assert.ok(sockets[0].isClosed);
  feed.follow({ state: 'open' });
  assert.equal(sockets.length, 2);
  assert.match(sockets[1].address, /since=4/);
  sockets[1].onopen();
  assert.equal(states.at(-1), 'live');
  // One connection at a time, whoever is first.
  feed.follow({ state: 'open' });
  t.mock.timers.tick(60_000);
  assert.equal(sockets.length, 2);
});

test('a connection of its own that is lost comes back by itself', async (t) => {
  const { sockets } = await listening(t);
  sockets[0].onclose();
  t.mock.timers.tick(500);
  assert.equal(sockets.length, 2);
});
