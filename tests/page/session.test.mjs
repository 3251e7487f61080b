// The fold of frames: what a transcript is made of, however the frames are cut into pages.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Session } from '../../crates/server/src/page/session.js';

/// Frames as the server numbers them: `seq` counts entries.
function script(...bodies) {
  return bodies.map((body, at) => ({ id: `evt-${at}`, session_id: 's', seq: at + 1, ...body }));
}

function folded(frames) {
  const session = new Session('s', { now: () => 0 });
  frames.forEach((frame) => session.apply(frame));
  return session;
}

/// What a reader would see of the items, without their keys and places.
function seen(session) {
  return session.items.map(({ key, seq, startedAt, ms, ...item }) => item);
}

const text = (words, isFinal = true) => ({
  type: 'assistant_message',
  text: words,
  is_final: isFinal,
});
const said = (message, more = {}) => ({ type: 'turn_started', message, by: 'Ann', ...more });
const done = {
  type: 'turn_completed',
  usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
};

const STORY = script(
  said('Do it'),
  { type: 'assistant_reasoning', text: 'Hm. ' },
  { type: 'assistant_reasoning', text: 'Yes.' },
  text('I look.'),
  { type: 'tool_started', tool_id: 'tool-5', tool_name: 'Bash', arguments: { command: 'ls' } },
  {
    type: 'control_request',
    request_id: 'req-6',
    tool_use_id: 'tool-5',
    tool_name: 'Bash',
    input: { command: 'ls' },
    context: { risk_level: 'low' },
  },
  { type: 'approval_settled', request_id: 'req-6', decision: 'allow', by: 'Ann' },
  {
    type: 'command_output',
    tool_id: 'tool-5',
    command: 'ls',
    output: 'a\nb\n',
    is_streaming: true,
    exit_code: null,
  },
  {
    type: 'command_output',
    tool_id: 'tool-5',
    command: 'ls',
    output: '',
    is_streaming: false,
    exit_code: 0,
  },
  { type: 'file_changed', path: '/w/a', operation: 'create' },
  { type: 'tool_completed', tool_id: 'tool-5', success: true, result: 'a\nb\n', error: null },
  text('Wrong, '),
  { type: 'notice', level: 'warning', code: 'retry', text: 'Again' },
  text('Right.'),
  {
    type: 'ask_user_question',
    request_id: 'req-15',
    tool_id: 'req-15',
    questions: [{ question: 'Which?', options: [] }],
  },
  {
    type: 'approval_settled',
    request_id: 'req-15',
    decision: 'answered',
    by: 'Bo',
    message: 'left',
  },
  { type: 'context_compaction', reason: 'full', tokens_before: 10, tokens_after: 4 },
  done,
  said('And now', { client_ref: 'm-2' }),
  { type: 'turn_failed', error: 'No more', code: 'server' },
);

test('a story becomes items in order', () => {
  const session = folded(STORY);
  assert.deepEqual(
    session.items.map((item) => item.kind),
    [
      'user',
      'reasoning',
      'assistant',
      'tool',
      'assistant',
      'notice',
      'assistant',
      'question',
      'compaction',
      'user',
      'failure',
    ],
  );
  const [, reasoning, , tool, wrong, , right, question] = session.items;
  assert.equal(reasoning.text, 'Hm. Yes.');
  assert.equal(tool.output, 'a\nb\n');
  assert.equal(tool.result, null, "a command's output is not kept twice");
  assert.deepEqual(tool.files, [{ path: '/w/a', operation: 'create' }]);
  assert.deepEqual([tool.state, tool.success, tool.exitCode], ['ended', true, 0]);
  assert.deepEqual(
    tool.approvals.map(({ decision, by }) => [decision, by]),
    [['allow', 'Ann']],
  );
  assert.deepEqual([wrong.struck, right.struck], [true, undefined]);
  assert.deepEqual([question.decision, question.by, question.message], ['answered', 'Bo', 'left']);
  assert.equal(session.turn, null);
  assert.equal(session.waits.size, 0);
  assert.equal(session.lastCursor, '20');
});

test('pages put together give what the frames in one go give, wherever they are cut', () => {
  const whole = seen(folded(STORY));
  // Pages are cut between entries; a call's end is one.
  const isInside = (at) => ['file_changed', 'tool_completed'].includes(STORY[at]?.type);
  const cuts = [...STORY.keys(), STORY.length].filter((at) => !isInside(at));
  for (const first of cuts) {
    for (const second of cuts.filter((at) => at >= first)) {
      const session = new Session('s', { now: () => 0 });
      session.load({ frames: STORY.slice(second), seq: STORY.length });
      session.prepend(STORY.slice(first, second));
      session.prepend(STORY.slice(0, first));
      const got = seen(session);
      // Reasoning that a page was cut through stays in two.
      const joined = got.reduce((items, item) => {
        const last = items.at(-1);
        if (item.kind === 'reasoning' && last?.kind === 'reasoning') last.text += item.text;
        else items.push(item);
        return items;
      }, []);
      const order = (items) => items.map((item) => JSON.stringify({ ...item, done: true })).sort();
      assert.deepEqual(order(joined), order(whole), `cut at ${first} and ${second}`);
    }
  }
});

test('frames that come again change nothing', () => {
  const once = seen(folded(STORY));
  const session = folded(STORY);
  for (let from = 0; from < STORY.length; from += 1) {
    STORY.slice(from)
      .filter((frame) => !['control_request', 'ask_user_question'].includes(frame.type))
      .forEach((frame) => session.apply(frame));
  }
  assert.deepEqual(seen(session), once);
});

test('text that is streamed over two connections is whole, with each character once', () => {
  const session = new Session('s');
  const growth = (at, words) => ({
    type: 'assistant_message',
    id: `evt-2t${at}`,
    seq: 2,
    cursor: `2~2t${at + words.length}`,
    text: words,
    is_final: false,
  });
  session.apply({ ...said('Go'), id: 'evt-1', seq: 1 });
  session.apply(growth(0, 'Hello '));
  session.apply(growth(6, 'wor'));
  assert.equal(session.lastCursor, '2~2t9');
  // The connection is lost; the server tells the last frame again, and goes on.
  session.apply({ type: 'session_init', id: 'evt-r1', seq: 2, cursor: '2~2t9', model: 'm' });
  session.apply(growth(6, 'wor'));
  session.apply(growth(9, 'ld'));
  session.apply({ type: 'assistant_message', id: 'evt-3-0', seq: 3, text: '', is_final: true });
  assert.equal(session.items.at(-1).text, 'Hello world');
  assert.equal(session.items.at(-1).done, true);
});

test('a connection that breaks right after its greeting loses no place', () => {
  const session = new Session('s');
  const growth = (at, words) => ({
    type: 'assistant_message',
    id: `evt-2t${at}`,
    seq: 2,
    cursor: `2~2t${at + words.length}`,
    text: words,
    is_final: false,
  });
  session.apply({ ...said('Go'), id: 'evt-1', seq: 1 });
  session.apply(growth(0, 'Hello '));
  session.apply(growth(6, 'wor'));
  // With the place that was asked for, with a bare entry, and with one that is further on: what is
  // between has not been told yet.
  for (const place of [{ seq: 2, cursor: '2~2t9' }, { seq: 2 }, { seq: 4 }, { seq: 2, cursor: '2~2t4' }]) {
    session.apply({ type: 'session_init', id: 'evt-r1', model: 'm', ...place });
    assert.equal(session.lastCursor, '2~2t9', JSON.stringify(place));
  }
  // Whoever asks from the entry all the same is told the item from its start, and further.
  session.apply(growth(0, 'Hello world, and'));
  assert.equal(session.items.at(-1).text, 'Hello world, and');
  assert.equal(session.lastCursor, '2~2t16');
  session.apply(growth(0, 'Hello'));
  session.apply(growth(6, 'wor'));
  assert.equal(session.items.at(-1).text, 'Hello world, and');
  session.apply(growth(16, ' more'));
  assert.equal(session.items.at(-1).text, 'Hello world, and more');
});

test('whoever has no place yet takes it from the greeting', () => {
  const session = new Session('s');
  session.apply({ type: 'session_init', id: 'evt-r1', seq: 7, model: 'm' });
  assert.equal(session.lastCursor, '7');
});

test('a server that has forgotten the session is believed', () => {
  const session = folded(STORY);
  const changes = session.apply({
    type: 'session_init',
    id: 'evt-r1',
    seq: 0,
    model: 'm',
    cwd: '/w',
  });
  assert.deepEqual(changes, [{ kind: 'reset' }]);
  assert.deepEqual(session.items, []);
  // The greeting's place is behind what the server has by now, which is loaded first.
  assert.equal(session.lastCursor, null);
  session.load({ frames: [{ ...said('Anew'), id: 'evt-1', seq: 1 }], seq: 1 });
  assert.equal(session.items.length, 1);
  assert.equal(session.lastCursor, '1');
});

test('what the page sends is shown at once and replaced by what the server says of it', () => {
  const session = new Session('s');
  session.outgoing({ id: 'm-1', content: 'Hello' });
  assert.deepEqual(
    session.items.map((item) => [item.text, item.state]),
    [['Hello', 'sending']],
  );
  session.apply({ ...said('Hello', { client_ref: 'm-1' }), id: 'evt-1', seq: 1 });
  assert.deepEqual(
    session.items.map((item) => [item.text, item.state]),
    [['Hello', 'sent']],
  );

  session.outgoing({ id: 'm-2', content: 'Next' });
  session.apply({
    type: 'message_queued',
    id: 'evt-2',
    seq: 2,
    message_id: 'queued-2',
    message: 'Next',
    by: 'Ann',
    client_ref: 'm-2',
  });
  assert.equal(session.items.length, 1);
  assert.deepEqual(
    session.queue.map((waiting) => waiting.message),
    ['Next'],
  );
  session.apply({ ...done, id: 'evt-3', seq: 3 });
  session.apply({
    ...said('Next', { client_ref: 'm-2', message_id: 'queued-2' }),
    id: 'evt-4',
    seq: 4,
  });
  assert.deepEqual(session.queue, []);

  session.outgoing({ id: 'm-3', content: 'Too much' });
  const changes = session.apply({
    type: 'error',
    id: 'evt-r9',
    seq: 4,
    message: 'The queue is full',
    code: 'queue_full',
    client_ref: 'm-3',
  });
  assert.deepEqual(
    [session.items.at(-1).state, session.items.at(-1).why],
    ['refused', 'The queue is full'],
  );
  assert.ok(changes.some((change) => change.kind === 'notice' && change.notice.level === 'error'));
});

test('a queue told again is not doubled, and a dropped message leaves it', () => {
  const queued = {
    type: 'message_queued',
    id: 'evt-2',
    seq: 2,
    message_id: 'queued-2',
    message: 'Next',
    by: 'Ann',
  };
  const session = folded([{ ...said('Go'), id: 'evt-1', seq: 1 }, queued, queued]);
  assert.equal(session.queue.length, 1);
  session.apply({ type: 'message_dropped', id: 'evt-3', seq: 3, message_id: 'queued-2', by: 'Bo' });
  assert.deepEqual(session.queue, []);
});

test("a wait that is told again keeps its card, and its turn's end closes it", () => {
  const ask = {
    type: 'control_request',
    id: 'evt-3',
    seq: 3,
    request_id: 'req-3',
    tool_use_id: 'tool-2',
    tool_name: 'Bash',
    input: { command: 'rm x' },
    context: {},
  };
  const session = folded([{ ...said('Go'), id: 'evt-1', seq: 1 }, ask, ask]);
  assert.equal(session.items.filter((item) => item.kind === 'tool').length, 1);
  assert.equal(session.waits.get('req-3').times, 2);
  session.apply({
    type: 'turn_failed',
    id: 'evt-4',
    seq: 4,
    error: 'Interrupted: stop',
    code: 'interrupted',
  });
  assert.equal(session.waits.size, 0);
  assert.equal(session.items.at(-1).interrupted, true);
});

test('a turn whose beginning is on an older page is known to run', () => {
  const session = new Session('s', { now: () => 0 });
  session.load({ frames: STORY.slice(4, 6), seq: 6 });
  assert.equal(session.turn.isInferred, true);
  session.prepend(STORY.slice(0, 4));
  assert.equal(session.turn.message, 'Do it');
});

test('the meter follows calls, compactions and reports', () => {
  const usage = (total, cost) => ({
    type: 'token_usage',
    usage: {
      input_tokens: total,
      output_tokens: 0,
      cached_tokens: 0,
      total_tokens: total,
      cost_usd: cost,
    },
    context_window: 100,
    usage_percent: total / 100,
  });
  const session = folded(
    script(
      {
        type: 'context_info',
        token_count: 10,
        max_tokens: 100,
        usage_percent: 0.1,
        warning_level: 'normal',
        session_usage: { total_tokens: 10, cost_usd: 1 },
      },
      usage(85, 0.5),
    ),
  );
  assert.deepEqual(
    [session.meter.level, session.meter.used, session.meter.costUsd],
    ['medium', 85, 1.5],
  );
  session.apply({
    type: 'context_compaction',
    id: 'evt-c',
    seq: 3,
    reason: 'full',
    tokens_before: 85,
    tokens_after: 20,
  });
  session.apply({ ...usage(20), id: 'evt-u', seq: 3 });
  assert.deepEqual([session.meter.level, session.meter.used], ['normal', 20]);
  assert.equal(session.meter.sessionUsage.total_tokens, 95, 'what is left is no call');
});

test('frames nobody knows and frames with names of objects do no harm', () => {
  const session = folded(STORY);
  const before = seen(session);
  for (const type of ['constructor', '__proto__', 'toString', 'brand_new', undefined]) {
    assert.deepEqual(session.apply({ type, id: `x-${type}`, seq: 99 }), []);
  }
  assert.deepEqual(seen(session), before);
});

test('it is known when the agent works and nothing shows it', () => {
  const session = new Session('s');
  const states = STORY.map((frame) => {
    session.apply(frame);
    return session.isPondering;
  });
  const at = (type) => states[STORY.findIndex((frame) => frame.type === type)];
  assert.equal(at('turn_started'), true);
  assert.equal(at('assistant_reasoning'), false);
  assert.equal(at('tool_started'), false);
  assert.equal(at('control_request'), false);
  assert.equal(at('tool_completed'), true);
  assert.equal(at('turn_completed'), false);
});

test('a message that waited in the queue keeps its pictures', () => {
  const session = new Session('s');
  const images = [{ image_url: 'data:image/png;base64,AA==' }];
  session.outgoing({ id: 'm-1', content: 'Look', images });
  const queued = { type: 'message_queued', id: 'evt-1', seq: 1, message_id: 'queued-1' };
  session.apply({ ...queued, message: 'Look', by: 'Ann', client_ref: 'm-1' });
  session.apply({ ...said('Look'), id: 'evt-2', seq: 2, message_id: 'queued-1', client_ref: 'm-1' });
  assert.deepEqual(session.items.map((item) => item.images), [images]);
});
