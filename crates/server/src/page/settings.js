// What a person chooses for this browser: the theme, how Enter and letters work, their name.

import { el } from './dom.js';
import { keep, kept } from './keep.js';
import { dialog } from './floats.js';

export function theme() {
  return document.documentElement.dataset.theme ?? 'system';
}

export function setTheme(chosen) {
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  keep('theme', chosen === 'system' ? null : chosen);
}

export function isDark() {
  return (
    theme() === 'dark' ||
    (theme() === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  );
}

/// `changed(name)` when something was chosen that others must know.
export function settings(about, changed) {
  return dialog('Settings', (close) => {
    const name = el('input', {
      class: 'input',
      id: 'set-name',
      maxlength: 80,
      autocomplete: 'off',
      placeholder: 'none',
    });
    name.value = kept('name', '');
    name.addEventListener('change', () => {
      keep('name', name.value.trim() || null);
      changed('name');
    });
    return el(
      'div',
      { class: 'dialog-body' },
      radios(
        'Theme',
        'set-theme',
        [
          ['system', 'As the system'],
          ['light', 'Light'],
          ['dark', 'Dark'],
        ],
        theme(),
        (value) => {
          setTheme(value);
          changed('theme');
        },
      ),
      radios(
        'Enter',
        'set-enter',
        [
          ['sends', 'Sends; Shift+Enter is a new line'],
          ['newline', 'Is a new line; Ctrl+Enter sends'],
        ],
        kept('enter', 'sends'),
        (value) => keep('enter', value),
      ),
      radios(
        'Single letters as shortcuts',
        'set-letters',
        [
          ['on', 'Work while you write nowhere'],
          ['off', 'Off; only with Alt, for what waits for you'],
        ],
        kept('letters', 'on'),
        (value) => keep('letters', value),
      ),
      el(
        'label',
        { class: 'field', for: 'set-name' },
        el('span', { class: 'label', text: 'Your name' }),
        name,
        el('span', {
          class: 'note',
          text:
            'Shown with what you decide; what the agent remembers is kept by name. ' +
            'A claim, not a login.',
        }),
      ),
      about &&
        el('p', {
          class: 'note',
          text: sentence(about),
        }),
      el(
        'div',
        { class: 'dialog-foot' },
        el('button', {
          type: 'button',
          class: 'button main',
          text: 'Done',
          on: { click: () => close() },
        }),
      ),
    );
  });
}

function sentence({ version, provider, keeps_sessions: isKept, sandbox }) {
  const sessions = isKept ? 'sessions are kept' : 'sessions live in memory until the server stops';
  const commands = sandbox ? 'commands can be sandboxed' : 'no sandbox on this machine';
  return `Polyloop ${version}, ${provider}; ${sessions}; ${commands}.`;
}

function radios(legend, name, options, value, changed) {
  return el(
    'fieldset',
    { class: 'radios' },
    el('legend', { class: 'label', text: legend }),
    options.map(([option, says]) => {
      const input = el('input', {
        type: 'radio',
        name,
        checked: option === value,
        on: { change: () => changed(option) },
      });
      return el('label', { class: 'option' }, input, el('span', { text: says }));
    }),
  );
}
