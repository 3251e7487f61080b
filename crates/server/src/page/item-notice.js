// Lines between what is said: notices, retries, compactions, failures.

import { el, icon } from './dom.js';
import { filesNode } from './item-tool.js';
import { brief, count, named, prose } from './shown.js';

// What to do about a failure, by its code.
const ADVICE = {
  unauthorized:
    "Check the key of the model's provider in the server's settings, then send the message again.",
  invalid_key:
    "Check the key of the model's provider in the server's settings, then send the message again.",
  rate_limited: 'The provider takes no more requests for now. Wait a little, then send "continue".',
  overloaded: 'The provider is busy. Wait a little, then send "continue".',
  context_too_long:
    "The conversation does not fit the model's window. Compact it, or choose a model with a larger one.",
  max_turns: 'The turn used all the model calls it may make. Send "continue" to let it go on.',
  budget: 'The session has used what it may cost. The limit is set where the server is started.',
};
const ADVICE_OTHERWISE =
  'What was done so far is kept. Send "continue" to go on, or say it another way.';

export class Notice {
  constructor(item, context) {
    this.context = context;
    this.whole = el('div', { class: 'line-item' });
  }

  update(item) {
    const isWarning = item.level !== 'info';
    const glyph =
      item.code === 'retry'
        ? 'retry'
        : item.code === 'resumed'
          ? 'play'
          : isWarning
            ? 'warn'
            : 'info';
    this.whole.className = `line-item ${isWarning ? 'is-warning' : ''}`;
    this.whole.dataset.code = brief(item.code, 60);
    const text = el('span', { dir: 'auto', text: prose(item.text).slice(0, 20_000) });
    this.whole.replaceChildren(icon(glyph), text);
    if (named(item.by)) text.append(' for ', el('bdi', { text: named(item.by) }));
    if (item.files?.length)
      this.whole.append(filesNode({ files: item.files, toolId: null }, this.context));
  }

  get label() {
    return 'A notice';
  }
}

export class Compaction {
  constructor() {
    this.whole = el('div', { class: 'line-item is-rule' });
  }

  update({ reason, before, after }) {
    const words = `The conversation was made shorter: ${count(before)} → ${count(after)} tokens`;
    this.whole.replaceChildren(icon('compact'), el('span', { text: words, title: prose(reason) }));
  }

  get label() {
    return 'Compaction';
  }
}

export class Failure {
  constructor() {
    this.whole = el('div', { class: 'failure', role: 'group' });
  }

  update({ error, code, interrupted }) {
    if (interrupted) {
      this.whole.className = 'line-item';
      this.whole.replaceChildren(icon('stop'), el('span', { dir: 'auto', text: prose(error) }));
      return;
    }
    const advice = Object.hasOwn(ADVICE, code ?? '') ? ADVICE[code] : ADVICE_OTHERWISE;
    this.whole.replaceChildren(
      icon('error'),
      el(
        'div',
        {},
        el('strong', { text: 'The turn failed' }),
        el('p', { dir: 'auto', text: prose(error).slice(0, 20_000) }),
        el('p', { class: 'note', text: advice }),
      ),
    );
  }

  get label() {
    return 'The turn failed';
  }
}
