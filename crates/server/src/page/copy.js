// Buttons that copy.

import { announce, clear, el, icon } from './dom.js';

const DONE_SHOWN_MS = 1600;

/// A button that copies what `text` gives when it is pressed.
export function copyButton(label, text, { words = false } = {}) {
  const button = el('button', { type: 'button', class: 'copy', title: label, aria: { label } });
  const show = (name, word) =>
    clear(button).append(icon(name), words ? el('span', { text: word }) : '');
  show('copy', 'Copy');
  let timer;
  button.addEventListener('click', async (event) => {
    event.stopPropagation();
    const isDone = await copy(text());
    show(isDone ? 'check' : 'error', isDone ? 'Copied' : 'Not copied');
    announce(isDone ? 'Copied' : 'The browser did not let the page copy');
    clearTimeout(timer);
    timer = setTimeout(() => show('copy', 'Copy'), DONE_SHOWN_MS);
  });
  return button;
}

/// Whether it could be copied.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/// The old way, which also works where the page is not served securely.
function copyBySelection(text) {
  const area = el('textarea', { class: 'unseen', aria: { hidden: 'true' } });
  area.value = text;
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  let isDone = false;
  try {
    isDone = document.execCommand('copy');
  } catch {
    isDone = false;
  }
  area.remove();
  before?.focus?.({ preventScroll: true });
  return isDone;
}
