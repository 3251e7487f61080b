// A tool call as a card: what it is, how it stands, what it prints and changes.

import { el, icon } from './dom.js';
import { changesOf, diffNode, totals, totalsNode } from './item-diff.js';
import { Output } from './item-output.js';
import { codeBlock } from './markdown.js';
import { outcome } from './item-wait.js';
import { describe } from './tool-words.js';
import { brief, duration, plain } from './shown.js';

const STATES = {
  running: ['running', 'Running'],
  waiting: ['waiting', 'Waits for you'],
  done: ['done', 'Done'],
  failed: ['failed', 'Failed'],
  denied: ['denied', 'Not allowed'],
};
// What one wants to see of a call without asking, and of which calls; the others are folded.
const OPEN_STATES = new Set(['waiting', 'failed', 'denied']);
const OPEN_TOOLS = new Set([
  'Bash',
  'bash',
  'shell',
  'Edit',
  'MultiEdit',
  'Write',
  'apply_patch',
  'TodoWrite',
]);
// What these answer when all went well is what they were given.
const SHOWN_ALREADY = new Set(['TodoWrite', 'todo_write']);
const ARGUMENT_CHARS_MAX = 20_000;

export class ToolCard {
  constructor(item, context) {
    this.context = context;
    this.title = el('span', { class: 'tool-title' });
    this.note = el('span', { class: 'tool-note' });
    this.time = el('span', { class: 'tool-time' });
    this.badge = el('span', { class: 'tool-state' });
    this.glyph = el('span', { class: 'tool-icon' });
    this.summary = el(
      'summary',
      {},
      this.glyph,
      this.title,
      this.note,
      this.time,
      this.badge,
      el('span', { class: 'chevron' }, icon('right')),
    );
    this.body = el('div', { class: 'tool-body' });
    this.whole = el('details', { class: 'tool' }, this.summary, this.body);
    this.whole.addEventListener('toggle', () => {
      this.isTouched = true;
      this.draw();
    });
    this.parts = {};
    this.version = 0;
  }

  update(item) {
    this.item = item;
    this.readArguments(item);
    const state = stateOf(item);
    const words = describe(item);
    this.words = words;
    if (this.drawnName !== words.key) {
      this.drawnName = words.key;
      this.glyph.replaceChildren(icon(words.icon));
      this.title.replaceChildren(
        el('span', { class: 'tool-verb', text: words.verb }),
        words.subject
          ? el(words.isCode ? 'code' : 'bdi', { class: 'tool-subject', text: words.subject })
          : '',
      );
    }
    this.tellState(state);
    this.setOpen(state);
    this.draw();
  }

  tellState(state) {
    const [name, word] = STATES[state];
    if (this.state !== state) {
      this.state = state;
      this.whole.dataset.state = name;
      this.badge.replaceChildren(
        stateIcon(state),
        el('span', { class: state === 'done' ? 'unseen' : '', text: word }),
      );
    }
    const { item } = this;
    // While it runs, the clock says it.
    if (state !== 'running') this.time.textContent = item.ms >= 500 ? duration(item.ms) : '';
    const code = item.exitCode;
    this.note.replaceChildren(
      ...[
        code !== null && code !== 0
          ? el('span', { class: 'badge bad', text: `exit ${code}` })
          : null,
        item.files.length > 0 && !this.isEdit
          ? el('span', { class: 'badge', text: files(item.files.length) })
          : null,
      ].filter(Boolean),
    );
  }

  tick(now) {
    const { state, startedAt } = this.item;
    if (state === 'running' && startedAt) this.time.textContent = duration(now - startedAt);
  }

  /// Opens and folds by itself until the reader did.
  setOpen(state) {
    if (this.isTouched || this.openFor === state) return;
    this.openFor = state;
    const isOpen = OPEN_STATES.has(state) || OPEN_TOOLS.has(this.item.name);
    if (this.whole.open === isOpen) return;
    // Its own opening is not the reader's.
    this.whole.addEventListener(
      'toggle',
      () => {
        this.isTouched = false;
      },
      { once: true },
    );
    this.whole.open = isOpen;
  }

  draw() {
    const { item } = this;
    if (!item || !this.whole.open) return;
    this.drawRequest(item);
    this.drawApprovals(item);
    this.drawOutput(item);
    this.drawResult(item);
    this.drawFiles(item);
  }

  /// A part of the body, in its place; made once for each `key`.
  part(name, key, make) {
    const part = this.parts[name];
    if (part?.key === key) return;
    const node = key === null ? null : make();
    if (part?.node && node) part.node.replaceWith(node);
    else if (part?.node) part.node.remove();
    else if (node) this.place(name, node);
    this.parts[name] = { key, node };
  }

  place(name, node) {
    const order = ['request', 'approvals', 'output', 'result', 'files'];
    const after = order
      .slice(order.indexOf(name) + 1)
      .map((next) => this.parts[next]?.node)
      .find(Boolean);
    this.body.insertBefore(node, after ?? null);
  }

  /// What was decided may have put other arguments in their place.
  readArguments({ name, args }) {
    if (this.args === args && this.name === name) return;
    Object.assign(this, { args, name, version: this.version + 1 });
    this.changes = changesOf(name, args);
    this.isEdit = this.changes.length > 0;
  }

  drawRequest(item) {
    this.part('request', this.version, () =>
      this.isEdit ? this.diffs(item) : argumentsNode(item, this.words),
    );
  }

  diffs(item) {
    this.title.querySelector('.diff-totals')?.remove();
    this.title.append(totalsNode(totals(this.changes)));
    const isAlone = this.changes.length === 1 && item.name !== 'apply_patch';
    return el(
      'div',
      { class: 'diffs' },
      this.changes.map((change) => diffNode(change, { isAlone })),
    );
  }

  drawApprovals(item) {
    const key = item.approvals.map((asked) => `${asked.requestId}${asked.decision}`).join() || null;
    this.part('approvals', key, () =>
      el(
        'div',
        { class: 'approvals' },
        item.approvals.map((asked) => outcome(asked, this.context)),
      ),
    );
  }

  drawOutput(item) {
    if (item.output === '') return;
    this.output ??= new Output();
    this.part('output', 'output', () => this.output.node);
    this.output.update(item.output);
  }

  drawResult(item) {
    const text = item.error ?? item.result;
    const isNews =
      text &&
      !repeats(item, text) &&
      !(item.success && (this.isEdit || SHOWN_ALREADY.has(item.name)));
    const key =
      item.state === 'ended' && isNews ? (item.error !== null ? 'error' : 'result') : null;
    this.part('result', key, () => {
      const view = new Output(item.error !== null ? 'Error' : 'Result');
      view.node.classList.toggle('is-error', item.error !== null);
      view.update(text);
      return view.node;
    });
  }

  drawFiles(item) {
    const key = item.files.length > 0 ? String(item.files.length) : null;
    this.part('files', key, () => filesNode(item, this.context, { isShort: this.isEdit }));
  }

  get label() {
    return `Tool: ${this.words?.verb ?? ''} ${this.words?.subject ?? ''}`;
  }
}

export function stateOf(item) {
  if (item.state !== 'ended') return item.state;
  if (item.success) return 'done';
  return item.wasDenied ? 'denied' : 'failed';
}

function stateIcon(state) {
  if (state === 'running') return el('span', { class: 'spinner', aria: { hidden: 'true' } });
  return icon({ waiting: 'shield', done: 'check', failed: 'error', denied: 'stop' }[state]);
}

/// A failed command's error says again what it printed; the exit code stands in the head.
function repeats(item, text) {
  return (
    item.exitCode !== null && item.output !== '' && text.includes(item.output.slice(-200).trim())
  );
}

function files(number) {
  return number === 1 ? '1 file' : `${number} files`;
}

/// What the call was given, where its head does not say it all.
function argumentsNode(item, words) {
  if (words.body === null) return null;
  if (words.body !== undefined)
    return codeBlock(words.body.text.slice(0, ARGUMENT_CHARS_MAX), words.body.lang);
  const json = JSON.stringify(item.args, null, 2) ?? '';
  if (json === '{}' || json === 'null') return null;
  const cut = json.length > ARGUMENT_CHARS_MAX ? `${json.slice(0, ARGUMENT_CHARS_MAX)}…` : json;
  return codeBlock(cut, 'json');
}

const OPERATIONS = { create: 'new', update: 'changed', delete: 'deleted' };

/// The files that changed; in short where the changes themselves are shown.
export function filesNode({ files: changed, toolId }, context, { isShort = false } = {}) {
  const rows = changed
    .slice(0, 100)
    .map(({ path, operation }) =>
      el(
        'li',
        { class: `file ${operation === 'delete' ? 'removed' : ''}` },
        icon('file'),
        el('bdi', { class: 'path', text: plain(path), title: brief(path, 400) }),
        el('span', { class: 'badge', text: OPERATIONS[operation] ?? brief(operation, 20) }),
      ),
    );
  if (changed.length > rows.length)
    rows.push(el('li', { text: `and ${changed.length - rows.length} more` }));
  // A call of ours is named by its place in the log, by which its edits are taken back.
  const seq = Number(/^tool-(\d+)$/.exec(toolId ?? '')?.[1] ?? NaN);
  const undo =
    Number.isFinite(seq) && context.onUndo
      ? el(
          'button',
          {
            type: 'button',
            class: 'show-more',
            title: 'Take these edits back',
            on: { click: () => context.onUndo({ seq, toolId, files: changed }) },
          },
          icon('undo'),
          'Undo',
        )
      : null;
  if (isShort)
    return (
      undo &&
      el(
        'div',
        { class: 'files is-short-list' },
        el('span', {
          class: 'note',
          text: `${files(changed.length)} ${changed.every(({ operation }) => operation === 'create') ? 'made' : 'changed'}`,
        }),
        undo,
      )
    );
  return el('div', { class: 'files' }, el('ul', { aria: { label: 'Changed files' } }, rows), undo);
}
