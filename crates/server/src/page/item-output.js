// What a command prints, as it prints it: the end of it, and more when asked.
//
// The document holds a bounded part, however much there is.

import { el, icon } from './dom.js';
import { overwritten, runs, stripped } from './ansi.js';
import { copyButton } from './copy.js';
import { bytes } from './shown.js';

const SHOWN_CHARS = 16_000;
const STEP_CHARS = 128_000;
const LINES_SHORT = 14;

export class Output {
  constructor(label = 'Output') {
    this.code = el('code');
    this.pre = el(
      'pre',
      { class: 'output', tabindex: '0', role: 'group', aria: { label } },
      this.code,
    );
    this.earlier = el('button', {
      type: 'button',
      class: 'show-more',
      hidden: true,
      on: { click: () => this.showEarlier() },
    });
    this.expand = el('button', {
      type: 'button',
      class: 'show-more',
      hidden: true,
      aria: { expanded: 'false' },
      on: { click: () => this.toggle() },
    });
    this.node = el(
      'div',
      { class: 'output-box is-short' },
      this.earlier,
      this.pre,
      this.expand,
      copyButton(`Copy the ${label.toLowerCase()}`, () => stripped(this.text)),
    );
    this.text = '';
    this.allowed = SHOWN_CHARS;
    this.isShort = true;
    /// Where the part in the document begins, and how much of the text it covers.
    this.from = 0;
    this.covered = 0;
  }

  update(text) {
    if (text === this.text) return;
    const grows = text.length > this.text.length && this.covered === this.text.length;
    const added = text.slice(this.text.length);
    this.text = text;
    const tooLong = text.length - this.from > this.allowed * 2;
    // Escapes and rewritten lines need what came before them.
    const isPlain = grows && !/[\u001b\r\b]/.test(added) && !this.hasStyle;
    if (grows && isPlain && !tooLong && this.code.lastChild) this.append(added);
    else this.draw();
  }

  append(added) {
    const last = this.code.lastChild;
    const [run] = runs(added);
    if (last.nodeType === Node.TEXT_NODE && last.length < SHOWN_CHARS)
      last.appendData(run?.text ?? '');
    else if (run) this.code.append(run.text);
    this.covered = this.text.length;
    this.hint();
  }

  draw() {
    const start = Math.max(0, this.text.length - this.allowed);
    // At a line, where there is one near.
    const line = start === 0 ? 0 : this.text.indexOf('\n', start) + 1;
    this.from = line > 0 && line - start < 2000 ? line : start;
    const shown = runs(overwritten(this.text.slice(this.from)));
    this.hasStyle = shown.some((run) => run.style !== '') || /[\r\b]/.test(this.text.slice(-2000));
    this.code.replaceChildren(
      ...shown.map(({ text, style }) => (style ? el('span', { class: style, text }) : text)),
    );
    this.covered = this.text.length;
    this.hint();
  }

  hint() {
    this.earlier.hidden = this.from === 0;
    if (this.from > 0)
      this.earlier.replaceChildren(icon('up'), `Show the part before this (${bytes(this.from)})`);
    const isLong = this.from > 0 || moreLinesThan(this.text, LINES_SHORT);
    this.expand.hidden = !isLong;
    if (isLong)
      this.expand.replaceChildren(
        icon(this.isShort ? 'down' : 'up'),
        this.isShort ? 'Show more' : 'Show less',
      );
  }

  showEarlier() {
    this.allowed += STEP_CHARS;
    if (this.isShort) this.toggle();
    const height = this.pre.scrollHeight;
    const top = this.pre.scrollTop;
    this.draw();
    // What was being read stays where it is.
    this.pre.scrollTop = top + this.pre.scrollHeight - height;
  }

  toggle() {
    this.isShort = !this.isShort;
    this.node.classList.toggle('is-short', this.isShort);
    this.expand.setAttribute('aria-expanded', String(!this.isShort));
    this.hint();
    // A short view stands at its end by itself; a long one is read from where it begins.
    this.pre.scrollTop = 0;
  }
}

function moreLinesThan(text, limit) {
  let at = -1;
  for (let count = 0; count < limit; count += 1) {
    at = text.indexOf('\n', at + 1);
    if (at < 0) return false;
  }
  return at < text.length - 1;
}
