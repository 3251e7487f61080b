// The list of sessions at the side: search, status, and what can be done with each.
//
// Asks the server again while somebody looks; what it shows of the open session comes at once.

import { el, icon, iconButton } from './dom.js';
import { menu } from './floats.js';
import { brief } from './shown.js';
import * as api from './api.js';

const PAGE = 50;
const EVERY_MS = 5_000;
const TYPING_MS = 180;

const STATUS = { running: 'works', waiting: 'waits for you', idle: 'idle', ended: 'ended' };

export class Sessions {
  /// `options`: go(id or ''), rename(row), fork(id), archive(row), settings(), help(), theme().
  constructor(container, options) {
    Object.assign(this, {
      options,
      rows: [],
      more: false,
      open: '',
      search: '',
      overlay: null,
      pages: 1,
    });
    this.searchField = el('input', {
      type: 'search',
      class: 'input search',
      id: 'search',
      placeholder: 'Search sessions',
      autocomplete: 'off',
      spellcheck: false,
      aria: { label: 'Search sessions' },
      on: { input: () => this.typed(), keydown: (event) => this.searchKey(event) },
    });
    const chosen = (event) => {
      if (event.target.closest('.session-link')) options.drawer(false);
    };
    const on = { keydown: (event) => this.walk(event), click: chosen };
    this.list = el('div', { class: 'session-list', on });
    this.problem = el('p', { class: 'note list-problem', hidden: true });
    this.themeButton = iconButton('moon', 'Theme', () => options.theme());
    container.append(
      el(
        'div',
        { class: 'brand' },
        el('img', { src: '/page/icon.svg', alt: '', class: 'mark' }),
        el('span', { class: 'brand-name grow', text: 'Polyloop' }),
        iconButton('close', 'Close the list', () => options.drawer(false), {
          class: 'drawer-close',
        }),
      ),
      el(
        'button',
        { type: 'button', class: 'button plain new-session', on: { click: () => options.go('') } },
        icon('add'),
        el('span', { class: 'grow', text: 'New session' }),
        el('kbd', { aria: { hidden: true }, text: 'N' }),
      ),
      el('div', { class: 'search-box' }, icon('search'), this.searchField),
      this.problem,
      this.list,
      el(
        'div',
        { class: 'side-foot' },
        this.themeButton,
        iconButton('key', 'Keyboard shortcuts', () => options.help()),
        el('span', { class: 'grow' }),
        el('button', {
          type: 'button',
          class: 'button quiet small',
          text: 'Settings',
          on: { click: () => options.settings() },
        }),
      ),
    );
    setInterval(() => {
      if (!document.hidden) this.refresh();
    }, EVERY_MS);
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.refresh();
    });
  }

  select(id) {
    this.open = id;
    this.overlay = null;
    this.draw();
  }

  /// What the open session says of itself, before the list is asked again.
  live(row) {
    this.overlay = row;
    const shown = this.rows.find(({ id }) => id === row.id);
    if (!shown) return this.soon();
    if (Object.entries(row).some(([name, value]) => shown[name] !== value)) {
      Object.assign(shown, row);
      this.draw();
    }
  }

  /// Asks again a little later, and once for all that happens until then.
  soon() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.refresh();
    }, 250);
  }

  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      this.search = this.searchField.value.trim();
      this.pages = 1;
      this.refresh();
    }, TYPING_MS);
  }

  async refresh() {
    const asked = (this.asked = (this.asked ?? 0) + 1);
    try {
      const told = await api.sessions({ search: this.search, limit: PAGE * this.pages });
      if (asked !== this.asked) return;
      this.rows = told.sessions ?? [];
      this.more = this.rows.length === PAGE * this.pages;
      const mine = this.overlay && this.rows.find(({ id }) => id === this.overlay.id);
      if (mine) Object.assign(mine, this.overlay);
      this.tell('');
      this.options.reached();
    } catch (error) {
      if (asked === this.asked) this.tell(error.message);
    }
    this.draw();
  }

  tell(problem) {
    this.problem.hidden = !problem;
    this.problem.textContent = problem;
  }

  draw() {
    const looks = JSON.stringify([
      this.open,
      this.search,
      this.more,
      this.rows.map((row) => [
        row.id,
        name(row),
        row.preview,
        row.status,
        row.waiting,
        when(row.last_update_time),
      ]),
    ]);
    // A menu that is open keeps its place; the list is drawn with the next answer.
    const isInUse = this.list.querySelector('[aria-expanded=true]') !== null;
    if (looks === this.looks || isInUse) return;
    this.looks = looks;
    const focused = this.list.contains(document.activeElement)
      ? document.activeElement.closest('[data-id]')?.dataset.id
      : null;
    const groups = [];
    for (const row of this.rows) {
      const day = dayOf(row.last_update_time);
      if (groups.at(-1)?.day !== day) groups.push({ day, rows: [] });
      groups.at(-1).rows.push(row);
    }
    this.list.replaceChildren(
      ...groups.flatMap(({ day, rows }) => [
        el('h2', { class: 'day', text: day }),
        el(
          'ul',
          {},
          rows.map((row) => this.row(row)),
        ),
      ]),
      ...(this.rows.length === 0 && this.problem.hidden
        ? [
            el('p', {
              class: 'note none',
              text: this.search ? `Nothing matches “${this.search}”.` : 'No sessions yet.',
            }),
          ]
        : []),
      ...(this.more
        ? [
            el('button', {
              type: 'button',
              class: 'button quiet small more',
              text: 'Show more',
              on: {
                click: () => {
                  this.pages += 1;
                  this.refresh();
                },
              },
            }),
          ]
        : []),
    );
    if (focused)
      this.list.querySelector(`[data-id="${CSS.escape(focused)}"] .session-link`)?.focus();
  }

  row(row) {
    const status = row.waiting > 0 ? 'waiting' : (row.status ?? 'idle');
    const title = name(row);
    const open = row.id === this.open;
    const button = iconButton('more', `More for ${title}`, () => menu(button, this.entries(row)), {
      class: 'row-more',
      aria: { label: `More for ${title}`, haspopup: 'menu', expanded: 'false' },
    });
    return el(
      'li',
      { class: open ? 'session open' : 'session', dataset: { id: row.id } },
      el(
        'a',
        {
          class: 'session-link',
          href: `#s=${encodeURIComponent(row.id)}`,
          title: title === row.id ? row.id : `${title}\n${row.id}`,
          aria: { current: open ? 'page' : null },
        },
        el('span', { class: `dot ${status}` }),
        el(
          'span',
          { class: 'session-words' },
          el('span', { class: 'session-title cut', text: title }),
          saysMore(row) && el('span', { class: 'session-preview cut', text: brief(row.preview) }),
          el('span', { class: 'unseen', text: STATUS[status] ?? status }),
        ),
        row.waiting > 0 && el('span', { class: 'badge warn', text: String(row.waiting) }),
        el('span', { class: 'session-when', text: when(row.last_update_time) }),
      ),
      button,
    );
  }

  entries(row) {
    return [
      { label: 'Rename', icon: 'edit', run: () => this.options.rename(row) },
      { label: 'Fork', icon: 'fork', run: () => this.options.fork(row.id) },
      null,
      { label: 'Archive', icon: 'archive', bad: true, run: () => this.options.archive(row) },
    ];
  }

  /// The id of the session above or below the open one.
  beside(step) {
    const at = this.rows.findIndex(({ id }) => id === this.open);
    return this.rows[at < 0 ? 0 : at + step]?.id;
  }

  walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [...this.list.querySelectorAll('.session-link')];
    const at = links.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    links[at + step]?.focus();
  }

  searchKey(event) {
    if (event.key === 'ArrowDown') {
      event.preventDefault();
      this.list.querySelector('.session-link')?.focus();
    }
    if (event.key === 'Escape' && this.searchField.value) {
      event.stopPropagation();
      this.searchField.value = '';
      this.typed();
    }
  }
}

/// A preview that only repeats the title is not worth a line.
function saysMore({ title, preview }) {
  return title && preview && !preview.startsWith(title.slice(0, 40));
}

export function name(row) {
  return brief(row.title || row.preview) || 'New session';
}

function dayOf(time) {
  const days = Math.floor((startOfDay(new Date()) - startOfDay(new Date(time))) / 86_400_000 + 0.1);
  if (!(days > 0)) return 'Today';
  return days === 1 ? 'Yesterday' : days < 7 ? 'This week' : 'Earlier';
}

function startOfDay(date) {
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

function when(time) {
  const seconds = Math.max(0, (Date.now() - new Date(time)) / 1000);
  if (!Number.isFinite(seconds)) return '';
  if (seconds < 60) return 'now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return seconds < 86_400 * 30
    ? `${Math.floor(seconds / 86_400)} d`
    : new Date(time).toLocaleDateString('en', { year: '2-digit', month: 'short' });
}
