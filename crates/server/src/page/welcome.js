// What is shown where nothing was said yet: where the agent works, and what to try.

import { el, icon } from './dom.js';
import { suggestionCards } from './suggestions.js';

export class Welcome {
  /// `options`: choose(suggestion), begin() a session that is missing, fresh().
  constructor(container, options) {
    Object.assign(this, { container, options });
    this.folder = el('input', {
      class: 'input',
      id: 'folder',
      list: 'folders',
      autocomplete: 'off',
      spellcheck: false,
    });
  }

  /// The folder that was chosen for the new session, or nothing for the server's own.
  get cwd() {
    const chosen = this.folder.value.trim();
    return chosen && chosen !== this.about?.working_directory ? chosen : '';
  }

  hide() {
    this.container.hidden = true;
  }

  /// `isNew`: there is no session yet, so its folder can be chosen.
  show(about, isNew) {
    this.about = about;
    const offline = about?.provider === 'offline';
    this.container.hidden = false;
    this.container.setAttribute('aria-label', isNew ? 'A new session' : 'An empty session');
    this.container.replaceChildren(
      el(
        'div',
        { class: 'welcome-inner' },
        el('img', { src: '/page/icon.svg', alt: '', class: 'welcome-mark' }),
        el('h2', { class: 'welcome-title', text: 'What shall the agent do?' }),
        el('p', {
          class: 'welcome-says dim',
          text: offline
            ? 'This is the offline model: it needs no key and follows a script. ' +
              'Pick one to see what the page can do, or write your own.'
            : 'It reads at once, and asks before it changes anything.',
        }),
        isNew && about && this.place(about),
        about &&
          !about.keeps_sessions &&
          el(
            'p',
            { class: 'note welcome-note' },
            icon('info'),
            'Sessions live in memory: nothing is kept when the server stops.',
          ),
        offline && suggestionCards(this.options.choose),
      ),
    );
  }

  place(about) {
    const roots = [...new Set([about.working_directory, ...(about.workspace_roots ?? [])])].filter(
      Boolean,
    );
    if (!this.folder.value) this.folder.value = about.working_directory ?? '';
    return el(
      'label',
      { class: 'place', for: 'folder' },
      icon('folder'),
      el('span', { class: 'label', text: 'Works in' }),
      this.folder,
      el(
        'datalist',
        { id: 'folders' },
        roots.map((root) => el('option', { value: root })),
      ),
    );
  }

  missing(id, why, canBegin) {
    this.container.hidden = false;
    this.container.replaceChildren(
      el(
        'div',
        { class: 'welcome-inner' },
        el('h2', {
          class: 'welcome-title',
          text: canBegin ? 'There is no such session' : 'That is not a session',
        }),
        el(
          'p',
          { class: 'welcome-says dim' },
          canBegin ? 'It was archived, or it never was: ' : `${why}: `,
          el('code', { text: id }),
        ),
        el(
          'div',
          { class: 'row wrap centred' },
          el('button', {
            type: 'button',
            class: 'button main',
            text: 'New session',
            on: { click: () => this.options.fresh() },
          }),
          canBegin &&
            el('button', {
              type: 'button',
              class: 'button plain',
              text: 'Begin it under this id',
              on: { click: () => this.options.begin() },
            }),
        ),
      ),
    );
  }
}
