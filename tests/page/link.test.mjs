// The connection: when it comes back, what it sends again, and when it takes a socket for dead.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Link, retryDelay, unifiedAddress } from '../../crates/server/src/page/link.js';

/// Stands in for the browser's socket; the test is the server.
class Socket {
  constructor(address) {
    this.address = address;
    this.sent = [];
    this.isClosed = false;
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

  die(code = 1006) {
    this.onclose({ code, reason: '' });
  }
}

function linked(t, { since = () => null } = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const sockets = [];
  const connect = (address) => {
    sockets.push(new Socket(address));
    return sockets.at(-1);
  };
  const link = new Link('s', {
    since,
    origin: 'http://127.0.0.1:8080',
    connect,
    random: () => 0.5,
  });
  const states = [];
  link.onstate = ({ state }) => states.push(state);
  link.open();
  return { link, sockets, states, pass: (ms) => t.mock.timers.tick(ms) };
}

test('delays double up to half a minute, and no two pages have the same', () => {
  for (const random of [0, 0.5, 0.999]) {
    const delays = Array.from({ length: 12 }, (_, failures) => retryDelay(failures, random));
    assert.ok(
      delays.every((delay, at) => at === 0 || delay >= delays[at - 1]),
      String(delays),
    );
    assert.ok(delays[0] >= 250 && delays[0] <= 500);
    assert.ok(delays.at(-1) >= 15_000 && delays.at(-1) <= 30_000);
  }
  assert.notEqual(retryDelay(4, 0.1), retryDelay(4, 0.9));
  assert.ok(Number.isFinite(retryDelay(10_000, 0.5)));
});

test('the address names the session and the place, whatever is in them', () => {
  const address = unifiedAddress('https://h:1', {
    sessionId: 'a&b',
    since: '14+1~12t57',
    name: 'Ann Lee+',
  });
  assert.equal(address, 'wss://h:1/unified?session_id=a%26b&since=14%2B1~12t57&name=Ann%20Lee%2B');
  assert.equal(
    unifiedAddress('http://h', { sessionId: 's', since: null }),
    'ws://h/unified?session_id=s',
  );
});

test('it comes back from where the session stands', (t) => {
  let place = null;
  const { sockets, states, pass } = linked(t, { since: () => place });
  sockets[0].onopen();
  place = '7~6t3';
  sockets[0].die();
  assert.deepEqual(states, ['connecting', 'open', 'waiting']);
  pass(500);
  assert.equal(sockets.length, 2);
  assert.match(sockets[1].address, /since=7~6t3/);
});

test('each failure waits longer, and a frame makes good', (t) => {
  const { link, sockets, pass } = linked(t);
  const delays = [];
  link.onstate = ({ state, retryInMs }) => {
    if (state === 'waiting') delays.push(retryInMs);
  };
  for (let n = 0; n < 4; n += 1) {
    sockets.at(-1).die();
    pass(60_000 < delays.at(-1) ? 60_000 : delays.at(-1));
  }
  assert.deepEqual(delays, [375, 750, 1500, 3000]);
  sockets.at(-1).onopen();
  sockets.at(-1).tell({ type: 'heartbeat' });
  sockets.at(-1).die();
  assert.equal(delays.at(-1), 375);
});

test('a message that nobody spoke of is sent again, once it is known that it did not arrive', (t) => {
  const { link, sockets, pass } = linked(t);
  sockets[0].onopen();
  link.send({ type: 'user_message', id: 'm-1', content: 'one' });
  link.send({ type: 'user_message', id: 'm-2', content: 'two' });
  sockets[0].die();
  link.send({ type: 'user_message', id: 'm-3', content: 'three' });
  pass(500);
  const back = sockets[1];
  back.onopen();
  assert.deepEqual(
    back.sent.map((message) => message.type),
    ['get_context'],
  );
  // What was missed comes first; it shows that the first message had arrived.
  back.tell({ type: 'turn_started', client_ref: 'm-1' });
  back.tell({ type: 'message_queued', client_ref: 'm-2', message_id: 'queued-2' });
  back.tell({ type: 'context_info' });
  assert.deepEqual(
    back.sent.slice(1).map((message) => message.id),
    ['m-3'],
  );
  link.send({ type: 'user_message', id: 'm-4', content: 'four' });
  assert.deepEqual(back.sent.at(-1).id, 'm-4');
});

test('a second loss before the answer keeps what is not known', (t) => {
  const { link, sockets, pass } = linked(t);
  link.send({ type: 'user_message', id: 'm-1', content: 'one' });
  sockets[0].onopen();
  sockets[0].die();
  pass(500);
  sockets[1].onopen();
  sockets[1].tell({ type: 'context_info' });
  assert.deepEqual(
    sockets[1].sent.map((message) => message.type),
    ['get_context', 'user_message'],
  );
  assert.equal(sockets[1].sent[1].session_id, 's');
});

test('a complaint about the question lets what is kept go too', (t) => {
  const { link, sockets } = linked(t);
  link.send({ type: 'user_message', id: 'm-1', content: 'one' });
  sockets[0].onopen();
  const [question] = sockets[0].sent;
  sockets[0].tell({ type: 'error', message: 'No such thing' });
  assert.equal(sockets[0].sent.length, 1);
  sockets[0].tell({ type: 'error', message: 'No such session', client_ref: question.id });
  assert.equal(sockets[0].sent.at(-1).id, 'm-1');
});

test('nothing but messages is sent later than it was meant', (t) => {
  const { link, sockets, pass } = linked(t);
  assert.equal(link.send({ type: 'interrupt' }), false);
  assert.equal(
    link.send({ type: 'user_message', content: 'an answer', parent_tool_use_id: 'req-1' }),
    false,
  );
  sockets[0].onopen();
  assert.equal(link.send({ type: 'interrupt' }), true);
  sockets[0].die();
  pass(500);
  sockets[1].onopen();
  assert.deepEqual(sockets[1].sent, []);
});

test('a silent socket is taken for dead, and so is one that does not answer', (t) => {
  const { link, sockets, states, pass } = linked(t);
  sockets[0].onopen();
  pass(70_000);
  sockets[0].tell({ type: 'heartbeat' });
  pass(70_000);
  assert.equal(states.at(-1), 'open');
  pass(6_000);
  assert.equal(states.at(-1), 'waiting');
  assert.ok(sockets[0].isClosed);
  pass(500);
  sockets[1].onopen();
  link.send({ type: 'interrupt' });
  // It is asked once more before it is given up.
  pass(16_000);
  assert.equal(states.at(-1), 'open');
  assert.equal(sockets[1].sent.at(-1).type, 'get_context');
  pass(16_000);
  assert.equal(states.at(-1), 'waiting');
});

test('who is busy is not taken for dead', (t) => {
  const { link, sockets, states, pass } = linked(t);
  sockets[0].onopen();
  link.send({ type: 'permission_response', request_id: 'r', decision: 'explain' });
  pass(60_000);
  assert.equal(states.at(-1), 'open');
  assert.equal(sockets[0].sent.length, 1);
  // A large message is on its way; heartbeats come, or else it is silence that ends it.
  sockets[0].tell({ type: 'heartbeat' });
  sockets[0].bufferedAmount = 1;
  link.send({ type: 'user_message', id: 'm-1', content: 'long' });
  pass(60_000);
  assert.equal(states.at(-1), 'open');
  assert.equal(sockets[0].sent.length, 2);
  sockets[0].bufferedAmount = 0;
  pass(15_000);
  assert.equal(states.at(-1), 'waiting');
});

test('a message that is too large is refused once, and the others are sent', (t) => {
  const { link, sockets, pass } = linked(t);
  const refused = [];
  link.onrefused = (id, why) => refused.push([id, why]);
  sockets[0].onopen();
  link.send({ type: 'user_message', id: 'm-1', content: 'x'.repeat(500) });
  link.send({ type: 'user_message', id: 'm-2', content: 'short' });
  sockets[0].die(1009);
  assert.deepEqual(refused, [['m-1', 'A message was larger than the server takes']]);
  pass(500);
  sockets[1].onopen();
  sockets[1].tell({ type: 'context_info' });
  const said = sockets[1].sent.filter(({ type }) => type === 'user_message');
  assert.deepEqual(said.map(({ id }) => id), ['m-2']);
});

test('a closed link stays closed, and old sockets are not listened to', (t) => {
  const { link, sockets, states, pass } = linked(t);
  let frames = 0;
  link.onframe = () => {
    frames += 1;
  };
  sockets[0].onopen();
  const hear = sockets[0].onmessage;
  link.close();
  pass(600_000);
  hear({ data: '{"type":"heartbeat"}' });
  assert.equal(frames, 0);
  assert.equal(sockets.length, 1);
  assert.equal(states.at(-1), 'closed');
});

test('what is no JSON is passed over', (t) => {
  const { link, sockets } = linked(t);
  const frames = [];
  link.onframe = (frame) => frames.push(frame.type);
  sockets[0].onopen();
  sockets[0].onmessage({ data: '{broken' });
  sockets[0].tell({ type: 'heartbeat' });
  assert.deepEqual(frames, ['heartbeat']);
});
