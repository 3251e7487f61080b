// Who is said to have said what.

import assert from 'node:assert/strict';
import test from 'node:test';

globalThis.localStorage = { getItem: (name) => (name === 'polyloop.name' ? '"Ann"' : null) };
const { saidBy } = await import('../../crates/server/src/page/item-message.js');

test('only what is one’s own is said to be', () => {
  assert.equal(saidBy({ by: 'Ann', state: 'sent' }), 'You said');
  assert.equal(saidBy({ by: 'Bob', state: 'sent' }), 'Bob said');
  assert.equal(saidBy({ by: null, state: 'sending' }), 'You said');
  assert.equal(saidBy({ by: 'a client of AgentLoop', state: 'sent' }), 'The user said');
  assert.equal(saidBy({ by: null, state: 'sent' }), 'The user said');
});
