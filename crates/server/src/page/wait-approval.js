// The card of an approval: what would run, where, the risk and why, and what can be said to it.
//
// Shows what the request says, never what it thinks the call means.

import { el, icon } from './dom.js';
import { callPreview } from './call.js';
import { isLocked, lock } from './locked.js';
import { brief, plain } from './shown.js';

const RISKS = {
  low: ['Low risk', 'badge good'],
  medium: ['Medium risk', 'badge warn'],
  high: ['High risk', 'badge bad'],
};

const GIST_CHARACTERS = 120;

export function approvalCard(wait, { cwd, send, explained }) {
  const { frame } = wait;
  const context = frame.context ?? {};
  const [risk, riskClass] = RISKS[context.risk_level] ?? ['Risk not known', 'badge'];
  const respond = (decision, explanation) =>
    send({
      type: 'permission_response',
      request_id: frame.request_id,
      decision,
      ...(explanation ? { explanation } : {}),
    });

  const says = `Allow ${brief(frame.tool_name)}? ${gist(frame.input ?? {})}`;
  const pager = el('div', { class: 'row pager' });
  const head = el(
    'div',
    { class: 'wait-head' },
    icon('shield'),
    el(
      'h2',
      { class: 'wait-title', id: 'wait-title' },
      'Allow ',
      el('span', { class: 'mono', text: brief(frame.tool_name) }),
      '?',
    ),
    el('span', { class: riskClass, text: risk }),
    el('span', { class: 'grow' }),
    pager,
  );

  const where = frame.input?.workdir ?? cwd;
  const facts = el(
    'dl',
    { class: 'facts' },
    fact('Where', where ? el('code', { text: plain(where) }) : null),
    fact('Why asked', prose(context.description)),
    ...reasons(context).map((reason) => fact('', prose(reason))),
    fact('“Always” covers', prose(context.covers)),
  );

  const reason = el('textarea', {
    class: 'textarea',
    rows: 2,
    placeholder: 'What should it do instead? (may be empty)',
    aria: { label: 'Reason for denying, which the agent is told' },
  });
  const deny = (decision) => respond(decision, reason.value.trim());
  const denial = el(
    'form',
    {
      class: 'denial',
      hidden: true,
      on: {
        submit: (event) => {
          event.preventDefault();
          busy(deny('deny'));
        },
      },
    },
    reason,
    el(
      'div',
      { class: 'row wrap' },
      el('button', { type: 'submit', class: 'button plain bad', text: 'Deny' }),
      el('button', {
        type: 'button',
        class: 'button quiet',
        text: 'Back',
        on: { click: () => fold(false) },
      }),
      el('span', { class: 'note grow', text: 'The agent is told, and goes on.' }),
    ),
  );
  reason.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      busy(deny('deny'));
    }
    if (event.key === 'Escape') {
      event.preventDefault();
      event.stopPropagation();
      fold(false);
    }
  });

  const choice = (label, key, cls, run, title) =>
    el(
      'button',
      {
        type: 'button',
        class: `button ${cls}`,
        title,
        aria: { keyshortcuts: key },
        on: { click: run },
      },
      label,
      el('kbd', { aria: { hidden: true }, text: key }),
    );
  const explain = choice(
    'Explain',
    'E',
    'quiet',
    () => askWhy(),
    'Let the model explain, then ask again',
  );
  const choices = el(
    'div',
    { class: 'choices' },
    choice('Allow once', 'Y', 'main', () => busy(respond('allow'))),
    context.covers &&
      choice(
        'Always',
        'A',
        'plain',
        () => busy(respond('allow_always')),
        `For this session: ${plain(context.covers)}`,
      ),
    choice('Deny…', 'N', 'plain', () => fold(true), 'Deny, with a reason if you like'),
    choice('Stop', 'S', 'plain bad', () => busy(respond('deny_stop')), 'Deny, and end the turn'),
    el('span', { class: 'grow' }),
    explain,
  );
  const note = el('p', {
    class: 'note',
    text: explained ? 'It was explained in the conversation.' : '',
    hidden: !explained,
  });

  const node = el(
    'article',
    {
      class: `wait approval risk-${context.risk_level ?? 'unknown'}`,
      tabindex: -1,
      aria: { labelledby: 'wait-title' },
    },
    head,
    el('div', { class: 'wait-body' }, callPreview(frame.tool_name, frame.input ?? {}), facts),
    note,
    choices,
    denial,
  );

  function fold(denying) {
    denial.hidden = !denying;
    choices.hidden = denying;
    if (denying) reason.focus();
    else node.focus();
  }
  function busy(sent) {
    if (sent) lock(node);
  }
  function askWhy() {
    if (!respond('explain')) return;
    explain.disabled = true;
    note.hidden = false;
    note.textContent = 'The model is asked to explain; you are asked again afterwards.';
  }

  const keys = { y: 'allow', a: context.covers ? 'allow_always' : null, s: 'deny_stop' };
  return {
    node,
    pager,
    says,
    keys: 'Press Y to allow, A for always, N to deny, S to stop, E to have it explained.',
    key(pressed) {
      const key = pressed.toLowerCase();
      if (isLocked(node)) return false;
      if (keys[key]) busy(respond(keys[key]));
      else if (key === 'n') fold(true);
      else if (key === 'e' && !explain.disabled) askWhy();
      else return false;
      return true;
    },
  };
}

/// The call in a few words, for those who are told of it.
function gist(input) {
  const words = input.command ?? input.path ?? input.url ?? '';
  return brief(words, GIST_CHARACTERS);
}

function fact(name, value) {
  return value && el('div', { class: 'fact' }, el('dt', { text: name }), el('dd', {}, value));
}

function reasons(context) {
  const list = Array.isArray(context.reasons) ? context.reasons : [];
  return list.map(String).filter((reason) => reason !== context.description);
}

/// A sentence of the server, in which `…` is code.
export function prose(text) {
  if (!text) return null;
  const parts = plain(text).split(/`([^`]+)`/);
  return el(
    'span',
    {},
    parts.map((part, at) => (at % 2 ? el('code', { text: part }) : part)),
  );
}
