// What people and the agent say.

import { el, icon, iconButton } from './dom.js';
import { copyButton } from './copy.js';
import { kept } from './keep.js';
import { Markdown } from './markdown.js';
import { count, named, prose } from './shown.js';

// A user's longer message is folded.
const FOLDED_CHARS = 2_400;
const FOLDED_LINES = 24;
// And of a very long one only the beginning is in the document.
const USER_CHARS_MAX = 60_000;

/// A user's message, as it was typed.
export class UserMessage {
  constructor(item, context) {
    this.context = context;
    this.text = el('div', { class: 'said', dir: 'auto' });
    this.pictures = el('div', { class: 'said-pictures' });
    this.more = el('button', {
      type: 'button',
      class: 'show-more',
      hidden: true,
      on: { click: () => this.toggle() },
    });
    this.state = el('div', { class: 'send-state' });
    this.tools = el('div', { class: 'item-tools' });
    this.node = el('div', { class: 'bubble' }, this.pictures, this.text, this.more);
    this.whole = el(
      'div',
      { class: 'user-message' },
      this.node,
      el('div', { class: 'said-foot' }, this.tools, this.state),
    );
    this.isFolded = true;
  }

  update(item) {
    this.item = item;
    const shown =
      item.text.length > USER_CHARS_MAX ? `${item.text.slice(0, USER_CHARS_MAX)}…` : item.text;
    this.text.textContent = prose(shown);
    const isLong =
      item.text.length > FOLDED_CHARS ||
      item.text.split('\n', FOLDED_LINES + 1).length > FOLDED_LINES;
    this.more.hidden = !isLong;
    this.fold(isLong && this.isFolded);
    this.pictures.replaceChildren(...(item.images ?? []).map(picture).filter(Boolean));
    this.tellState(item);
    this.tools.replaceChildren(...this.buttons(item));
  }

  buttons(item) {
    const copy = copyButton('Copy message', () => item.text);
    if (item.seq === null || !this.context.onFork) return [copy];
    return [copy, iconButton('fork', 'Fork the session here', () => this.context.onFork(item.seq))];
  }

  tellState(item) {
    this.whole.dataset.state = item.state;
    const by = named(item.by) ? el('bdi', { text: named(item.by) }) : '';
    if (item.state === 'sending') this.state.replaceChildren('Sending…');
    else if (item.state === 'refused')
      this.state.replaceChildren(icon('error'), `Not sent: ${prose(item.why)}`);
    else this.state.replaceChildren(by);
  }

  toggle() {
    this.isFolded = !this.isFolded;
    this.fold(this.isFolded);
  }

  fold(isFolded) {
    this.text.classList.toggle('is-folded', isFolded);
    this.more.replaceChildren(
      icon(isFolded ? 'down' : 'up'),
      isFolded ? 'Show all of it' : 'Show less',
    );
    this.more.setAttribute('aria-expanded', String(!isFolded));
  }

  get label() {
    return saidBy(this.item);
  }
}

/// Who said it, for those who are told: only what bears this person's name, or is on its way from
/// here, is surely theirs.
export function saidBy({ by, state }) {
  const who = named(by);
  if (who === null) return state === 'sent' ? 'The user said' : 'You said';
  return by === kept('name', null) ? 'You said' : `${who} said`;
}

/// A picture of this page's own message; others' are never loaded.
function picture(image) {
  const source =
    typeof image === 'string'
      ? image
      : (image?.image_url ??
        (image?.media_type && `data:${image.media_type};base64,${image.data}`));
  if (!/^data:image\/(png|jpeg|gif|webp);base64,/.test(source ?? '')) return null;
  return el('img', { src: source, alt: 'Attached picture' });
}

/// The agent's message.
export class AgentMessage {
  constructor(item, context) {
    this.context = context;
    this.markdown = new Markdown();
    this.struck = el('div', {
      class: 'struck-note',
      hidden: true,
      text: 'This attempt failed; it is no part of the answer.',
    });
    this.tools = el('div', { class: 'item-tools' });
    this.whole = el('div', { class: 'agent-message' }, this.struck, this.markdown.node, this.tools);
  }

  update(item) {
    this.markdown.update(item.text);
    this.whole.classList.toggle('is-growing', !item.done);
    this.whole.classList.toggle('is-struck', item.struck === true);
    this.struck.hidden = !item.struck;
    if (item.done && (!this.hasTools || item.usage !== this.usage)) this.showTools(item);
  }

  showTools(item) {
    this.hasTools = true;
    this.usage = item.usage;
    this.whole.classList.toggle('ends-turn', Boolean(item.usage));
    const fork =
      item.seq !== null && this.context.onFork
        ? iconButton('fork', 'Fork the session after this', () => this.context.onFork(item.seq))
        : null;
    this.tools.replaceChildren(
      ...[copyButton('Copy message', () => item.text), fork, usageNode(item.usage)].filter(Boolean),
    );
  }

  get label() {
    return 'The agent said';
  }
}

function usageNode(usage) {
  if (!usage?.total_tokens) return null;
  const cost =
    typeof usage.cost_usd === 'number'
      ? ` · $${usage.cost_usd.toFixed(usage.cost_usd < 0.1 ? 4 : 2)}`
      : '';
  const title = `This turn: ${usage.input_tokens} tokens in, ${usage.output_tokens} out`;
  return el('span', { class: 'usage', title, text: `${count(usage.total_tokens)} tokens${cost}` });
}
