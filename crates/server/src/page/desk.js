// Shows what changed in the open session in all that stands around its transcript.
//
// Draws only: it sends nothing and opens nothing.

import { announce } from './dom.js';
import { toast } from './floats.js';
import { brief } from './shown.js';

// How much of an answer is read out unasked.
const SAID_CHARACTERS = 300;

const ENDS = {
  completed: 'The turn is done.',
  failed: 'The turn failed.',
  interrupted: 'The turn was stopped.',
};

export class Desk {
  /// `parts`: head, composer, waits, todos, sessions, welcome; `about()` is what the server is.
  constructor(parts, about) {
    this.parts = parts;
    this.about = about;
    this.room = null;
    const { head, composer, waits, todos } = parts;
    this.drawn = {
      head: () => this.head(),
      waits: () => {
        waits.update();
        this.row();
      },
      queue: () => composer.queue(this.session.queue),
      todos: () => todos.show(this.session.todos),
      meter: () => head.meter.show(this.session.meter),
      turn: () => this.turn(),
    };
  }

  get session() {
    return this.room.session;
  }

  changes(list) {
    const kinds = new Set(list.map((change) => change.kind));
    if (kinds.has('reset')) return this.all();
    for (const kind of kinds) this.drawn[kind]?.();
    for (const change of list) {
      if (change.kind === 'notice') this.told(change.notice);
      if (change.kind === 'turn') this.turned(change.ended);
    }
    if (['new', 'gone', 'older'].some((kind) => kinds.has(kind))) this.welcome();
  }

  all() {
    for (const draw of Object.values(this.drawn)) draw();
    this.welcome();
  }

  head() {
    const { head: told } = this.session;
    this.parts.head.show(told, { isOpen: true });
    this.parts.composer.controls.show(told);
    this.turn();
  }

  turn() {
    const { turn, head: told } = this.session;
    this.parts.composer.state({
      running: turn !== null,
      paused: told.status === 'paused',
      since: turn?.isLive ? turn.startedAt : null,
    });
    this.row();
  }

  /// The session's line in the list, and the window's title.
  row() {
    const { id } = this.room;
    const { waits, turn, head: told } = this.session;
    const waiting = waits.size;
    const status = waiting > 0 ? 'waiting' : turn ? 'running' : 'idle';
    this.parts.sessions.live({ id, status, waiting, ...(told.title ? { title: told.title } : {}) });
    const mark = waiting > 0 ? `(${waiting}) ` : turn ? '… ' : '';
    document.title = `${mark}${brief(told.title) || 'Session'} · Polyloop`;
  }

  welcome() {
    const isEmpty = this.session.items.length === 0 && this.session.waits.size === 0;
    if (isEmpty) this.parts.welcome.show(this.about(), false);
    else this.parts.welcome.hide();
  }

  turned(ended) {
    const said = ended === 'completed' ? this.said() : '';
    if (ENDS[ended]) announce(`${ENDS[ended]} ${said}`.trim());
    this.parts.sessions.soon();
  }

  /// The beginning of the newest answer, for those who do not see it.
  said() {
    const { items } = this.session;
    const asked = items.findLastIndex((item) => item.kind === 'user');
    const answer = items
      .slice(asked + 1)
      .findLast((item) => item.kind === 'assistant' && item.text && !item.struck);
    return answer ? `The agent said: ${brief(answer.text, SAID_CHARACTERS)}` : '';
  }

  told(notice) {
    const isError = notice.level === 'error';
    if (isError) {
      // What was chosen or answered was not taken: show again what is in force.
      this.parts.composer.controls.again();
      this.parts.waits.refused();
    }
    toast(notice.text, isError ? 'bad' : 'info');
  }

  /// A wait that somebody else has settled is told: its card goes without a word otherwise.
  frame(frame) {
    if (frame.type !== 'approval_settled') return;
    const words = this.parts.waits.settled(frame);
    if (words && this.session.waits.has(frame.request_id)) toast(words);
  }
}
