// The page's folder as a whole: what it loads, and what none of its files may do.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const FOLDER = new URL('../../crates/server/src/page/', import.meta.url);
const files = readdirSync(fileURLToPath(FOLDER));
const text = (name) => readFileSync(new URL(name, FOLDER), 'utf8');
const scripts = files.filter((name) => name.endsWith('.js'));
const index = text('index.html');

function importsOf(name) {
  return [...text(name).matchAll(/^import\s[^'"]*['"]\.\/([^'"]+)['"];$/gms)].map(([, file]) => file);
}

function reachable(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  importsOf(name).forEach((other) => reachable(other, found));
  return found;
}

test('the page asks for all its modules at once', () => {
  const preloaded = [...index.matchAll(/rel="modulepreload" href="\/page\/([^"]+)"/g)].map(([, name]) => name);
  assert.deepEqual(preloaded.toSorted(), [...reachable('main.js')].toSorted());
});

test('every file in the folder is used', () => {
  const used = new Set([...reachable('main.js'), 'index.html', 'token.html']);
  for (const [, name] of index.matchAll(/"\/page\/([^"]+)"/g)) used.add(name);
  assert.deepEqual(files.filter((name) => !used.has(name)), []);
});

test('what the page loads is there', () => {
  const named = [...index.matchAll(/"\/page\/([^"]+)"/g)].map(([, name]) => name);
  assert.deepEqual(named.filter((name) => !files.includes(name)), []);
});

test('no script takes text for markup or for code', () => {
  const doors = /\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTMLUnsafe|eval|srcdoc)\b|new Function|setTimeout\(\s*['"`]/;
  for (const name of scripts) {
    const code = text(name).replace(/^\s*\/\/.*$/gm, '');
    assert.doesNotMatch(code, doors, name);
  }
});

test('nothing stands in the page itself that its policy forbids', () => {
  assert.doesNotMatch(index, /<style|style=|\son\w+=|<script>(?!<)/);
});

test('no file names another server', () => {
  for (const name of files) {
    const others = [...text(name).matchAll(/\b(?:https?|wss?):\/\/[^\s'"`)>]+/g)].map(([url]) => url);
    assert.deepEqual(others.filter((url) => !url.startsWith('http://www.w3.org/')), [], name);
  }
});

test('every script opens with what it does, and is small', () => {
  for (const name of scripts) {
    assert.match(text(name), /^\/\/ [A-Z]/, name);
    assert.ok(text(name).split('\n').length <= 400, `${name} is too long`);
  }
});
