// The dock of requests: whose answer a settled one was.

import assert from 'node:assert/strict';
import test from 'node:test';

// A module beneath listens as soon as it is there; here nothing is pressed.
globalThis.document ??= { addEventListener() {} };
globalThis.addEventListener ??= () => {};
const { Waits } = await import('../../crates/server/src/page/waits.js');

/// A dock that shows nothing, with requests that wait.
function dock(...ids) {
  const waits = new Waits({ addEventListener() {} }, { send: () => true });
  waits.session = { waits: new Map(ids.map((id) => [id, {}])) };
  return waits;
}
const settled = (waits, request_id, decision, by = 'Ann') =>
  waits.settled({ request_id, decision, by });
const respond = (decision) => ({ type: 'permission_response', decision });

test('what was decided here is not told, what others decided is', () => {
  const waits = dock('a', 'b', 'c');
  waits.answer('a', respond('allow'));
  assert.equal(settled(waits, 'a', 'allow'), null);
  assert.equal(settled(waits, 'b', 'deny'), 'Denied by Ann');
  waits.answer('c', { type: 'user_question_response', answers: [] });
  assert.equal(settled(waits, 'c', 'answered'), null);
});

test('asking why decides nothing, and another answer may come first', () => {
  const waits = dock('a', 'b', 'c');
  waits.answer('a', respond('explain'));
  assert.equal(settled(waits, 'a', 'allow'), 'Allowed by Ann');
  waits.answer('b', respond('allow'));
  assert.equal(settled(waits, 'b', 'deny'), 'Denied by Ann');
  waits.answer('c', { type: 'cancel', target_id: 'c' });
  assert.equal(settled(waits, 'c', 'answered'), 'Answered by Ann');
});

test('who stops the turn is not told that its requests were withdrawn', () => {
  const waits = dock('a', 'b', 'c');
  waits.answer('a', respond('deny_stop'));
  assert.equal(settled(waits, 'a', 'deny_stop'), null);
  assert.equal(settled(waits, 'b', 'withdrawn', null), null);
  const others = dock('c');
  others.stopped();
  assert.equal(settled(others, 'c', 'withdrawn', null), null);
  assert.equal(settled(dock('d'), 'd', 'withdrawn', null), 'Withdrawn in another client');
});
