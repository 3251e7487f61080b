// The nodes around a transcript's items: what scrolls, the space for what is not in the document,
// what is shown while one waits, and the way back to the end.

import { el, icon } from './dom.js';

export function parts(onJump, onRetry) {
  const space = () => el('div', { class: 'list-space', aria: { hidden: 'true' } });
  const [before, after] = [space(), space()];
  const list = el('div', { class: 'list-items' });
  const dots = el('span', { class: 'dots', aria: { hidden: 'true' } }, el('i'), el('i'), el('i'));
  const pondering = el('div', { class: 'list-pondering', hidden: true }, dots, 'Working');
  const scroller = el(
    'div',
    {
      class: 'scroller',
      tabindex: '0',
      role: 'log',
      aria: { label: 'Conversation', live: 'off' },
    },
    before,
    list,
    after,
    pondering,
  );
  const spinner = el('span', { class: 'spinner', aria: { hidden: 'true' } });
  const older = el('div', { class: 'list-older', hidden: true }, spinner, 'Earlier messages');
  const noOlder = el(
    'div',
    { class: 'list-older', hidden: true, role: 'status' },
    icon('warn'),
    'Earlier messages could not be loaded',
    el('button', {
      type: 'button',
      class: 'button plain small',
      text: 'Try again',
      on: { click: onRetry },
    }),
  );
  const jump = el(
    'button',
    { type: 'button', class: 'jump', hidden: true, on: { click: onJump } },
    icon('down'),
    el('span', { text: 'Newest' }),
  );
  const root = el('div', { class: 'transcript-box' }, scroller, older, noOlder, jump);
  return { root, scroller, before, list, after, pondering, older, noOlder, jump };
}
