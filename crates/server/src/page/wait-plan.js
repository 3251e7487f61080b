// The card of a plan: its text, to approve or to send back with words.

import { el, icon } from './dom.js';
import { isLocked, lock } from './locked.js';
import { renderMarkdown } from './markdown.js';
import { plain } from './shown.js';

const AFTER = [
  ['', 'as before the plan'],
  ['manual', 'ask before anything but reading'],
  ['acceptEdits', 'let edits in the folder run'],
  ['auto', 'run commands in the sandbox'],
];

export function planCard(wait, { send, mode }) {
  const { frame } = wait;
  const pager = el('div', { class: 'row pager' });
  const after = el(
    'select',
    { class: 'select', id: 'plan-after' },
    AFTER.map(([value, says]) => el('option', { value, text: says })),
  );
  const words = el('textarea', {
    class: 'textarea',
    rows: 2,
    placeholder: 'What should be different?',
    aria: { label: 'What should be different in the plan' },
  });
  const back = el(
    'form',
    {
      class: 'denial',
      hidden: true,
      on: {
        submit: (event) => {
          event.preventDefault();
          sendBack();
        },
      },
    },
    words,
    el(
      'div',
      { class: 'row' },
      el('button', { type: 'submit', class: 'button main', text: 'Send back' }),
      el('button', {
        type: 'button',
        class: 'button quiet',
        text: 'Back',
        on: { click: () => fold(false) },
      }),
    ),
  );
  words.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      sendBack();
    }
    if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      fold(false);
    }
  });
  const choices = el(
    'div',
    { class: 'choices' },
    el(
      'button',
      { type: 'button', class: 'button main', on: { click: approve } },
      'Approve',
      el('kbd', { aria: { hidden: true }, text: 'Y' }),
    ),
    el(
      'button',
      { type: 'button', class: 'button plain', on: { click: () => fold(true) } },
      'Send back…',
      el('kbd', { aria: { hidden: true }, text: 'N' }),
    ),
    el('span', { class: 'grow' }),
    el(
      'label',
      { class: 'row plan-after', for: 'plan-after' },
      el('span', { class: 'note', text: 'Then' }),
      after,
    ),
  );
  const node = el(
    'article',
    { class: 'wait plan', tabindex: -1, aria: { labelledby: 'wait-title' } },
    el(
      'div',
      { class: 'wait-head' },
      icon('plan'),
      el('h2', { class: 'wait-title', id: 'wait-title', text: 'The agent has a plan' }),
      el('span', { class: 'grow' }),
      pager,
    ),
    el(
      'div',
      { class: 'wait-body plan-text', tabindex: 0, role: 'region', aria: { label: 'The plan' } },
      renderMarkdown(frame.plan ?? 'The plan has no text.'),
      frame.plan_file_path &&
        el('p', { class: 'note' }, 'Kept in ', el('code', { text: plain(frame.plan_file_path) })),
    ),
    choices,
    back,
  );

  function respond(approved, feedback) {
    const sent = send({
      type: 'plan_approval_response',
      request_id: frame.request_id,
      tool_id: frame.tool_id,
      approved,
      ...(feedback ? { feedback } : {}),
    });
    if (sent) lock(node);
  }
  function approve() {
    // First the mode: the turn goes on the moment the plan is approved.
    if (
      after.value &&
      after.value !== mode &&
      !send({ type: 'set_permission_mode', mode: after.value })
    )
      return;
    respond(true);
  }
  function sendBack() {
    respond(false, words.value.trim());
  }
  function fold(sending) {
    back.hidden = !sending;
    choices.hidden = sending;
    if (sending) words.focus();
    else node.focus();
  }

  return {
    node,
    pager,
    says: 'The agent has a plan to approve',
    keys: 'Press Y to approve, N to send it back.',
    key(pressed) {
      const key = pressed.toLowerCase();
      if (isLocked(node)) return false;
      if (key === 'y') approve();
      else if (key === 'n') fold(true);
      else return false;
      return true;
    },
  };
}
