// The page: which session is open, and who is told what of it.
//
// Speaks to the server as any client could: unified over one WebSocket, and REST.

import { announce } from './dom.js';
import * as actions from './actions.js';
import * as api from './api.js';
import { Composer } from './composer.js';
import { Connection } from './connection.js';
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
/// The choices for a session that is not there yet.
let chosen = {};

const head = new Head(byId('head'), {
  drawer: () => drawer(true), rename: (title) => actions.retitle(room.id, title), entries: menuEntries,
  wire: () => showWire(byId('wire').hidden), now: () => room?.retryNow(), compact: () => tell({ type: 'compact' }),
  refresh: () => room?.send({ type: 'get_context' }), id: () => room.id,
});
const connection = new Connection((told, seconds) => head.connection(told, seconds));
const composer = new Composer(byId('composer'), byId('queue'), {
  send: say, stop: interrupt, resume: () => tell({ type: 'resume' }), choose,
  cancel: (messageId) => tell({ type: 'cancel', target_id: messageId }),
  recall: () => room?.session.items.findLast((item) => item.kind === 'user')?.text,
});
const waits = new Waits(byId('waits'), {
  send: tell, focusMessage: () => composer.focus(),
  isBusy: () => (isWriting(document.activeElement) && !(document.activeElement === composer.text && composer.isEmpty)) || document.querySelector('dialog[open]') !== null,
});
const todos = new Todos(byId('todos'));
const welcome = new Welcome(byId('welcome'), { choose: suggest, begin: () => { welcome.hide(); room.begin(); }, fresh: () => go('') });
const wire = new Wire(byId('wire'), { closed: () => showWire(false) });
const sessions = new Sessions(byId('sidebar'), {
  go, drawer, rename: async (row) => { await actions.rename(row); sessions.refresh(); }, fork, archive,
  settings: () => settings(about, settled), help, theme: flipTheme,
});

/// Sends what is no message; where there is no connection, it says so.
function tell(frame) {
  const sent = room?.send(frame) ?? false;
  if (!sent) toast('Not sent: there is no connection to the server right now.', 'warn');
  return sent;
}

async function say({ content, images }) {
  if (!room && !await begin(content)) return false;
  if (!room.say(content, images)) return false;
  if (!room.link.isOpen) announce('The message is sent as soon as the connection is back.');
  return true;
}

/// Makes the session that the first message is for.
async function begin(content, more = {}) {
  const title = (content.trim().split('\n')[0] || 'Pictures').slice(0, TITLE_CHARACTERS);
  const { mode, agent, model } = { ...chosen, ...more };
  try {
    const made = await api.create({ cwd: welcome.cwd, model, agent, permission_mode: mode, title: more.title ?? title });
    history.pushState(null, '', `#s=${encodeURIComponent(made.id)}`);
    await open(made.id);
    return true;
  } catch (error) {
    toast(`The session could not be begun: ${error.message}`, 'bad');
    return false;
  }
}

async function suggest({ title, message, agent }) {
  if (!room && !await begin(message, { title, agent: agent ?? chosen.agent })) return;
  if (agent && room.session.head.agent !== agent) room.send({ type: 'set_agent', agent });
  room.say(message);
  composer.focus();
}

function choose(name, value) {
  if (!room) {
    chosen[name] = value;
    composer.controls.show(chosen);
    return;
  }
  const frame = { mode: { type: 'set_permission_mode', mode: value }, agent: { type: 'set_agent', agent: value }, model: { type: 'set_model', model: value } }[name];
  if (!tell(frame)) composer.controls.again();
}

function interrupt() {
  tell({ type: 'interrupt', reason: 'stopped from the page' });
}

// Where we are

function go(id) {
  drawer(false);
  const hash = id ? `#s=${encodeURIComponent(id)}` : '';
  if (location.hash === hash) return id || room ? route() : composer.focus();
  if (id) location.hash = hash;
  else {
    history.pushState(null, '', location.pathname + location.search);
    route();
  }
}

function route() {
  const id = idOf(location.hash);
  if (id === null || (room && room.id === id)) return;
  if (id === '') return openNone();
  if (api.isSessionId(id)) return void open(id);
  openNone();
  welcome.missing(id, 'An id has letters, digits, dots, dashes and underlines', false);
}

/// The id in the address: empty for a new session, null for an address that is none of ours.
function idOf(hash) {
  if (hash === '' || hash === '#') return '';
  if (!hash.startsWith('#s=')) return null;
  try {
    return decodeURIComponent(hash.slice(3));
  } catch {
    return hash.slice(3);
  }
}

function leave() {
  closeFloat();
  room?.close();
  room = null;
  byId('transcript').replaceChildren();
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
    told: { changes, frame, state, sent: (sent) => wire.sent(sent), missing },
    onFork: (seq) => fork(id, seq), onUndo: (item) => actions.undo(id, { item: item?.seq }), onWait: (request) => waits.focus(request),
  });
  room = mine;
  sessions.select(id);
  composer.open(id);
  waits.open(mine.session);
  todos.show([]);
  head.show(mine.session.head, { isOpen: true });
  head.meter.show(mine.session.meter);
  if (!byId('wire').hidden) wire.open(id);
  if (matchMedia('(hover: hover)').matches) composer.focus();
  return mine.start().then(() => { if (room === mine) drawAll(); });
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
  if (told.state !== 'open') return;
  room.send({ type: 'get_context' });
}

function frame(told) {
  if (told.type !== 'approval_settled') return;
  const words = waits.settled(told);
  if (words && room.session.waits.has(told.request_id)) toast(words, 'info');
}

const DRAWN = {
  head: drawHead, waits: drawWaits, queue: () => composer.queue(room.session.queue), todos: () => todos.show(room.session.todos),
  meter: () => head.meter.show(room.session.meter), turn: drawTurn,
};

function changes(list) {
  const kinds = new Set(list.map((change) => change.kind));
  if (kinds.has('reset')) return drawAll();
  for (const kind of kinds) DRAWN[kind]?.();
  for (const change of list) {
    if (change.kind === 'notice') refused(change.notice);
    if (change.kind === 'turn') turned(change.ended);
  }
  if (kinds.has('new') || kinds.has('gone') || kinds.has('older')) drawWelcome();
}

function drawAll() {
  for (const draw of Object.values(DRAWN)) draw();
  drawWelcome();
}

function drawHead() {
  const { head: told } = room.session;
  head.show(told, { isOpen: true });
  composer.controls.show(told);
  composer.state({ running: room.session.turn !== null, paused: told.status === 'paused' });
  drawRow();
}

function drawTurn() {
  const { turn, head: told } = room.session;
  composer.state({ running: turn !== null, paused: told.status === 'paused' });
  drawRow();
}

function drawWaits() {
  waits.update();
  drawRow();
}

/// The session's line in the list, and the window's title.
function drawRow() {
  const { session, id } = room;
  const waiting = session.waits.size;
  const status = waiting > 0 ? 'waiting' : session.turn ? 'running' : 'idle';
  const title = session.head.title;
  sessions.live({ id, status, waiting, ...(title ? { title } : {}) });
  const mark = waiting > 0 ? `(${waiting}) ` : session.turn ? '… ' : '';
  document.title = `${mark}${title || 'Session'} · Polyloop`;
}

function drawWelcome() {
  if (room.session.items.length === 0 && room.session.waits.size === 0) welcome.show(about, false);
  else welcome.hide();
}

function turned(ended) {
  if (!ended) return sessions.soon();
  announce({ completed: 'The turn is done.', failed: 'The turn failed.', interrupted: 'The turn was stopped.' }[ended] ?? '');
  sessions.soon();
}

function refused(notice) {
  if (notice.level === 'error') composer.controls.again();
  toast(notice.text, notice.level === 'error' ? 'bad' : 'info');
}

// What can be done with it

function menuEntries() {
  const row = { id: room.id, title: room.session.head.title };
  const running = room.session.turn !== null;
  return [
    { label: 'Rename', icon: 'edit', run: () => head.edit() },
    { label: 'Fork', icon: 'fork', run: () => fork(room.id) },
    { label: 'Undo the newest edits', icon: 'undo', disabled: running, run: () => actions.undo(room.id, {}) },
    { label: 'Compact the context', icon: 'compact', disabled: running, run: () => tell({ type: 'compact' }) },
    { label: 'Copy the session’s id', icon: 'copy', run: () => navigator.clipboard.writeText(room.id).then(() => toast('The id is copied.', 'good'), () => toast(room.id)) },
    null,
    { label: 'Archive', icon: 'archive', bad: true, run: () => archive(row) },
  ];
}

async function fork(id, at) {
  const made = await actions.fork(id, at);
  sessions.soon();
  if (made) go(made);
}

async function archive(row) {
  const isOpen = room?.id === row.id;
  const done = await actions.archive(row, () => {
    if (!isOpen) return;
    wire.open(null);
    room.close();
  });
  if (isOpen && room?.id === row.id) done ? go('') : open(row.id);
  sessions.refresh();
}

// The page around it

function drawer(shown) {
  byId('app').classList.toggle('drawer', shown);
  byId('scrim').hidden = !shown;
  byId('main').inert = shown;
  if (shown) byId('search').focus();
  else if (byId('sidebar').contains(document.activeElement) && isNarrow()) byId('drawer-button').focus();
  narrow();
}

function isNarrow() {
  return matchMedia('(max-width: 760px)').matches;
}

/// A list that is out of sight is out of the keyboard's way too.
function narrow() {
  byId('sidebar').inert = isNarrow() && !byId('app').classList.contains('drawer');
  if (!isNarrow()) byId('main').inert = false;
}

function showWire(shown) {
  byId('wire').hidden = !shown;
  byId('app').classList.toggle('with-wire', shown);
  head.wire.setAttribute('aria-pressed', String(shown));
  wire.open(shown && room ? room.id : null);
  if (shown && room) byId('wire').querySelector('[role=tab][aria-selected=true]').focus();
}

function flipTheme() {
  setTheme(isDark() ? 'light' : 'dark');
}

function settled(name) {
  if (name === 'name' && room) room.link.name = kept('name', null);
}

function escape() {
  if (closeFloat()) return true;
  if (byId('app').classList.contains('drawer')) return drawer(false), true;
  if (room?.session.turn) return interrupt(), true;
  if (waits.container.contains(document.activeElement)) return composer.focus(), true;
  return false;
}

function beside(step) {
  const id = sessions.beside(step);
  if (id) go(id);
}

listen({
  '?': help, n: () => go(''), '/': () => { drawer(isNarrow()); byId('search').focus(); }, j: () => beside(1), k: () => beside(-1),
  m: () => composer.focus(), g: () => room?.transcript.followEnd(), w: () => room && showWire(byId('wire').hidden),
  c: () => room && !head.meter.node.hidden && head.meter.details(), r: () => waits.focus(), t: flipTheme,
}, escape);
byId('skip').addEventListener('click', (event) => { event.preventDefault(); composer.focus(); });
byId('scrim').addEventListener('click', () => drawer(false));
matchMedia('(max-width: 760px)').addEventListener('change', () => drawer(false));
addEventListener('hashchange', route);
addEventListener('popstate', route);

async function offer() {
  const [told, models] = await Promise.all([api.about().catch(() => null), api.models().catch(() => null)]);
  about = told;
  if (about?.limits?.message_bytes) composer.pictures.bytesMax = about.limits.message_bytes;
  chosen = { mode: about?.permission_mode ?? 'manual', agent: about?.agent ?? 'react', model: models?.default ?? about?.model, ...chosen };
  composer.controls.offer(about, models);
  if (!room) composer.controls.show(chosen);
  if (!byId('welcome').hidden && (!room || room.session.items.length === 0)) room ? drawWelcome() : api.isSessionId(idOf(location.hash) || 'x') && welcome.show(about, true);
}

narrow();
sessions.refresh();
const offered = offer();
if (idOf(location.hash)) route();
else openNone();
offered.then(() => { if (room) composer.controls.show(room.session.head); });
