// The inside of a paragraph: emphasis, code, links, as a tree of plain values.
//
// Pure and total, and its work grows with the text's length, not its square, whatever stands in
// it. HTML is text. What would load something by itself (a picture) becomes a link.

import { resolve } from './markdown-emphasis.js';

const PUNCTUATION = /[!-/:-@[-`{-~]/;
const ENTITIES = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  rarr: '→',
  larr: '←',
  times: '×',
  bull: '•',
  middot: '·',
  deg: '°',
};
const SPECIAL = /[\\`*_~[\]!<&\n]|https?:\/\//g;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const BREAK_TAG = /<br\s*\/?>/iy;
const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8}));/y;
const BARE_URL = /https?:\/\/[^\s<>"'`\u0000-\u001f]{1,2000}/y;
const DESTINATION =
  /\(\s*(?:<([^<>\n]{0,2000})>|((?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\)){0,2000}))(?:\s+(?:"((?:[^"\\]|\\.){0,500})"|'((?:[^'\\]|\\.){0,500})'))?\s*\)/y;

/// `text` as nodes: `{t:'text',v}`, `{t:'code',v}`, `{t:'em'|'strong'|'del',c}`,
/// `{t:'link',href,title,c}`, `{t:'br'}`.
export function parseInline(text) {
  return new Reader(text).read();
}

/// Where a link may lead, or null: nothing that runs, and nothing of this page's own.
export function safeHref(address) {
  const trimmed = address.trim();
  if (!/^(https?:\/\/|mailto:)/i.test(trimmed)) return null;
  try {
    return new URL(trimmed).href;
  } catch {
    return null;
  }
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    /// Nodes, and among them `{delimiter}` and `{bracket}` marks that may become something.
    this.out = [];
    this.brackets = [];
    this.ticks = tickRuns(text);
  }

  read() {
    const { text } = this;
    while (this.at < text.length) {
      SPECIAL.lastIndex = this.at;
      const found = SPECIAL.exec(text);
      if (!found) break;
      this.say(text.slice(this.at, found.index));
      this.at = found.index;
      this.special(found[0]);
    }
    this.say(text.slice(this.at));
    return resolve(this.out);
  }

  say(text) {
    if (text === '') return;
    const last = this.out.at(-1);
    if (last?.t === 'text') last.v += text;
    else this.out.push({ t: 'text', v: text });
  }

  special(found) {
    switch (found[0]) {
      case '\\':
        return this.escape();
      case '`':
        return this.code();
      case '*':
      case '_':
      case '~':
        return this.delimiter(found[0]);
      case '[':
        return this.open(false);
      case ']':
        return this.close();
      case '!':
        return this.bang();
      case '<':
        return this.angle();
      case '&':
        return this.entity();
      case '\n':
        return this.newline();
      default:
        return this.bareUrl();
    }
  }

  literal(length = 1) {
    this.say(this.text.slice(this.at, this.at + length));
    this.at += length;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    return pattern.exec(this.text);
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === '\n') {
      this.out.push({ t: 'br' });
      this.at += 2;
    } else if (next && PUNCTUATION.test(next)) {
      this.say(next);
      this.at += 2;
    } else {
      this.literal();
    }
  }

  code() {
    const length = this.ticks.lengthAt(this.at);
    const end = this.ticks.closing(this.at, length);
    if (end === null) return this.literal(length);
    let inside = this.text.slice(this.at + length, end).replace(/\n/g, ' ');
    if (/^ .*[^ ].* $/.test(inside)) inside = inside.slice(1, -1);
    this.out.push({ t: 'code', v: inside });
    this.at = end + length;
    return undefined;
  }

  delimiter(character) {
    const { text, at } = this;
    let end = at;
    while (text[end] === character) end += 1;
    const count = end - at;
    const before = text[at - 1] ?? ' ';
    const after = text[end] ?? ' ';
    const opens = flanks(before, after);
    const closes = flanks(after, before);
    const word = character === '_';
    const mark = {
      character,
      count,
      left: count,
      canOpen: opens && (!word || !closes || isPunctuation(before)),
      canClose: closes && (!word || !opens || isPunctuation(after)),
      opened: [],
      closed: [],
    };
    if (character === '~' && count !== 2) return this.literal(count);
    this.out.push({ delimiter: mark });
    this.at = end;
    return undefined;
  }

  open(isImage) {
    this.brackets.push({ at: this.out.length, isImage, isActive: true });
    this.out.push({ t: 'text', v: isImage ? '![' : '[', isBracket: true });
    this.at += isImage ? 2 : 1;
    // What follows must not run together with the bracket.
    this.out.push({ t: 'text', v: '' });
  }

  bang() {
    if (this.text[this.at + 1] === '[') this.open(true);
    else this.literal();
  }

  close() {
    const bracket = this.brackets.pop();
    this.at += 1;
    const destination = bracket?.isActive && this.match(DESTINATION);
    if (!destination) {
      this.say(']');
      return;
    }
    this.at += destination[0].length;
    const inside = resolve(this.out.splice(bracket.at).slice(1));
    const address = unescape(destination[1] ?? destination[2] ?? '');
    const title = unescape(destination[3] ?? destination[4] ?? '');
    this.out.push(link(inside, address, title, bracket.isImage));
    // No link inside a link.
    if (!bracket.isImage)
      this.brackets.forEach((other) => {
        other.isActive &&= other.isImage;
      });
  }

  angle() {
    const found = this.match(AUTOLINK);
    if (found) {
      this.out.push(link([{ t: 'text', v: found[1] }], found[1], '', false));
      this.at += found[0].length;
      return;
    }
    const tag = this.match(BREAK_TAG);
    if (!tag) return this.literal();
    this.out.push({ t: 'br' });
    this.at += tag[0].length;
  }

  entity() {
    const found = this.match(ENTITY);
    const character = found && entity(found);
    if (!character) return this.literal();
    this.say(character);
    this.at += found[0].length;
    return undefined;
  }

  newline() {
    const last = this.out.at(-1);
    const isHard = last?.t === 'text' && /(?: {2,})$/.test(last.v.slice(-8));
    if (last?.t === 'text') last.v = last.v.replace(/ {1,64}$/, '');
    if (isHard) this.out.push({ t: 'br' });
    else this.say('\n');
    this.at += 1;
    while (this.text[this.at] === ' ') this.at += 1;
  }

  bareUrl() {
    const before = this.text[this.at - 1] ?? ' ';
    const found = /[\p{L}\p{N}]/u.test(before) ? null : this.match(BARE_URL);
    const inLink = this.brackets.some((bracket) => bracket.isActive && !bracket.isImage);
    if (!found || inLink) return this.literal(4);
    const address = trimUrl(found[0]);
    this.out.push(link([{ t: 'text', v: address }], address, '', false));
    this.at += address.length;
    return undefined;
  }
}

/// The runs of backticks, so that a closing one is found without looking at the text again.
function tickRuns(text) {
  const lengths = new Map();
  const byLength = new Map();
  for (const { index, 0: run } of text.matchAll(/`+/g)) {
    lengths.set(index, run.length);
    if (!byLength.has(run.length)) byLength.set(run.length, { places: [], next: 0 });
    byLength.get(run.length).places.push(index);
  }
  return {
    // A run whose beginning was escaped is shorter by it.
    lengthAt: (at) => lengths.get(at) ?? 1,
    closing(at, length) {
      const runs = byLength.get(length);
      if (!runs) return null;
      while (runs.next < runs.places.length && runs.places[runs.next] <= at) runs.next += 1;
      return runs.places[runs.next] ?? null;
    },
  };
}

function isPunctuation(character) {
  return PUNCTUATION.test(character) || /[\p{P}\p{S}]/u.test(character);
}

/// Whether a run of marks can begin emphasis, between `before` and `after`.
function flanks(before, after) {
  if (/\s/.test(after)) return false;
  return !isPunctuation(after) || /\s/.test(before) || isPunctuation(before);
}

function entity([, decimal, hex, name]) {
  if (name) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : null;
  const point = decimal ? Number(decimal) : Number.parseInt(hex, 16);
  if (point === 0 || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return '\ufffd';
  return String.fromCodePoint(point);
}

function unescape(text) {
  return text.replace(/\\([!-/:-@[-`{-~])/g, '$1');
}

function trimUrl(address) {
  let end = address.length;
  let unmatched = [...address].reduce((n, c) => n + (c === ')') - (c === '('), 0);
  while (end > 0) {
    const last = address[end - 1];
    if (last === ')' && unmatched > 0) unmatched -= 1;
    else if (!/[.,:;!?*_~\]]/.test(last)) break;
    end -= 1;
  }
  return address.slice(0, end);
}

function link(children, address, title, isImage) {
  const href = safeHref(address);
  const shown = children.length ? children : [{ t: 'text', v: address }];
  // An address that leads nowhere from here is shown beside its words.
  return { t: 'link', href, address, title, isImage, c: shown };
}
