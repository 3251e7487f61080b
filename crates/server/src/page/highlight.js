// Source code as runs of text with the kind of each: comment, string, number, keyword …
//
// Pure. A tokeniser a language, made from a few rules; it reads each character once. What it does
// not know is shown plain, and so is what is too long to be read by anybody.

const CHARS_MAX = 65_536;

const words = (text) => new Set(text.split(' '));

const C_COMMENT = String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`;
const HASH_COMMENT = String.raw`#[^\n]*`;
const DOUBLE = String.raw`"(?:[^"\\\n]|\\[\s\S])*"?`;
const SINGLE = String.raw`'(?:[^'\\\n]|\\[\s\S])*'?`;
const BACKTICK = '`(?:[^`\\\\]|\\\\[\\s\\S])*`?';
const NUMBER = String.raw`\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)\w*`;
const WORD = String.raw`[A-Za-z_$][\w$]*`;

// Each language: rules in the order in which they are tried, as [kind, pattern]; `word` is looked
// up in `keywords` and `types`. The names of a language's flavours stand in `NAMES`.
const LANGUAGES = {
  rust: {
    keywords: words(
      'as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type union unsafe use where while',
    ),
    types: words(
      'bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize String Vec Option Result Box Arc Rc',
    ),
    rules: [
      ['comment', C_COMMENT],
      [
        'string',
        `b?r#"[\\s\\S]*?(?:"#|$)|b?r"[^"]*"?|b?${DOUBLE}|b?'(?:[^'\\\\\\n]|\\\\[^\\n]{1,10}?)'`,
      ],
      ['meta', String.raw`#!?\[[^\]\n]*\]?`],
      ['label', String.raw`'[a-z_]\w*`],
      ['number', NUMBER],
      ['macro', String.raw`[a-z_]\w*!(?=[\s([{])`],
      ['word', WORD],
    ],
  },
  js: {
    keywords: words(
      'abstract as async await break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while with yield',
    ),
    types: words(
      'any bigint boolean never number object string symbol unknown Array Map Set Promise Object Record Error RegExp Date JSON Math console',
    ),
    rules: [
      ['comment', C_COMMENT],
      ['string', `${BACKTICK}|${DOUBLE}|${SINGLE}`],
      [
        'string',
        String.raw`(?<=[=(,:[!&|?{};\n] {0,2})\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*`,
      ],
      ['number', NUMBER],
      ['meta', String.raw`@[A-Za-z_]\w*`],
      ['word', WORD],
    ],
  },
  python: {
    keywords: words(
      'and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield self cls',
    ),
    types: words(
      'bool bytes dict float frozenset int list object set str tuple type Exception print len range',
    ),
    rules: [
      ['comment', HASH_COMMENT],
      [
        'string',
        `[rbfuRBFU]{0,2}(?:"""[\\s\\S]*?(?:"""|$)|'''[\\s\\S]*?(?:'''|$)|${DOUBLE}|${SINGLE})`,
      ],
      ['meta', String.raw`(?<=^ {0,32})@[\w.]+`],
      ['number', NUMBER],
      ['word', WORD],
    ],
  },
  json: {
    keywords: words('true false null'),
    rules: [
      ['comment', C_COMMENT],
      ['key', String.raw`"(?:[^"\\\n]|\\.){0,200}"(?=\s{0,8}:)`],
      ['string', DOUBLE],
      ['number', String.raw`-?${NUMBER}`],
      ['word', WORD],
    ],
  },
  sh: {
    keywords: words(
      'if then else elif fi for while until do done case esac in function select return exit break continue local export readonly declare unset set shift source alias trap',
    ),
    types: words(
      'cd echo printf cat ls grep sed awk find xargs sort uniq head tail cut tr wc rm cp mv mkdir chmod touch test git cargo npm node python python3 pip curl sudo make docker',
    ),
    rules: [
      ['comment', String.raw`(?<=^|[\s;])#[^\n]*`],
      ['string', String.raw`\$?"(?:[^"\\]|\\[\s\S])*"?|\$?'[^']*'?`],
      ['variable', String.raw`\$(?:\{[^}\n]*\}?|[\w@*#?$!-])\w*`],
      ['number', String.raw`\b\d+\b`],
      ['label', String.raw`(?<=\s)--?[A-Za-z][\w-]*`],
      ['word', String.raw`[A-Za-z_][\w-]*`],
    ],
  },
  go: {
    keywords: words(
      'break case chan const continue default defer else fallthrough false for func go goto if import interface iota map nil package range return select struct switch true type var',
    ),
    types: words(
      'any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr append cap close copy delete len make new panic print println recover',
    ),
    rules: [
      ['comment', C_COMMENT],
      ['string', `${DOUBLE}|\`[^\`]*\`?|${SINGLE}`],
      ['number', NUMBER],
      ['word', WORD],
    ],
  },
  c: {
    keywords: words(
      'alignas alignof and auto break case catch class const constexpr continue default delete do else enum explicit export extern false final for friend goto if inline namespace new noexcept nullptr operator or override private protected public register return sizeof static static_cast struct super switch synchronized template this throw throws true try typedef typename union using virtual volatile while abstract extends implements import instanceof interface package var val fun when object data internal foreach get is null out readonly sealed string func guard let protocol extension init',
    ),
    types: words(
      'bool char double float int long short signed size_t ssize_t uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t unsigned void wchar_t std byte boolean String Integer List Map Object',
    ),
    rules: [
      ['comment', C_COMMENT],
      ['meta', String.raw`(?<=^ {0,16})#[ \t]{0,8}\w+`],
      ['string', `${DOUBLE}|${SINGLE}`],
      ['number', NUMBER],
      ['meta', String.raw`@[A-Za-z_]\w*`],
      ['word', WORD],
    ],
  },
  toml: {
    keywords: words('true false null yes no on off'),
    rules: [
      ['comment', String.raw`(?<=^|\s)#[^\n]*`],
      ['meta', String.raw`(?<=^ {0,16})\[\[?[^\]\n]{0,200}\]\]?(?=[ \t]{0,8}$)|^---$`],
      [
        'key',
        String.raw`(?<=^ {0,32}(?:- {1,4})?)(?:"[^"\n]{0,100}"|[\w.-]{1,100})(?=[ \t]{0,8}[=:](?:\s|$|["'[{\d]))`,
      ],
      ['string', `"""[\\s\\S]*?(?:"""|$)|'''[\\s\\S]*?(?:'''|$)|${DOUBLE}|'[^'\\n]*'?`],
      ['variable', String.raw`[&*][A-Za-z_][\w-]*`],
      ['number', NUMBER],
      ['word', WORD],
    ],
  },
  sql: {
    anyCase: true,
    keywords: words(
      'add all alter and any as asc begin between by cascade case check column commit constraint create cross database default delete desc distinct drop else end exists explain foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer over partition primary references returning right rollback select set table then transaction trigger truncate union unique update using values view when where with true false',
    ),
    types: words(
      'bigint blob boolean char date datetime decimal double float int integer json jsonb numeric real serial smallint text time timestamp uuid varchar count sum avg min max coalesce now',
    ),
    rules: [
      ['comment', String.raw`--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`],
      ['string', String.raw`'(?:[^']|'')*'?`],
      ['variable', String.raw`"[^"\n]*"?|[$:@]\w+`],
      ['number', NUMBER],
      ['word', WORD],
    ],
  },
  html: {
    rules: [
      ['comment', String.raw`<!--[\s\S]*?(?:-->|$)`],
      ['meta', String.raw`<![A-Za-z][^>]*>?`],
      ['keyword', String.raw`<\/?[A-Za-z][\w:-]*|\/?>`],
      ['key', String.raw`(?<![\w:.-])[A-Za-z_:@][\w:.-]{0,80}(?=\s{0,4}=\s{0,4}["'{])`],
      ['string', String.raw`"[^"<]*"|'[^'<]*'`],
      ['variable', String.raw`&[#\w]{1,10};`],
    ],
  },
  css: {
    rules: [
      ['comment', String.raw`\/\*[\s\S]*?(?:\*\/|$)`],
      ['string', `${DOUBLE}|${SINGLE}`],
      ['meta', String.raw`@[\w-]+`],
      ['number', String.raw`#[\da-fA-F]{3,8}\b|-?\b\d[\d.]*(?:[a-z%]+)?`],
      ['variable', String.raw`--[\w-]+`],
      ['key', String.raw`(?<![\w-])[a-z-]{1,60}(?=\s{0,4}:[^:{;}]{0,200}[;}])`],
      ['keyword', String.raw`(?<![\w-])[.#]?[A-Za-z][\w-]{0,80}(?=[^;{}]{0,200}\{)`],
    ],
  },
  diff: {
    rules: [
      ['meta', String.raw`^(?:diff|index|---|\+\+\+|\*\*\*|@@)[^\n]*`],
      ['added', String.raw`^\+[^\n]*`],
      ['removed', String.raw`^-[^\n]*`],
    ],
  },
};

const NAMES = {
  rs: 'rust',
  javascript: 'js',
  jsx: 'js',
  ts: 'js',
  tsx: 'js',
  typescript: 'js',
  mjs: 'js',
  cjs: 'js',
  py: 'python',
  python3: 'python',
  jsonc: 'json',
  json5: 'json',
  jsonl: 'json',
  ndjson: 'json',
  bash: 'sh',
  shell: 'sh',
  zsh: 'sh',
  console: 'sh',
  dockerfile: 'sh',
  makefile: 'sh',
  make: 'sh',
  golang: 'go',
  h: 'c',
  cpp: 'c',
  'c++': 'c',
  cc: 'c',
  hpp: 'c',
  cxx: 'c',
  java: 'c',
  cs: 'c',
  csharp: 'c',
  kt: 'c',
  kotlin: 'c',
  swift: 'c',
  scala: 'c',
  php: 'c',
  dart: 'c',
  zig: 'c',
  yaml: 'toml',
  yml: 'toml',
  ini: 'toml',
  conf: 'toml',
  cfg: 'toml',
  env: 'toml',
  properties: 'toml',
  xml: 'html',
  svg: 'html',
  vue: 'html',
  svelte: 'html',
  htm: 'html',
  scss: 'css',
  less: 'css',
  patch: 'diff',
  mysql: 'sql',
  postgresql: 'sql',
  sqlite: 'sql',
  psql: 'sql',
};

const compiled = new Map();

/// The language that a fence or a file's ending names, or null.
export function language(name) {
  const lower = String(name ?? '').toLowerCase();
  const known = Object.hasOwn(NAMES, lower) ? NAMES[lower] : lower;
  return Object.hasOwn(LANGUAGES, known) ? known : null;
}

/// The language of a file, by the end of its name.
export function languageOf(path) {
  const file = String(path ?? '')
    .split('/')
    .at(-1);
  return language(file.includes('.') ? file.slice(file.lastIndexOf('.') + 1) : file);
}

/// `code` as `[kind, text]` pairs, which put together are `code`; kind '' is plain.
export function tokens(code, name) {
  const known = language(name);
  if (!known || code.length > CHARS_MAX) return [['', code]];
  const { pattern, kinds, spec } = compile(known);
  const found = [];
  let from = 0;
  for (const match of code.matchAll(pattern)) {
    if (match[0] === '') continue;
    push(found, '', code.slice(from, match.index));
    const group = kinds.findIndex((_, index) => match[index + 1] !== undefined);
    push(
      found,
      kindOf(spec, kinds[group], match[0], code[match.index + match[0].length]),
      match[0],
    );
    from = match.index + match[0].length;
  }
  push(found, '', code.slice(from));
  return found;
}

function compile(name) {
  if (!compiled.has(name)) {
    const spec = LANGUAGES[name];
    const pattern = new RegExp(spec.rules.map(([, rule]) => `(${rule})`).join('|'), 'gm');
    compiled.set(name, { pattern, kinds: spec.rules.map(([kind]) => kind), spec });
  }
  return compiled.get(name);
}

function kindOf(spec, kind, text, next) {
  if (kind !== 'word') return kind;
  const word = spec.anyCase ? text.toLowerCase() : text;
  if (spec.keywords?.has(word)) return 'keyword';
  if (spec.types?.has(word)) return 'type';
  if (next === '(') return 'function';
  return /^[A-Z]\w*[a-z]/.test(text) ? 'type' : '';
}

function push(found, kind, text) {
  if (text === '') return;
  const last = found.at(-1);
  if (last && last[0] === kind) last[1] += text;
  else found.push([kind, text]);
}
