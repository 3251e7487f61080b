// Keeps small things in this browser: drafts, the theme, how Enter works.
//
// Never keeps what was said in a session, and never fails: a browser that keeps nothing forgets.

const PREFIX = 'polyloop.';
const DRAFTS_MAX = 50;
const DRAFT_CHARACTERS_MAX = 100_000;
const DRAFT_MS = 400;

export function kept(name, otherwise) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function keep(name, value) {
  try {
    if (value === null || value === undefined) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Full, or forbidden: the page works without.
  }
}

/// The unsent text of a session; the empty id is the session that is not there yet.
export function draft(id) {
  if (pending.has(id)) return pending.get(id);
  const found = kept('drafts', []).find(([of]) => of === id);
  return found ? String(found[1]) : '';
}

/// A text as a draft keeps it.
export function asDraft(text) {
  return text.slice(0, DRAFT_CHARACTERS_MAX);
}

// Drafts that are not written down yet: all drafts are written together, which is too much work
// for every key that is pressed.
const pending = new Map();
let timer = null;

export function keepDraft(id, text) {
  pending.set(id, asDraft(text));
  timer ??= setTimeout(keepDrafts, DRAFT_MS);
}

/// Writes down what waits for that; also when the page may be closed next.
export function keepDrafts() {
  clearTimeout(timer);
  timer = null;
  if (pending.size === 0) return;
  const others = kept('drafts', []).filter(([of]) => !pending.has(of));
  const all = [...others, ...[...pending].filter(([, text]) => text)];
  pending.clear();
  keep('drafts', all.slice(-DRAFTS_MAX));
}

globalThis.addEventListener?.('pagehide', keepDrafts);
globalThis.document?.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'hidden') keepDrafts();
});
