// What a session's frames add up to: the items of the transcript, what waits for a person, the
// queue, the to-dos, the meter.
//
// A fold and nothing else: no document, no network, no clock but the one it is given. A frame that
// was applied is not applied again, so that a connection that tells too much doubles nothing.

import { Items } from './session-items.js';
import { join } from './session-join.js';
import { emptyMeter, measure, spend } from './session-meter.js';

// Ids of frames that are remembered, to know one that comes again.
const RECENT_FRAMES_MAX = 2048;

// These are told again on purpose, and may be applied twice: what they name has an id of its own.
const TOLD_AGAIN = new Set([
  'session_init',
  'control_request',
  'ask_user_question',
  'exit_plan_mode',
  'message_queued',
  'heartbeat',
  'error',
  'context_info',
  'raw',
]);

// Answers to one connection are counted by it, so their ids come again with the next one.
const COUNTED_BY_CONNECTION = new Set(['session_info']);

// Only a turn tells these. Where its beginning is on an older page, they say that one runs; the
// second set may also come from a file of another program, which has no turns.
const SURELY_OF_A_TURN = new Set([
  'control_request',
  'ask_user_question',
  'exit_plan_mode',
  'command_output',
  'token_usage',
]);
const LIKELY_OF_A_TURN = new Set([
  'assistant_message',
  'assistant_reasoning',
  'tool_started',
  'tool_completed',
]);


export class Session {
  constructor(id, { now = Date.now } = {}) {
    this.id = id;
    this.now = now;
    this.clear();
  }

  clear() {
    /// request_id → {kind, frame, item}
    this.waits = new Map();
    this.queue = [];
    this.todos = [];
    this.meter = emptyMeter();
    this.turn = null;
    this.head = {
      title: null,
      model: null,
      agent: null,
      mode: null,
      cwd: null,
      status: 'active',
      tools: [],
    };
    /// Where to attach: what `since` says.
    this.lastCursor = null;
    this.seq = 0;
    this.folded = new Items(this.now);
    this.recent = new Set();
    /// The next `token_usage` says what a compaction left, and is no call.
    this.compacted = false;
    /// Frames of this page's own messages that the server has not taken up: id → item.
    this.sending = new Map();
  }

  get items() {
    return this.folded.list;
  }

  /// A turn runs, and no item shows it: the agent is about to say or do something.
  get isPondering() {
    return this.turn !== null && this.waits.size === 0 && !this.folded.isGrowing;
  }

  /// Folds the newest page of the history into an empty session.
  load({ frames, seq }) {
    const changes = frames.flatMap((frame) => this.apply(frame, false));
    this.passed(seq);
    return changes;
  }

  /// Puts an older page before what is here.
  prepend(frames) {
    const older = new Session(this.id, { now: this.now });
    frames.forEach((frame) => older.apply(frame, false));
    return join(older, this);
  }

  /// Folds a frame; `live` is false for what happened before anybody here looked.
  apply(frame, live = true) {
    if (frame.type === 'session_init' && frame.seq < this.seq) return this.begunAnew();
    if (this.isKnown(frame)) return this.again(frame);
    this.remember(frame);
    const told = Object.hasOwn(FRAMES, frame.type) ? FRAMES[frame.type] : null;
    if (!told) return [];
    return [...this.inferTurn(frame, live), ...told(this, frame, live)];
  }

  inferTurn({ type }, live) {
    if (this.turn || this.compacted) return [];
    if (!SURELY_OF_A_TURN.has(type) && !(live && LIKELY_OF_A_TURN.has(type))) return [];
    const unknown = { by: null, message: null, resumes: false, isInferred: true };
    this.turn = { startedAt: this.now(), isLive: live, ...unknown };
    return [{ kind: 'turn' }];
  }

  /// The server knows less than was shown: it kept nothing, or another one has taken its place.
  /// What it has now may begin before its greeting, so that all of it is to be loaded.
  begunAnew() {
    this.clear();
    return [{ kind: 'reset' }];
  }

  isKnown(frame) {
    if (typeof frame.seq !== 'number' || TOLD_AGAIN.has(frame.type)) return false;
    if (frame.seq < this.seq) return true;
    return !COUNTED_BY_CONNECTION.has(frame.type) && this.recent.has(frame.id);
  }

  /// A frame of an open item that comes again may go further than it did: a server that was asked
  /// from an entry, and not from a character, tells the item from its start.
  again(frame) {
    const changes = frame.seq < this.seq ? [] : this.folded.again(frame);
    if (changes.length > 0) this.passed(frame.seq, frame.cursor);
    return changes;
  }

  remember(frame) {
    if (typeof frame.seq !== 'number') return;
    // A greeting says nothing of what was shown here: whoever has a place keeps it.
    const isGreeting = frame.type === 'session_init';
    if (!isGreeting || this.lastCursor === null) this.passed(frame.seq, frame.cursor);
    if (TOLD_AGAIN.has(frame.type)) return;
    this.recent.add(frame.id);
    if (this.recent.size > RECENT_FRAMES_MAX) {
      this.recent.delete(this.recent.values().next().value);
    }
  }

  passed(seq, cursor) {
    if (typeof seq !== 'number' || seq < this.seq) return;
    // A bare entry does not know how much of its open items is here.
    if (seq === this.seq && cursor === undefined && this.lastCursor !== null) return;
    this.seq = seq;
    this.lastCursor = cursor ?? String(seq);
  }

  /// Shows a message of this page's own before the server has said anything of it.
  outgoing(message) {
    const item = {
      key: `sending ${message.id}`,
      kind: 'user',
      text: message.content,
      by: null,
      clientRef: message.id,
      images: message.images ?? [],
      state: 'sending',
    };
    this.sending.set(message.id, item);
    return this.folded.add(item, null);
  }

  /// The server has spoken of the page's own message: what was shown of it goes.
  arrived(clientRef) {
    const item = clientRef && this.sending.get(clientRef);
    if (!item) return { images: [], changes: [] };
    this.sending.delete(clientRef);
    return { images: item.images, changes: this.folded.remove(item) };
  }

  /// Something of the page's own was not taken, a message maybe.
  refused(clientRef, why, code) {
    const told = notice('error', why, code, clientRef);
    const item = clientRef && this.sending.get(clientRef);
    if (!item) return [told];
    this.sending.delete(clientRef);
    Object.assign(item, { state: 'refused', why });
    return [{ kind: 'item', item }, told];
  }
}

// Each takes (session, frame, live) and returns the changes.
const FRAMES = {
  session_init(session, frame) {
    const { head } = session;
    if (frame.success === false) {
      return [notice('error', frame.error ?? 'The session could not be begun', 'session_init')];
    }
    Object.assign(head, {
      model: frame.model ?? head.model,
      cwd: frame.cwd ?? head.cwd,
      tools: frame.tools ?? [],
      mode: frame.permission_mode ?? head.mode,
      agent: frame.agent ?? head.agent,
    });
    if (frame.title !== undefined) head.title = frame.title;
    const changes = [{ kind: 'head' }];
    if (Array.isArray(frame.todos)) changes.push(...FRAMES.todos_changed(session, frame));
    return changes;
  },
  session_info(session, frame) {
    const { head } = session;
    head.status = frame.status ?? head.status;
    head.model = frame.model ?? head.model;
    head.agent = frame.agent ?? head.agent;
    head.mode = frame.permission_mode ?? head.mode;
    return [{ kind: 'head' }];
  },
  session_renamed(session, frame) {
    session.head.title = frame.title;
    return [{ kind: 'head' }];
  },

  turn_started(session, frame, live) {
    const { images: own, changes } = session.arrived(frame.client_ref);
    const waited = session.queue.find((waiting) => waiting.message_id === frame.message_id);
    const images = own.length > 0 ? own : (waited?.images ?? []);
    const queued = unqueue(session, frame.message_id);
    session.turn = {
      startedAt: session.now(),
      isLive: live,
      by: frame.by ?? null,
      message: frame.message ?? null,
      resumes: frame.resumes === true,
    };
    session.head.status = 'active';
    const items = session.folded.turnStarted(frame, images);
    return [...changes, ...queued, ...items, { kind: 'turn' }, { kind: 'head' }];
  },
  turn_completed(session, frame) {
    return turnEnded(session, session.folded.turnCompleted(frame), 'completed');
  },
  turn_failed(session, frame) {
    const interrupted = frame.code === 'interrupted';
    const items = session.folded.turnFailed(frame, interrupted);
    return turnEnded(session, items, interrupted ? 'interrupted' : 'failed');
  },

  assistant_message: (session, frame) => session.folded.said(frame),
  assistant_reasoning: (session, frame, live) => session.folded.thought(frame, live),
  tool_started: (session, frame, live) => session.folded.toolStarted(frame, live),
  command_output: (session, frame) => session.folded.output(frame),
  file_changed: (session, frame) => session.folded.fileChanged(frame),
  tool_completed: (session, frame) => session.folded.toolCompleted(frame),

  control_request: (session, frame) => asked(session, frame, 'approval'),
  ask_user_question: (session, frame) => asked(session, frame, 'question'),
  exit_plan_mode: (session, frame) => asked(session, frame, 'plan'),
  approval_settled(session, frame) {
    const open = session.waits.delete(frame.request_id);
    const items = session.folded.settled(frame);
    return open ? [...items, { kind: 'waits' }] : items;
  },

  message_queued(session, frame) {
    const { images, changes } = session.arrived(frame.client_ref);
    if (session.queue.some((waiting) => waiting.message_id === frame.message_id)) return changes;
    const { message_id, message, by, client_ref } = frame;
    // The server does not tell pictures back.
    session.queue.push({ message_id, message, by, client_ref, images });
    return [...changes, { kind: 'queue' }];
  },
  message_dropped: (session, frame) => unqueue(session, frame.message_id),

  todos_changed(session, frame) {
    session.todos = frame.todos ?? [];
    return [{ kind: 'todos' }];
  },

  token_usage(session, frame, live) {
    const { meter } = session;
    const cost = frame.usage?.cost_usd;
    measure(meter, frame.usage?.total_tokens, frame.context_window, frame.usage_percent);
    if (!session.compacted && live) spend(meter, frame.usage);
    if (typeof cost === 'number') meter.lastCallUsd = cost;
    session.compacted = false;
    return [{ kind: 'meter' }];
  },
  context_info(session, frame) {
    const { meter } = session;
    measure(meter, frame.token_count, frame.max_tokens, frame.usage_percent);
    meter.level = frame.warning_level ?? meter.level;
    meter.sessionUsage = frame.session_usage ? { ...frame.session_usage } : null;
    meter.costUsd = frame.session_usage?.cost_usd ?? null;
    meter.report = frame;
    return [{ kind: 'meter' }];
  },
  context_compaction(session, frame) {
    session.compacted = true;
    return session.folded.compacted(frame);
  },

  notice(session, frame) {
    // Servers from before `message_dropped` say it in a notice.
    const { changes } =
      frame.code === 'message_dropped' ? session.arrived(frame.client_ref) : { changes: [] };
    return [...changes, ...session.folded.noticed(frame)];
  },
  error(session, frame) {
    return session.refused(frame.client_ref, frame.message, frame.code);
  },
};

function notice(level, text, code, clientRef) {
  return { kind: 'notice', notice: { level, text, code, clientRef: clientRef ?? null } };
}

function turnEnded(session, items, how) {
  session.turn = null;
  const changes = [...items, { kind: 'turn', ended: how }];
  if (session.waits.size > 0) {
    // Each was told as withdrawn; whatever was not cannot be answered any more.
    session.waits.clear();
    changes.push({ kind: 'waits' });
  }
  return changes;
}

function asked(session, frame, kind) {
  const { item, changes } = session.folded.asked(frame, kind);
  const before = session.waits.get(frame.request_id);
  const times = (before?.times ?? 0) + 1;
  session.waits.set(frame.request_id, { kind, frame, item, times });
  return [...changes, { kind: 'waits' }];
}

function unqueue(session, messageId) {
  if (messageId === undefined || messageId === null) return [];
  const left = session.queue.filter((waiting) => waiting.message_id !== messageId);
  if (left.length === session.queue.length) return [];
  session.queue = left;
  return [{ kind: 'queue' }];
}
