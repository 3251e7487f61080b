// Text as people may be shown it: characters that hide, or that turn others around, as codes.
//
// Pure. Whatever a model, a command or a file name holds is shown, and nothing of it acts.

// Controls but for tab and newline; marks that change direction; what has no width; tags.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
// In prose, marks and joiners belong to languages; only what overrides direction is a trick.
const TRICKS =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

function code(character) {
  // As the server writes them in what it asks.
  return `\\u{${character.codePointAt(0).toString(16)}}`;
}

/// A name, a path, a command: on one line or more, with nothing hidden.
export function plain(text) {
  return String(text ?? '').replace(HIDDEN, code);
}

/// A name, a path, a command, on one line and not longer than `max` characters.
export function brief(text, max = 200) {
  // Bounded before it is looked at: it may be megabytes.
  const start = String(text ?? '')
    .slice(0, max * 4)
    .trim();
  const line = plain(start.replace(/\s*[\r\n]+\s*/g, ' ⏎ '));
  const characters = [...line];
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : line;
}

/// What was said: sentences in any language.
export function prose(text) {
  return String(text ?? '')
    .replace(/\r\n?/g, '\n')
    .replace(TRICKS, code);
}

/// Who did something, where that is a name; who gave none is "a client of …" and is not named.
export function named(by) {
  return by && !by.startsWith('a client') ? plain(by) : null;
}

/// 1536 → "1.5 kB".
export function bytes(count) {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)} kB`;
  return `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)} MB`;
}

/// 12345 → "12.3k".
export function count(number) {
  if (!Number.isFinite(number)) return '–';
  if (number < 1000) return String(Math.round(number));
  if (number < 1e6) return `${(number / 1e3).toFixed(number < 1e4 ? 1 : 0)}k`;
  return `${(number / 1e6).toFixed(1)}M`;
}

/// 83000 → "1 min 23 s".
export function duration(ms) {
  if (ms < 1000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
