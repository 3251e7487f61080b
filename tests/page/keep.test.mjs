// Drafts: kept per session, and not written down at every key.

import assert from 'node:assert/strict';
import test from 'node:test';

const stored = new Map();
let writes = 0;
globalThis.localStorage = {
  getItem: (name) => stored.get(name) ?? null,
  setItem: (name, text) => {
    writes += 1;
    stored.set(name, text);
  },
  removeItem: (name) => stored.delete(name),
};
const { draft, keepDraft, keepDrafts } = await import('../../crates/server/src/page/keep.js');

test('many keys are one write, and each session has its own draft', () => {
  for (let typed = 1; typed <= 200; typed += 1) keepDraft('a', 'x'.repeat(typed));
  keepDraft('b', 'other');
  assert.equal(draft('a'), 'x'.repeat(200), 'what was typed is known at once');
  assert.equal(writes, 0);
  keepDrafts();
  assert.equal(writes, 1);
  assert.equal(draft('a'), 'x'.repeat(200));
  assert.equal(draft('b'), 'other');
  keepDraft('a', '');
  keepDrafts();
  assert.equal(draft('a'), '');
  assert.deepEqual(JSON.parse(stored.get('polyloop.drafts')), [['b', 'other']]);
});

test('fifty drafts are kept, the newest ones', () => {
  for (let at = 0; at < 60; at += 1) keepDraft(`many-${at}`, 'x');
  keepDrafts();
  assert.equal(draft('many-0'), '');
  assert.equal(draft('many-59'), 'x');
});
