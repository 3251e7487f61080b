// The blocks of a Markdown text: paragraphs, headings, code, lists, quotes, tables, as values.
//
// Pure and total; nothing nests deeper than people write. `Blocks` follows a text that grows: what
// came before the last block is never looked at again, and no block grows without bound.

const DEPTH_MAX = 8;
// A longer block is cut, so that the work for one more character stays small.
const BLOCK_CHARS_MAX = 16_384;
const WINDOW_CHARS = 2 * BLOCK_CHARS_MAX;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const MARKER = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const SETEXT = /^ {0,3}(=+|-+)[ \t]*$/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const TASK = /^\[([ xX])\][ \t]+/;

/// The blocks of `text`. With `carry`, it begins inside a block of code that was cut.
export function parseBlocks(text, carry = null, depth = 0) {
  const lines = text.split('\n');
  const blocks = [];
  let at = 0;
  let offset = 0;
  if (carry) at = take(blocks, codeBlock(lines, 0, carry), 0);
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    at = take(blocks, blockAt(lines, at, depth), at);
  }
  // Lines to characters.
  let line = 0;
  for (const block of blocks) {
    while (line < block.from) {
      offset += lines[line].length + 1;
      line += 1;
    }
    block.start = offset;
    while (line < block.to) {
      offset += lines[line].length + 1;
      line += 1;
    }
    block.end = Math.min(offset, text.length);
  }
  return blocks;
}

function take(blocks, block, from) {
  block.from = from;
  blocks.push(block);
  return block.to;
}

function isBlank(line) {
  return /^[ \t\r]*$/.test(line);
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}

function blockAt(lines, at, depth) {
  const line = detab(lines[at]);
  const fence = FENCE.exec(line);
  if (fence) {
    const info = fence[2].trim();
    return codeBlock(lines, at + 1, {
      fence: fence[1],
      lang: info.split(/\s/)[0] ?? '',
      indent: indentOf(line),
    });
  }
  if (RULE.test(line)) return { type: 'rule', to: at + 1 };
  const heading = HEADING.exec(line);
  if (heading)
    return { type: 'heading', level: heading[1].length, text: heading[2] ?? '', to: at + 1 };
  if (depth < DEPTH_MAX) {
    if (QUOTE.test(line)) return quote(lines, at, depth);
    const marker = MARKER.exec(line);
    if (marker && marker[1].length < 4) return list(lines, at, depth);
  }
  if (indentOf(line) >= 4) return indented(lines, at);
  return isTable(lines, at) ? table(lines, at) : paragraph(lines, at, depth);
}

function detab(line) {
  return line.includes('\t')
    ? line.replace(/^[ \t]+/, (blank) => blank.replaceAll('\t', '    '))
    : line;
}

function codeBlock(lines, from, { fence, lang, indent = 0 }) {
  const end = new RegExp(`^ {0,3}[${fence[0]}]{${fence.length},}[ \\t]*$`);
  let to = from;
  while (to < lines.length && !end.test(lines[to])) to += 1;
  const isOpen = to >= lines.length;
  const inside = lines.slice(from, to).map((line) => line.slice(Math.min(indent, indentOf(line))));
  return { type: 'code', lang, fence, text: inside.join('\n'), isOpen, to: isOpen ? to : to + 1 };
}

function indented(lines, at) {
  let to = at;
  let last = at;
  while (to < lines.length && (isBlank(lines[to]) || indentOf(detab(lines[to])) >= 4)) {
    if (!isBlank(lines[to])) last = to;
    to += 1;
  }
  const text = lines
    .slice(at, last + 1)
    .map((line) => detab(line).slice(4))
    .join('\n');
  return { type: 'code', lang: '', text, isOpen: false, to: last + 1 };
}

function quote(lines, at, depth) {
  const inside = [];
  let to = at;
  for (; to < lines.length; to += 1) {
    const line = lines[to];
    if (QUOTE.test(line)) inside.push(line.replace(QUOTE, ''));
    else if (isBlank(line) || interrupts(lines, to)) break;
    else inside.push(line);
  }
  return { type: 'quote', blocks: parseBlocks(inside.join('\n'), null, depth + 1), to };
}

/// Whether the line begins a block of its own, also right after a paragraph's line.
function interrupts(lines, at) {
  const line = lines[at];
  const marker = MARKER.exec(line);
  const lists =
    marker &&
    marker[1].length < 4 &&
    marker[3] !== '' &&
    !/^\d/.test(marker[2].replace(/^1[.)]$/, ''));
  return (
    FENCE.test(line) || RULE.test(line) || HEADING.test(line) || QUOTE.test(line) || Boolean(lists)
  );
}

function list(lines, at, depth) {
  const [, blank, marker] = MARKER.exec(detab(lines[at]));
  const kind = marker.at(-1);
  const isOrdered = /\d/.test(marker);
  const items = [];
  let isLoose = false;
  let to = at;
  while (to < lines.length) {
    const found = MARKER.exec(detab(lines[to]));
    if (!continues(lines, to, kind, blank) || RULE.test(lines[to])) break;
    const item = listItem(lines, to, found, depth);
    isLoose ||= item.isLoose || (item.endsBlank && continues(lines, item.to, kind, blank));
    items.push(item);
    to = item.to;
    if (item.endsBlank && !continues(lines, to, kind, blank)) break;
  }
  const first = isOrdered ? Number.parseInt(marker, 10) : null;
  return { type: 'list', isOrdered, first, items, isLoose, to };
}

function continues(lines, at, kind, blank) {
  const found = at < lines.length && MARKER.exec(detab(lines[at]));
  return Boolean(found) && found[2].at(-1) === kind && found[1].length < blank.length + 2;
}

function listItem(lines, at, [whole, blank, marker, gap], depth) {
  const width = blank.length + marker.length + (gap.length > 4 ? 1 : Math.max(gap.length, 1));
  // People and models indent by two also under "1. ".
  const least = Math.min(width, blank.length + 2);
  const inside = [detab(lines[at]).slice(gap.length > 4 ? width : whole.length)];
  let to = at + 1;
  let blanks = 0;
  let fence = FENCE.exec(inside[0]);
  for (; to < lines.length; to += 1) {
    const line = detab(lines[to]);
    if (isBlank(line)) {
      blanks += 1;
      continue;
    }
    const indent = indentOf(line);
    const goesOn = blanks === 0 && !fence && !MARKER.test(line) && !interrupts(lines, to);
    if (indent < least && !goesOn) break;
    while (blanks > 0) {
      inside.push('');
      blanks -= 1;
    }
    const rest = line.slice(Math.min(width, indent));
    const edge = FENCE.exec(rest);
    if (edge) fence = fence && !edge[2] ? null : (fence ?? edge);
    inside.push(rest);
  }
  const task = TASK.exec(inside[0]);
  if (task) inside[0] = inside[0].slice(task[0].length);
  const blocks = parseBlocks(inside.join('\n'), null, depth + 1);
  const isLoose =
    blocks.length > 1 &&
    inside.some((line, index) => line === '' && index > 0) &&
    blocks.filter((block) => block.type === 'paragraph').length > 1;
  return { blocks, isLoose, task: task ? task[1] !== ' ' : null, to, endsBlank: blanks > 0 };
}

function isTable(lines, at) {
  if (!lines[at].includes('|') || at + 1 >= lines.length) return false;
  const rule = lines[at + 1];
  return (
    TABLE_RULE.test(rule) &&
    rule.includes('-') &&
    cells(lines[at]).length === cells(rule).length &&
    (rule.includes('|') || cells(rule).length > 1)
  );
}

function cells(line) {
  const trimmed = line
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, (bar, index, whole) => (whole[index - 1] === '\\' ? bar : ''));
  return trimmed.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function table(lines, at) {
  const head = cells(lines[at]);
  const align = cells(lines[at + 1]).map((cell) => {
    const [left, right] = [cell.startsWith(':'), cell.endsWith(':')];
    return left && right ? 'center' : right ? 'right' : left ? 'left' : null;
  });
  const rows = [];
  let to = at + 2;
  for (; to < lines.length && !isBlank(lines[to]) && !interrupts(lines, to); to += 1) {
    const row = cells(lines[to]).slice(0, head.length);
    while (row.length < head.length) row.push('');
    rows.push(row);
  }
  return { type: 'table', head, align, rows, to };
}

function paragraph(lines, at, depth) {
  let to = at + 1;
  for (; to < lines.length && !isBlank(lines[to]); to += 1) {
    const underline = SETEXT.exec(lines[to]);
    if (underline) {
      const text = lines
        .slice(at, to)
        .map((line) => line.trim())
        .join('\n');
      return { type: 'heading', level: underline[1][0] === '=' ? 1 : 2, text, to: to + 1 };
    }
    if (interrupts(lines, to) && (depth < DEPTH_MAX || !QUOTE.test(lines[to]))) break;
    if (isTable(lines, to)) break;
  }
  const text = lines
    .slice(at, to)
    .map((line) => line.trimStart())
    .join('\n')
    .trimEnd();
  return { type: 'paragraph', text, to };
}

/// The blocks of a text that only grows.
export class Blocks {
  constructor() {
    /// `{start, end, carry, block}` each; all but the last stay as they are.
    this.list = [];
    /// How many of them will not change any more.
    this.settled = 0;
    this.from = 0;
    this.carry = null;
  }

  /// Reads on; afterwards `list` has all blocks of `text`.
  update(text) {
    this.list.length = this.settled;
    for (;;) {
      const window = text.slice(this.from, this.from + WINDOW_CHARS);
      const isLast = this.from + window.length >= text.length;
      const blocks = parseBlocks(window, this.carry);
      if (blocks.length === 0 && !isLast) {
        this.from += window.length;
        continue;
      }
      this.settle(blocks.slice(0, -1));
      const last = blocks.at(-1);
      if (!last) return;
      const open = this.entry(last);
      const isLong = last.end - last.start > BLOCK_CHARS_MAX;
      if (isLast && !isLong) {
        this.list.push(open);
        this.last(open);
        return;
      }
      if (isLong) this.cut(text, open);
      else this.last(open);
    }
  }

  entry(block) {
    const carry = block.start === 0 ? this.carry : null;
    return { start: this.from + block.start, end: this.from + block.end, carry, block };
  }

  settle(blocks) {
    for (const block of blocks) this.list.push(this.entry(block));
    this.settled = this.list.length;
  }

  /// Reads from here next time: the block may still change.
  last(open) {
    this.from = open.start;
    this.carry = open.carry;
  }

  /// Ends a block that is too long, at a line or a word where there is one.
  cut(text, { start, carry, block }) {
    const piece = text.slice(start, start + BLOCK_CHARS_MAX);
    const at = [piece.lastIndexOf('\n') + 1, piece.lastIndexOf(' ') + 1].find(
      (place) => place > BLOCK_CHARS_MAX / 2,
    );
    let end = start + (at ?? piece.length);
    // Not between the halves of a character.
    if (/[\ud800-\udbff]/.test(text[end - 1])) end -= 1;
    const isCode = block.type === 'code' && block.fence;
    for (const part of parseBlocks(text.slice(start, end), carry)) {
      this.list.push({
        start: start + part.start,
        end: start + part.end,
        carry: part.start === 0 ? carry : null,
        block: part,
      });
    }
    this.settled = this.list.length;
    this.from = end;
    this.carry = isCode ? { fence: block.fence, lang: block.lang } : null;
  }
}
