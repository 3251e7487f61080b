// One connection to a session in the unified dialect, held as long as the page wants it.
//
// Comes back by itself from where the session stands, and says what state it is in. A user's
// message is kept until the server has spoken of it, and is sent again only when it is known that
// it never arrived; nothing else is sent twice. Knows nothing of what frames mean beyond that.

const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 30_000;
// The server sends a heartbeat every 30 seconds.
const SILENCE_MAX_MS = 75_000;
// Whoever was asked something answers sooner than this, or is not there.
const ANSWER_MAX_MS = 15_000;
const CONNECT_MAX_MS = 15_000;
const NORMAL_CLOSE = 1000;
const TOO_LARGE_CLOSE = 1009;

const CLOSES = {
  1001: 'The server is going down',
  1008: 'The server refused the connection',
  1009: 'A message was larger than the server takes',
  1011: 'The server had a fault',
  1012: 'The server restarts',
  1013: 'This page could not keep up; it goes on from where it was',
};

/// How long to wait before the attempt that follows `failures` failed ones.
///
/// `random` is in [0, 1): many pages that lost the same server do not come back all at once.
export function retryDelay(failures, random) {
  const longest = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** Math.min(failures, 16));
  return Math.round(longest * (0.5 + random / 2));
}

/// An id for a message of this page. Also where the page is not served securely.
export function messageId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

export function unifiedAddress(origin, { sessionId, since, name }) {
  const address = new URL('/unified', origin);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  // By hand: a blank must not become a plus sign, which cursors hold.
  const query = Object.entries({ session_id: sessionId, since, name }).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  );
  address.search = query.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&');
  return address.href;
}

export class Link {
  /// `since` gives the cursor of the last frame that was applied, or null; `kept` has messages that
  /// an earlier link to the session could not send.
  constructor(sessionId, { since = () => null, name = null, kept, origin, connect, random } = {}) {
    this.sessionId = sessionId;
    this.since = since;
    this.name = name;
    this.origin = origin ?? globalThis.location?.origin;
    this.connect = connect ?? ((address) => new WebSocket(address, 'unified.v1'));
    this.random = random ?? Math.random;
    this.onframe = () => {};
    this.onstate = () => {};
    /// Sees what the page sends.
    this.onsent = () => {};
    /// Is told (id, why) of a user's message that the server will not take.
    this.onrefused = () => {};
    this.state = { state: 'closed', retryInMs: null, why: null };
    this.socket = null;
    this.failures = 0;
    this.isWanted = false;
    /// Users' messages of which the server has not spoken: id → message.
    this.kept = kept ?? new Map();
    /// What was missed has come, so that what is still kept never arrived.
    this.isCaughtUp = false;
    /// The id of the question whose answer says so.
    this.barrier = null;
    /// The longest of what was sent over this socket: what a server refuses as too long.
    this.largest = { id: null, length: 0 };
    this.timers = { retry: null, silence: null, answer: null };
    this.wake = () => this.woken();
  }

  get isOpen() {
    return this.state.state === 'open';
  }

  open() {
    if (this.isWanted) return;
    this.isWanted = true;
    this.failures = 0;
    globalThis.addEventListener?.('online', this.wake);
    globalThis.document?.addEventListener('visibilitychange', this.wake);
    this.dial();
  }

  /// What is kept stays kept, for whoever opens the session next.
  close() {
    this.isWanted = false;
    globalThis.removeEventListener?.('online', this.wake);
    globalThis.document?.removeEventListener('visibilitychange', this.wake);
    this.drop();
    this.tell('closed');
  }

  /// Now, not after the delay.
  retryNow() {
    if (!this.isWanted || this.socket) return;
    this.dial();
  }

  /// Sends a message. A user's is kept while there is no connection; of any other, false says that
  /// it was not sent.
  send(message) {
    message.id ??= messageId();
    message.session_id ??= this.sessionId;
    // An answer to a question has nothing by which it would be known again.
    const isKept = message.type === 'user_message' && !message.parent_tool_use_id;
    if (isKept) this.kept.set(message.id, message);
    if (!this.isOpen) return isKept;
    if (!isKept || this.isCaughtUp) this.put(message);
    return true;
  }

  put(message) {
    const text = JSON.stringify(message);
    if (text.length > this.largest.length) this.largest = { id: message.id, length: text.length };
    this.socket.send(text);
    this.onsent(message);
    // Nothing is said of it until the model speaks, which may take long.
    if (message.decision !== 'explain') this.expectAnswer();
  }

  dial() {
    this.drop();
    this.isCaughtUp = false;
    this.largest = { id: null, length: 0 };
    this.tell('connecting');
    const { sessionId, name } = this;
    const address = unifiedAddress(this.origin, { sessionId, name, since: this.since() });
    let socket;
    try {
      socket = this.connect(address);
    } catch (error) {
      this.lost(error.message);
      return;
    }
    this.socket = socket;
    const mine = (act) => (event) => {
      if (this.socket === socket) act(event);
    };
    socket.onopen = mine(() => this.opened());
    socket.onmessage = mine((event) => this.heard(event.data));
    socket.onclose = mine((event) => this.ended(event));
    this.after('silence', CONNECT_MAX_MS, () => this.lost('The server does not answer'));
  }

  opened() {
    this.tell('open');
    this.hush();
    if (this.kept.size === 0) {
      this.isCaughtUp = true;
      return;
    }
    // Its answer comes after everything that was missed: what is kept then did not arrive.
    this.barrier = messageId();
    this.put({ type: 'get_context', id: this.barrier, session_id: this.sessionId });
  }

  heard(data) {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return; // Not a frame of this dialect; the next one may be.
    }
    this.failures = 0;
    this.hush();
    this.settle(frame);
    this.onframe(frame);
    // A complaint about the question is an answer too.
    const isAnswer = frame.type === 'context_info' || frame.client_ref === this.barrier;
    if (!this.isCaughtUp && isAnswer) this.sendKept();
  }

  settle(frame) {
    if (typeof frame.client_ref === 'string') this.kept.delete(frame.client_ref);
  }

  sendKept() {
    this.isCaughtUp = true;
    for (const message of [...this.kept.values()]) this.put(message);
  }

  /// Heard from the server: its silence counts from now.
  hush() {
    clearTimeout(this.timers.answer);
    this.timers.answer = null;
    this.after('silence', SILENCE_MAX_MS, () => this.lost('The server has gone silent'));
  }

  /// Whoever does not answer is asked once more before the connection is given up.
  expectAnswer(isProbed = false) {
    if (this.timers.answer !== null) return;
    this.after('answer', ANSWER_MAX_MS, () => {
      this.timers.answer = null;
      // Not all of it has been sent; a connection that is dead goes silent.
      if (this.socket.bufferedAmount > 0) return this.expectAnswer();
      if (isProbed) return this.lost('The server does not answer');
      this.expectAnswer(true);
      this.put({ type: 'get_context', id: messageId(), session_id: this.sessionId });
    });
  }

  /// The machine or the page has woken up: what was open may be dead, and waiting is over.
  woken() {
    if (!this.isWanted || globalThis.document?.visibilityState === 'hidden') return;
    if (!this.socket) this.dial();
    else if (this.isOpen)
      this.put({ type: 'get_context', id: messageId(), session_id: this.sessionId });
  }

  ended(event) {
    const why = closeReason(event);
    const { id } = this.largest;
    // Sent again, it would end every connection.
    if (event.code === TOO_LARGE_CLOSE && this.kept.delete(id)) this.onrefused(id, why);
    this.lost(why);
  }

  lost(why) {
    this.drop();
    if (!this.isWanted) return;
    const delay = retryDelay(this.failures, this.random());
    this.failures += 1;
    this.tell('waiting', delay, why);
    this.after('retry', delay, () => this.dial());
  }

  drop() {
    for (const name of Object.keys(this.timers)) {
      clearTimeout(this.timers[name]);
      this.timers[name] = null;
    }
    const { socket } = this;
    this.socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(NORMAL_CLOSE);
  }

  after(name, ms, act) {
    clearTimeout(this.timers[name]);
    this.timers[name] = setTimeout(act, ms);
  }

  tell(state, retryInMs = null, why = null) {
    this.state = { state, retryInMs, why };
    this.onstate(this.state);
  }
}

function closeReason({ code, reason }) {
  return reason || CLOSES[code] || 'The connection was lost';
}
