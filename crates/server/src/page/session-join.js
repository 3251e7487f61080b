// Puts an older page of a session before a newer one.
//
// Pages are cut between entries, so a call may begin in one and end in the other, a request be
// asked in one and settled in the other, and a failed attempt stand on both sides. Here they meet.

import { settle, tidy } from './session-items.js';

/// Moves everything of `older` into `newer`; both are sessions, and `older` is of no use after it.
export function join(older, newer) {
  const [before, after] = [older.folded, newer.folded];
  const changes = [...strikeAcross(before, after), ...meetTools(before, after)];
  meetRequests(before, after, newer);
  carry(before.tools, after.tools);
  carry(before.requests, after.requests);
  carry(before.settledBefore, after.settledBefore);
  carry(before.orphans, after.orphans);
  if (newer.turn?.isInferred && older.turn) {
    const { by, message, resumes } = older.turn;
    Object.assign(newer.turn, { by, message, resumes, isInferred: false });
    changes.push({ kind: 'turn' });
  }
  const count = before.list.length;
  after.list = before.list.concat(after.list);
  return [{ kind: 'older', count }, ...changes];
}

function strikeAcross(before, after) {
  const changes = [];
  if (after.strikesBack)
    before.attempt.forEach((item) => {
      item.struck = true;
    });
  after.strikesBack = before.strikesBack || (after.strikesBack && !before.isBounded);
  if (!after.isBounded) after.attempt = before.attempt.concat(after.attempt);
  after.isBounded ||= before.isBounded;
  return changes;
}

/// A card whose beginning was missing gets it; it keeps its place among the newer.
function meetTools(before, after) {
  const changes = [];
  for (const [toolId, item] of after.orphans) {
    const begun = before.tools.get(toolId);
    if (!begun || begun.state === 'ended') continue;
    Object.assign(item, {
      name: begun.name,
      args: begun.args,
      output: begun.output + item.output,
      approvals: begun.approvals.concat(item.approvals),
      command: item.command ?? begun.command,
      exitCode: item.exitCode ?? begun.exitCode,
    });
    if (item.state === 'ended') tidy(item);
    begun.approvals.forEach((asked) => before.requests.set(asked.requestId, item));
    before.tools.delete(toolId);
    before.list = before.list.filter((other) => other !== begun);
    // Its beginning may be further back still.
    if (!before.orphans.delete(toolId)) after.orphans.delete(toolId);
    changes.push({ kind: 'item', item });
  }
  return changes;
}

function meetRequests(before, after, newer) {
  for (const [requestId, item] of before.requests) {
    const ended = after.settledBefore.get(requestId);
    if (ended) {
      settle(item, ended);
      if (item.kind === 'tool' && item.state === 'ended') tidy(item);
      after.settledBefore.delete(requestId);
    }
    // It is open, and was told when this page attached.
    const again = after.requests.get(requestId);
    if (again && again !== item && newer.waits.has(requestId)) {
      before.list = before.list.filter((other) => other !== item);
      before.requests.delete(requestId);
    }
  }
}

/// What the newer part has stays.
function carry(from, to) {
  for (const [key, value] of from) {
    if (!to.has(key)) to.set(key, value);
  }
}
