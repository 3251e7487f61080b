// Stands in for as much of a browser as a transcript needs to be made: nodes that hold each other,
// all of one size. Pictures are drawn when the test says so.

class Node {
  constructor(name) {
    Object.assign(this, { nodeName: name.toUpperCase(), childNodes: [], attributes: {} });
    Object.assign(this, { parent: null, style: {}, dataset: {}, listeners: {}, hidden: false });
    Object.assign(this, { scrollTop: 0, scrollHeight: 100, clientHeight: 100 });
    this.classList = { toggle() {}, add() {}, remove() {} };
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get textContent() {
    return this.childNodes.map((child) => child.textContent ?? child).join('');
  }

  set textContent(text) {
    this.childNodes = [text];
  }

  insertBefore(node, next) {
    const nodes = node.nodeName === 'FRAGMENT' ? node.childNodes.splice(0) : [node];
    const at = next ? this.childNodes.indexOf(next) : this.childNodes.length;
    for (const one of nodes) one.parent = this;
    this.childNodes.splice(at, 0, ...nodes);
  }

  append(...nodes) {
    for (const node of nodes) {
      if (node instanceof Node) this.insertBefore(node, null);
      else this.childNodes.push(String(node));
    }
  }

  prepend(...nodes) {
    nodes.forEach((node, at) => this.insertBefore(node, this.childNodes[at] ?? null));
  }

  replaceChildren(...nodes) {
    this.childNodes = [];
    this.append(...nodes);
  }

  remove() {
    if (this.parent) this.parent.childNodes = this.parent.childNodes.filter((one) => one !== this);
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  getAttribute(name) {
    return this.attributes[name] ?? null;
  }

  addEventListener(type, listener) {
    this.listeners[type] = listener;
  }

  click() {
    this.listeners.click({ stopPropagation() {}, preventDefault() {} });
  }

  focus() {}

  getBoundingClientRect() {
    return { top: 0, bottom: 0, height: 0 };
  }

  /// All nodes within that are such elements.
  all(name) {
    const found = this.childNodes.filter((child) => child instanceof Node);
    const here = found.filter((child) => child.nodeName === name.toUpperCase());
    return [...here, ...found.flatMap((child) => child.all(name))];
  }
}

/// Puts it in place for a test; `draw()` draws the pictures that are due, and says how many.
export function browser() {
  const due = [];
  const names = {
    document: {
      createElement: (name) => new Node(name),
      createElementNS: (_, name) => new Node(name),
      createTextNode: (text) => text,
      createDocumentFragment: () => new Node('fragment'),
      getElementById: () => null,
      addEventListener() {},
      removeEventListener() {},
      visibilityState: 'visible',
    },
    ResizeObserver: class {
      observe() {}
      unobserve() {}
      disconnect() {}
    },
    requestAnimationFrame: (act) => due.push(act),
  };
  Object.assign(globalThis, names);
  const draw = () => {
    const now = due.splice(0);
    now.forEach((act) => act());
    return now.length;
  };
  return { draw, container: new Node('div') };
}

/// Lets everything that was promised and is there already come.
export async function settled() {
  for (let n = 0; n < 20; n += 1) await new Promise((resolve) => setImmediate(resolve));
}
