// The page: which session is open, and who is told what of it.
//
// Speaks to the server as any client could: unified over one WebSocket, and REST.

import { announce } from './dom.js';
import * as actions from './actions.js';
import { hashOf, idIn } from './address.js';
import * as api from './api.js';
import { Composer } from './composer.js';
import { Connection } from './connection.js';
import { Desk } from './desk.js';
import { Drawer } from './drawer.js';
import { closeFloat, toast } from './floats.js';
import { Head } from './head.js';
import { kept } from './keep.js';
import { help, isWriting, listen } from './keys.js';
import { Room } from './room.js';
import { Sessions } from './sessions.js';
import { isDark, settings, setTheme } from './settings.js';
import { Todos } from './todos.js';
import { Waits } from './waits.js';
import { Welcome } from './welcome.js';
import { Wire } from './wire.js';

const TITLE_CHARACTERS = 60;
const byId = (id) => document.getElementById(id);

let about = null;
let room = null;
/// The room that is being made: whoever speaks meanwhile speaks there.
let beginning = null;
/// The choices for a session that is not there yet.
let chosen = {};

const head = new Head(byId('head'), {
  drawer: () => drawer.show(true),
  rename: (id, title) => actions.retitle(id, title),
  entries: menuEntries,
  wire: () => showWire(byId('wire').hidden),
  now: () => room?.retryNow(),
  compact: () => tell({ type: 'compact' }),
  refresh: () => room?.send({ type: 'get_context' }),
  id: () => room.id,
});
const connection = new Connection((told, seconds) => head.connection(told, seconds));
const composer = new Composer(byId('composer'), byId('queue'), {
  send: say,
  stop: interrupt,
  resume: () => tell({ type: 'resume' }),
  choose,
  cancel: (messageId) => tell({ type: 'cancel', target_id: messageId }),
  recall: () => room?.session.items.findLast((item) => item.kind === 'user')?.text,
});
const waits = new Waits(byId('waits'), {
  send: tell,
  focusMessage: () => composer.focus(),
  isBusy: () =>
    (isWriting(document.activeElement) &&
      (document.activeElement !== composer.text || composer.isBusy)) ||
    document.querySelector('dialog[open]') !== null,
});
const todos = new Todos(byId('todos'));
const welcome = new Welcome(byId('welcome'), {
  choose: suggest,
  begin: beginMissing,
  fresh: () => go(''),
});
const wire = new Wire(byId('wire'), { closed: () => showWire(false) });
const sessions = new Sessions(byId('sidebar'), {
  go,
  drawer: (shown) => drawer.show(shown),
  rename: async (row) => {
    await actions.rename(row);
    sessions.refresh();
  },
  fork,
  archive,
  settings: () => settings(about, settled),
  help,
  theme: flipTheme,
  reached: () => about ?? offer(),
});

const desk = new Desk({ head, composer, waits, todos, sessions, welcome }, () => about);
const drawer = new Drawer({
  app: byId('app'),
  sidebar: byId('sidebar'),
  behind: [byId('main'), byId('wire')],
  scrim: byId('scrim'),
  button: byId('drawer-button'),
});

/// Sends what is no message; where there is no connection, it says so.
function tell(frame) {
  const sent = room?.send(frame) ?? false;
  if (!sent) toast('Not sent: there is no connection to the server right now.', 'warn');
  return sent;
}

/// Says it in the session where it was written, whatever is opened meanwhile; returns the id of that
/// session, and whether it was sent.
async function say({ content, images }) {
  const mine = room ?? (await begin(content));
  if (!mine) return { id: '', isSent: false };
  // What was said before comes first.
  await mine.started;
  if (mine.closed) {
    toast('Your message was not sent: you left its session. It is kept there as a draft.', 'warn');
    return { id: mine.id, isSent: false };
  }
  if (mine.isMissing) beginMissing();
  const isSent = mine.say(content, images);
  if (isSent && !mine.link.isOpen)
    announce('The message is sent as soon as the connection is back.');
  return { id: mine.id, isSent };
}

/// The room that the first message is for; null if the server makes none.
function begin(content, more = {}) {
  beginning ??= make(content, more).finally(() => {
    beginning = null;
  });
  return beginning;
}

async function make(content, more) {
  const title = (content.trim().split('\n')[0] || 'Pictures').slice(0, TITLE_CHARACTERS);
  const { mode, agent, model } = { ...chosen, ...more };
  try {
    const made = await api.create({
      cwd: welcome.cwd,
      model,
      agent,
      permission_mode: mode,
      title: more.title ?? title,
    });
    composer.adopt(made.id);
    sessions.soon();
    // Whoever is elsewhere by now is not called back: that room was never entered.
    if (room || idIn(location.hash) !== '') return { id: made.id, closed: true };
    history.pushState(null, '', hashOf(made.id));
    return open(made.id);
  } catch (error) {
    toast(`The session could not be begun: ${error.message}`, 'bad');
    return null;
  }
}

function beginMissing() {
  room.begin();
  desk.all();
}

async function suggest({ title, message, agent }) {
  if (beginning) return; // The second click of two.
  const mine = room ?? (await begin(message, { title, agent: agent ?? chosen.agent }));
  await mine?.started;
  if (!mine || mine.closed) return;
  if (agent && mine.session.head.agent !== agent) mine.send({ type: 'set_agent', agent });
  mine.say(message);
  composer.focus();
}

function choose(name, value) {
  if (!room) {
    chosen[name] = value;
    composer.controls.show(chosen);
    return;
  }
  const frame = {
    mode: { type: 'set_permission_mode', mode: value },
    agent: { type: 'set_agent', agent: value },
    model: { type: 'set_model', model: value },
  }[name];
  if (!tell(frame)) composer.controls.again();
}

function interrupt() {
  if (tell({ type: 'interrupt', reason: 'stopped from the page' })) waits.stopped();
}

// Where we are

function go(id) {
  const hash = hashOf(id);
  if (location.hash !== hash) {
    history.pushState(null, '', location.pathname + hash);
  }
  route();
  if (!room) composer.focus();
}

function route() {
  drawer.show(false);
  const id = idIn(location.hash);
  if (id === null || (room && room.id === id)) return;
  if (id === '') return openNone();
  if (api.isSessionId(id)) return void open(id);
  openNone();
  welcome.missing(id, 'An id has letters, digits, dots, dashes and underlines', false);
}

function leave() {
  closeFloat();
  head.leave();
  if (room?.hasUnsent) toast('What was not sent yet is sent when you open that session again.', 'warn');
  room?.close();
  room = null;
  byId('transcript').replaceChildren();
  for (const toast of document.querySelectorAll('.toast.bad')) toast.remove();
  connection.show(null);
}

function openNone() {
  leave();
  sessions.select('');
  waits.open(null);
  todos.show([]);
  wire.open(null);
  showWire(false);
  composer.open('');
  composer.controls.show(chosen);
  head.show(null, { isOpen: false });
  document.title = 'Polyloop';
  welcome.show(about, true);
  if (matchMedia('(hover: hover)').matches) composer.focus();
}

function open(id) {
  leave();
  welcome.hide();
  const mine = new Room(id, byId('transcript'), {
    name: kept('name', null),
    bytesMax: () => about?.limits?.message_bytes,
    told: {
      changes: (list) => desk.changes(list),
      frame: (frame) => desk.frame(frame),
      state,
      missing,
      sent: (frame) => wire.sent(frame),
    },
    onFork: (seq) => fork(id, seq),
    // A call is known by the entry that proposed it.
    onUndo: ({ toolId }) => actions.undo(id, { item: toolId.replace('tool-', '') }),
    onWait: (request) => waits.focus(request),
  });
  room = desk.room = mine;
  sessions.select(id);
  composer.open(id);
  waits.open(mine.session);
  todos.show([]);
  head.show(mine.session.head, { isOpen: true });
  head.meter.show(mine.session.meter);
  if (!byId('wire').hidden) wire.open(id);
  if (matchMedia('(hover: hover)').matches) composer.focus();
  mine.started = mine.start().then(() => {
    if (room === mine && !mine.isMissing) desk.all();
  });
  return mine;
}

function missing(why, status) {
  const { id } = room;
  connection.show(null);
  welcome.missing(id, why, status === 404);
  head.show({ title: id }, { isOpen: false });
}

// What is told of the open session

function state(told) {
  connection.show(told);
  wire.follow(told);
  if (told.state === 'open') room.send({ type: 'get_context' });
}

// What can be done with it

function menuEntries() {
  const { id, session } = room;
  return actions.entries(session, {
    rename: () => head.edit(),
    fork: () => fork(id),
    wire: () => showWire(byId('wire').hidden),
    undo: () => actions.undo(id, {}),
    compact: () => tell({ type: 'compact' }),
    archive: () => archive({ id, title: session.head.title }),
  });
}

async function fork(id, at) {
  const made = await actions.fork(id, at);
  sessions.soon();
  if (made) go(made);
}

async function archive(row) {
  // Whether it is open is known only when the question is answered.
  let closed = null;
  const done = await actions.archive(row, () => {
    if (room?.id !== row.id) return null;
    closed = room;
    return Promise.all([wire.open(null), closed.close()]);
  });
  if (closed && room === closed) done ? go('') : open(row.id);
  sessions.refresh();
}

// The page around it

function showWire(shown) {
  const had = byId('wire').contains(document.activeElement);
  byId('wire').hidden = !shown;
  byId('app').classList.toggle('with-wire', shown);
  head.wire.setAttribute('aria-pressed', String(shown));
  drawer.show(false);
  wire.open(shown && room ? room.id : null);
  if (shown && room) wire.focus();
  else if (had) composer.focus();
}

function flipTheme() {
  setTheme(isDark() ? 'light' : 'dark');
}

function settled(name) {
  if (name === 'name' && room) room.link.name = kept('name', null);
}

/// Closes what is open, else leaves where the keyboard is, else stops the turn.
function escape(from) {
  if (closeFloat()) return;
  if (drawer.isOpen) drawer.show(false);
  else if (byId('wire').contains(from)) showWire(false);
  else if (isWriting(from) && from !== composer.text) composer.focus();
  else if (room?.session.turn) interrupt();
}

function beside(step) {
  const id = sessions.beside(step);
  if (id) go(id);
}

listen(
  {
    '?': help,
    n: () => go(''),
    '/': () => {
      drawer.show(true);
      byId('search').focus();
    },
    j: () => beside(1),
    k: () => beside(-1),
    m: () => composer.focus(),
    g: () => room?.transcript.followEnd(),
    w: () => room && showWire(byId('wire').hidden),
    c: () => room && !head.meter.node.hidden && head.meter.details(),
    r: () => waits.focus(),
    t: flipTheme,
  },
  escape,
  (letter) => waits.press(letter),
);
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  composer.focus();
});
addEventListener('hashchange', route);
addEventListener('popstate', route);

/// Asks what the server is and offers; again when it comes back, if it was away.
async function offer() {
  const [told, models] = await Promise.all([
    api.about().catch(() => null),
    api.models().catch(() => null),
  ]);
  if (!told) return;
  about = told;
  if (about.limits?.message_bytes) composer.pictures.bytesMax = about.limits.message_bytes;
  const { permission_mode: mode, agent } = about;
  chosen = { mode, agent, model: models?.default ?? about.model, ...chosen };
  composer.controls.offer(about, models);
  composer.controls.show(room ? room.session.head : chosen);
  if (room && !room.isMissing) desk.welcome();
  else if (idIn(location.hash) === '') welcome.show(about, true);
}

// A token that was given in the address has done its work, and is nobody else's to read.
if (location.search) history.replaceState(null, '', location.pathname + location.hash);
sessions.refresh();
if (idIn(location.hash)) route();
else openNone();
offer();
