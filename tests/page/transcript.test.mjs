// The list of items: how it asks for what was before.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Session } from '../../crates/server/src/page/session.js';
import { Transcript } from '../../crates/server/src/page/transcript.js';
import { browser, settled } from './stand-in.mjs';

test('an older page that cannot be had is asked for once, and again after a while', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const { draw, container } = browser();
  let asked = 0;
  let fails = true;
  const transcript = new Transcript(container, new Session('s'), {
    hasOlder: () => true,
    onOlder: async () => {
      asked += 1;
      if (fails) throw new Error('The server cannot be reached');
    },
  });
  t.after(() => transcript.close());
  const pictures = async (count) => {
    for (let n = 0; n < count; n += 1) {
      draw();
      await settled();
    }
  };
  await pictures(10);
  assert.equal(asked, 1);
  assert.equal(transcript.noOlder.hidden, false);
  assert.match(transcript.noOlder.textContent, /could not be loaded/);
  assert.equal(transcript.older.hidden, true);
  // By itself, by hand, and when the connection is back.
  t.mock.timers.tick(10_000);
  await pictures(10);
  assert.equal(asked, 2);
  transcript.noOlder.all('button')[0].click();
  await pictures(10);
  assert.equal(asked, 3);
  fails = false;
  transcript.retryOlder();
  await pictures(2);
  assert.ok(asked > 3);
  assert.equal(transcript.noOlder.hidden, true);
});
