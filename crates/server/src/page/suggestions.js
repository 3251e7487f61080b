// What to try first with the offline model: each suggestion is a script it follows.
//
// Only data and its cards; the message is sent like any other.

import { el, icon } from './dom.js';

/// A script has one step a line; in what is said, `\n` is written out.
const script = (...steps) => steps.join('\n');
const lines = (...texts) => texts.join('\\n');

const CODE = lines(
  'say: Here is a small function, and how it is used:',
  '',
  '```rust',
  '/// The greatest common divisor.',
  'fn gcd(a: u64, b: u64) -> u64 {',
  '    if b == 0 { a } else { gcd(b, a % b) }',
  '}',
  '',
  'fn main() {',
  '    println!("{}", gcd(48, 18)); // 6',
  '}',
  '```',
  '',
  'It ends because **`a % b` is always smaller than `b`**. Some properties:',
  '',
  '| call | gives |',
  '|---|---|',
  '| `gcd(48, 18)` | 6 |',
  '| `gcd(7, 0)` | 7 |',
  '',
  '- works for any two numbers',
  '- needs about log(n) steps',
);

const PLAN = lines(
  '## What I would do',
  '',
  '1. Look at the folder',
  '2. Make `notes.md` with a short summary',
  '3. Read it again, and mend what is unclear',
  '',
  'Nothing else is changed.',
);

const WRITTEN = {
  path: 'greet.sh',
  content: `#!/bin/sh
# Says hello to everyone.
for name in world moon stars; do
  echo "Hello, $name!"
done
`,
};

const EDITED = {
  path: 'greet.sh',
  oldString: 'world moon stars',
  newString: 'world moon stars you',
};

const TODOS = {
  todos: [
    { id: '1', content: 'Look at what is there', status: 'completed', priority: 'high' },
    { id: '2', content: 'Write the new part', status: 'in_progress', priority: 'high' },
    { id: '3', content: 'Try it', status: 'pending', priority: 'medium' },
  ],
};

export const SUGGESTIONS = [
  {
    icon: 'spark',
    title: 'Text with code',
    says: 'Markdown as it streams',
    message: CODE,
  },
  {
    icon: 'terminal',
    title: 'Run a command',
    says: 'Output as it comes, in a card',
    message: script(
      'say: I count slowly, and you watch.',
      'run: for i in 1 2 3 4 5; do echo "line $i"; sleep 0.4; done',
    ),
  },
  {
    icon: 'shield',
    title: 'Ask for approval',
    says: 'Nothing risky runs unasked',
    message: script('say: I would like to make a file.', 'run: touch hello.txt && ls -l hello.txt'),
  },
  {
    icon: 'diff',
    title: 'Edit a file',
    says: 'As a diff that can be undone',
    message: script(
      'say: First a file, then a change of it.',
      `tool: write_file ${JSON.stringify(WRITTEN)}`,
      `tool: edit ${JSON.stringify(EDITED)}`,
      'run: cat greet.sh',
    ),
  },
  {
    icon: 'ask',
    title: 'Answer a question',
    says: 'Or use your own words',
    message: script(
      'ask: Which colour shall it have? | red | green | blue',
      'say: Thank you, I will take that.',
    ),
  },
  {
    icon: 'plan',
    title: 'Approve a plan',
    says: 'Or send it back with words',
    message: script('think: This needs a plan first.', `plan: ${PLAN}`, 'say: The plan is agreed.'),
  },
  {
    icon: 'list',
    title: 'Keep a to-do list',
    says: 'What is done, what comes',
    message: script(
      'say: I note down what is to be done.',
      `tool: todo_write ${JSON.stringify(TODOS)}`,
      'say: The list is above the message field.',
    ),
  },
  {
    icon: 'think',
    title: 'See it think',
    says: 'Reasoning, folded away',
    message: script(
      'think: The question is short, so I look for the shortest true answer. First I ' +
        'recall what is known, then I check it, and only then I answer.',
      'say: **42**, as far as anyone knows.',
    ),
  },
  {
    icon: 'wire',
    title: 'Several calls at once',
    says: 'Side by side, in one reply',
    message: script('say: Three things at once.', 'run: date', '&run: uname -a', '&run: ls -la'),
  },
  {
    icon: 'fork',
    title: 'Search over thoughts',
    says: 'The agent tot weighs ways',
    agent: 'tot',
    message: script(
      'say: Three ways were weighed. The fairest: whoever had no dessert pays 8, the ' +
        'other two 11 each.',
    ),
  },
  {
    icon: 'compact',
    title: 'A graph of sub-tasks',
    says: 'The agent got joins parts',
    agent: 'got',
    message: script(
      'say: Taken together: a **file** is easiest to read, a **database** to search, ' +
        'the **environment** to change for one run.',
    ),
  },
  {
    icon: 'retry',
    title: 'A failing model',
    says: 'What is told, what to do',
    message: script('say: The next call goes wrong.', 'fail: 429'),
  },
  {
    icon: 'stop',
    title: 'A long answer to stop',
    says: 'Press Esc, then resume',
    message: script('stream: 600 24 60'),
  },
  {
    icon: 'bolt',
    title: 'Fill the window',
    says: 'The meter warns; then compact it',
    message: script(
      'say: I write a lot, and the window fills. Press the meter above, then “Compact now”.',
      'stream: 48 1000 10',
      'usage: 117000 400',
    ),
  },
  {
    icon: 'warn',
    title: 'Hostile text',
    says: 'Shown as it is, never run',
    message: script(
      'say: This stays text: <script>alert(1)</script> <img src=x onerror=alert(2)> ' +
        '[a link](javascript:alert(3))',
    ),
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
