// What a tool call would do, for whoever has to allow it: a script, an edit as a diff, or its words.
//
// Shows every argument: nothing that would run is left out of sight.

import { el } from './dom.js';
import { callDiff } from './item-diff.js';

const LONG = new Set(['command', 'patch', 'content', 'old_string', 'new_string', 'edits']);

export function callPreview(name, input) {
  const parts = [];
  if (typeof input.command === 'string') parts.push(el('pre', { class: 'call-script', tabindex: 0, aria: { label: 'Command' } }, el('code', { text: input.command })));
  const diff = edit(name, input);
  if (diff) parts.push(diff);
  const rest = Object.entries(input).filter(([key]) => key !== 'command' && !(diff && LONG.has(key)));
  const shown = rest.filter(([key]) => key !== 'workdir');
  if (shown.length) {
    parts.push(el('dl', { class: 'facts call-words' }, shown.map(([key, value]) => el('div', { class: 'fact' },
      el('dt', { text: key }),
      el('dd', {}, typeof value === 'string' && !value.includes('\n')
        ? el('code', { text: value })
        : el('pre', { class: 'call-script', tabindex: 0, aria: { label: key } }, el('code', { text: typeof value === 'string' ? value : JSON.stringify(value, null, 2) })))))));
  }
  return el('div', { class: 'call' }, parts);
}

function edit(name, input) {
  try {
    return callDiff(name, input);
  } catch {
    return null; // Its words are shown instead.
  }
}
