// Keeps small things in this browser: drafts, the theme, how Enter works.
//
// Never keeps what was said in a session, and never fails: a browser that keeps nothing forgets.

const PREFIX = 'polyloop.';
const DRAFTS_MAX = 50;
const DRAFT_CHARACTERS_MAX = 100_000;

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
  const found = kept('drafts', []).find(([of]) => of === id);
  return found ? String(found[1]) : '';
}

export function keepDraft(id, text) {
  const others = kept('drafts', []).filter(([of]) => of !== id);
  const all = text ? [...others, [id, text.slice(0, DRAFT_CHARACTERS_MAX)]] : others;
  keep('drafts', all.slice(-DRAFTS_MAX));
}
