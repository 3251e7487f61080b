// The pages of a session's past, from the newest back.
//
// Asks for frames as `GET /sessions/{id}/frames` carries them and hands them on; folds nothing.

// The first page is small, to be there soon.
const FRAMES_FIRST = 200;
const FRAMES_A_PAGE = 500;

export class History {
  /// `ask` is `fetch`, or what stands in for it.
  constructor(sessionId, { dialect = 'unified', limit = FRAMES_FIRST, ask } = {}) {
    this.sessionId = sessionId;
    this.dialect = dialect;
    this.limit = limit;
    this.ask = ask ?? ((...args) => fetch(...args));
    /// What to ask for next; null when the beginning was reached, undefined before the first page.
    this.before = undefined;
    this.pending = null;
  }

  /// There is more before what was asked for so far.
  get hasOlder() {
    return this.before !== null && this.before !== undefined;
  }

  /// The newest page: its frames, and the `seq` from which to attach.
  async newest() {
    const { frames, seq } = await this.page();
    return { frames, seq };
  }

  /// The page before the last one, or null at the beginning. One at a time: whoever asks while one
  /// is on its way gets that one.
  older() {
    if (!this.hasOlder) return Promise.resolve(null);
    this.pending ??= this.page()
      .then((page) => page.frames)
      .finally(() => {
        this.pending = null;
      });
    return this.pending;
  }

  async page() {
    const query = new URLSearchParams({
      dialect: this.dialect,
      limit: String(this.hasOlder ? Math.max(this.limit, FRAMES_A_PAGE) : this.limit),
    });
    if (this.hasOlder) query.set('before', String(this.before));
    const path = `/sessions/${encodeURIComponent(this.sessionId)}/frames?${query}`;
    const answer = await this.ask(path, { headers: { accept: 'application/json' } });
    if (!answer.ok) throw new Error(await whyNot(answer));
    const page = await answer.json();
    this.before = page.before ?? null;
    return page;
  }
}

async function whyNot(answer) {
  const said = await answer.json().catch(() => null);
  return said?.error ?? `The session's history could not be read (${answer.status})`;
}
