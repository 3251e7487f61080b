// The choices of a session: permission mode, agent and model.
//
// Shows what the server says is in force; a choice counts when the server has confirmed it.

import { el, icon } from './dom.js';

const MODES = {
  manual: 'Ask first',
  acceptEdits: 'Edits run',
  auto: 'Sandboxed',
  plan: 'Plan only',
  dontAsk: 'Deny unasked',
  bypass: 'Never ask',
};
const SAME = { default: 'manual', bypassPermissions: 'bypass' };
const AGENTS = {
  react: 'React',
  dup: 'Understand first',
  tot: 'Tree of thoughts',
  got: 'Graph of thoughts',
};

export const plainMode = (mode) => SAME[mode] ?? mode;
export const modeName = (mode) => MODES[plainMode(mode)] ?? mode;

export class Controls {
  /// `changed(name, value)` with the names mode, agent and model.
  constructor(container, changed) {
    this.values = {};
    this.choices = {
      mode: choice('shield', 'Permission mode', (value) => changed('mode', value)),
      agent: choice('fork', 'Agent', (value) => changed('agent', value)),
      model: choice('spark', 'Model', (value) => changed('model', value)),
    };
    container.append(...Object.values(this.choices).map((one) => one.node));
  }

  /// What this server offers.
  offer(about, models) {
    const modes =
      about?.modes ??
      Object.keys(MODES)
        .filter((mode) => mode !== 'bypass')
        .map((mode) => ({ mode }));
    const agents = about?.agents ?? Object.keys(AGENTS).map((agent) => ({ agent }));
    this.choices.mode.offer(modes.map(({ mode, says }) => [mode, MODES[mode] ?? mode, says]));
    this.choices.agent.offer(
      agents.map(({ agent, says }) => [agent, AGENTS[agent] ?? agent, says]),
    );
    this.choices.model.offer(
      (models?.models ?? []).map(({ model, provider }) => [model, model, provider]),
    );
  }

  show({ mode, agent, model }) {
    this.values = { mode: plainMode(mode), agent, model };
    for (const [name, one] of Object.entries(this.choices)) one.show(this.values[name]);
  }

  /// Puts back what is in force, where a choice was refused.
  again() {
    this.show(this.values);
  }
}

function choice(symbol, label, changed) {
  const select = el('select', {
    class: 'chip-select',
    title: label,
    aria: { label },
    on: {
      change: () => {
        says();
        changed(select.value);
      },
    },
  });
  const node = el('label', { class: 'chip' }, icon(symbol), select);
  let offered = [];

  function says() {
    const found = offered.find(([value]) => value === select.value);
    node.title = found?.[2] ? `${label}: ${found[2]}` : label;
    select.title = node.title;
    node.dataset.value = select.value;
  }

  return {
    node,
    offer(list) {
      offered = list;
      const had = select.value;
      select.replaceChildren(
        ...list.map(([value, text, title]) => el('option', { value, text, title })),
      );
      if (had) this.show(had);
    },
    show(value) {
      node.hidden = !value && offered.length === 0;
      if (!value) return says();
      // A session may run what is not on offer any more.
      if (![...select.options].some((option) => option.value === value))
        select.append(el('option', { value, text: value }));
      select.value = value;
      says();
    },
  };
}
