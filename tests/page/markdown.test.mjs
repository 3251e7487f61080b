// Markdown as values: what is read, that growing text gives the same as whole text, and that
// hostile text costs no more than other text.

import assert from 'node:assert/strict';
import test from 'node:test';

import { Blocks, parseBlocks } from '../../crates/server/src/page/markdown-blocks.js';
import { parseInline, safeHref } from '../../crates/server/src/page/markdown-inline.js';

/// Inline nodes in a short form: strong as **…**, links as [words](address).
function short(nodes) {
  const wrap = { em: '/', strong: '**', del: '~~' };
  return nodes
    .map((node) => {
      if (node.t === 'text') return node.v;
      if (node.t === 'code') return `<${node.v}>`;
      if (node.t === 'br') return '⏎';
      if (node.t === 'link') return `[${short(node.c)}](${node.href})`;
      return `${wrap[node.t]}${short(node.c)}${wrap[node.t]}`;
    })
    .join('');
}

const INLINE = [
  ['plain', 'plain'],
  ['*a* _b_ **c** __d__ ~~e~~', '/a/ /b/ **c** **d** ~~e~~'],
  ['***x***', '/**x**/'],
  ['**a*b*c**', '**a/b/c**'],
  ['a_b_c 2*3*4', 'a_b_c 2/3/4'],
  ['*open **and', '*open **and'],
  ['`a*b*` ``c ` d``', '<a*b*> <c ` d>'],
  ['`open', '`open'],
  ['\\*not\\* \\`x\\`', '*not* `x`'],
  ['[a *b*](https://x.y/z "t")', '[a /b/](https://x.y/z)'],
  ['[a](javascript:alert(1))', '[a](null)'],
  ['[a](data:text/html,x) [b](/local) [c]( https://q.r )', '[a](null) [b](null) [c](https://q.r/)'],
  ['![pic](https://x.y/p.png)', '[pic](https://x.y/p.png)'],
  ['[a [b](https://c.d/) e](x)', '[a [b](https://c.d/) e](x)'],
  ['see https://a.b/c_(d), ok', 'see [https://a.b/c_(d)](https://a.b/c_(d)), ok'],
  ['<https://a.b> <b>x</b>', '[https://a.b](https://a.b/) <b>x</b>'],
  ['<script>alert(1)</script>', '<script>alert(1)</script>'],
  ['a  \nb\\\nc\nd', 'a⏎b⏎c\nd'],
  ['&lt;&amp;&#65;&#x42;&nope;', '<&AB&nope;'],
  ['a<br>b', 'a⏎b'],
];

test('the inside of paragraphs', () => {
  for (const [text, expected] of INLINE) assert.equal(short(parseInline(text)), expected, text);
});

test('links lead to the web and to mail alone', () => {
  for (const bad of [
    'javascript:x',
    ' JaVaScRiPt:x',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc',
    '//x.y',
    '/a',
    'a',
    'http://',
    '\u0001javascript:x',
  ]) {
    assert.equal(safeHref(bad), null, bad);
  }
  assert.equal(safeHref(' https://a.b '), 'https://a.b/');
  assert.equal(safeHref('mailto:a@b.c'), 'mailto:a@b.c');
});

function shape(blocks) {
  return blocks.map((block) => {
    switch (block.type) {
      case 'heading':
        return `h${block.level}:${block.text}`;
      case 'paragraph':
        return `p:${block.text}`;
      case 'code':
        return `code(${block.lang}):${block.text}`;
      case 'quote':
        return ['>', shape(block.blocks)];
      case 'list':
        return [
          block.isOrdered ? `ol${block.first}` : 'ul',
          ...block.items.map((item) =>
            item.task === null ? shape(item.blocks) : [item.task, ...shape(item.blocks)],
          ),
        ];
      case 'table':
        return ['table', block.head, block.align, ...block.rows];
      default:
        return block.type;
    }
  });
}

const BLOCKS = [
  ['# A\n## B ##\nC\n===\nD\n---', ['h1:A', 'h2:B', 'h1:C', 'h2:D']],
  ['a\nb\n\nc', ['p:a\nb', 'p:c']],
  ['```js\nlet a\n```\nafter', ['code(js):let a', 'p:after']],
  ['~~~\n```\n~~~', ['code():```']],
  ['```\nnever closed', ['code():never closed']],
  ['    indented\n\n    more', ['code():indented\n\nmore']],
  ['> a\nb\n>\n> > c', [['>', ['p:a\nb', ['>', ['p:c']]]]]],
  ['- a\n- b\n  - c\n- d', [['ul', ['p:a'], ['p:b', ['ul', ['p:c']]], ['p:d']]]],
  ['3. a\n4. b\n\n5. c', [['ol3', ['p:a'], ['p:b'], ['p:c']]]],
  ['1. a\n  - b\n2. c', [['ol1', ['p:a', ['ul', ['p:b']]], ['p:c']]]],
  ['- [x] a\n- [ ] b', [['ul', [true, 'p:a'], [false, 'p:b']]]],
  ['- a\n\n  ```sh\n  ls\n\n  pwd\n  ```\n- b', [['ul', ['p:a', 'code(sh):ls\n\npwd'], ['p:b']]]],
  ['- a\n\nb', [['ul', ['p:a']], 'p:b']],
  [
    '- a\n* b',
    [
      ['ul', ['p:a']],
      ['ul', ['p:b']],
    ],
  ],
  ['a\n- b', ['p:a', ['ul', ['p:b']]]],
  ['In 1999. It\n1999. was', ['p:In 1999. It\n1999. was']],
  [
    '| a | b |\n|:--|--:|\n| 1 | 2 \\| 3 |\n| 4 |',
    [['table', ['a', 'b'], ['left', 'right'], ['1', '2 | 3'], ['4', '']]],
  ],
  ['a | b', ['p:a | b']],
  ['***\n- - -\n___', ['rule', 'rule', 'rule']],
  ['<div>\nx\n</div>', ['p:<div>\nx\n</div>']],
  ['', []],
];

test('blocks', () => {
  for (const [text, expected] of BLOCKS) assert.deepEqual(shape(parseBlocks(text)), expected, text);
});

/// Without the places, which say how the text was cut.
function values(blocks) {
  return JSON.stringify(blocks, (key, value) =>
    ['from', 'to', 'start', 'end'].includes(key) ? undefined : value,
  );
}

test('a text that grows gives the same blocks as the whole, at every length', () => {
  const text = BLOCKS.map(([source]) => source).join('\n\n');
  const grown = new Blocks();
  for (let end = 1; end <= text.length; end += 1) {
    grown.update(text.slice(0, end));
    const whole = parseBlocks(text.slice(0, end));
    assert.equal(
      values(grown.list.map((entry) => entry.block)),
      values(whole),
      JSON.stringify(text.slice(0, end).slice(-40)),
    );
  }
});

test('settled blocks stay as they are', () => {
  const text = BLOCKS.map(([source]) => source).join('\n\n');
  const grown = new Blocks();
  let kept = [];
  for (let end = 1; end <= text.length; end += 7) {
    grown.update(text.slice(0, end));
    kept.forEach((entry, at) => assert.equal(grown.list[at], entry));
    kept = grown.list.slice(0, grown.settled);
  }
});

test('long blocks are cut, and no character is lost', () => {
  const line = 'word '.repeat(20);
  const texts = [
    line.repeat(2000),
    `\`\`\`rust\n${`${line}\n`.repeat(1500)}`,
    'x'.repeat(200_000),
    `- ${line}\n`.repeat(1500),
    '😀'.repeat(50_000),
  ];
  for (const text of texts) {
    const grown = new Blocks();
    for (let end = 50_000; end < text.length; end += 50_000) grown.update(text.slice(0, end));
    grown.update(text);
    assert.ok(grown.list.length > 3);
    grown.list.forEach((entry) => assert.ok(entry.end - entry.start <= 16_384));
    const rest = grown.list.reduce((at, entry) => {
      assert.equal(text.slice(at, entry.start).trim(), '', 'only blanks stand between blocks');
      return entry.end;
    }, 0);
    assert.equal(text.slice(rest).trim(), '');
    const code = grown.list.filter((entry) => entry.block.type === 'code');
    if (text.startsWith('```'))
      assert.ok(
        code.length === grown.list.length && code.every((entry) => entry.block.lang === 'rust'),
      );
  }
});

test('nesting has an end', () => {
  const depth = (block) => 1 + Math.max(0, ...(block.blocks ?? block.items ?? []).map(depth));
  for (const text of ['>'.repeat(5000), '- '.repeat(5000), `${'> - '.repeat(2000)}x`]) {
    assert.ok(Math.max(...parseBlocks(text).map(depth)) < 40);
  }
  const nested = (nodes) => 1 + Math.max(0, ...nodes.map((node) => (node.c ? nested(node.c) : 0)));
  assert.ok(nested(parseInline(`${'**a '.repeat(500)}x${' a**'.repeat(500)}`)) < 40);
  assert.ok(nested(parseInline(`${'*'.repeat(3000)}x${'*'.repeat(3000)}`)) < 40);
});

test('hostile text is read in time', { timeout: 20_000 }, () => {
  const long = 60_000;
  for (const unit of [
    '*',
    '**a',
    '_a*',
    '[',
    '![',
    '[a](',
    '](',
    '`',
    '`a``',
    '<',
    'https://',
    '&',
    '\\',
    ' \n',
    '~~',
    '|',
    '|a\n|-',
    '> ',
    '- a\n',
    '1. a\n',
    '[a](b "',
    '((',
    '#',
    '```\n',
  ]) {
    const text = unit.repeat(long / unit.length);
    const blocks = new Blocks();
    blocks.update(text);
    parseInline(text);
  }
});
