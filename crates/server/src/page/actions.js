// What people do to whole sessions: rename, fork, archive, undo.
//
// Asks the server and tells what came of it; what the page shows follows from that.

import * as api from './api.js';
import { copy } from './copy.js';
import { ask, confirm, toast } from './floats.js';
import { name } from './sessions.js';

/// What the menu of the open session offers; `run` has a function for each.
export function entries(session, run) {
  const running = session.turn !== null;
  return [
    { label: 'Rename', icon: 'edit', run: run.rename },
    { label: 'Fork', icon: 'fork', run: run.fork },
    { label: 'Wire view', icon: 'wire', run: run.wire },
    { label: 'Undo the newest edits', icon: 'undo', disabled: running, run: run.undo },
    { label: 'Compact the context', icon: 'compact', disabled: running, run: run.compact },
    { label: 'Copy the session’s id', icon: 'copy', run: () => copyId(session.id) },
    null,
    { label: 'Archive', icon: 'archive', bad: true, run: run.archive },
  ];
}

async function copyId(id) {
  if (await copy(id)) toast('The id is copied.', 'good');
  else toast(`The browser did not let the page copy: ${id}`, 'warn');
}

/// Runs it; a failure is told, and gives null.
async function tried(what, run) {
  try {
    return await run();
  } catch (error) {
    toast(`${what}: ${error.message}`, 'bad');
    return null;
  }
}

export function retitle(id, title) {
  return tried('It could not be renamed', () => api.rename(id, title));
}

export async function rename(row) {
  const title = await ask('Rename session', 'Title', row.title ?? '', 'Rename');
  return title ? retitle(row.id, title) : null;
}

/// The id of the new session, or null. `at` is a seq; without it, all of the session.
export async function fork(id, at) {
  const made = await tried('It could not be forked', () => api.fork(id, at));
  if (made) toast('This is the fork: it has the history so far and goes its own way.', 'good');
  return made?.id ?? null;
}

/// `release()` lets go of the session where this page has it open: attached, it cannot be archived.
export async function archive(row, release) {
  const sure = await confirm(
    'Archive session?',
    `“${name(row)}” leaves the list. Its file is kept in the store’s archive.`,
    'Archive',
    { bad: true },
  );
  if (!sure) return false;
  await release();
  for (let tries = 0; ; tries += 1) {
    try {
      await api.archive(row.id);
      toast('The session is archived.', 'good');
      return true;
    } catch (error) {
      // Our own connection may take a moment to be gone.
      if (error.status !== 409 || tries >= 5) {
        toast(`It could not be archived: ${error.message}`, 'bad');
        return false;
      }
      await new Promise((resolve) => {
        setTimeout(resolve, 150);
      });
    }
  }
}

/// Takes edits back: of a call (`{item}`), a turn (`{turn}`), or the newest turn that has any.
export async function undo(id, which) {
  const what = which.item ? 'the edits of this call' : 'the newest edits';
  const sure = await confirm(
    'Undo?',
    `Takes back ${what}: all files or none. What commands did stays.`,
    'Undo',
  );
  if (!sure) return;
  try {
    const done = await api.undo(id, which);
    const count = (done.files ?? []).length;
    const told = `Taken back in ${count} ${count === 1 ? 'file' : 'files'}.`;
    toast(done.note ? `${told} ${done.note}.` : told, 'good');
  } catch (error) {
    const conflicts = (error.body?.conflicts ?? []).map(({ path, reason }) => `${path}: ${reason}`);
    toast(['Nothing was undone', error.message, ...conflicts].join('. '), 'bad');
  }
}
