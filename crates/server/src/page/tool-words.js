// What a call is called on its card: a verb, what it is about, a drawing.
//
// Pure. Knows the tools that the server has; any other is shown by its name.

import { brief } from './shown.js';

const first = (args, ...names) => {
  const found = names
    .map((name) => args?.[name])
    .find((value) => typeof value === 'string' || typeof value === 'number');
  return found === undefined ? '' : String(found);
};
const path = (args) => first(args, 'path', 'file_path', 'filePath', 'directory');

const TOOLS = {
  Bash: (args, item) => {
    const command = script(args) || item.command || '';
    const isLong = command.length > 100 || command.includes('\n');
    return {
      icon: 'terminal',
      verb: '',
      subject: command,
      isCode: true,
      body: isLong ? { text: command, lang: 'sh' } : null,
    };
  },
  Read: (args) => ({ icon: 'file', verb: 'Read', subject: path(args), body: null }),
  Write: (args) => ({ icon: 'edit', verb: 'Write', subject: path(args) }),
  Edit: (args) => ({ icon: 'edit', verb: 'Edit', subject: path(args) }),
  MultiEdit: (args) => ({ icon: 'edit', verb: 'Edit', subject: path(args) }),
  apply_patch: () => ({ icon: 'edit', verb: 'Edit', subject: '' }),
  LS: (args) => ({ icon: 'folder', verb: 'List', subject: path(args) || '.', body: null }),
  Glob: (args) => ({
    icon: 'search',
    verb: 'Find files',
    subject: first(args, 'pattern'),
    isCode: true,
    body: null,
  }),
  Grep: (args) => ({
    icon: 'search',
    verb: 'Search',
    subject: [first(args, 'pattern'), path(args)].filter(Boolean).join(' in '),
    isCode: true,
    body: null,
  }),
  WebFetch: (args) => ({ icon: 'wire', verb: 'Fetch', subject: first(args, 'url'), body: null }),
  TodoRead: () => ({ icon: 'list', verb: 'Read the to-dos', subject: '', body: null }),
  TodoWrite: (args) => ({ icon: 'list', verb: 'Write the to-dos', subject: '', body: todos(args) }),
  move_file: (args) => ({
    icon: 'file',
    verb: 'Move',
    subject: `${first(args, 'source')} → ${first(args, 'target')}`,
    body: null,
  }),
  delete_file: (args) => ({ icon: 'file', verb: 'Delete', subject: path(args), body: null }),
  create_dir: (args) => ({
    icon: 'folder',
    verb: 'Make the folder',
    subject: path(args),
    body: null,
  }),
  skill: (args) => ({
    icon: 'spark',
    verb: 'Look up the skill',
    subject: first(args, 'name'),
    body: null,
  }),
  remember: (args) => ({ icon: 'think', verb: 'Remember', subject: first(args, 'key') }),
  recall: (args) => ({ icon: 'think', verb: 'Recall', subject: first(args, 'key'), body: null }),
  search_memories: (args) => ({
    icon: 'think',
    verb: 'Search memories',
    subject: first(args, 'query'),
    body: null,
  }),
  list_memories: () => ({ icon: 'think', verb: 'List memories', subject: '', body: null }),
  batch: (args) => ({
    icon: 'list',
    verb: 'Several calls',
    subject: Array.isArray(args?.calls)
      ? args.calls.map((call) => first(call, 'tool')).join(', ')
      : '',
  }),
};
const ALIASES = {
  bash: 'Bash',
  shell: 'Bash',
  local_shell: 'Bash',
  read: 'Read',
  write_file: 'Write',
  edit: 'Edit',
  multiedit: 'MultiEdit',
  ls: 'LS',
  glob: 'Glob',
  grep: 'Grep',
  web_fetcher: 'WebFetch',
  todo_read: 'TodoRead',
  todo_write: 'TodoWrite',
};

/// `{key, icon, verb, subject, isCode, body}`; `body` is null where the head says it all, and
/// undefined where the arguments are to be shown as they are. Equal keys mean an equal head.
export function describe(item) {
  const name = Object.hasOwn(ALIASES, item.name ?? '') ? ALIASES[item.name] : item.name;
  const args = item.args && typeof item.args === 'object' ? item.args : {};
  const words =
    typeof name === 'string' && Object.hasOwn(TOOLS, name)
      ? TOOLS[name](args, item)
      : {
          icon: 'bolt',
          verb: brief(item.name ?? item.command ?? 'A call from further up', 80),
          subject: summary(args),
        };
  const subject = brief(words.subject, 160);
  return { isCode: false, ...words, subject, key: `${words.icon} ${words.verb} ${subject}` };
}

function script(args) {
  const command = args?.command;
  if (typeof command === 'string') return command;
  if (!Array.isArray(command)) return '';
  const [shell, option, text] = command;
  return shell === 'bash' && option === '-lc' && command.length === 3
    ? String(text)
    : command.map(String).join(' ');
}

const MARKS = { completed: '✓', in_progress: '▸', cancelled: '✗', pending: '○' };

function todos(args) {
  const list = Array.isArray(args?.todos) ? args.todos : [];
  const line = (todo) =>
    `${(Object.hasOwn(MARKS, todo?.status) && MARKS[todo.status]) || '○'} ${todo?.content ?? ''}`;
  return { text: list.map(line).join('\n'), lang: '' };
}

/// The short values, so that one sees what an unknown call is about.
function summary(args) {
  const shown = Object.values(args).filter((value) =>
    ['string', 'number', 'boolean'].includes(typeof value),
  );
  return shown.map((value) => brief(value, 60)).join(', ');
}
