// What to try first with the offline model: each suggestion is a script it follows.
//
// Only data and its cards; the message is sent like any other.

import { el, icon } from './dom.js';

const CODE =
  'say: Here is a small function, and how it is used:\\n\\n```rust\\n/// The greatest common divisor.\\nfn gcd(a: u64, b: u64) -> u64 {\\n    if b == 0 { a } else { gcd(b, a % b) }\\n}\\n\\nfn main() {\\n    println!("{}", gcd(48, 18)); // 6\\n}\\n```\\n\\nIt ends because **`a % b` is always smaller than `b`**. Some properties:\\n\\n| call | gives |\\n|---|---|\\n| `gcd(48, 18)` | 6 |\\n| `gcd(7, 0)` | 7 |\\n\\n- works for any two numbers\\n- needs about log(n) steps';

const TODOS = JSON.stringify({
  todos: [
    { id: '1', content: 'Look at what is there', status: 'completed', priority: 'high' },
    { id: '2', content: 'Write the new part', status: 'in_progress', priority: 'high' },
    { id: '3', content: 'Try it', status: 'pending', priority: 'medium' },
  ],
});

const GREETING =
  '#!/bin/sh\\n# Says hello to everyone.\\nfor name in world moon stars; do\\n  echo \\"Hello, $name!\\"\\ndone\\n';

export const SUGGESTIONS = [
  { icon: 'spark', title: 'Text with code', says: 'Markdown as it streams', message: CODE },
  {
    icon: 'terminal',
    title: 'Run a command',
    says: 'Output as it comes, in a card',
    message:
      'say: I count slowly, and you watch.\nrun: for i in 1 2 3 4 5; do echo "line $i"; sleep 0.4; done',
  },
  {
    icon: 'shield',
    title: 'Ask for approval',
    says: 'Nothing risky runs unasked',
    message: 'say: I would like to make a file.\nrun: touch hello.txt && ls -l hello.txt',
  },
  {
    icon: 'diff',
    title: 'Edit a file',
    says: 'As a diff that can be undone',
    message: `say: First a file, then a change of it.\ntool: write_file {"path":"greet.sh","content":"${GREETING}"}\ntool: edit {"path":"greet.sh","oldString":"world moon stars","newString":"world moon stars you"}\nrun: cat greet.sh`,
  },
  {
    icon: 'ask',
    title: 'Answer a question',
    says: 'Or use your own words',
    message:
      'ask: Which colour shall it have? | red | green | blue\nsay: Thank you, I will take that.',
  },
  {
    icon: 'plan',
    title: 'Approve a plan',
    says: 'Or send it back with words',
    message:
      'think: This needs a plan first.\nplan: ## What I would do\\n\\n1. Look at the folder\\n2. Make `notes.md` with a short summary\\n3. Read it again, and mend what is unclear\\n\\nNothing else is changed.\nsay: The plan is agreed.',
  },
  {
    icon: 'list',
    title: 'Keep a to-do list',
    says: 'What is done, what comes',
    message: `say: I note down what is to be done.\ntool: todo_write ${TODOS}\nsay: The list is above the message field.`,
  },
  {
    icon: 'think',
    title: 'See it think',
    says: 'Reasoning, folded away',
    message:
      'think: The question is short, so I look for the shortest true answer. First I recall what is known, then I check it, and only then I answer.\nsay: **42**, as far as anyone knows.',
  },
  {
    icon: 'wire',
    title: 'Several calls at once',
    says: 'Side by side, in one reply',
    message: 'say: Three things at once.\nrun: date\n&run: uname -a\n&run: ls -la',
  },
  {
    icon: 'fork',
    title: 'Search over thoughts',
    says: 'The agent tot weighs ways',
    agent: 'tot',
    message:
      'say: Three ways were weighed. The fairest: whoever had no dessert pays 8, the other two 11 each.',
  },
  {
    icon: 'compact',
    title: 'A graph of sub-tasks',
    says: 'The agent got joins parts',
    agent: 'got',
    message:
      'say: Taken together: a **file** is easiest to read, a **database** to search, the **environment** to change for one run.',
  },
  {
    icon: 'retry',
    title: 'A failing model',
    says: 'What is told, what to do',
    message: 'say: The next call goes wrong.\nfail: 429',
  },
  {
    icon: 'stop',
    title: 'A long answer to stop',
    says: 'Press Esc, then resume',
    message: 'stream: 600 24 60',
  },
  {
    icon: 'bolt',
    title: 'Fill the window',
    says: 'The meter warns; then compact it',
    message:
      'say: I write a lot, and the window fills. Press the meter above, then “Compact now”.\nstream: 48 1000 10\nusage: 117000 400',
  },
  {
    icon: 'warn',
    title: 'Hostile text',
    says: 'Shown as it is, never run',
    message:
      'say: This stays text: <script>alert(1)</script> <img src=x onerror=alert(2)> [a link](javascript:alert(3))',
  },
];

/// The cards; `choose(suggestion)` sends one.
export function suggestionCards(choose) {
  return el(
    'div',
    { class: 'suggestions' },
    SUGGESTIONS.map((suggestion) =>
      el(
        'button',
        {
          type: 'button',
          class: 'suggestion',
          on: { click: () => choose(suggestion) },
        },
        icon(suggestion.icon),
        el(
          'span',
          { class: 'suggestion-words' },
          el('span', { class: 'suggestion-title', text: suggestion.title }),
          el('span', { class: 'suggestion-says', text: suggestion.says }),
        ),
      ),
    ),
  );
}
