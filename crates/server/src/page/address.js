// Which session the page's address names: `#s=<id>`, or none for one that is not there yet.

const MARK = '#s=';

/// Empty for a new session, null for an address that is none of ours.
export function idIn(hash) {
  if (hash === '' || hash === '#') return '';
  if (!hash.startsWith(MARK)) return null;
  try {
    return decodeURIComponent(hash.slice(MARK.length));
  } catch {
    return hash.slice(MARK.length);
  }
}

export function hashOf(id) {
  return id ? MARK + encodeURIComponent(id) : '';
}
