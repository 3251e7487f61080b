// The head of a session: its title, folder, connection and meter, and what can be done with it.

import { el, icon, iconButton } from './dom.js';
import { menu } from './floats.js';
import { Meter } from './meter.js';
import { brief, plain } from './shown.js';

export class Head {
  /// `options`: drawer(), rename(id, title), entries() of the menu, wire(), now(), compact(),
  /// refresh(), id().
  constructor(container, options) {
    this.options = options;
    this.title = el('h1', { class: 'title cut' });
    this.titleButton = el(
      'button',
      { type: 'button', class: 'title-button', title: 'Rename', on: { click: () => this.edit() } },
      this.title,
      icon('edit'),
    );
    this.input = el('input', {
      class: 'input title-input',
      hidden: true,
      maxlength: 200,
      aria: { label: 'Title' },
    });
    this.input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.isComposing) {
        event.preventDefault();
        this.edited(true);
      }
      if (event.key === 'Escape') {
        event.preventDefault();
        event.stopPropagation();
        this.edited(false);
      }
    });
    this.input.addEventListener('blur', () => this.edited(true));
    this.folder = el('span', { class: 'folder cut' });
    this.folderChip = el(
      'span',
      { class: 'folder-chip', hidden: true },
      icon('folder'),
      this.folder,
    );
    this.state = el('button', {
      type: 'button',
      class: 'connection',
      hidden: true,
      on: { click: () => options.now() },
    });
    this.meter = new Meter(options);
    this.wire = iconButton('wire', 'Wire view', () => options.wire(), {
      class: 'wire-button',
      aria: { label: 'Wire view', pressed: 'false' },
    });
    this.more = iconButton('more', 'More', () => menu(this.more, options.entries()), {
      aria: { label: 'More', haspopup: 'menu', expanded: 'false' },
    });
    container.append(
      iconButton('menu', 'Sessions', () => options.drawer(), {
        class: 'drawer-button',
        id: 'drawer-button',
      }),
      el('div', { class: 'titles grow' }, this.titleButton, this.input, this.folderChip),
      this.state,
      this.meter.node,
      this.wire,
      this.more,
    );
  }

  /// Without a session there is nothing to rename, watch or compact.
  show(head, { isOpen }) {
    this.given = head?.title ?? '';
    const title = brief(this.given) || (isOpen ? 'Untitled session' : 'New session');
    this.title.textContent = title;
    this.titleButton.title = isOpen ? `${title} (rename)` : title;
    this.titleButton.disabled = !isOpen;
    this.folderChip.hidden = !head?.cwd;
    this.folder.textContent = head?.cwd ? brief(base(head.cwd)) : '';
    this.folderChip.title = head?.cwd ? `Works in ${plain(head.cwd)}` : '';
    this.wire.hidden = this.more.hidden = !isOpen;
    if (!isOpen) {
      this.meter.show(null);
      this.state.hidden = true;
    }
  }

  /// `told` as links tell it; null when all is well.
  connection(told, secondsLeft) {
    this.state.hidden = !told;
    if (!told) return;
    this.state.replaceChildren(
      el('span', { class: `dot ${told.level}` }),
      el('span', { class: 'cut', text: told.text }),
      ...(told.canRetry
        ? [
            el('span', {
              class: 'connection-now',
              text: secondsLeft > 0 ? `${secondsLeft} s · now` : 'now',
            }),
          ]
        : []),
    );
    this.state.disabled = !told.canRetry;
    this.state.title = told.canRetry ? 'Try again now' : told.text;
  }

  /// The session is left: what was not finished is not taken.
  leave() {
    this.edited(false);
  }

  edit() {
    // The title that is written is this session's, whichever is open when it is done.
    this.edits = this.options.id();
    this.titleButton.hidden = true;
    this.input.hidden = false;
    this.input.value = this.given;
    this.input.focus();
    this.input.select();
  }

  edited(taken) {
    if (this.input.hidden) return;
    this.input.hidden = true;
    this.titleButton.hidden = false;
    const title = this.input.value.trim();
    if (taken && title && title !== this.given) {
      this.title.textContent = brief(title);
      this.options.rename(this.edits, title);
    }
    if (document.activeElement === document.body) this.titleButton.focus();
  }
}

function base(path) {
  return path.split('/').filter(Boolean).at(-1) ?? path;
}
