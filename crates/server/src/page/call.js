// What a tool call would do, for whoever has to allow it: a script, a diff, or its words.
//
// Every argument is shown, as it stands: nothing that would run is left out of sight.

import { el } from './dom.js';
import { changesOf, diffNode } from './item-diff.js';
import { plain } from './shown.js';

const IN_THE_DIFF = new Set(['path', 'file_path', 'filePath', 'patch', 'content', 'edits']);
const REPLACED = new Set(['oldString', 'newString', 'old_string', 'new_string']);

export function callPreview(name, input) {
  const script = typeof input.command === 'string' ? input.command : null;
  const diff = edit(name, input);
  const words = Object.entries(input).filter(([key]) => {
    if (key === 'command') return script === null;
    if (key === 'workdir') return false; // It is told as the place.
    return !(diff && (IN_THE_DIFF.has(key) || REPLACED.has(key)));
  });
  return el(
    'div',
    { class: 'call' },
    script !== null && text('Command', plain(script)),
    diff,
    words.length > 0 && el('dl', { class: 'facts' }, words.map(word)),
  );
}

/// The edit as a diff, or null where it is none that can be read.
function edit(name, input) {
  try {
    const changes = changesOf(name, input);
    return changes.length ? el('div', { class: 'call-diff' }, changes.map(diffNode)) : null;
  } catch {
    return null; // Its words are shown instead.
  }
}

function word([key, value]) {
  const isLine = typeof value === 'string' && !value.includes('\n');
  const said = plain(typeof value === 'string' ? value : JSON.stringify(value, null, 2));
  const shown = isLine ? el('code', { text: said }) : text(key, said);
  return el('div', { class: 'fact' }, el('dt', { text: plain(key) }), el('dd', {}, shown));
}

function text(label, said) {
  const props = { class: 'call-script', tabindex: 0, role: 'group', aria: { label } };
  return el('pre', props, el('code', { text: said }));
}
