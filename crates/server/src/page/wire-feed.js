// The frames of one session as one dialect carries them: those that were, then those that come.
//
// A client like any other of that dialect, which only listens. Never touches the page's own
// connection.

import * as api from './api.js';
import { closing } from './closing.js';

const PAGE = 200;
const WAIT_MS = [500, 1_000, 2_000, 5_000, 10_000];

export class WireFeed {
  /// `told`: frames(list of {frame, text}, whether there are earlier ones), state(text, level).
  constructor(id, dialect, told) {
    Object.assign(this, { id, dialect, told, since: null, tries: 0, ended: false });
  }

  async open() {
    this.told.state('loading', 'idle');
    try {
      const page = await api.frames(this.id, { dialect: this.dialect, limit: PAGE });
      if (this.ended) return;
      this.since = page.seq;
      this.earlier = page.before !== null && page.before !== undefined;
      this.told.frames(page.frames.map(written), this.earlier);
      this.connect();
    } catch (error) {
      if (!this.ended) this.later(error.message, () => this.open());
    }
  }

  connect() {
    const url = new URL(
      this.dialect === 'agentloop'
        ? `/agentloop/${encodeURIComponent(this.id)}`
        : `/${this.dialect}`,
      location.href,
    );
    url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    url.hash = '';
    url.search = api.query({ session_id: this.id, since: this.since, name: 'wire view' });
    const socket = new WebSocket(url, [`${this.dialect}.v1`]);
    this.socket = socket;
    socket.onopen = () => {
      this.tries = 0;
      this.told.state('live', 'good');
    };
    socket.onmessage = ({ data }) => this.take(data);
    socket.onclose = () => {
      if (this.socket === socket && !this.ended) this.drop('connection lost');
    };
  }

  take(data) {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      frame = { unreadable: String(data) };
    }
    // Members of the chat room are told of all its sessions.
    if (frame.session_id !== undefined && frame.session_id !== this.id) return;
    // A greeting names an entry alone, and is no further than the cursor that is known.
    const isBehind = frame.cursor === undefined && frame.seq === this.seq;
    const place = isBehind ? undefined : frame.cursor ?? frame.seq;
    if (place !== undefined) Object.assign(this, { since: place, seq: frame.seq });
    this.told.frames([{ frame, text: String(data) }]);
  }

  /// Only one dialect has heartbeats: a network that is dead is known by the page's own connection.
  follow({ state, why }) {
    if (this.ended || this.since === null) return;
    if (state === 'waiting' && this.socket) this.drop(why ?? 'connection lost');
    else if (state === 'open' && !this.socket) {
      clearTimeout(this.timer);
      this.connect();
    }
  }

  drop(why) {
    const { socket } = this;
    this.socket = null;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(1000);
    this.later(why, () => this.connect());
  }

  later(why, again) {
    const wait = WAIT_MS[Math.min(this.tries, WAIT_MS.length - 1)];
    this.tries += 1;
    this.told.state(`${why}; again in ${wait / 1000} s`, 'bad');
    this.timer = setTimeout(again, wait);
  }

  /// Resolves when the server has let go.
  close() {
    const gone = closing(this.socket);
    this.ended = true;
    clearTimeout(this.timer);
    this.socket?.close(1000);
    return gone;
  }
}

/// A frame with the text that is copied; a live one has the very text that came.
export function written(frame) {
  return { frame, text: JSON.stringify(frame) };
}
