// Markdown as nodes of the document, also while it is still being written.
//
// Never makes HTML from text, and loads nothing: a picture is a link. While a text grows only its
// last block is made anew; of a very long one only the end is in the document, until more is asked
// for.

import { el, icon } from './dom.js';
import { language, tokens } from './highlight.js';
import { Blocks, parseBlocks } from './markdown-blocks.js';
import { parseInline } from './markdown-inline.js';
import { copyButton } from './copy.js';
import { bytes, prose } from './shown.js';

// Characters of a text that are in the document at first, and how many each further step adds.
const SHOWN_CHARS = 120_000;
const DEPTH_MAX = 24;

/// A whole text.
export function renderMarkdown(text) {
  const view = new Markdown();
  view.update(text);
  return view.node;
}

/// A text that may grow.
export class Markdown {
  constructor() {
    this.body = el('div', { class: 'md-body' });
    this.node = el('div', { class: 'md' }, this.body);
    this.blocks = new Blocks();
    this.text = '';
    /// Nodes of the blocks from `first` on; those before it are not in the document.
    this.first = 0;
    this.nodes = [];
    this.settled = 0;
    this.allowed = SHOWN_CHARS;
    this.earlier = null;
  }

  /// Shows `text`, which begins with what was shown before.
  update(text) {
    if (text === this.text) return;
    this.text = text;
    this.blocks.update(text);
    const { list } = this.blocks;
    this.leaveOut(list);
    for (let at = Math.max(this.settled, this.first); at < list.length; at += 1) {
      this.show(at - this.first, list[at]);
    }
    while (this.nodes.length > list.length - this.first) this.nodes.pop().remove();
    this.settled = this.blocks.settled;
    // What is settled is not needed as values any more; its characters are in the text.
    for (let at = 0; at < this.settled; at += 1) list[at].block = null;
  }

  show(index, entry) {
    const fresh = block(entry.block ?? reread(this.text, entry), 0);
    const node = this.nodes[index];
    if (!node) {
      this.nodes.push(fresh);
      this.body.append(fresh);
    } else {
      this.nodes[index] = morph(node, fresh);
    }
  }

  /// Takes the beginning of a very long text out of the document.
  leaveOut(list) {
    let chars = 0;
    let from = list.length;
    while (from > 0 && chars <= this.allowed) {
      from -= 1;
      chars += list[from].end - list[from].start;
    }
    // Not block by block: each step would move what is being read.
    const isFar =
      list.length > 0 && list[from].start - (list[this.first]?.start ?? 0) > this.allowed / 2;
    if (from <= this.first || !isFar) return;
    const gone = Math.min(from - this.first, this.nodes.length);
    this.nodes.splice(0, gone).forEach((node) => node.remove());
    this.first = from;
    this.tellEarlier();
  }

  tellEarlier() {
    this.earlier?.remove();
    this.earlier = null;
    const start = this.first > 0 ? this.blocks.list[this.first].start : 0;
    if (start === 0) return;
    const text = `Show the part before this (${bytes(start)})`;
    this.earlier = el(
      'button',
      { type: 'button', class: 'show-more', on: { click: () => this.showEarlier() } },
      icon('up'),
      text,
    );
    this.node.prepend(this.earlier);
  }

  showEarlier() {
    this.allowed += SHOWN_CHARS;
    let chars = 0;
    const before = [];
    while (this.first > 0 && chars < SHOWN_CHARS) {
      this.first -= 1;
      const entry = this.blocks.list[this.first];
      chars += entry.end - entry.start;
      before.unshift(block(reread(this.text, entry), 0));
    }
    this.nodes.unshift(...before);
    this.body.prepend(...before);
    this.tellEarlier();
  }
}

function reread(text, { start, end, carry }) {
  const parsed = parseBlocks(text.slice(start, end), carry);
  return parsed[0] ?? { type: 'paragraph', text: '' };
}

/// Makes `old` what `fresh` is, and keeps its nodes where they are the same, so that what is
/// selected or hovered stays.
function morph(old, fresh) {
  if (
    old.nodeType !== fresh.nodeType ||
    old.nodeName !== fresh.nodeName ||
    old.className !== fresh.className ||
    old.dataset?.kept !== fresh.dataset?.kept
  ) {
    old.replaceWith(fresh);
    return fresh;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (fresh.data.startsWith(old.data)) old.appendData(fresh.data.slice(old.data.length));
    else old.data = fresh.data;
    return old;
  }
  // Buttons act on the block they were made for, which is still there.
  if (old.nodeName === 'BUTTON') return old;
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const [mine, theirs] = [[...old.childNodes], [...fresh.childNodes]];
  theirs.forEach((node, at) => {
    if (at < mine.length) morph(mine[at], node);
    else old.append(node);
  });
  mine.slice(theirs.length).forEach((node) => node.remove());
  return old;
}

function block(value, depth) {
  switch (value.type) {
    // The page's own headings stand above those of a text.
    case 'heading':
      return el(
        `h${Math.min(6, Math.max(3, value.level + 1))}`,
        { class: `md-h${value.level}`, dir: 'auto' },
        inline(value.text),
      );
    case 'code':
      return codeBlock(value.text, value.lang);
    case 'quote':
      return el(
        'blockquote',
        { dir: 'auto' },
        value.blocks.map((inner) => block(inner, depth + 1)),
      );
    case 'list':
      return list(value, depth);
    case 'table':
      return table(value);
    case 'rule':
      return el('hr');
    default:
      return el('p', { dir: 'auto' }, inline(value.text));
  }
}

function list(value, depth) {
  const node = el(value.isOrdered ? 'ol' : 'ul', {
    class: value.isLoose ? 'md-loose' : 'md-tight',
  });
  if (value.isOrdered && value.first !== 1) node.start = value.first;
  for (const item of value.items) {
    const inside = item.blocks.flatMap((inner) =>
      inner.type === 'paragraph' && !value.isLoose ? inline(inner.text) : [block(inner, depth + 1)],
    );
    const isTask = item.task !== null;
    const box =
      isTask &&
      el(
        'span',
        { class: 'md-box', role: 'img', aria: { label: item.task ? 'Done' : 'To do' } },
        item.task ? icon('check') : '',
      );
    node.append(
      el(
        'li',
        { class: isTask ? 'md-task' : '', dir: 'auto' },
        box,
        isTask ? el('div', {}, inside) : inside,
      ),
    );
  }
  return node;
}

function table({ head, align, rows }) {
  const cell = (tag, text, at) =>
    el(tag, { class: align[at] ? `md-${align[at]}` : '', dir: 'auto' }, inline(text));
  const row = (tag, texts) =>
    el(
      'tr',
      {},
      texts.map((text, at) => cell(tag, text, at)),
    );
  return el(
    'div',
    { class: 'md-table', tabindex: '0', role: 'group', aria: { label: 'Table' } },
    el(
      'table',
      {},
      el('thead', {}, row('th', head)),
      el(
        'tbody',
        {},
        rows.map((texts) => row('td', texts)),
      ),
    ),
  );
}

/// A block of code with its language and a button that copies it.
export function codeBlock(text, lang) {
  const code = el('code', {}, highlighted(text, lang));
  const name = prose(lang).slice(0, 40);
  return el(
    'div',
    { class: 'code-block' },
    el(
      'div',
      { class: 'code-head' },
      el('span', { text: name || 'text' }),
      copyButton('Copy code', () => code.textContent),
    ),
    el(
      'pre',
      { tabindex: '0', role: 'group', aria: { label: name ? `Code: ${name}` : 'Code' } },
      code,
    ),
  );
}

/// `code` as nodes, with its parts coloured.
export function highlighted(code, lang) {
  if (!language(lang)) return [document.createTextNode(prose(code))];
  return tokens(code, lang).map(([kind, text]) =>
    kind
      ? el('span', { class: `tok-${kind}`, text: prose(text) })
      : document.createTextNode(prose(text)),
  );
}

/// One line or paragraph's inside.
export function inline(text) {
  return nodes(parseInline(text), 0);
}

function nodes(tree, depth) {
  return tree.map((node) => inlineNode(node, depth));
}

function inlineNode(node, depth) {
  switch (node.t) {
    case 'text':
      return document.createTextNode(prose(node.v));
    case 'code':
      return el('code', { class: 'md-code', text: prose(node.v) });
    case 'br':
      return el('br');
    case 'link':
      return link(node, depth);
    default:
      return el(node.t, {}, depth < DEPTH_MAX ? nodes(node.c, depth + 1) : []);
  }
}

function link({ href, address, title, isImage, c }, depth) {
  const inside = nodes(c, depth + 1);
  const mark = isImage ? icon('image') : null;
  const where = prose(title ? `${title} (${address})` : address).slice(0, 300);
  if (!href) return el('span', { class: 'md-address', title: where }, mark, inside);
  return el(
    'a',
    {
      href,
      title: where,
      target: '_blank',
      rel: 'noopener noreferrer nofollow',
      class: isImage ? 'md-picture' : '',
    },
    mark,
    inside,
  );
}
