// The dock above the message field: what the agent asks of a person, one card at a time.
//
// Never decides anything: a card is gone when the server says that its wait is settled, whoever
// settled it.

import { el, clear, iconButton, announce } from './dom.js';
import { approvalCard } from './wait-approval.js';
import { questionCard } from './wait-question.js';
import { isWriting, lettersCount } from './keys.js';
import { isLocked } from './locked.js';
import { planCard } from './wait-plan.js';

// Whoever is typing is not interrupted: keys of a card that came just now count for nothing.
const SETTLING_MS = 600;
// And longer where the card before it was being written in.
const WRITING_MS = 3_000;
// What a card may have a key for is never one of the page's own keys there.
const KEYS = /^[yanse0-9]$/i;

const CARDS = { approval: approvalCard, question: questionCard, plan: planCard };

const ANSWERS = new Set([
  'permission_response',
  'user_question_response',
  'plan_approval_response',
]);

const WORDS = {
  allow: 'allowed',
  allow_always: 'always allowed',
  deny: 'denied',
  deny_stop: 'denied and stopped',
  answered: 'answered',
  withdrawn: 'withdrawn',
  approved: 'approved',
};

export class Waits {
  /// `options`: send(frame) and isBusy(), whether the person is typing somewhere.
  constructor(container, options) {
    this.container = container;
    this.options = options;
    this.session = null;
    this.shown = null; // {id, frame, card}
    /// What was answered here, by request: the decision it must have led to, or null for any.
    this.mine = new Map();
    /// Requests of which an explanation was asked.
    this.explained = new Set();
    this.keysFrom = 0;
    container.addEventListener('keydown', (event) => this.key(event));
  }

  open(session) {
    this.session = session;
    this.mine.clear();
    this.explained.clear();
    this.drop();
    this.update();
  }

  /// Brings the card of this request, or the first, to the front and to the keyboard.
  focus(id) {
    if (id !== this.shown?.id && this.session?.waits.has(id)) this.show(id);
    this.shown?.card.node.focus();
  }

  update() {
    const waits = this.session?.waits ?? new Map();
    const shown = this.shown && waits.get(this.shown.id);
    if (shown) return this.again(shown.frame);
    const first = waits.keys().next();
    if (first.done) return this.drop();
    this.show(first.value);
  }

  /// It is asked again: explained now, or after the connection was away. What is being written in
  /// its card stays, unless the card was answered.
  again(frame) {
    const { id, card } = this.shown;
    const isOver = isLocked(card.node) || this.explained.has(id);
    if (frame !== this.shown.frame && isOver) this.show(id);
    this.shown.frame = frame;
    this.number();
  }

  /// The server did not take something: an answer may be given anew.
  refused() {
    if (!this.shown || !isLocked(this.shown.card.node)) return;
    this.mine.delete(this.shown.id);
    this.show(this.shown.id);
  }

  show(id) {
    const wait = this.session.waits.get(id);
    const again = this.shown?.id === id;
    const had = this.container.contains(document.activeElement);
    const wasWriting = had && isWriting(document.activeElement);
    const card = CARDS[wait.kind](wait, {
      cwd: this.session.head?.cwd,
      mode: this.session.head?.mode,
      explained: this.explained.has(id),
      send: (frame) => this.answer(id, frame),
    });
    this.shown = { id, frame: wait.frame, card };
    clear(this.container).append(card.node);
    this.container.hidden = false;
    this.number();
    if (!again) {
      announce(`${card.says}. ${card.keys ?? ''}`, true);
      this.keysFrom = performance.now() + (wasWriting ? WRITING_MS : SETTLING_MS);
    }
    if (had || !this.options.isBusy()) card.node.focus({ preventScroll: true });
  }

  number() {
    const ids = [...this.session.waits.keys()];
    const at = ids.indexOf(this.shown.id);
    const step = (by) => this.show(ids[(at + by + ids.length) % ids.length]);
    this.shown.card.pager.replaceChildren(
      ...(ids.length < 2
        ? []
        : [
            iconButton('left', 'Previous request', () => step(-1), { class: 'small' }),
            el('span', { class: 'note', text: `${at + 1} of ${ids.length}` }),
            iconButton('right', 'Next request', () => step(1), { class: 'small' }),
          ]),
    );
  }

  drop() {
    const had = this.container.contains(document.activeElement);
    this.shown = null;
    this.container.hidden = true;
    clear(this.container);
    if (had) this.options.focusMessage?.();
  }

  answer(id, frame) {
    const sent = this.options.send(frame);
    if (!sent) return sent;
    if (frame.decision === 'explain') this.explained.add(id);
    else if (frame.type === 'cancel') this.mine.set(id, 'withdrawn');
    else if (ANSWERS.has(frame.type)) this.mine.set(id, frame.decision ?? null);
    if (frame.decision === 'deny_stop') this.stopped();
    return sent;
  }

  /// The turn is stopped from here: what still waits is withdrawn by that, and by nobody else.
  stopped() {
    for (const id of this.session?.waits.keys() ?? [])
      if (!this.mine.has(id)) this.mine.set(id, 'withdrawn');
  }

  /// What to tell of a wait that somebody else settled, or null.
  settled({ request_id: id, decision, by }) {
    const mine = this.mine.get(id);
    this.mine.delete(id);
    if (mine === null || mine === decision) return null;
    const who = !by || isNobody(by) ? 'in another client' : `by ${by}`;
    return `${capital(WORDS[decision] ?? decision)} ${who}`;
  }

  /// With Alt a key counts wherever it is pressed; whether it meant anything.
  press(letter) {
    if (!this.shown || performance.now() < this.keysFrom) return false;
    return this.shown.card.key?.(letter) ?? false;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isWriting(event.target)) return;
    // What a card does not take, or not yet, is not for the page's own keys either.
    const isEarly = performance.now() < this.keysFrom && /^[a-z0-9]$/i.test(event.key);
    const isTaken = !event.repeat && lettersCount() && this.press(event.key);
    if (isTaken || isEarly || KEYS.test(event.key)) {
      event.preventDefault();
      event.stopPropagation();
    }
  }
}

/// Who gave no name is named by the dialect that was spoken.
export function isNobody(by) {
  return by.startsWith('a client of ');
}

function capital(words) {
  return words[0].toUpperCase() + words.slice(1);
}
