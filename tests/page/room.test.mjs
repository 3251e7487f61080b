// One open session: what it loads, what it attaches with, and what becomes of messages that could
// not be sent.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Room } from '../../crates/server/src/page/room.js';
import { browser, settled } from './stand-in.mjs';

/// Stands in for the server: `entries` are its frames, of which it gives `page` at a time.
class Server {
  constructor({ page = 200 } = {}) {
    Object.assign(this, { entries: [], page, asked: [], sockets: [], isUp: true });
    const server = this;
    globalThis.location = { origin: 'http://127.0.0.1:1' };
    globalThis.fetch = async (path) => server.answer(new URL(path, 'http://127.0.0.1'));
    globalThis.WebSocket = class {
      static CLOSED = 3;

      constructor(address) {
        Object.assign(this, { address, sent: [], readyState: 3 });
        server.sockets.push(this);
      }

      send(text) {
        this.sent.push(JSON.parse(text));
      }

      close() {
        this.isClosed = true;
      }

      tell(frame) {
        this.onmessage({ data: JSON.stringify(frame) });
      }
    };
  }

  get socket() {
    return this.sockets.at(-1);
  }

  has(...messages) {
    this.entries = messages.map((message, at) => ({
      type: 'turn_started',
      id: `evt-${at + 1}`,
      seq: at + 1,
      ...(typeof message === 'string' ? { message } : message),
    }));
  }

  answer({ searchParams }) {
    if (!this.isUp) throw new TypeError('no server');
    const before = Number(searchParams.get('before') ?? Infinity);
    this.asked.push(before);
    const found = this.entries.filter(({ seq }) => seq < before);
    const frames = found.slice(-this.page);
    const page = {
      frames,
      seq: this.entries.length,
      before: frames.length < found.length ? frames[0].seq : null,
    };
    return { ok: true, status: 200, json: async () => structuredClone(page) };
  }
}

function entered(t, id, more = {}) {
  const { container } = browser();
  const nothing = () => {};
  const notices = [];
  const told = { frame: nothing, state: nothing, sent: nothing, missing: nothing };
  told.changes = (list) =>
    notices.push(...list.filter(({ kind }) => kind === 'notice').map(({ notice }) => notice.text));
  const room = new Room(id, container, { told, ...more });
  t.after(() => room.close());
  return Object.assign(room, { notices });
}

const shown = (room) => room.session.items.map(({ text, state }) => `${state}: ${text}`);

test('a server that has forgotten is asked for all that it has', async (t) => {
  const server = new Server({ page: 2 });
  server.has('a', 'b', 'c', 'd', 'e');
  const room = entered(t, 'forgotten');
  await room.start();
  assert.equal(room.history.hasOlder, true);
  server.socket.onopen();
  // Another one has taken its place, in which others have spoken already.
  server.has('anew', 'and on');
  const stale = room.history;
  const before = server.socket;
  before.tell({ type: 'session_init', id: 'evt-r1', seq: 2, model: 'm' });
  assert.ok(before.isClosed);
  room.say('meanwhile');
  await settled();
  assert.deepEqual(shown(room), ['sent: anew', 'sent: and on', 'sending: meanwhile']);
  assert.notEqual(room.history, stale);
  assert.equal(room.history.hasOlder, false);
  assert.match(server.socket.address, /since=2(&|$)/);
  assert.equal(server.sockets.length, 2);
  await room.older();
  assert.equal(room.session.items.length, 3);
});

test('what could not be sent is there and is sent when the session is opened again', async (t) => {
  const server = new Server();
  server.has('a');
  const room = entered(t, 'left');
  await room.start();
  room.say('one');
  room.say('two');
  assert.equal(room.hasUnsent, true);
  room.close();
  const again = entered(t, 'left');
  await again.start();
  assert.deepEqual(shown(again), ['sent: a', 'sending: one', 'sending: two']);
  server.socket.onopen();
  server.socket.tell({ type: 'context_info' });
  const said = server.socket.sent.filter(({ type }) => type === 'user_message');
  assert.deepEqual(said.map(({ content }) => content), ['one', 'two']);
  // Not in another session.
  const other = entered(t, 'other');
  await other.start();
  assert.deepEqual(shown(other), ['sent: a']);
});

test('what had arrived when the session was left is not sent again', async (t) => {
  const server = new Server({ page: 2 });
  server.has('a');
  const room = entered(t, 'arrived');
  await room.start();
  server.socket.onopen();
  room.say('one');
  const [{ id }] = server.socket.sent;
  room.close();
  // So much has happened since that the newest page does not show it.
  server.has('a', { message: 'one', client_ref: id }, 'c', 'd', 'e', 'f');
  const again = entered(t, 'arrived');
  await again.start();
  assert.deepEqual(shown(again), ['a', 'one', 'c', 'd', 'e', 'f'].map((text) => `sent: ${text}`));
  assert.deepEqual(server.asked.slice(-3), [Infinity, 5, 3]);
  server.socket.onopen();
  server.socket.tell({ type: 'context_info' });
  assert.deepEqual(server.socket.sent, []);
});

test('a message that is longer than the server takes is not sent, and that is said', async (t) => {
  const server = new Server();
  const room = entered(t, 'long', { bytesMax: () => 1000 });
  await room.start();
  server.socket.onopen();
  // Each has two bytes: it is bytes that count.
  assert.equal(room.say('é'.repeat(500)), false);
  assert.deepEqual(server.socket.sent, []);
  assert.deepEqual(shown(room), []);
  assert.match(room.notices[0], /the server takes 1000/);
  assert.equal(room.say('short'), true);
  assert.equal(server.socket.sent.length, 1);
});
