// Lines between what is said: notices, retries, compactions, failures.

import { el, icon } from './dom.js';
import { filesNode } from './item-tool.js';
import { brief, count, named, prose } from './shown.js';

// What to do about a failure, by its code.
const KEY = "Check the provider's key where the server is started, then send the message again.";
const LATER = 'Wait a little, then send "continue".';
const SHORTER = 'Compact the conversation, choose a model with a larger window, or begin a new session.';
const ADVICE = {
  unauthorized: KEY,
  insufficient_quota: "The provider's account has nothing left. Top it up, or choose another model.",
  rate_limited: LATER,
  overloaded: LATER,
  provider_error: LATER,
  stream_cut: LATER,
  proxy: "Check the proxy's settings where the server is started.",
  not_found: 'The provider does not know this model. Choose another one.',
  refused: 'The provider refused what was asked. Say it another way.',
  context_length_exceeded: SHORTER,
  context_floor: SHORTER,
  max_turns: 'The turn used all the model calls it may make. Send "continue" to let it go on.',
  budget_exceeded: 'The session has used what it may cost. The limit is set where the server is started.',
  price_unknown: 'The cost is limited, and the price of this model is not known. Choose another one.',
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
