// Messages of this page of which the server has not spoken, by session: who leaves a session and
// comes back finds them there, and they are sent then.
//
// Lives as long as the page. Never sends anything, and never lets a message go twice: what may have
// arrived is looked for in the session's history first.

const sessions = new Map();

export class Unsent {
  static of(sessionId) {
    if (!sessions.has(sessionId)) sessions.set(sessionId, new Unsent());
    return sessions.get(sessionId);
  }

  constructor() {
    /// id → message.
    this.messages = new Map();
    /// id → the entry behind which the session stood when it was handed to a socket.
    this.places = new Map();
  }

  put(id, seq) {
    for (const old of this.places.keys()) {
      if (!this.messages.has(old)) this.places.delete(old);
    }
    if (this.messages.has(id) && !this.places.has(id)) this.places.set(id, seq);
  }

  /// The newest page of the history, and as many before it as show what became of the messages.
  async pages(history) {
    const pages = [await history.newest()];
    this.found(pages[0]);
    while (history.hasOlder && history.before > this.since) {
      const frames = await history.older();
      pages.push({ frames });
      this.found({ frames });
    }
    return pages;
  }

  /// Where to begin to look for them.
  get since() {
    const open = [...this.messages.keys()].filter((id) => this.places.has(id));
    return Math.min(Infinity, ...open.map((id) => this.places.get(id)));
  }

  found({ frames }) {
    for (const { client_ref: id } of frames) {
      this.messages.delete(id);
      this.places.delete(id);
    }
  }
}
