// How full the model's window is and what the session cost: a ring in the head, details on demand.

import { el } from './dom.js';
import { closeFloat, place, popover } from './floats.js';
import * as api from './api.js';

const SVG = 'http://www.w3.org/2000/svg';
const AROUND = 2 * Math.PI * 9;
const LEVELS = {
  normal: '',
  medium: 'The window is filling.',
  high: 'The window is almost full.',
  critical: 'The window is full: older messages give way soon.',
};
const BADGES = { normal: 'good', medium: 'warn' };
const FILLED = [
  ['instructions_and_tools', 'Instructions and tools'],
  ['summary', 'Summary of what came before'],
  ['user_messages', 'Your messages'],
  ['answers', 'Answers'],
  ['reasoning', 'Reasoning'],
  ['tool_calls', 'Tool calls'],
  ['tool_results', 'Tool results'],
];

const tokens = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

export class Meter {
  /// `options`: compact(), refresh() asks the server, id() names the session.
  constructor(options) {
    this.options = options;
    this.ring = ring();
    this.percent = el('span', { class: 'meter-percent' });
    this.cost = el('span', { class: 'meter-cost' });
    this.node = el(
      'button',
      {
        type: 'button',
        class: 'meter',
        aria: { haspopup: 'dialog', expanded: 'false' },
        hidden: true,
        on: { click: () => this.details() },
      },
      this.ring.svg,
      this.percent,
      this.cost,
    );
    this.meter = null;
  }

  show(meter) {
    this.meter = meter;
    this.node.hidden = !meter || meter.used === null;
    if (this.node.hidden) return;
    const percent = Math.round(meter.fraction * 100);
    const cost = typeof meter.costUsd === 'number' ? dollars(meter.costUsd) : '';
    this.ring.set(meter.fraction);
    this.node.dataset.level = meter.level;
    this.percent.textContent = `${percent} %`;
    this.cost.textContent = cost;
    const spent = cost ? `; cost so far ${cost}` : '';
    const words = `Window ${percent} % full, ${filledOf(meter)}${spent}. ${LEVELS[meter.level] ?? ''}`;
    this.node.title = words;
    this.node.setAttribute('aria-label', words);
    if (this.open) this.open.replaceChildren(...this.body());
  }

  details() {
    this.filled = null;
    const node = popover(this.node, 'Context', [], () => {
      this.open = null;
    });
    if (!node) return;
    this.open = node;
    node.classList.add('context');
    node.replaceChildren(...this.body());
    place(node, this.node);
    this.options.refresh();
    api.context(this.options.id()).then(
      (told) => {
        this.filled = told;
        if (this.open !== node) return;
        node.replaceChildren(...this.body());
        place(node, this.node);
      },
      () => {},
    ); // The meter's own figures stay.
  }

  compact() {
    closeFloat();
    this.options.compact();
  }

  body() {
    const { meter, filled } = this;
    const usage = filled?.usage ?? meter.sessionUsage;
    const cost = filled?.usage?.cost_usd ?? meter.costUsd;
    const parts = filled?.filled_by ? partsOf(filled.filled_by, meter.used) : [];
    return [
      el(
        'div',
        { class: 'row' },
        el('h2', { class: 'popover-title grow', text: 'Context' }),
        el('span', {
          class: `badge ${BADGES[meter.level] ?? 'bad'}`,
          text: meter.level,
        }),
      ),
      bar(parts, meter),
      el('p', {
        class: 'note',
        text: `${filledOf(meter)} (${Math.round(meter.fraction * 100)} %)`,
      }),
      parts.length > 0 &&
        el(
          'dl',
          { class: 'figures' },
          parts.map(([says, count], at) => figure(says, short.format(count), at)),
        ),
      usage && el('h3', { class: 'popover-sub', text: 'All model calls of this session' }),
      usage &&
        el(
          'dl',
          { class: 'figures' },
          figure(
            'Calls',
            usage.model_calls === undefined ? null : tokens.format(usage.model_calls),
          ),
          figure('Input', short.format(usage.input_tokens ?? 0)),
          figure('of it cached', short.format(usage.cached_tokens ?? 0)),
          figure('Output', short.format(usage.output_tokens ?? 0)),
          figure('Cost', typeof cost === 'number' ? dollars(cost) : 'price not known'),
        ),
      el(
        'div',
        { class: 'row' },
        el('button', {
          type: 'button',
          class: 'button plain small',
          text: 'Compact now',
          on: { click: () => this.compact() },
        }),
        el('span', { class: 'note', text: 'Older messages give way to a summary.' }),
      ),
    ].filter(Boolean);
  }
}

function filledOf({ used, window }) {
  return `${tokens.format(used)} of ${tokens.format(window ?? 0)} tokens`;
}

/// What fills the window, as the server counts; a provider may have counted more.
function partsOf(filledBy, used) {
  const parts = FILLED.map(([name, says]) => [says, filledBy[name] ?? 0]).filter(
    ([, count]) => count > 0,
  );
  const counted = parts.reduce((sum, [, count]) => sum + count, 0);
  const beyond = used - counted;
  return beyond > used / 50 ? [...parts, ['Beyond that, by the provider’s count', beyond]] : parts;
}

function figure(says, value, at) {
  return (
    value !== null &&
    el(
      'div',
      { class: 'figure' },
      el('dt', {}, at !== undefined && el('span', { class: `swatch s${at}` }), says),
      el('dd', { text: value }),
    )
  );
}

function bar(parts, meter) {
  const node = el('div', { class: 'fill', aria: { hidden: true } });
  const all = meter.window || 1;
  const list = parts.length ? parts.map(([, count]) => count) : [meter.used];
  list.forEach((count, at) => {
    const piece = el('span', { class: `s${at}` });
    piece.style.width = `${Math.min(100, (count / all) * 100)}%`;
    node.append(piece);
  });
  return node;
}

function ring() {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'ring');
  svg.setAttribute('aria-hidden', 'true');
  const circle = (cls) => {
    const node = document.createElementNS(SVG, 'circle');
    for (const [name, value] of [
      ['cx', 12],
      ['cy', 12],
      ['r', 9],
      ['class', cls],
    ])
      node.setAttribute(name, value);
    svg.append(node);
    return node;
  };
  circle('ring-ground');
  const arc = circle('ring-arc');
  return {
    svg,
    set(fraction) {
      const part = Math.max(0.02, Math.min(1, fraction));
      arc.setAttribute('stroke-dasharray', `${AROUND * part} ${AROUND}`);
    },
  };
}

export function dollars(amount) {
  if (amount === 0) return '$0';
  return amount < 0.01 ? `$${amount.toPrecision(2)}` : `$${amount.toFixed(2)}`;
}
