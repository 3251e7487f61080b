// What a tool call would do, for whoever has to allow it: a script, a diff, or its words.
//
// Every argument is shown, as it stands: nothing that would run is left out of sight.

import { el } from './dom.js';
import { unreadLines } from './diff.js';
import { changesOf, diffNode } from './item-diff.js';
import { plain } from './shown.js';

const REPLACED = [
  ['oldString', 'old_string'],
  ['newString', 'new_string'],
];
const PATHS = ['path', 'file_path', 'filePath'];
// By its name in small letters: the arguments that a call's diff shows. Of several names for the
// same thing the first one there is shown in it.
const IN_THE_DIFF = {
  edit: [PATHS, ...REPLACED],
  multiedit: [PATHS, ['edits']],
  write: [PATHS, ['content']],
  write_file: [PATHS, ['content']],
  apply_patch: [['patch', 'input']],
};

export function callPreview(name, input) {
  const script = typeof input.command === 'string' ? input.command : null;
  const diff = edit(name, input);
  const inDiff = diff ? shownInDiff(name, input) : new Set();
  const words = Object.entries(input).filter(([key]) => {
    if (key === 'command') return script === null;
    if (key === 'workdir') return false; // It is told as the place.
    return !inDiff.has(key);
  });
  return el(
    'div',
    { class: 'call' },
    script !== null && text('Command', plain(script)),
    diff,
    words.length > 0 && el('dl', { class: 'facts' }, words.map(word)),
  );
}

/// The arguments of which the diff leaves nothing out.
export function shownInDiff(name, input) {
  const keys = (IN_THE_DIFF[name.toLowerCase()] ?? [])
    .map((names) => names.find((key) => input[key] !== undefined && input[key] !== null))
    .filter((key) => key !== undefined && isWholly(key, input[key]));
  return new Set(keys);
}

function isWholly(key, value) {
  if (key === 'edits') return Array.isArray(value) && value.every(isReplacement);
  if (typeof value !== 'string') return false;
  return (key !== 'patch' && key !== 'input') || unreadLines(value).length === 0;
}

function isReplacement(edit) {
  if (typeof edit !== 'object' || edit === null) return false;
  const keys = REPLACED.map((names) => names.find((key) => typeof edit[key] === 'string'));
  return Object.keys(edit).every((key) => keys.includes(key));
}

/// The edit as a diff, or null where it is none that can be read.
function edit(name, input) {
  try {
    const changes = changesOf(name, input);
    const nodes = changes.map((change) => diffNode(change, { isWhole: true }));
    return nodes.length ? el('div', { class: 'call-diff' }, nodes) : null;
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
