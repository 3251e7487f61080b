// Keys: what counts as a letter with Alt.

import assert from 'node:assert/strict';
import test from 'node:test';

// A module beneath listens as soon as it is there; here nothing is pressed.
globalThis.document ??= { addEventListener() {} };
globalThis.addEventListener ??= () => {};
const { withAlt } = await import('../../crates/server/src/page/keys.js');

const pressed = (code, key, more = {}) => ({
  altKey: true,
  ctrlKey: false,
  metaKey: false,
  code,
  key,
  ...more,
});

test('with Alt a letter counts while writing only if it is that letter', () => {
  assert.equal(withAlt(pressed('KeyY', 'y'), true), 'y');
  assert.equal(withAlt(pressed('KeyA', 'A'), true), 'a');
  assert.equal(withAlt(pressed('Digit2', '2'), true), '2');
  for (const [code, key] of [
    ['KeyA', 'å'],
    ['KeyS', 'ß'],
    ['KeyE', 'Dead'],
    ['KeyY', '¥'],
    ['Digit1', '¡'],
  ]) {
    assert.equal(withAlt(pressed(code, key), true), null, `${code} types ${key}`);
  }
  assert.equal(
    withAlt(pressed('KeyY', 'н'), false),
    'y',
    'nobody writes, and the keyboard has other letters',
  );
});

test('what is held down, composed or typed with AltGr counts for nothing', () => {
  for (const isWriting of [true, false]) {
    assert.equal(withAlt(pressed('KeyY', 'y', { repeat: true }), isWriting), null);
    assert.equal(withAlt(pressed('KeyY', 'y', { isComposing: true }), isWriting), null);
    assert.equal(withAlt(pressed('KeyE', 'Dead'), isWriting), null);
    assert.equal(
      withAlt(pressed('KeyE', 'e', { getModifierState: (name) => name === 'AltGraph' }), isWriting),
      null,
    );
    assert.equal(withAlt(pressed('KeyY', 'y', { ctrlKey: true }), isWriting), null);
    assert.equal(withAlt(pressed('F4', 'F4'), isWriting), null);
  }
});
