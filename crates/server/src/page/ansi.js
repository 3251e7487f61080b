// What commands print for terminals, as runs of text with a style.
//
// Pure. Colours and weights are kept; moving the cursor, titles, links and whatever else a terminal
// would do is left out, but for a carriage return, which writes its line anew.

import { plain } from './shown.js';

// Control sequences, operating system commands and other strings, single escapes, in that order.
const ESCAPES =
  /\u001b\[([0-9;:]*)([ -/]*[@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\u001b[ -/]*[0-~]?/g;

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/// `text` as `[{text, style}]`; a style is the names of classes, or ''.
export function runs(text) {
  const found = [];
  let style = {};
  let from = 0;
  for (const match of text.matchAll(ESCAPES)) {
    push(found, text.slice(from, match.index), style);
    from = match.index + match[0].length;
    if (match[2] === 'm') style = styled(style, match[1]);
  }
  push(found, text.slice(from), style);
  return found;
}

/// `text` without what only terminals understand, as it would be copied.
export function stripped(text) {
  return overwritten(text.replace(ESCAPES, ''));
}

/// Of a line that was written several times over itself, the last writing.
export function overwritten(text) {
  if (!text.includes('\r') && !text.includes('\b')) return text;
  return text
    .split('\n')
    .map((line) => {
      const ends = line.replace(/\r+$/, '');
      const kept = ends.slice(ends.lastIndexOf('\r') + 1);
      return kept.includes('\b') ? backspaced(kept) : kept;
    })
    .join('\n');
}

function backspaced(line) {
  const kept = [];
  for (const character of line) {
    if (character === '\b') kept.pop();
    else kept.push(character);
  }
  return kept.join('');
}

function push(found, text, style) {
  if (text === '') return;
  const name = classes(style);
  const shown = plain(text);
  if (found.at(-1)?.style === name) found.at(-1).text += shown;
  else found.push({ text: shown, style: name });
}

function styled(before, codes) {
  let style = { ...before };
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at += 1) {
    const number = numbers[at];
    if (number === 0) style = {};
    else if (number === 1) style.bold = true;
    else if (number === 2) style.dim = true;
    else if (number === 3) style.italic = true;
    else if (number === 4) style.underline = true;
    else if (number === 22) style.bold = style.dim = false;
    else if (number === 23) style.italic = false;
    else if (number === 24) style.underline = false;
    else if (number >= 30 && number <= 37) style.colour = COLOURS[number - 30];
    else if (number >= 90 && number <= 97) style.colour = COLOURS[number - 90];
    else if (number === 39) style.colour = null;
    // Finer colours than the page has: the kind and its numbers are passed over.
    else if (number === 38 || number === 48) at += numbers[at + 1] === 2 ? 4 : 2;
  }
  return style;
}

function classes(style) {
  const names = ['bold', 'dim', 'italic', 'underline'].filter((name) => style[name]);
  if (style.colour) names.push(style.colour);
  return names.map((name) => `ansi-${name}`).join(' ');
}
