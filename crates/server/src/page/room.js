// One open session: its history, its connection, its fold and its transcript, tied together.
//
// Shows nothing but the transcript; whoever made it is told what changed and shows the rest.

import { Session } from './session.js';
import { History } from './history.js';
import { Link, messageId } from './link.js';
import { Transcript } from './transcript.js';
import { Unsent } from './unsent.js';
import { closing } from './closing.js';

// What is around a message's own fields: the session's id.
const FRAME_BYTES = 160;
const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

export class Room {
  /// `told`: changes(list), frame(frame), state(state), sent(frame), missing(why); `bytesMax()` is
  /// how long a message may be, where that is known.
  constructor(id, container, { name, told, bytesMax = () => null, onFork, onUndo, onWait }) {
    Object.assign(this, { id, told, bytesMax, closed: false, isMissing: false, tries: 0 });
    this.session = new Session(id);
    this.status = 0;
    this.history = this.newHistory();
    this.unsent = Unsent.of(id);
    this.link = new Link(id, {
      since: () => this.session.lastCursor,
      name,
      kept: this.unsent.messages,
    });
    this.link.onframe = (frame) => this.take(frame);
    this.link.onstate = (state) => {
      if (this.closed) return;
      if (state.state === 'open') this.transcript.retryOlder();
      told.state(state);
    };
    this.link.onrefused = (ref, why) => this.changed(this.session.refused(ref, why));
    this.link.onsent = (frame) => {
      this.unsent.put(frame.id, this.session.seq);
      if (!this.closed) told.sent(frame);
    };
    this.transcript = new Transcript(container, this.session, {
      onOlder: () => this.older(),
      hasOlder: () => this.history.hasOlder,
      onFork,
      onUndo,
      onWait,
    });
  }

  newHistory() {
    const ask = async (...args) => {
      const answer = await fetch(...args);
      this.status = answer.status;
      return answer;
    };
    return new History(this.id, { ask });
  }

  /// Loads the newest page and attaches behind it; comes again while the server is away.
  /// A session that is not there is `missing`, unless the server has just begun it.
  async start({ isBegun = false } = {}) {
    this.told.state({ state: 'connecting', retryInMs: null, why: null });
    while (!this.closed) {
      this.status = 0;
      try {
        const pages = await this.unsent.pages(this.history);
        if (!this.closed) this.load(pages);
        return;
      } catch (error) {
        if (this.closed) return;
        const isAbsent = this.status === 404 || this.status === 400;
        if (isAbsent && isBegun) return this.load([{ frames: [], seq: 0 }]);
        if (isAbsent) return this.missing(error.message);
        await this.later(error.message);
        this.history = this.newHistory();
      }
    }
  }

  /// Pages from the newest back, in place of whatever is shown.
  load([newest, ...older]) {
    // What was said while it was on its way stands behind it.
    this.session.clear();
    this.session.load(newest);
    for (const { frames } of older) this.session.prepend(frames);
    for (const message of this.unsent.messages.values()) this.session.outgoing(message);
    this.changed([{ kind: 'reset' }]);
    this.link.open();
  }

  /// The server has forgotten what was shown: everything it has is asked for anew.
  startOver() {
    this.link.close();
    this.history = this.newHistory();
    this.start({ isBegun: true });
  }

  missing(why) {
    this.isMissing = true;
    this.told.missing(why, this.status);
  }

  /// Attaches to a session that is not there yet, which begins it.
  begin() {
    this.isMissing = false;
    this.load([{ frames: [], seq: 0 }]);
  }

  later(why) {
    const wait = RETRY_MS[Math.min(this.tries, RETRY_MS.length - 1)];
    this.tries += 1;
    this.told.state({
      state: 'waiting',
      retryInMs: wait,
      why: this.status ? why : 'The server cannot be reached',
    });
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  retryNow() {
    this.hurry?.();
    this.link.retryNow();
  }

  take(frame) {
    if (this.closed) return;
    this.told.frame(frame);
    const changes = this.session.apply(frame);
    this.changed(changes);
    if (changes.some(({ kind }) => kind === 'reset')) this.startOver();
  }

  changed(changes) {
    if (changes.length === 0 || this.closed) return;
    this.transcript.update(changes);
    this.told.changes(changes);
  }

  async older() {
    const { history } = this;
    const frames = await history.older();
    // What came meanwhile may be of a server that has forgotten it.
    if (frames && !this.closed && history === this.history)
      this.changed(this.session.prepend(frames));
    return this.history.hasOlder;
  }

  /// Sends a person's message; kept by the link until the server has spoken of it.
  say(content, images = []) {
    const message = {
      type: 'user_message',
      id: messageId(),
      content,
      ...(images.length ? { images } : {}),
    };
    const bytes = new TextEncoder().encode(JSON.stringify(message)).length + FRAME_BYTES;
    if (this.bytesMax() && bytes > this.bytesMax()) {
      const why = `Not sent: the message has ${bytes} bytes, and the server takes ${this.bytesMax()}. Make it shorter.`;
      this.changed(this.session.refused(message.id, why));
      return false;
    }
    this.changed(this.session.outgoing(message));
    this.transcript.followEnd();
    return this.link.send(message);
  }

  /// There are messages that wait for a connection.
  get hasUnsent() {
    return !this.closed && !this.link.isOpen && this.unsent.messages.size > 0;
  }

  send(frame) {
    return this.link.send(frame);
  }

  /// Resolves when the server has let go.
  close() {
    const gone = closing(this.link.socket);
    this.closed = true;
    this.hurry?.();
    this.link.close();
    this.transcript.close?.();
    return gone;
  }
}
