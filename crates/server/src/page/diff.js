// What an edit changes, line by line: from two texts, or read from a patch.
//
// Pure. The work is bounded: texts that differ too much are shown as one taken out and one put in.

// Differences that are looked for before it is given up.
const DIFFERENCES_MAX = 600;
const CONTEXT_LINES = 3;

/// The lines of `before` and `after` as `{mark: ' '|'-'|'+', text, before, after}`; the numbers
/// count lines from 1, null where there is none.
export function diffLines(before, after) {
  const [a, b] = [lines(before), lines(after)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail))
    tail += 1;
  const rows = [];
  const both = (from, to) => {
    for (let i = from; i < to; i += 1) rows.push([' ', a[i]]);
  };
  both(0, head);
  const [midA, midB] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  rows.push(...(shortest(midA, midB) ?? replaced(midA, midB)));
  both(a.length - tail, a.length);
  return numbered(rows);
}

function lines(text) {
  if (text === '' || text === null || text === undefined) return [];
  const found = String(text).split('\n');
  // The last newline ends a line and begins none.
  if (found.at(-1) === '') found.pop();
  return found;
}

function replaced(a, b) {
  return [...a.map((text) => ['-', text]), ...b.map((text) => ['+', text])];
}

/// The shortest way from one to the other (Myers), or null if it is longer than is looked for.
function shortest(a, b) {
  if (a.length === 0 || b.length === 0) return replaced(a, b);
  const steps = [];
  let reach = new Map([[1, 0]]);
  for (let d = 0; d <= Math.min(a.length + b.length, DIFFERENCES_MAX); d += 1) {
    const next = new Map(reach);
    steps.push(reach);
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
      let x = down ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      next.set(k, x);
      if (x >= a.length && x - k >= b.length) return backtrack(a, b, steps, d);
    }
    reach = next;
  }
  return null;
}

function backtrack(a, b, steps, last) {
  const rows = [];
  let [x, y] = [a.length, b.length];
  for (let d = last; d > 0; d -= 1) {
    const reach = steps[d];
    const k = x - y;
    const down = k === -d || (k !== d && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const fromX = reach.get(from) ?? 0;
    const fromY = fromX - from;
    while (x > (down ? fromX : fromX + 1) && y > (down ? fromY + 1 : fromY)) {
      x -= 1;
      y -= 1;
      rows.push([' ', a[x]]);
    }
    if (down) {
      y -= 1;
      rows.push(['+', b[y]]);
    } else {
      x -= 1;
      rows.push(['-', a[x]]);
    }
  }
  while (x > 0 && y > 0) {
    x -= 1;
    y -= 1;
    rows.push([' ', a[x]]);
  }
  return rows.reverse();
}

function numbered(rows) {
  let [before, after] = [0, 0];
  return rows.map(([mark, text]) => {
    if (mark !== '+') before += 1;
    if (mark !== '-') after += 1;
    return { mark, text, before: mark === '+' ? null : before, after: mark === '-' ? null : after };
  });
}

/// The rows near changes; `{mark: '…', count}` stands for those left out.
export function folded(rows, context = CONTEXT_LINES) {
  const keep = new Uint8Array(rows.length);
  rows.forEach((row, at) => {
    if (row.mark === ' ') return;
    keep.fill(1, Math.max(0, at - context), Math.min(rows.length, at + context + 1));
  });
  const shown = [];
  rows.forEach((row, at) => {
    if (keep[at]) shown.push(row);
    else if (shown.at(-1)?.count) shown.at(-1).count += 1;
    else shown.push({ mark: '…', count: 1 });
  });
  return shown;
}

/// How many lines come and go.
export function counts(rows) {
  let [added, removed] = [0, 0];
  for (const { mark } of rows) {
    if (mark === '+') added += 1;
    else if (mark === '-') removed += 1;
  }
  return { added, removed };
}

/// For a line that takes another's place: where they differ, as [start, end of old, end of new].
export function changedPart(before, after) {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  // Where most differs, there is nothing to point at.
  return head + tail < shorter * 0.4 ? null : [head, before.length - tail, after.length - tail];
}

const PATCH_FILE = /^\*\*\* (Add|Update|Delete) File:(.*)$/;
const PATCH_MOVE = /^\*\*\* Move to:(.*)$/;
const PATCH_FRAME = /^\s*\*\*\* (Begin Patch|End Patch|End of File)\s*$|^\s*$/;
const GIT_FILE = /^(?:---|\+\+\+) (?:[ab]\/)?([^\t]*)/;
const GIT_HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const GIT_WORDS = /^(diff|index|(new|deleted) file mode|old mode|new mode|similarity index) /;
const NO_NEWLINE = /^\\ No newline/;

/// The files of a patch: `[{path, operation, to, rows}]`. Reads apply_patch's own form and unified
/// diffs; what it cannot read it leaves out, so no rows may also mean that.
export function readPatch(text) {
  return read(text).files;
}

/// The lines of a patch that `readPatch` leaves out: whoever decides on it must see those too.
export function unreadLines(text) {
  return read(text).unread;
}

function read(text) {
  const state = { files: [], file: null, unread: [], left: null };
  for (const line of String(text ?? '').split('\n')) {
    if (!ownHeader(state, line) && !gitHeader(state, line) && !patchRow(state, line))
      state.unread.push(line);
  }
  return state;
}

/// A header of apply_patch's own form. In a hunk only what begins in the first column is one.
function ownHeader(state, line) {
  const { file } = state;
  const inHunk = file?.operation === 'update';
  const begins = PATCH_FILE.exec(inHunk ? line.trimEnd() : line.trim());
  if (begins) {
    const [, operation, path] = begins;
    const next = { path: path.trim(), operation: operation.toLowerCase(), to: null, rows: [] };
    Object.assign(state, { file: next, isOwn: true });
    state.files.push(next);
    return true;
  }
  const moves = PATCH_MOVE.exec(line);
  if (!moves || !inHunk || file.to !== null || file.rows.length > 0) return false;
  file.to = moves[1].trim();
  return true;
}

/// In apply_patch's own form `--- x` takes out the line `-- x`, as it does inside a hunk of Git's.
function gitHeader(state, line) {
  if (state.isOwn || hasLeft(state)) return false;
  if (!line.startsWith('--- ') && !line.startsWith('+++ ')) return false;
  const name = GIT_FILE.exec(line)[1].trim();
  const { file } = state;
  if (line.startsWith('--- ')) {
    state.file = { path: name, operation: 'update', to: null, rows: [] };
    state.files.push(state.file);
    return true;
  }
  if (!file || file.rows.length > 0) return false;
  if (file.path === '/dev/null') Object.assign(file, { path: name, operation: 'add' });
  else if (name === '/dev/null') file.operation = 'delete';
  else if (name !== file.path) file.to = name;
  return true;
}

/// Whether Git's hunk has lines to come, as its header counted them.
function hasLeft({ left }) {
  return left !== null && (left.before > 0 || left.after > 0);
}

function patchRow(state, line) {
  const { file, isOwn } = state;
  if (NO_NEWLINE.test(line)) return true;
  if (!hasLeft(state) && !isOwn && GIT_WORDS.test(line)) return true;
  if (!file) return PATCH_FRAME.test(line);
  if (line.startsWith('@@') && !hasLeft(state)) return hunkHead(state, line);
  const mark = line[0];
  if (mark !== '+' && mark !== '-' && mark !== ' ') return PATCH_FRAME.test(line);
  // A new file has added lines only, and one that goes has none.
  if (isOwn && (file.operation === 'delete' || (file.operation === 'add' && mark !== '+')))
    return PATCH_FRAME.test(line);
  if (state.left && mark !== '+') state.left.before -= 1;
  if (state.left && mark !== '-') state.left.after -= 1;
  file.rows.push({ mark, text: line.slice(1), before: null, after: null });
  return true;
}

function hunkHead(state, line) {
  const { file } = state;
  const counted = state.isOwn ? null : GIT_HUNK.exec(line);
  state.left = counted && { before: Number(counted[1] ?? 1), after: Number(counted[2] ?? 1) };
  const where = line.replace(/^@@[-+ ,\d]*(?:@@)?/, '').trim();
  if (file.rows.length > 0 || where) file.rows.push({ mark: '…', where });
  return true;
}
