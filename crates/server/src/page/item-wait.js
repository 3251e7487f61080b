// What was asked of a person, in the flow: what it was, and who answered what.
//
// Shows and never answers; the forms are elsewhere.

import { el, icon } from './dom.js';
import { Markdown } from './markdown.js';
import { brief, plain, prose } from './shown.js';

const DECISIONS = {
  allow: ['check', 'Allowed'], allow_always: ['check', 'Always allowed'], deny: ['stop', 'Denied'],
  deny_stop: ['stop', 'Denied, and the turn ended'], answered: ['check', 'Answered'],
  withdrawn: ['undo', 'Withdrawn'],
};

/// How a request stands or ended, on a line.
export function outcome({ decision, by, message, context }) {
  const risk = context?.risk_level;
  if (!decision) {
    return el('div', { class: 'outcome is-open' }, icon('shield'),
      el('span', {}, 'Waits for a decision', context?.description ? `: ${plain(brief(context.description, 400))}` : ''),
      risk && el('span', { class: `badge ${risk === 'high' ? 'bad' : risk === 'medium' ? 'warn' : ''}`, text: `${plain(risk)} risk` }));
  }
  const [glyph, word] = Object.hasOwn(DECISIONS, decision) ? DECISIONS[decision] : ['info', plain(decision)];
  const words = message && decision !== 'allow' ? `: ${brief(message, 600)}` : '';
  return el('div', { class: `outcome is-${plain(decision)}` }, icon(glyph),
    el('span', {}, word, by ? [' by ', el('bdi', { text: plain(by) })] : '', words));
}

/// A question and its answer.
export class QuestionCard {
  constructor() {
    this.body = el('div', { class: 'wait-body' });
    this.whole = el('div', { class: 'wait-card question' }, el('div', { class: 'wait-head' }, icon('ask'), 'A question'), this.body);
  }

  update(item) {
    this.whole.classList.toggle('is-open', !item.decision);
    const asked = item.questions.map((question) => el('div', { class: 'asked' },
      question.header ? el('div', { class: 'asked-head', text: prose(question.header) }) : null,
      el('p', { dir: 'auto', text: prose(question.question) }),
      el('ul', { class: 'choices' }, (question.options ?? []).map((option) => el('li', { dir: 'auto' }, prose(option.label))))));
    this.body.replaceChildren(...asked, item.decision ? outcome(item) : el('div', { class: 'outcome is-open' }, icon('ask'), 'Waits for an answer'));
  }

  get label() { return 'A question'; }
}

/// A plan and what became of it.
export class PlanCard {
  constructor() {
    this.markdown = new Markdown();
    this.end = el('div');
    this.whole = el('div', { class: 'wait-card plan' }, el('div', { class: 'wait-head' }, icon('plan'), 'A plan'),
      el('div', { class: 'wait-body' }, this.markdown.node, this.end));
  }

  update(item) {
    this.whole.classList.toggle('is-open', !item.decision);
    this.markdown.update(item.plan);
    const where = item.path ? el('div', { class: 'note' }, 'Kept in ', el('bdi', { class: 'path', text: plain(item.path) })) : '';
    this.end.replaceChildren(where, item.decision ? outcome(item) : el('div', { class: 'outcome is-open' }, icon('plan'), 'Waits for your consent'));
  }

  get label() { return 'A plan'; }
}
