// Keys that work anywhere on the page, and the dialog that lists them.
//
// Plain letters count only while nobody writes: in a field they are text. A key that is held down
// counts once.

import { el } from './dom.js';
import { dialog } from './floats.js';
import { kept } from './keep.js';

const HELP = [
  [
    'Anywhere',
    [
      ['Esc', 'Stop the turn, or close what is open'],
      ['?', 'This list'],
      ['N', 'New session'],
      ['/', 'Search sessions'],
      ['J', 'Next session'],
      ['K', 'Previous session'],
      ['M', 'Write a message'],
      ['G', 'Go to the newest'],
      ['W', 'Wire view'],
      ['C', 'Context'],
      ['R', 'Go to what waits for you'],
      ['T', 'Light or dark'],
    ],
  ],
  [
    'In the message field',
    [
      ['Enter', 'Send (or Ctrl+Enter: see Settings)'],
      ['Shift+Enter', 'New line'],
      ['↑', 'The last message, in an empty field'],
    ],
  ],
  [
    'When something waits for you; with Alt also while you write',
    [
      ['Y', 'Allow once, or approve the plan'],
      ['A', 'Always allow'],
      ['N', 'Deny with a reason, or send back'],
      ['S', 'Stop: deny and end the turn'],
      ['E', 'Have it explained'],
      ['1 – 9', 'Choose an answer'],
    ],
  ],
];

/// `run`: a function for each key, by its name; `escape(from)` has the node where it was pressed;
/// `alt(letter)` says whether the letter meant anything with Alt.
export function listen(run, escape, alt) {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]'))
      return;
    if (event.key === 'Escape') {
      event.preventDefault();
      escape(event.target);
      return;
    }
    if (event.altKey) {
      const letter = withAlt(event, isWriting(event.target));
      if (letter && alt(letter)) event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.repeat || isWriting(event.target)) return;
    if (!lettersCount()) return;
    const does = run[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
}

/// Whether plain letters are shortcuts: who speaks to the computer, or hits keys unawares, has them
/// off. With Alt they always count.
export function lettersCount() {
  return kept('letters', 'on') === 'on';
}

/// The letter or digit that was pressed with Alt, or null. Where somebody writes, Alt may make
/// another character of the key, as on a Mac: that is text.
export function withAlt(event, isWritten) {
  const { altKey, ctrlKey, metaKey, repeat, isComposing, code, key } = event;
  if (!altKey || ctrlKey || metaKey || repeat || isComposing || key === 'Dead') return null;
  if (event.getModifierState?.('AltGraph') || !/^(Key|Digit)/.test(code)) return null;
  const letter = code.slice(-1).toLowerCase();
  return isWritten && key.toLowerCase() !== letter ? null : letter;
}

export function isWriting(node) {
  if (!(node instanceof HTMLElement)) return false;
  return (
    node.isContentEditable ||
    node instanceof HTMLTextAreaElement ||
    node instanceof HTMLSelectElement ||
    (node instanceof HTMLInputElement &&
      !['radio', 'checkbox', 'button', 'file'].includes(node.type))
  );
}

export function help() {
  return dialog(
    'Keyboard shortcuts',
    () =>
      el(
        'div',
        { class: 'dialog-body keys' },
        HELP.map(([where, keys]) =>
          el(
            'section',
            {},
            el('h3', { class: 'popover-sub', text: where }),
            el(
              'dl',
              {},
              keys.map(([key, says]) =>
                el(
                  'div',
                  { class: 'key' },
                  el(
                    'dt',
                    {},
                    key.split('+').map((part) => el('kbd', { text: part })),
                  ),
                  el('dd', { text: says }),
                ),
              ),
            ),
          ),
        ),
      ),
    { wide: true },
  );
}
