// One open session: its history, its connection, its fold and its transcript, tied together.
//
// Shows nothing but the transcript; whoever made it is told what changed and shows the rest.

import { Session } from './session.js';
import { History } from './history.js';
import { Link, messageId } from './link.js';
import { Transcript } from './transcript.js';
import { closing } from './closing.js';

const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

export class Room {
  /// `told`: changes(list), frame(frame), state(state), sent(frame), missing(why).
  constructor(id, container, { name, told, onFork, onUndo, onWait }) {
    Object.assign(this, { id, told, closed: false, isMissing: false, tries: 0 });
    this.session = new Session(id);
    this.status = 0;
    this.history = this.newHistory();
    this.link = new Link(id, { since: () => this.session.lastCursor, name });
    this.link.onframe = (frame) => this.take(frame);
    this.link.onstate = (state) => {
      if (this.closed) return;
      if (state.state === 'open') this.transcript.retryOlder();
      told.state(state);
    };
    this.link.onsent = (frame) => {
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
  async start() {
    this.told.state({ state: 'connecting', retryInMs: null, why: null });
    while (!this.closed) {
      this.status = 0;
      try {
        const page = await this.history.newest();
        if (this.closed) return;
        this.changed(this.session.load(page));
        this.link.open();
        return;
      } catch (error) {
        if (this.closed) return;
        if (this.status === 404 || this.status === 400) return this.missing(error.message);
        await this.later(error.message);
      }
    }
  }

  missing(why) {
    this.isMissing = true;
    this.told.missing(why, this.status);
  }

  /// Attaches to a session that is not there yet, which begins it.
  begin() {
    this.isMissing = false;
    this.link.open();
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
    this.changed(this.session.apply(frame));
  }

  changed(changes) {
    if (changes.length === 0 || this.closed) return;
    this.transcript.update(changes);
    this.told.changes(changes);
  }

  async older() {
    const frames = await this.history.older();
    if (frames && !this.closed) this.changed(this.session.prepend(frames));
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
    this.changed(this.session.outgoing(message));
    this.transcript.followEnd();
    return this.link.send(message);
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
