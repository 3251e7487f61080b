// What the agent thought on its way, folded.

import { el, icon } from './dom.js';
import { Markdown } from './markdown.js';
import { brief, duration } from './shown.js';

// So much of the end is looked at for its last line.
const GLIMPSE_CHARS = 400;

export class Reasoning {
  constructor() {
    this.markdown = null;
    this.state = el('span', { class: 'reasoning-state' });
    this.glimpse = el('span', { class: 'glimpse' });
    this.summary = el(
      'summary',
      {},
      icon('think'),
      this.state,
      this.glimpse,
      el('span', { class: 'chevron' }, icon('right')),
    );
    this.body = el('div', { class: 'reasoning-body' });
    this.whole = el('details', { class: 'reasoning' }, this.summary, this.body);
    this.whole.addEventListener('toggle', () => this.draw());
  }

  update(item) {
    this.item = item;
    const words = item.struck
      ? 'Thought, in an attempt that failed'
      : item.done
        ? item.ms >= 1000
          ? `Thought for ${duration(item.ms)}`
          : 'Thought'
        : 'Thinking';
    this.state.textContent = words;
    this.whole.classList.toggle('is-growing', !item.done);
    this.whole.classList.toggle('is-struck', item.struck === true);
    this.glimpse.textContent = item.done
      ? ''
      : brief(item.text.slice(-GLIMPSE_CHARS).trimEnd().split('\n').at(-1), 90);
    this.draw();
  }

  /// Folded, it costs nothing.
  draw() {
    if (!this.whole.open || !this.item) return;
    if (!this.markdown) {
      this.markdown = new Markdown();
      this.body.append(this.markdown.node);
    }
    this.markdown.update(this.item.text);
  }

  get label() {
    return 'The agent thought';
  }
}
