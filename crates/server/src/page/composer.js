// Where a person writes: the message field, its pictures, what waits in the queue, stop and resume.
//
// Never shows a message as said: the server says what was said.

import { el, icon, iconButton } from './dom.js';
import { asDraft, draft, keepDraft, kept } from './keep.js';
import { Controls } from './controls.js';
import { Pictures } from './pictures.js';
import { toast } from './floats.js';
import { isNobody } from './waits.js';
import { brief } from './shown.js';

const HEIGHT_PIXELS_MAX = 260;
// Who wrote so short a time ago is still writing.
const WRITING_MS = 3_000;

export class Composer {
  /// `options`: send({content, images}) → {id of its session, isSent}, stop(), resume(), cancel(message_id),
  /// choose(name, value), recall() → the newest message of this person.
  constructor(form, queueNode, options) {
    Object.assign(this, { form, queueNode, options, id: null, running: false, waiting: [] });
    /// Messages on their way: {id, content}. They are drafts until they were sent.
    this.underway = [];
    this.typedAt = -Infinity;
    this.queueHead = el('p', { class: 'queue-head' });
    this.text = el('textarea', {
      id: 'message',
      class: 'message',
      rows: 1,
      placeholder: 'Message the agent',
      autocomplete: 'off',
      aria: { label: 'Message' },
      enterkeyhint: 'send',
      on: {
        input: () => {
          this.typedAt = performance.now();
          this.typed();
        },
        keydown: (event) => this.key(event),
        paste: (event) => this.paste(event),
      },
    });
    const row = el('div', { class: 'pictures', hidden: true });
    this.pictures = new Pictures(row, {
      refuse: (text) => toast(text, 'warn'),
      changed: () => this.ready(),
    });
    const file = el('input', {
      type: 'file',
      accept: 'image/*',
      multiple: true,
      hidden: true,
      on: {
        change: () => {
          this.pictures.add([...file.files]);
          file.value = '';
        },
      },
    });
    const chips = el('div', { class: 'chips' });
    this.controls = new Controls(chips, options.choose);
    this.sendButton = el(
      'button',
      { type: 'submit', class: 'send', title: 'Send', aria: { label: 'Send' }, disabled: true },
      icon('send'),
    );
    this.elapsed = el('span', { class: 'elapsed', aria: { hidden: true } });
    this.stopButton = el(
      'button',
      {
        type: 'button',
        class: 'button plain small stop',
        title: 'Stop the turn (Esc)',
        hidden: true,
        on: { click: () => options.stop() },
      },
      icon('stop'),
      el('span', { class: 'stop-word', text: 'Stop' }),
      this.elapsed,
    );
    this.resumeButton = el(
      'button',
      {
        type: 'button',
        class: 'button plain small',
        title: 'Go on with what was interrupted',
        hidden: true,
        on: { click: () => options.resume() },
      },
      icon('play'),
      'Resume',
    );
    form.append(
      el(
        'div',
        { class: 'composer-box' },
        row,
        this.text,
        el(
          'div',
          { class: 'composer-bar' },
          iconButton('image', 'Add pictures', () => file.click()),
          file,
          chips,
          el('span', { class: 'grow' }),
          this.resumeButton,
          this.stopButton,
          this.sendButton,
        ),
      ),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.submit();
    });
    this.dropping(form.querySelector('.composer-box'));
  }

  /// Takes up the draft of this session; the empty id is the one that is not there yet.
  open(id) {
    if (id !== this.id) {
      this.id = id;
      this.pictures.open(id);
      this.text.value = draft(id);
    }
    this.fit();
    this.ready();
    this.state({ running: false, paused: false });
    this.queue([]);
  }

  /// What was sent to the session that was not there yet belongs to this one from now on; what was
  /// written since belongs to it too, where that is still open.
  adopt(id) {
    const sent = this.underway.filter((one) => one.id === '');
    for (const one of sent) one.id = id;
    const isHere = this.id === '';
    keepDraft(
      '',
      isHere ? '' : sent.reduce((left, { content }) => without(left, content), draft('')),
    );
    if (isHere) {
      this.id = id;
      this.pictures.adopt(id);
    }
    keepDraft(id, this.unsent(id));
  }

  /// What is written in this session and not sent.
  unsent(id) {
    const underway = this.underway.filter((one) => one.id === id).map((one) => one.content);
    const written = id === this.id ? [this.text.value] : [];
    return [...underway, ...written].filter(Boolean).join('\n');
  }

  focus() {
    this.text.focus({ preventScroll: true });
  }

  /// Whether somebody writes here, or did a moment ago.
  get isBusy() {
    return !this.isEmpty || performance.now() - this.typedAt < WRITING_MS;
  }

  get isEmpty() {
    return this.text.value === '';
  }

  /// `since`: when the turn began, where that was seen.
  state({ running, paused, since = null }) {
    this.running = running;
    this.count(running ? since : null);
    this.stopButton.hidden = !running;
    this.resumeButton.hidden = running || !paused;
    this.text.placeholder = running ? 'Queue a message' : 'Message the agent';
    const label = running ? 'Put in the queue' : 'Send';
    this.sendButton.title = label;
    this.sendButton.setAttribute('aria-label', label);
    this.headQueue();
    this.ready();
  }

  queue(waiting) {
    this.waiting = waiting;
    this.headQueue();
    this.queueNode.hidden = waiting.length === 0;
    this.queueNode.replaceChildren(
      this.queueHead,
      el(
        'ol',
        {},
        waiting.map((message) =>
          el(
            'li',
            { class: 'queued' },
            el('span', { class: 'cut grow', text: brief(message.message) || 'A picture' }),
            message.by &&
              !isNobody(message.by) &&
              el('span', { class: 'note cut queued-by', text: brief(message.by) }),
            iconButton('close', `Take out: ${brief(message.message)}`, () =>
              this.options.cancel(message.message_id),
            ),
          ),
        ),
      ),
    );
  }

  /// How long the turn has been running, once that is worth knowing.
  count(since) {
    clearInterval(this.counting);
    const tick = () => {
      const seconds = since === null ? 0 : Math.floor((Date.now() - since) / 1000);
      this.elapsed.textContent = seconds < 2 ? '' : time(seconds);
    };
    tick();
    if (since !== null) this.counting = setInterval(tick, 1000);
  }

  headQueue() {
    const count = this.waiting.length;
    const messages = count === 1 ? 'One message waits' : `${count} messages wait`;
    const until = this.running ? 'for the turn to end' : 'until you resume or send another';
    this.queueHead.textContent = `${messages} ${until}`;
  }

  /// Puts a text into the field, before what is there.
  put(text) {
    this.text.value = this.text.value ? `${text}\n${this.text.value}` : text;
    this.typed();
    this.focus();
  }

  typed() {
    this.fit();
    this.ready();
    keepDraft(this.id, this.unsent(this.id));
  }

  ready() {
    this.sendButton.disabled = this.text.value.trim() === '' && this.pictures.list.length === 0;
  }

  fit() {
    this.text.style.height = 'auto';
    const { scrollHeight } = this.text;
    this.text.style.height = `${Math.min(scrollHeight, HEIGHT_PIXELS_MAX)}px`;
    this.text.style.overflowY = scrollHeight > HEIGHT_PIXELS_MAX ? 'auto' : 'hidden';
  }

  async submit() {
    if (this.sendButton.disabled) return;
    const content = this.text.value;
    const images = this.pictures.taken();
    const message = { id: this.id, content };
    this.underway.push(message);
    // Said is said: nobody is interrupted by what comes of it.
    this.typedAt = -Infinity;
    // At once, so that what is written while it is being sent stays.
    this.text.value = '';
    this.fit();
    this.ready();
    const { id, isSent } = await this.options.send({ content, images });
    // Until here the draft is kept: the page may be closed while the server is away.
    this.underway.splice(this.underway.indexOf(message), 1);
    if (!isSent) this.putBack(id, content, images);
    else if (this.id === id) keepDraft(id, this.unsent(id));
    else if (draft(id) === asDraft(content)) keepDraft(id, '');
  }

  /// Where it came from, which may be another session than the one that is open.
  putBack(id, content, images) {
    this.pictures.putBack(id, images);
    const isThere = (this.id === id ? this.text.value : draft(id)).includes(asDraft(content));
    if (this.id === id && !isThere) this.put(content);
    else if (!isThere) keepDraft(id, [content, draft(id)].filter(Boolean).join('\n'));
  }

  key(event) {
    if (event.isComposing) return;
    const entersSend = kept('enter', 'sends') === 'sends';
    const sends =
      event.key === 'Enter' &&
      (event.ctrlKey || event.metaKey || (entersSend && !event.shiftKey && !event.altKey));
    if (sends) {
      event.preventDefault();
      this.submit();
    } else if (event.key === 'ArrowUp' && this.isEmpty) {
      const last = this.options.recall();
      if (last) {
        event.preventDefault();
        this.put(last);
      }
    }
  }

  paste(event) {
    const files = [...(event.clipboardData?.files ?? [])].filter((file) =>
      file.type.startsWith('image/'),
    );
    if (files.length === 0) return;
    event.preventDefault();
    this.pictures.add(files);
  }

  dropping(box) {
    const over = (on) => box.classList.toggle('drop', on);
    box.addEventListener('dragover', (event) => {
      if (![...event.dataTransfer.types].includes('Files')) return;
      event.preventDefault();
      over(true);
    });
    box.addEventListener('dragleave', () => over(false));
    box.addEventListener('drop', (event) => {
      over(false);
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      this.pictures.add([...event.dataTransfer.files]);
    });
  }
}

function without(text, beginning) {
  return text.startsWith(beginning) ? text.slice(beginning.length).trimStart() : text;
}

function time(seconds) {
  const minutes = Math.floor(seconds / 60);
  return minutes ? `${minutes}:${String(seconds % 60).padStart(2, '0')}` : `${seconds} s`;
}
