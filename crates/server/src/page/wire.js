// The wire view: this session's frames as each of the four dialects carries them.
//
// Only listens. What is copied is the frame's own text; so many are kept and no more.

import { el, icon, iconButton } from './dom.js';
import { keep, kept } from './keep.js';
import { toast } from './floats.js';
import { copy } from './copy.js';
import { WireFeed, written } from './wire-feed.js';
import { plain } from './shown.js';

const ROWS_MAX = 1_000;
const PREVIEW_CHARACTERS = 160;
const DIALECTS = ['unified', 'agentloop', 'loom', 'chat'];

export class Wire {
  constructor(container, { closed }) {
    Object.assign(this, {
      container,
      id: null,
      rows: [],
      waiting: [],
      paused: false,
      filter: '',
      due: false,
    });
    this.dialect = DIALECTS.includes(kept('dialect')) ? kept('dialect') : 'unified';
    this.tabs = DIALECTS.map((dialect) =>
      el('button', {
        type: 'button',
        role: 'tab',
        id: `tab-${dialect}`,
        class: 'tab',
        text: dialect,
        aria: { controls: 'wire-panel' },
        on: { click: () => this.choose(dialect), keydown: (event) => this.tabKey(event) },
      }),
    );
    this.state = el('span', { class: 'note cut' });
    this.dot = el('span', { class: 'dot idle' });
    this.pause = iconButton('pause', 'Pause', () => this.toggle());
    this.list = el('ol', { class: 'wire-list' });
    const props = { class: 'wire-panel', id: 'wire-panel', role: 'tabpanel', tabindex: 0 };
    this.panel = el('div', props, this.list);
    container.append(
      el(
        'div',
        { class: 'wire-head' },
        el('h2', { class: 'wire-title grow', text: 'Wire view' }),
        this.pause,
        iconButton('copy', 'Copy all frames that are shown', () => this.copyAll()),
        iconButton('close', 'Close the wire view', closed),
      ),
      el('div', { class: 'tabs', role: 'tablist', aria: { label: 'Dialect' } }, this.tabs),
      el(
        'div',
        { class: 'wire-bar' },
        el('input', {
          type: 'search',
          class: 'input',
          placeholder: 'Filter frames',
          spellcheck: false,
          aria: { label: 'Filter frames' },
          on: { input: (event) => this.sift(event.target.value) },
        }),
        el('span', { class: 'row wire-state' }, this.dot, this.state),
      ),
      this.panel,
    );
    this.mark();
  }

  /// Begins to listen to a session, or to none; resolves when the one before is let go.
  open(id) {
    const left = this.feed?.close();
    this.feed = null;
    Object.assign(this, { id, rows: [], waiting: [] });
    this.list.replaceChildren();
    // What was paused is not what is shown now.
    if (this.paused) this.toggle();
    if (!id) return left;
    const feed = new WireFeed(id, this.dialect, {
      frames: (frames, earlier) => {
        if (this.feed === feed) this.take(frames, 'in', earlier);
      },
      state: (text, level) => {
        this.state.textContent = text;
        this.state.title = text;
        this.dot.className = `dot ${level}`;
      },
    });
    this.feed = feed;
    feed.open();
    return left;
  }

  /// The page's own connection is in another state.
  follow(state) {
    this.feed?.follow(state);
  }

  focus() {
    this.tabs[DIALECTS.indexOf(this.dialect)].focus();
  }

  choose(dialect) {
    this.dialect = dialect;
    keep('dialect', dialect);
    this.mark();
    this.open(this.id);
  }

  mark() {
    for (const [at, tab] of this.tabs.entries()) {
      const chosen = DIALECTS[at] === this.dialect;
      tab.setAttribute('aria-selected', String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    this.panel.setAttribute('aria-labelledby', `tab-${this.dialect}`);
  }

  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = (DIALECTS.indexOf(this.dialect) + step + DIALECTS.length) % DIALECTS.length;
    this.choose(DIALECTS[at]);
    this.tabs[at].focus();
  }

  /// What the page itself sends: it speaks unified.
  sent(frame) {
    if (this.id && this.dialect === 'unified') this.take([written(frame)], 'out');
  }

  take(frames, way, earlier) {
    if (earlier)
      this.waiting.push({
        note: 'Earlier frames are in the session’s history: GET /sessions/{id}/frames',
      });
    for (const { frame, text } of frames) this.waiting.push({ way, frame, text });
    this.waiting.splice(0, this.waiting.length - ROWS_MAX);
    if (this.paused) return this.count();
    // Hundreds of frames a second are drawn once a picture.
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => {
      this.due = false;
      this.draw();
    });
  }

  draw() {
    if (this.paused) return;
    const atEnd = this.panel.scrollHeight - this.panel.scrollTop - this.panel.clientHeight < 40;
    const fresh = this.waiting.splice(0);
    for (const entry of fresh) entry.node = this.node(entry);
    this.rows.push(...fresh);
    for (const old of this.rows.splice(0, this.rows.length - ROWS_MAX)) old.node.remove();
    this.list.append(...fresh.map((entry) => entry.node));
    if (atEnd) this.panel.scrollTop = this.panel.scrollHeight;
  }

  node(entry) {
    if (entry.note) return el('li', { class: 'wire-note note', text: entry.note });
    const { frame, text, way } = entry;
    const type = frame.type ?? 'frame';
    const inner = frame.event?.type ?? frame.payload?.type;
    const button = el(
      'button',
      {
        type: 'button',
        class: 'wire-line',
        aria: { expanded: 'false' },
        on: { click: () => unfold() },
      },
      el(
        'span',
        { class: `way ${way}`, title: way === 'out' ? 'sent by this page' : 'sent by the server' },
        icon(way === 'out' ? 'up' : 'down'),
        el('span', { class: 'unseen', text: way === 'out' ? 'sent' : 'received' }),
      ),
      el('span', {
        class: 'wire-type',
        text: plain(inner ?? type),
        title: inner ? `${type}: ${inner}` : type,
      }),
      el('span', { class: 'wire-preview cut', text: preview(frame) }),
      frame.seq !== undefined && el('span', { class: 'wire-seq', text: String(frame.seq) }),
    );
    const node = el(
      'li',
      { class: 'wire-row', hidden: !this.passes(entry) },
      el(
        'div',
        { class: 'wire-top' },
        button,
        iconButton('copy', `Copy this ${type} frame`, () => copied(text)),
      ),
    );
    function unfold() {
      const shown = node.querySelector('pre');
      button.setAttribute('aria-expanded', String(!shown));
      if (shown) shown.remove();
      else
        node.append(
          el(
            'pre',
            { class: 'wire-json', tabindex: 0, aria: { label: `${type} frame` } },
            el('code', { text: plain(JSON.stringify(frame, null, 2)) }),
          ),
        );
    }
    return node;
  }

  passes(entry) {
    return entry.note || !this.filter || entry.text.toLowerCase().includes(this.filter);
  }

  sift(text) {
    this.filter = text.trim().toLowerCase();
    for (const entry of this.rows) entry.node.hidden = !this.passes(entry);
    this.panel.scrollTop = this.panel.scrollHeight;
  }

  toggle() {
    this.paused = !this.paused;
    this.pause.replaceChildren(icon(this.paused ? 'play' : 'pause'));
    this.count();
    if (!this.paused) this.draw();
  }

  count() {
    const label = this.paused ? `Go on (${this.waiting.length} frames wait)` : 'Pause';
    this.pause.title = label;
    this.pause.setAttribute('aria-label', label);
  }

  copyAll() {
    const shown = this.rows.filter((entry) => !entry.note && this.passes(entry));
    copied(
      shown.map((entry) => entry.text).join('\n'),
      `${shown.length} frames are copied, one a line.`,
    );
  }
}

/// What is the frame's own: without what every frame has.
function preview(frame) {
  const { type, id, session_id: session, seq, cursor, event, payload, ...rest } = frame;
  const { type: kind, ...inner } = event ?? payload ?? {};
  const own = event || payload ? { ...inner, ...rest } : rest;
  return Object.keys(own).length ? plain(JSON.stringify(own).slice(0, PREVIEW_CHARACTERS)) : '';
}

async function copied(text, told = 'The frame is copied.') {
  if (await copy(text)) toast(told, 'good');
  else toast('The browser did not let the page copy: select the text instead.', 'warn');
}
