// What was asked of a person, in the flow: what it was, and who answered what.
//
// Shows and never answers; the forms are elsewhere.

import { el, icon } from './dom.js';
import { inline, Markdown } from './markdown.js';
import { brief, named, plain, prose } from './shown.js';

const DECISIONS = {
  allow: ['check', 'Allowed'],
  allow_always: ['check', 'Always allowed'],
  deny: ['stop', 'Denied'],
  deny_stop: ['stop', 'Denied, and the turn ended'],
  answered: ['check', 'Answered'],
  withdrawn: ['undo', 'Withdrawn'],
};

// A plan is not a call: other words for the same decisions.
const OF_PLANS = {
  allow: ['check', 'Approved'],
  allow_always: ['check', 'Approved'],
  deny: ['undo', 'Sent back'],
};

/// How a request stands or ended, on a line.
export function outcome({ kind, decision, by, message, context, requestId }, { onWait } = {}) {
  if (!decision)
    return open('shield', 'Waits for a decision', 'Decide', { context, requestId, onWait });
  const known = kind === 'plan' ? { ...DECISIONS, ...OF_PLANS } : DECISIONS;
  const [glyph, word] = Object.hasOwn(known, decision)
    ? known[decision]
    : ['info', plain(decision)];
  const words =
    message && (decision !== 'allow' || kind === 'plan') ? `: ${brief(message, 600)}` : '';
  return el(
    'div',
    { class: `outcome is-${plain(decision)}` },
    icon(glyph),
    el('span', {}, word, named(by) ? [' by ', el('bdi', { text: named(by) })] : '', words),
  );
}

function open(glyph, words, act, { context, requestId, onWait }) {
  const risk = context?.risk_level;
  const level = { high: 'bad', medium: 'warn' }[risk] ?? '';
  return el(
    'div',
    { class: 'outcome is-open' },
    icon(glyph),
    el(
      'span',
      {},
      words,
      context?.description ? [': ', ...inline(brief(context.description, 400))] : '',
    ),
    risk && el('span', { class: `badge ${level}`, text: `${brief(risk, 20)} risk` }),
    onWait &&
      el('button', {
        type: 'button',
        class: 'button plain small',
        text: act,
        on: { click: () => onWait(requestId) },
      }),
  );
}

/// A question and its answer.
export class QuestionCard {
  constructor(item, context) {
    this.context = context;
    this.body = el('div', { class: 'ask-body' });
    this.whole = el(
      'div',
      { class: 'ask-card question' },
      el('div', { class: 'ask-head' }, icon('ask'), 'A question'),
      this.body,
    );
  }

  update(item) {
    this.whole.classList.toggle('is-open', !item.decision);
    // While it is open, the form says it all.
    if (!item.decision) {
      this.body.replaceChildren(
        open('ask', 'Waits for an answer', 'Answer', {
          requestId: item.requestId,
          onWait: this.context.onWait,
        }),
      );
      return;
    }
    const asked = item.questions.map((question) =>
      el(
        'div',
        { class: 'asked' },
        question.header ? el('div', { class: 'asked-head', text: prose(question.header) }) : null,
        el('p', { dir: 'auto', text: prose(question.question) }),
        el(
          'ul',
          { class: 'choices' },
          (question.options ?? []).map((option) => el('li', { dir: 'auto' }, prose(option.label))),
        ),
      ),
    );
    this.body.replaceChildren(...asked, outcome(item));
  }

  get label() {
    return 'A question';
  }
}

/// A plan and what became of it.
export class PlanCard {
  constructor(item, context) {
    this.context = context;
    this.markdown = new Markdown();
    this.end = el('div');
    this.whole = el(
      'div',
      { class: 'ask-card plan' },
      el('div', { class: 'ask-head' }, icon('plan'), 'A plan'),
      el('div', { class: 'ask-body' }, this.markdown.node, this.end),
    );
  }

  update(item) {
    this.whole.classList.toggle('is-open', !item.decision);
    this.markdown.node.hidden = !item.decision;
    if (!item.decision) {
      this.end.replaceChildren(
        open('plan', 'Waits for consent', 'Decide', {
          requestId: item.requestId,
          onWait: this.context.onWait,
        }),
      );
      return;
    }
    this.markdown.update(item.plan);
    const where = item.path
      ? el(
          'div',
          { class: 'note' },
          'Kept in ',
          el('bdi', { class: 'path', text: plain(item.path) }),
        )
      : '';
    this.end.replaceChildren(where, outcome(item));
  }

  get label() {
    return 'A plan';
  }
}
