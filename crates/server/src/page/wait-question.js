// The card of a question: a form with the options, and room for one's own words.

import { el, icon } from './dom.js';
import { lock } from './locked.js';
import { plain, prose } from './shown.js';

export function questionCard(wait, { send }) {
  const { frame } = wait;
  const questions = frame.questions ?? [];
  const fields = questions.map((question, index) => field(question, index, () => check()));
  const pager = el('div', { class: 'row pager' });
  const submit = el('button', { type: 'submit', class: 'button main', disabled: true }, 'Answer');
  const form = el(
    'form',
    {
      class: 'wait-form',
      on: {
        submit: (event) => {
          event.preventDefault();
          answer();
        },
      },
    },
    el(
      'div',
      { class: 'wait-body' },
      fields.map((one) => one.node),
    ),
    el(
      'div',
      { class: 'choices' },
      submit,
      el('button', {
        type: 'button',
        class: 'button quiet',
        text: 'Do not answer',
        title: 'Withdraw the question',
        on: {
          click: () => {
            send({ type: 'cancel', target_id: frame.request_id });
          },
        },
      }),
    ),
  );
  const node = el(
    'article',
    { class: 'wait question', tabindex: -1, aria: { labelledby: 'wait-title' } },
    el(
      'div',
      { class: 'wait-head' },
      icon('ask'),
      el('h2', {
        class: 'wait-title',
        id: 'wait-title',
        text: questions.length > 1 ? 'The agent has questions' : 'The agent has a question',
      }),
      el('span', { class: 'grow' }),
      pager,
    ),
    form,
  );

  function check() {
    submit.disabled = !fields.every((one) => one.chosen().length);
  }
  function answer() {
    if (submit.disabled) return;
    const answers = fields.map((one, index) => ({ question_index: index, selected: one.chosen() }));
    const sent = send({
      type: 'user_question_response',
      request_id: frame.request_id,
      tool_id: frame.tool_id,
      answers,
    });
    if (sent) lock(node);
  }

  return {
    node,
    pager,
    says: `Question: ${questions.map((question) => question.question).join(' ')}`,
    // A digit takes that option where there is one question with one answer to give.
    key(pressed) {
      const at = Number(pressed) - 1;
      if (!/^[1-9]$/.test(pressed) || fields.length !== 1) return false;
      return fields[0].take(at);
    },
  };
}

function field(question, index, changed) {
  const many = Boolean(question.multiSelect);
  const name = `question-${index}`;
  const options = (question.options ?? []).map((option, at) => {
    const input = el('input', { type: many ? 'checkbox' : 'radio', name, on: { change: pick } });
    input.value = option.label;
    const node = el(
      'label',
      { class: 'option' },
      input,
      el(
        'span',
        { class: 'option-words' },
        el('span', { class: 'option-label', text: plain(option.label) }),
        option.description && el('span', { class: 'note', text: prose(option.description) }),
      ),
      at < 9 && el('kbd', { aria: { hidden: true }, text: String(at + 1) }),
    );
    return { input, node };
  });
  const own = el('input', {
    class: 'input own',
    type: 'text',
    placeholder: options.length ? 'Or in your own words' : 'Your answer',
    aria: { label: options.length ? 'Or in your own words' : 'Your answer' },
    on: { input: typed },
  });

  // One answer to give: words of one's own take the place of an option, and the other way round.
  function pick() {
    if (!many) own.value = '';
    changed();
  }
  function typed() {
    if (!many && own.value) for (const option of options) option.input.checked = false;
    changed();
  }

  return {
    node: el(
      'fieldset',
      { class: 'question-field' },
      el(
        'legend',
        {},
        question.header &&
          question.header !== 'Question' &&
          el('span', { class: 'badge', text: plain(question.header) }),
        el('span', { text: prose(question.question) }),
      ),
      many && el('p', { class: 'note', text: 'More than one may be chosen.' }),
      options.map((option) => option.node),
      own,
    ),
    chosen() {
      const picked = options
        .filter((option) => option.input.checked)
        .map((option) => option.input.value);
      const words = own.value.trim();
      return words ? [...picked, words] : picked;
    },
    take(at) {
      if (!options[at]) return false;
      options[at].input.checked = many ? !options[at].input.checked : true;
      options[at].input.focus();
      pick();
      return true;
    },
  };
}
