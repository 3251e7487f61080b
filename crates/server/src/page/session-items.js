// The items of a transcript, as frames make them: what was said, thought and done, in order.
//
// Knows nothing of waits, queues or meters beyond what an item shows of them, and draws nothing.

// What one says, thinks or is told ends an attempt: what stands before it stays.
const RETRY_CODES = new Set(['retry', 'compacting']);
// Frames of which it is remembered where their characters begin.
const BEGUN_MAX = 2048;
const DENIALS = new Set(['deny', 'deny_stop', 'withdrawn']);

export class Items {
  constructor(now) {
    this.now = now;
    this.list = [];
    /// The message and the reasoning that are still growing.
    this.text = null;
    this.reasoning = null;
    /// tool_id → its newest item; request_id → the item that shows it.
    this.tools = new Map();
    this.requests = new Map();
    /// Id of a frame that added characters → where they begin: {item, field, at}.
    this.began = new Map();
    /// Files that changed, told before what changed them is told as ended.
    this.files = [];
    /// What the model call that may still fail has said: struck out if it does.
    this.attempt = [];
    /// False until something here ended an attempt; before that, it began on an older page.
    this.isBounded = false;
    /// What the older page's last attempt said was of a failed call.
    this.strikesBack = false;
    /// Ends whose beginnings are on an older page.
    this.orphans = new Map();
    this.settledBefore = new Map();
  }

  /// Adds a frame's characters to a field of an item.
  grow(item, field, text, frame) {
    this.began.set(frame.id, { item, field, at: item[field].length });
    if (this.began.size > BEGUN_MAX) this.began.delete(this.began.keys().next().value);
    item[field] += text;
  }

  /// A frame that was applied comes again: what it has beyond what is here is taken in.
  again(frame) {
    const begun = this.began.get(frame.id);
    const text = begun?.field === 'output' ? frame.output : frame.text;
    if (!begun || typeof text !== 'string') return [];
    const { item, field, at } = begun;
    if (at + text.length <= item[field].length) return [];
    item[field] = item[field].slice(0, at) + text;
    return this.grew(item, frame);
  }

  /// Something says more, thinks on or runs.
  get isGrowing() {
    if (this.text || this.reasoning) return true;
    // Calls of one reply stand together.
    for (let at = this.list.length - 1; at >= 0 && this.list[at].kind === 'tool'; at -= 1) {
      if (this.list[at].state === 'running') return true;
    }
    return false;
  }

  add(item, frame) {
    item.seq = frame?.seq ?? null;
    this.list.push(item);
    return [{ kind: 'new', item }];
  }

  remove(item) {
    const at = this.list.lastIndexOf(item);
    if (at < 0) return [];
    this.list.splice(at, 1);
    return [{ kind: 'gone', item }];
  }

  grew(item, frame) {
    item.seq = frame.seq ?? item.seq;
    return [{ kind: 'item', item }];
  }

  boundary() {
    this.attempt = [];
    this.isBounded = true;
  }

  turnStarted(frame, images) {
    this.boundary();
    const changes = this.close();
    if (typeof frame.message === 'string') {
      const { id: key, message: text, by = null, client_ref: clientRef = null } = frame;
      const item = { key, kind: 'user', text, by, clientRef, images, state: 'sent' };
      return [...changes, ...this.add(item, frame)];
    }
    if (!frame.resumes) return changes; // A compaction, which says so itself.
    const { id: key, by = null } = frame;
    const item = {
      key,
      kind: 'notice',
      level: 'info',
      text: 'The work goes on',
      by,
      code: 'resumed',
    };
    return [...changes, ...this.add(item, frame)];
  }

  turnCompleted(frame) {
    const changes = this.close();
    const last = this.list.at(-1);
    if (!last || last.kind !== 'assistant' || !frame.usage) return changes;
    last.usage = frame.usage;
    return [...changes, ...this.grew(last, frame)];
  }

  turnFailed(frame, interrupted) {
    const { id: key, error, code } = frame;
    const changes = this.close();
    return [...changes, ...this.add({ key, kind: 'failure', error, code, interrupted }, frame)];
  }

  /// Nothing grows any more.
  close() {
    const changes = [];
    for (const item of [this.text, this.reasoning]) {
      if (!item) continue;
      this.end(item);
      changes.push({ kind: 'item', item });
    }
    this.text = null;
    this.reasoning = null;
    return changes;
  }

  end(item) {
    item.done = true;
    if (item.startedAt) item.ms = this.now() - item.startedAt;
  }

  said(frame) {
    const text = frame.text ?? '';
    const open = this.text;
    if (!open && text === '') return [];
    const ended = frame.is_final ? this.endReasoning() : [];
    const item = open ?? { key: frame.id, kind: 'assistant', text: '', done: false };
    this.grow(item, 'text', text, frame);
    item.done = frame.is_final === true;
    this.text = item.done ? null : item;
    if (open) return [...ended, ...this.grew(item, frame)];
    this.attempt.push(item);
    return [...ended, ...this.add(item, frame)];
  }

  thought(frame, live) {
    const open = this.reasoning;
    if (open) {
      this.grow(open, 'text', frame.text ?? '', frame);
      return this.grew(open, frame);
    }
    const startedAt = live ? this.now() : null;
    const item = { key: frame.id, kind: 'reasoning', text: '', done: false, startedAt };
    this.grow(item, 'text', frame.text ?? '', frame);
    this.reasoning = item;
    this.attempt.push(item);
    return this.add(item, frame);
  }

  endReasoning() {
    const item = this.reasoning;
    if (!item) return [];
    this.end(item);
    this.reasoning = null;
    return [{ kind: 'item', item }];
  }

  toolStarted(frame, live) {
    this.boundary();
    const changes = this.endReasoning();
    const known = this.tools.get(frame.tool_id);
    // It was made from a request that came first; the call is the same.
    if (known && known.state !== 'ended') {
      Object.assign(known, { name: frame.tool_name, args: frame.arguments ?? {} });
      return [...changes, ...this.grew(known, frame)];
    }
    const item = this.tool(frame.id, frame.tool_id, frame.tool_name, frame.arguments);
    item.startedAt = live ? this.now() : null;
    return [...changes, ...this.add(item, frame)];
  }

  tool(key, toolId, name, args) {
    const item = {
      key,
      kind: 'tool',
      toolId,
      name,
      args: args ?? {},
      state: 'running',
      output: '',
      exitCode: null,
      success: null,
      result: null,
      error: null,
      files: [],
      approvals: [],
      startedAt: null,
      ms: null,
    };
    this.tools.set(toolId, item);
    return item;
  }

  /// The card of a call, also of one whose beginning is on an older page.
  toolOf(toolId, frame) {
    const known = this.tools.get(toolId);
    if (known) return { item: known, changes: [] };
    const item = this.tool(`${frame.id} ${toolId}`, toolId, null, null);
    this.orphans.set(toolId, item);
    return { item, changes: this.add(item, frame) };
  }

  output(frame) {
    const { item, changes } = this.toolOf(frame.tool_id, frame);
    this.grow(item, 'output', frame.output ?? '', frame);
    item.command = frame.command ?? item.command;
    if (frame.is_streaming === false) item.exitCode = frame.exit_code ?? null;
    return [...changes, ...this.grew(item, frame)];
  }

  fileChanged(frame) {
    this.files.push({ path: frame.path ?? '', operation: frame.operation ?? 'update' });
    return [];
  }

  toolCompleted(frame) {
    this.boundary();
    const { item, changes } = this.toolOf(frame.tool_id, frame);
    item.state = 'ended';
    item.success = frame.success === true;
    item.result = frame.result ?? null;
    item.error = frame.error ?? null;
    tidy(item);
    item.files = this.files;
    this.files = [];
    if (item.startedAt) item.ms = this.now() - item.startedAt;
    return [...changes, ...this.grew(item, frame)];
  }

  asked(frame, kind) {
    this.boundary();
    const ended = this.endReasoning();
    const known = this.requests.get(frame.request_id);
    if (known) {
      return { item: known, changes: [...ended, ...this.grew(known, frame)] };
    }
    const { item, changes } =
      kind === 'approval' ? this.approval(frame) : this.question(frame, kind);
    this.requests.set(frame.request_id, item);
    return { item, changes: [...ended, ...changes] };
  }

  approval(frame) {
    const { item, changes } = this.toolOf(frame.tool_use_id, frame);
    if (item.name === null) Object.assign(item, { name: frame.tool_name, args: frame.input ?? {} });
    item.approvals.push({
      requestId: frame.request_id,
      input: frame.input,
      context: frame.context ?? {},
      decision: null,
      by: null,
      message: null,
    });
    item.state = 'waiting';
    return { item, changes: [...changes, ...this.grew(item, frame)] };
  }

  question(frame, kind) {
    const item = {
      key: frame.id,
      kind,
      requestId: frame.request_id,
      questions: frame.questions ?? [],
      plan: frame.plan ?? '',
      path: frame.plan_file_path ?? null,
      decision: null,
      by: null,
      message: null,
    };
    return { item, changes: this.add(item, frame) };
  }

  settled(frame) {
    const item = this.requests.get(frame.request_id);
    if (!item) {
      this.settledBefore.set(frame.request_id, frame);
      return [];
    }
    settle(item, frame);
    return this.grew(item, frame);
  }

  compacted(frame) {
    const { id: key, reason, tokens_before: before, tokens_after: after } = frame;
    return this.add({ key, kind: 'compaction', reason, before, after }, frame);
  }

  noticed(frame) {
    const { id: key, level, text, code } = frame;
    if (code === 'adopted_user_message') {
      this.boundary();
      const item = { key, kind: 'user', text, by: null, clientRef: null, images: [] };
      return this.add({ ...item, state: 'sent' }, frame);
    }
    const changes = RETRY_CODES.has(code) ? this.strike() : [];
    const item = { key, kind: 'notice', level, text, code, files: this.files };
    this.files = [];
    return [...changes, ...this.add(item, frame)];
  }

  /// The attempt failed: what it said is no part of the answer.
  strike() {
    if (!this.isBounded) this.strikesBack = true;
    const changes = this.close();
    for (const item of this.attempt) {
      item.struck = true;
      changes.push({ kind: 'item', item });
    }
    this.boundary();
    return changes;
  }
}

/// What follows from the parts of a call that has ended; they may come from two pages.
export function tidy(item) {
  item.wasDenied = DENIALS.has(item.approvals.at(-1)?.decision);
  // A command's output was told already; it is not kept twice.
  if (item.output !== '') item.result = null;
  if (item.error === item.output) item.error = null;
}

/// Writes down how a request ended.
export function settle(item, frame) {
  const { request_id: requestId, decision, by = null, message = null } = frame;
  if (item.kind !== 'tool') {
    Object.assign(item, { decision, by, message });
    return;
  }
  const approval = item.approvals.find((asked) => asked.requestId === requestId);
  if (approval) Object.assign(approval, { decision, by, message });
  // What was sent with the decision runs in place of what was proposed.
  if (frame.input) item.args = frame.input;
  if (item.state === 'waiting') item.state = 'running';
}
