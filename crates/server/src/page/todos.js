// The agent's to-do list, folded to one line above the message field.

import { el, icon } from './dom.js';
import { kept, keep } from './keep.js';
import { prose } from './shown.js';

const STATES = {
  pending: 'to do',
  in_progress: 'in progress',
  completed: 'done',
  cancelled: 'given up',
};

export class Todos {
  constructor(container) {
    this.container = container;
    this.count = el('span', { class: 'badge' });
    this.now = el('span', { class: 'cut grow' });
    this.list = el('ul', { class: 'todo-list', id: 'todo-list' });
    this.button = el(
      'button',
      {
        type: 'button',
        class: 'todo-head',
        aria: { controls: 'todo-list' },
        on: { click: () => this.fold(!this.list.hidden) },
      },
      icon('list'),
      this.count,
      this.now,
      icon('down'),
    );
    container.append(this.button, this.list);
    this.fold(kept('todos', 'open') !== 'open');
  }

  fold(folded) {
    this.list.hidden = folded;
    this.button.setAttribute('aria-expanded', String(!folded));
    keep('todos', folded ? 'folded' : 'open');
  }

  show(todos) {
    this.container.hidden = todos.length === 0;
    const done = todos.filter((todo) => todo.status === 'completed').length;
    const now =
      todos.find((todo) => todo.status === 'in_progress') ??
      todos.find((todo) => todo.status === 'pending');
    this.count.textContent = `${done} of ${todos.length}`;
    this.count.className = done === todos.length ? 'badge good' : 'badge';
    this.now.textContent = now ? prose(now.content) : 'All done';
    this.list.replaceChildren(
      ...todos.map((todo) =>
        el(
          'li',
          { class: `todo ${todo.status}` },
          mark(todo.status),
          el('span', { class: 'unseen', text: `${STATES[todo.status] ?? todo.status}: ` }),
          el('span', { class: 'grow', text: prose(todo.content) }),
          todo.priority === 'high' &&
            todo.status !== 'completed' &&
            el('span', { class: 'badge warn', text: 'high' }),
        ),
      ),
    );
  }
}

function mark(status) {
  return el(
    'span',
    { class: 'todo-mark', aria: { hidden: true } },
    status === 'completed' && icon('check'),
    status === 'cancelled' && icon('close'),
  );
}
