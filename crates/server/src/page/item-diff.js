// Changes of a file, line by line, as nodes.

import { el, icon } from './dom.js';
import { changedPart, counts, diffLines, folded, readPatch } from './diff.js';
import { languageOf } from './highlight.js';
import { highlighted } from './markdown.js';
import { brief, plain } from './shown.js';

// Rows that are in the document at first; the rest comes when asked for.
const ROWS_SHOWN = 60;
const ROWS_STEP = 400;
const LINE_CHARS_MAX = 2_000;
// In a longer run of changed lines nobody compares them one by one.
const PAIRED_MAX = 80;

/// The changes that a call's arguments describe: `[{path, to, operation, rows}]`, none if it is no
/// edit. Names differ between programs whose sessions are shown.
export function changesOf(name, args) {
  const path = text(args.path ?? args.file_path ?? args.filePath);
  switch (name) {
    case 'Edit':
    case 'edit':
      return [{ path, operation: 'update', rows: replacedBy(args) }];
    case 'MultiEdit':
    case 'multiedit': {
      const edits = Array.isArray(args.edits) ? args.edits : [];
      const rows = edits.flatMap((edit, at) => [
        ...(at ? [{ mark: '…', where: '' }] : []),
        ...replacedBy(edit ?? {}),
      ]);
      return [{ path, operation: 'update', rows }];
    }
    case 'Write':
    case 'write_file':
      return [{ path, operation: 'write', rows: diffLines('', text(args.content)) }];
    case 'apply_patch':
      return readPatch(text(args.patch ?? args.input));
    default:
      return [];
  }
}

function replacedBy(edit) {
  const before = text(edit.oldString ?? edit.old_string);
  const after = text(edit.newString ?? edit.new_string);
  return diffLines(before, after).map((row) => ({ ...row, before: null, after: null }));
}

function text(value) {
  return typeof value === 'string' ? value : '';
}

/// What all changes add and take away, together.
export function totals(changes) {
  return changes
    .map(({ rows }) => counts(rows))
    .reduce((sum, one) => ({ added: sum.added + one.added, removed: sum.removed + one.removed }), {
      added: 0,
      removed: 0,
    });
}

export function totalsNode({ added, removed }) {
  return el(
    'span',
    { class: 'diff-totals' },
    el('span', {
      class: 'added',
      text: `+${added}`,
      aria: { label: `${added} lines added` },
      role: 'img',
    }),
    el('span', {
      class: 'removed',
      text: `−${removed}`,
      aria: { label: `${removed} lines removed` },
      role: 'img',
    }),
  );
}

/// One file's changes; `isAlone` where its name stands right above, `isWhole` where somebody decides
/// on them: then no line is cut or folded away.
export function diffNode({ path, to, operation, rows }, { isAlone = false, isWhole = false } = {}) {
  const shown = folded(
    rows.filter((row) => row.mark !== '…' || row.where !== undefined),
    isWhole ? Infinity : 3,
  );
  const charsMax = isWhole ? Infinity : LINE_CHARS_MAX;
  const lang = languageOf(to ?? path);
  const body = el('div', {
    class: 'diff-rows',
    tabindex: '0',
    role: 'group',
    aria: { label: `Changes of ${brief(path)}` },
  });
  const more = el('button', { type: 'button', class: 'show-more' });
  let at = 0;
  const show = (count) => {
    const until = Math.min(shown.length, at + count);
    for (; at < until; at += 1) body.append(row(shown, at, lang, charsMax));
    more.hidden = at >= shown.length;
    more.replaceChildren(
      icon('down'),
      `Show ${Math.min(ROWS_STEP, shown.length - at)} more of ${shown.length - at} lines`,
    );
  };
  more.addEventListener('click', () => show(ROWS_STEP));
  show(ROWS_SHOWN);
  const word = { add: 'new', write: 'written', delete: 'deleted' }[operation];
  const name = el('bdi', { class: 'path', text: plain(path) });
  const target = to ? [icon('right'), el('bdi', { class: 'path', text: plain(to) })] : [];
  return el(
    'div',
    { class: 'diff' },
    !isAlone &&
      el(
        'div',
        { class: 'diff-head' },
        icon('file'),
        name,
        target,
        word && el('span', { class: 'badge', text: word }),
        totalsNode(counts(rows)),
      ),
    shown.length ? body : null,
    more,
  );
}

function row(rows, at, lang, charsMax) {
  const { mark, text: line, where, count } = rows[at];
  if (mark === '…') {
    const words =
      where !== undefined
        ? plain(where) || '⋯'
        : `${count} unchanged ${count === 1 ? 'line' : 'lines'}`;
    return el(
      'div',
      { class: 'diff-row gap' },
      el('span', { class: 'sign' }),
      el('code', { text: words }),
    );
  }
  const kind = { '+': 'added', '-': 'removed', ' ': 'same' }[mark];
  const said = { '+': 'added: ', '-': 'removed: ' }[mark];
  return el(
    'div',
    { class: `diff-row ${kind}` },
    el('span', { class: 'sign', aria: { hidden: 'true' }, text: mark }),
    said && el('span', { class: 'unseen', text: said }),
    el('code', {}, content(rows, at, lang, charsMax)),
  );
}

/// The line; where one takes the place of another, the part that differs is marked.
function content(rows, at, lang, charsMax) {
  const { mark, text: whole } = rows[at];
  const line = whole.slice(0, charsMax);
  const cut = whole.length > line.length ? '…' : '';
  // So long a line has no colours and no marks: they would cost more than they tell.
  if (line.length > LINE_CHARS_MAX) return [plain(line)];
  const other = mark === ' ' ? null : partner(rows, at);
  const part =
    other === null ? null : changedPart(...(mark === '-' ? [line, other] : [other, line]));
  if (!part) return [...highlighted(line, lang), cut];
  const [from, endOld, endNew] = part;
  const to = mark === '-' ? endOld : endNew;
  return [
    ...highlighted(line.slice(0, from), lang),
    el('mark', { text: plain(line.slice(from, to)) }),
    ...highlighted(line.slice(to), lang),
    cut,
  ];
}

/// The line that a changed line replaces, or that replaces it, where as many come as go.
function partner(rows, at) {
  const { mark } = rows[at];
  const changes = (row) => row?.mark === '-' || row?.mark === '+';
  let [first, last] = [at, at];
  while (at - first < PAIRED_MAX && changes(rows[first - 1])) first -= 1;
  while (last - at < PAIRED_MAX && changes(rows[last + 1])) last += 1;
  const run = rows.slice(first, last + 1);
  const gone = run.filter((row) => row.mark === '-');
  const come = run.filter((row) => row.mark === '+');
  if (gone.length !== come.length || run.length > PAIRED_MAX) return null;
  const [mine, theirs] = mark === '-' ? [gone, come] : [come, gone];
  return theirs[mine.indexOf(rows[at])].text.slice(0, LINE_CHARS_MAX);
}
