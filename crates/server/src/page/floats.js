// What floats above the page: dialogs, menus, popovers and short messages.
//
// Knows nothing of sessions. Whatever it opens gives the focus back when it closes.

import { el, icon, iconButton, announce } from './dom.js';
import { prose } from './shown.js';

const TOAST_MS = 8_000;
const TOASTS_MAX = 3;

/// A modal dialog. `make(close)` gives its body; resolves with what `close` was called with.
export function dialog(title, make, { wide = false } = {}) {
  return new Promise((resolve) => {
    let result = null;
    const close = (value) => {
      result = value ?? null;
      box.close();
    };
    const heading = el('h2', { id: 'dialog-title', class: 'dialog-title', text: title });
    const box = el(
      'dialog',
      { class: wide ? 'dialog wide' : 'dialog', aria: { labelledby: 'dialog-title' } },
      el(
        'div',
        { class: 'dialog-head' },
        heading,
        iconButton('close', 'Close', () => close()),
      ),
    );
    box.append(make(close));
    // A press that began on the ground behind it closes it; text dragged out of a field does not.
    box.addEventListener('pointerdown', (event) => {
      if (event.target === box) close();
    });
    box.addEventListener('close', () => {
      box.remove();
      resolve(result);
    });
    document.body.append(box);
    box.showModal();
    box.querySelector('[autofocus]')?.focus();
  });
}

export function confirm(title, text, yes, { bad = false } = {}) {
  return dialog(title, (close) =>
    el(
      'form',
      {
        method: 'dialog',
        class: 'dialog-body',
        on: {
          submit: (event) => {
            event.preventDefault();
            close(true);
          },
        },
      },
      el('p', { text }),
      el(
        'div',
        { class: 'dialog-foot' },
        el('button', {
          type: 'button',
          class: 'button plain',
          text: 'Cancel',
          on: { click: () => close(false) },
        }),
        el('button', {
          type: 'submit',
          class: bad ? 'button plain bad' : 'button main',
          text: yes,
          autofocus: true,
        }),
      ),
    ),
  );
}

/// Asks for one line of text; resolves with null if it was called off.
export function ask(title, label, value, yes) {
  return dialog(title, (close) => {
    const input = el('input', {
      class: 'input',
      id: 'dialog-input',
      maxlength: 200,
      autofocus: true,
      autocomplete: 'off',
    });
    input.value = value;
    requestAnimationFrame(() => input.select());
    return el(
      'form',
      {
        class: 'dialog-body',
        on: {
          submit: (event) => {
            event.preventDefault();
            close(input.value.trim() || null);
          },
        },
      },
      el(
        'label',
        { class: 'field', for: 'dialog-input' },
        el('span', { class: 'label', text: label }),
        input,
      ),
      el(
        'div',
        { class: 'dialog-foot' },
        el('button', {
          type: 'button',
          class: 'button plain',
          text: 'Cancel',
          on: { click: () => close() },
        }),
        el('button', { type: 'submit', class: 'button main', text: yes }),
      ),
    );
  });
}

let open = null;

/// Closes the menu or popover that is open; true if there was one.
export function closeFloat() {
  if (!open) return false;
  const { node, button, ended } = open;
  open = null;
  const had = node.contains(document.activeElement);
  node.remove();
  button.setAttribute('aria-expanded', 'false');
  if (had) button.focus();
  ended?.();
  return true;
}

/// A menu at its button. Entries: {label, icon, bad, disabled, run} or null for a line.
export function menu(button, entries) {
  if (toggledOff(button)) return;
  const items = entries.map((entry) =>
    entry === null
      ? el('div', { class: 'menu-line', role: 'separator' })
      : el(
          'button',
          {
            type: 'button',
            role: 'menuitem',
            tabindex: -1,
            class: entry.bad ? 'menu-item bad' : 'menu-item',
            disabled: Boolean(entry.disabled),
            on: {
              click: () => {
                closeFloat();
                entry.run();
              },
            },
          },
          icon(entry.icon),
          el('span', { text: entry.label }),
        ),
  );
  const node = el(
    'div',
    { class: 'float menu', role: 'menu', on: { keydown: (event) => walk(event, node) } },
    items,
  );
  show(node, button);
  node.querySelector('[role=menuitem]:not(:disabled)')?.focus();
}

/// A box at its button, filled by the caller.
export function popover(button, label, content, ended) {
  if (toggledOff(button)) return null;
  const node = el(
    'div',
    { class: 'float popover', role: 'dialog', tabindex: -1, aria: { label } },
    content,
  );
  show(node, button, ended);
  node.focus();
  return node;
}

function toggledOff(button) {
  const same = open?.button === button;
  closeFloat();
  return same;
}

function show(node, button, ended) {
  open = { node, button, ended };
  button.setAttribute('aria-expanded', 'true');
  // In the button's own part of the page, where those who do not see it look for it.
  (button.closest('nav, main, aside') ?? document.body).append(node);
  place(node, button);
}

/// Below the button, or above it where there is no room; never outside the window.
export function place(node, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = node;
  const left = Math.min(Math.max(8, at.right - width), innerWidth - width - 8);
  const below = at.bottom + 6;
  const top =
    below + height > innerHeight - 8 && at.top - height - 6 > 8 ? at.top - height - 6 : below;
  node.style.left = `${Math.max(8, left)}px`;
  node.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`;
}

function walk(event, node) {
  const items = [...node.querySelectorAll('[role=menuitem]:not(:disabled)')];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === 'Tab') closeFloat();
  if (to === undefined) return;
  event.preventDefault();
  items[(to + items.length) % items.length]?.focus();
}

document.addEventListener('pointerdown', (event) => {
  if (open && !open.node.contains(event.target) && !open.button.contains(event.target))
    closeFloat();
});
addEventListener('resize', () => closeFloat());

/// A short message above the composer. `level`: info, good, warn or bad.
export function toast(said, level = 'info', action = null) {
  const text = prose(said);
  const room = document.getElementById('toasts');
  const same = [...room.children].find((other) => other.dataset.text === text);
  same?.remove();
  while (room.children.length >= TOASTS_MAX) room.firstChild.remove();
  const gone = () => node.remove();
  const symbol = { info: 'info', good: 'check', warn: 'warn', bad: 'error' }[level];
  const node = el(
    'div',
    { class: `toast ${level}`, dataset: { text } },
    icon(symbol),
    el('span', { class: 'grow', text }),
    action &&
      el('button', {
        type: 'button',
        class: 'button small quiet',
        text: action.label,
        on: {
          click: () => {
            gone();
            action.run();
          },
        },
      }),
    iconButton('close', 'Dismiss', gone),
  );
  room.append(node);
  announce(text, level === 'bad');
  // What went wrong stays until it was seen.
  if (level !== 'bad') setTimeout(gone, TOAST_MS);
}
