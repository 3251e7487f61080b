// Emphasis: which marks of a paragraph belong together, and the tree that follows from it.
//
// Pure. Marks are looked for so far back and nested so deep as people write, and no further.

const DEPTH_MAX = 16;

/// Turns the marks that found their partner into nodes, the others into text.
export function resolve(out) {
  pair(out.filter((entry) => entry.delimiter).map((entry) => entry.delimiter));
  const root = { c: [] };
  const open = [root];
  let ignored = 0;
  const begin = (tag) => {
    if (open.length > DEPTH_MAX) {
      ignored += 1;
      return;
    }
    const node = { t: tag, c: [] };
    open.at(-1).c.push(node);
    open.push(node);
  };
  const end = () => {
    if (ignored > 0) ignored -= 1;
    else open.pop();
  };
  for (const entry of out) {
    const mark = entry.delimiter;
    if (!mark) {
      push(open.at(-1).c, entry);
      continue;
    }
    mark.closed.forEach(end);
    if (mark.left > 0) push(open.at(-1).c, { t: 'text', v: mark.character.repeat(mark.left) });
    mark.opened.reverse().forEach(begin);
  }
  return root.c;
}

function push(list, node) {
  if (node.t === 'text') {
    if (node.v === '') return;
    const last = list.at(-1);
    if (last?.t === 'text') {
      last.v += node.v;
      return;
    }
    list.push({ t: 'text', v: node.v });
    return;
  }
  list.push(node);
}

/// Finds each closing mark its opening one, innermost first.
function pair(marks) {
  const stack = [];
  for (const mark of marks) {
    if (mark.canClose) closeWith(stack, mark);
    if (mark.canOpen && mark.left > 0) stack.push(mark);
  }
}

function closeWith(stack, closer) {
  while (closer.left > 0) {
    const at = findOpener(stack, closer);
    if (at < 0) return;
    const opener = stack[at];
    // What stands open between the two stays text.
    stack.length = at + 1;
    const two = opener.left >= 2 && closer.left >= 2;
    const tag = closer.character === '~' ? 'del' : two ? 'strong' : 'em';
    const used = two ? 2 : 1;
    opener.left -= used;
    closer.left -= used;
    opener.opened.push(tag);
    closer.closed.push(tag);
    if (opener.left === 0) stack.pop();
  }
}

// How far back an opening mark is looked for; further ones have long lost their meaning.
const OPENERS_MAX = 64;

function findOpener(stack, closer) {
  const last = Math.max(0, stack.length - OPENERS_MAX);
  for (let at = stack.length - 1; at >= last; at -= 1) {
    const opener = stack[at];
    if (opener.character !== closer.character) continue;
    const odd =
      (opener.canClose || closer.canOpen) &&
      (opener.count + closer.count) % 3 === 0 &&
      !(opener.count % 3 === 0 && closer.count % 3 === 0);
    if (!odd) return at;
  }
  return -1;
}
