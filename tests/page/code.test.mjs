// Coloured code, differences, terminal output, and text that hides things.

import assert from 'node:assert/strict';
import test from 'node:test';

import { runs, stripped } from '../../crates/server/src/page/ansi.js';
import {
  changedPart,
  counts,
  diffLines,
  folded,
  readPatch,
  unreadLines,
} from '../../crates/server/src/page/diff.js';
import { shownInDiff } from '../../crates/server/src/page/call.js';
import { Heights } from '../../crates/server/src/page/heights.js';
import { language, languageOf, tokens } from '../../crates/server/src/page/highlight.js';
import { brief, plain, prose } from '../../crates/server/src/page/shown.js';

const SAMPLES = [
  [
    'rust',
    'fn a<\'b>(x: u8) -> &\'b str { "s\\"t" } // c',
    { keyword: 'fn', type: 'u8', string: '"s\\"t"', comment: '// c' },
  ],
  [
    'ts',
    'const f = async (a: string) => `x${1}`; /* c */',
    { keyword: 'const', type: 'string', string: '`x${1}`', comment: '/* c */' },
  ],
  [
    'python',
    'def f(x):\n    """doc"""\n    return 0x1f # c',
    { keyword: 'def', string: '"""doc"""', number: '0x1f', comment: '# c' },
  ],
  ['json', '{"a": [1, true, "b"]}', { key: '"a"', number: '1', keyword: 'true', string: '"b"' }],
  [
    'bash',
    'echo "$x" --flag # c',
    { type: 'echo', string: '"$x"', label: '--flag', comment: '# c' },
  ],
  ['go', 'func main() { x := "a" }', { keyword: 'func', function: 'main', string: '"a"' }],
  [
    'c',
    '#include <a.h>\nint main(void) { return 0; }',
    { meta: '#include', type: 'int', function: 'main', number: '0' },
  ],
  ['toml', '[a]\nb = "c" # d', { meta: '[a]', key: 'b', string: '"c"', comment: '# d' }],
  ['yaml', 'a: 1\n- b: yes', { key: 'a', number: '1', keyword: 'yes' }],
  ['sql', "SELECT a FROM b WHERE c = 'd'", { keyword: 'SELECT', string: "'d'" }],
  [
    'html',
    '<a href="x">y</a><!-- c -->',
    { keyword: '<a', key: 'href', string: '"x"', comment: '<!-- c -->' },
  ],
  ['css', '.a { color: #fff; }', { keyword: '.a', key: 'color', number: '#fff' }],
  ['diff', '@@ x\n+a\n-b', { meta: '@@ x', added: '+a', removed: '-b' }],
];

test('each language knows its parts, and nothing of the code is lost', () => {
  for (const [name, code, expected] of SAMPLES) {
    const found = tokens(code, name);
    assert.equal(found.map(([, text]) => text).join(''), code, name);
    for (const [kind, text] of Object.entries(expected)) {
      assert.ok(
        found.some(([has, part]) => has === kind && part === text),
        `${name}: ${kind} ${text} in ${JSON.stringify(found)}`,
      );
    }
  }
});

test('a language that nobody knows is plain', () => {
  for (const name of ['', 'brainfuck', '__proto__', 'constructor', null, undefined]) {
    assert.equal(language(name), null);
    assert.deepEqual(tokens('a "b"', name), [['', 'a "b"']]);
  }
  assert.equal(languageOf('/a/b.rs'), 'rust');
  assert.equal(languageOf('Makefile'), 'sh');
  assert.equal(languageOf('noend'), null);
});

test('hostile code is read in time, and whole', { timeout: 20_000 }, () => {
  for (const [name] of SAMPLES) {
    for (const unit of [
      '"',
      "'",
      '<',
      'a',
      '/*',
      ' ',
      '\n',
      'a-b:c{',
      '= /',
      '#[',
      '\t',
      '- ',
      '""" ',
      '&a',
      '`',
      '\\',
    ]) {
      const code = unit.repeat(60_000 / unit.length);
      assert.equal(
        tokens(code, name).reduce((sum, [, text]) => sum + text.length, 0),
        code.length,
      );
    }
  }
});

/// Numbers that look random and are the same every time.
function* numbers(seed) {
  let state = seed;
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

test('a difference gives both texts back, and is as short as it can be', () => {
  const random = numbers(7);
  const some = (count) =>
    Array.from(
      { length: Math.floor(random.next().value * count) },
      () => 'abc'[Math.floor(random.next().value * 3)],
    );
  const common = (a, b) => {
    const table = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
    for (let i = 1; i <= a.length; i += 1)
      for (let j = 1; j <= b.length; j += 1)
        table[i][j] =
          a[i - 1] === b[j - 1]
            ? table[i - 1][j - 1] + 1
            : Math.max(table[i - 1][j], table[i][j - 1]);
    return table[a.length][b.length];
  };
  for (let n = 0; n < 2000; n += 1) {
    const [a, b] = [some(12), some(12)];
    const rows = diffLines(
      a.map((line) => `${line}\n`).join(''),
      b.map((line) => `${line}\n`).join(''),
    );
    assert.deepEqual(
      rows.filter((row) => row.mark !== '+').map((row) => row.text),
      a,
    );
    assert.deepEqual(
      rows.filter((row) => row.mark !== '-').map((row) => row.text),
      b,
    );
    assert.equal(rows.filter((row) => row.mark === ' ').length, common(a, b));
  }
});

test('far differences are bounded work', { timeout: 10_000 }, () => {
  const many = (word) => Array.from({ length: 20_000 }, (_, at) => `${word}${at}`).join('\n');
  assert.deepEqual(counts(diffLines(many('a'), many('b'))), { added: 20_000, removed: 20_000 });
});

test('unchanged lines far from changes are folded', () => {
  const before = Array.from({ length: 30 }, (_, at) => `${at}`).join('\n');
  const rows = folded(diffLines(before, before.replace('15', 'x')));
  assert.deepEqual(
    rows.map((row) => (row.mark === '…' ? `…${row.count}` : row.mark + row.text)),
    ['…12', ' 12', ' 13', ' 14', '-15', '+x', ' 16', ' 17', ' 18', '…11'],
  );
});

test('the part of a line that changed', () => {
  assert.deepEqual(changedPart('let a = 1;', 'let a = 22;'), [8, 9, 10]);
  assert.equal(changedPart('abc', 'xyz'), null);
});

test('patches of both forms are read', () => {
  const own = readPatch(
    '*** Begin Patch\n*** Add File: a.txt\n+one\n*** Update File: b.txt\n*** Move to: c.txt\n@@ fn x\n keep\n-old\n+new\n*** Delete File: d.txt\n*** End Patch',
  );
  assert.deepEqual(
    own.map(({ path, operation, to, rows }) => [
      path,
      operation,
      to,
      rows.map((row) => row.mark + (row.text ?? row.where)),
    ]),
    [
      ['a.txt', 'add', null, ['+one']],
      ['b.txt', 'update', 'c.txt', ['…fn x', ' keep', '-old', '+new']],
      ['d.txt', 'delete', null, []],
    ],
  );
  const git = readPatch(
    'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+c',
  );
  assert.deepEqual(
    git.map(({ path, operation }) => [path, operation]),
    [
      ['x', 'update'],
      ['y', 'add'],
    ],
  );
  assert.deepEqual(readPatch('nothing of that kind'), []);
  assert.deepEqual(readPatch(undefined), []);
});

test('terminal output keeps its colours and does nothing else', () => {
  assert.deepEqual(runs('\u001b[1;31merr\u001b[0m ok'), [
    { text: 'err', style: 'ansi-bold ansi-red' },
    { text: ' ok', style: '' },
  ]);
  assert.deepEqual(
    runs('\u001b]0;title\u0007a\u001b[2J\u001b[10;10Hb\u001b]8;;http://x\u001b\\c'),
    [{ text: 'abc', style: '' }],
  );
  assert.deepEqual(runs('\u001b[38;5;196mred\u001b[39m \u001b[38;2;1;2;3mx'), [
    { text: 'red x', style: '' },
  ]);
  assert.equal(stripped('10%\r50%\r100%\nab\bc\r\n'), '100%\nac\n');
  assert.equal(runs('a\u0000b\u202ec')[0].text, 'a\\u{0}b\\u{202e}c');
});

test('hidden characters are shown', () => {
  assert.equal(plain('a\u202eb\u200bc\u0007'), 'a\\u{202e}b\\u{200b}c\\u{7}');
  assert.equal(prose('a\u202eb \u200d \u200f\r\nc'), 'a\\u{202e}b \u200d \u200f\nc');
  assert.equal(plain('\u{e0041}'), '\\u{e0041}');
  assert.equal(brief('one\ntwo', 100), 'one ⏎ two');
  assert.equal(brief('😀'.repeat(50), 10), `${'😀'.repeat(9)}…`);
});

test('heights add up, whatever is put in, taken out and measured', () => {
  const random = numbers(3);
  const pick = (count) => Math.floor(random.next().value * count);
  const heights = new Heights();
  for (let n = 0; n < 400; n += 1) {
    const act = pick(5);
    if (act === 0) heights.append(pick(200));
    else if (act === 1) heights.prepend(pick(50));
    else if (act === 2 && heights.length > 0) heights.remove(pick(heights.length));
    else
      for (let k = 0; k < 20 && heights.length > 0; k += 1)
        heights.set(pick(heights.length), pick(300));
    const each = Array.from({ length: heights.length }, (_, at) => heights.get(at));
    const [from, to] = [pick(heights.length + 1), pick(heights.length + 1)].sort((a, b) => a - b);
    assert.equal(
      Math.round(heights.sum(from, to)),
      Math.round(each.slice(from, to).reduce((sum, one) => sum + one, 0)),
    );
    const top = pick(heights.sum(0, heights.length) + 1);
    const at = heights.at(top);
    if (heights.length > 0)
      assert.ok(
        heights.sum(0, at) <= top && (at === heights.length - 1 || heights.sum(0, at + 1) > top),
      );
  }
});

const marks = (files) => files.map(({ path, rows }) => [path, rows.map((row) => row.mark + (row.text ?? row.where))]);

test('a line of a patch that looks like a header is a line', () => {
  const own = '*** Begin Patch\n*** Update File: a.lua\n@@\n--- comment\n+++ counted\n keep\n*** End Patch\n';
  assert.deepEqual(marks(readPatch(own)), [['a.lua', ['--- comment', '+++ counted', ' keep']]]);
  assert.deepEqual(unreadLines(own), []);
  const added = '*** Begin Patch\n*** Add File: b\n+++ x\n+--- y\n *** Delete File: c\n*** End Patch';
  assert.deepEqual(
    readPatch(added).map(({ path, operation, rows }) => [path, operation, rows.length]),
    [
      ['b', 'add', 2],
      ['c', 'delete', 0],
    ],
  );
  const git = '--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- comment\n+++ counted\n same\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b';
  assert.deepEqual(marks(readPatch(git)), [
    ['x', ['--- comment', '+++ counted', ' same']],
    ['y', ['-a', '+b']],
  ]);
  assert.deepEqual(unreadLines(git), []);
});

test('lines of a patch that are not understood are told', () => {
  assert.deepEqual(unreadLines('*** Begin Patch\n*** Update File: a\n@@\n-x\nrm -rf /\n+y\n*** End Patch'), [
    'rm -rf /',
  ]);
  assert.deepEqual(unreadLines('*** Delete File: a\n+x'), ['+x']);
  assert.deepEqual(unreadLines('*** Update File: a\n@@\n-x\n*** Move to: /etc/passwd\n'), [
    '*** Move to: /etc/passwd',
  ]);
});

test('of a call nothing is left out that its diff does not show', () => {
  const hidden = (name, input) => [...shownInDiff(name, input)];
  assert.deepEqual(hidden('apply_patch', { patch: '*** Delete File: a' }), ['patch']);
  assert.deepEqual(hidden('apply_patch', { patch: '*** Delete File: a\nwhat?', path: 'b' }), []);
  assert.deepEqual(hidden('Edit', { path: 'a', file_path: 'b', oldString: 'x', newString: 'y', content: 'z' }), [
    'path',
    'oldString',
    'newString',
  ]);
  assert.deepEqual(hidden('MultiEdit', { path: 'a', edits: [{ oldString: 'x', newString: 'y' }] }), ['path', 'edits']);
  assert.deepEqual(hidden('MultiEdit', { path: 'a', edits: [{ oldString: 'x', newString: 'y', replaceAll: true }] }), [
    'path',
  ]);
});
