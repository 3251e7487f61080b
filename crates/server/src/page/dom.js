// Makes nodes of the document.
//
// Never takes HTML: text is text, whatever it looks like. Knows no session and asks nothing.

const SVG = 'http://www.w3.org/2000/svg';

/// An element with its properties and children.
///
/// `class`, `text`, `title`, `hidden`, `dataset`, `aria` and `on` are what they say; any other
/// name is an attribute, or the property of that name where the value is true or false.
/// Children are nodes or strings; null, undefined and false are left out.
export function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value !== undefined && value !== null) set(node, name, value);
  }
  node.append(...children.flat().filter((child) => child || child === 0 || child === ''));
  return node;
}

function set(node, name, value) {
  switch (name) {
    case 'class':
      node.className = value;
      break;
    case 'text':
      node.textContent = value;
      break;
    case 'dataset':
      Object.assign(node.dataset, value);
      break;
    case 'aria':
      for (const [key, said] of Object.entries(value)) {
        if (said !== undefined && said !== null) node.setAttribute(`aria-${key}`, String(said));
      }
      break;
    case 'on':
      for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
      break;
    default:
      if (typeof value === 'boolean') node[name] = value;
      else node.setAttribute(name, String(value));
  }
}

export function clear(node) {
  node.replaceChildren();
  return node;
}

// Each icon is a list of paths in a square of 24 by 24, drawn as lines.
const ICONS = {
  add: ['M12 5v14', 'M5 12h14'],
  archive: ['M4 8v11h16V8', 'M3 4h18v4H3z', 'M10 12h4'],
  ask: [
    'M9 9.2a3 3 0 1 1 4.4 2.6c-.9.5-1.4 1.1-1.4 2.2',
    'M12 17.5v.1',
    'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z',
  ],
  bolt: ['M13 3 5 14h6l-1 7 8-11h-6z'],
  check: ['m5 12.5 4.5 4.5L19 7.5'],
  close: ['M6 6l12 12', 'M18 6 6 18'],
  compact: ['M4 12h16', 'M12 3v5', 'm9.5 6 2.5 2.5L14.5 6', 'M12 21v-5', 'm9.5 18 2.5-2.5 2.5 2.5'],
  copy: ['M9 9h11v11H9z', 'M15 9V4H4v11h5'],
  diff: ['M12 4v8', 'M8 8h8', 'M8 18h8'],
  dot: ['M12 11.5v1'],
  down: ['m6 9 6 6 6-6'],
  edit: ['M4 20h4L19 9l-4-4L4 16z', 'm13 7 4 4'],
  error: ['M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z', 'M12 7.5v5.5', 'M12 16.4v.1'],
  file: ['M6 3h8l4 4v14H6z', 'M14 3v4h4'],
  folder: ['M3 6h6l2 2.5h10V19H3z'],
  fork: [
    'M6 7v10',
    'M6 13c8 0 12-1 12-6',
    'M6 3a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
    'M18 3a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
    'M6 17a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  ],
  image: ['M4 5h16v14H4z', 'm4 16 5-5 4 4 3-3 4 4', 'M15.5 9v.1'],
  info: ['M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z', 'M12 11v5.5', 'M12 7.6v.1'],
  key: ['M4 7h16v11H4z', 'M7.5 10.5v.1', 'M12 10.5v.1', 'M16.5 10.5v.1', 'M8 14.5h8'],
  left: ['m15 6-6 6 6 6'],
  list: ['M9 6h11', 'M9 12h11', 'M9 18h11', 'M4.5 6v.1', 'M4.5 12v.1', 'M4.5 18v.1'],
  menu: ['M4 6h16', 'M4 12h16', 'M4 18h16'],
  moon: ['M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z'],
  more: ['M5.5 12v.1', 'M12 12v.1', 'M18.5 12v.1'],
  pause: ['M8 5v14', 'M16 5v14'],
  plan: ['M6 4h12v17H6z', 'M9 3h6v3H9z', 'M9 11h6', 'M9 15h6'],
  play: ['M7 4.5v15L19 12z'],
  retry: ['M20 11a8 8 0 1 0-2 6.3', 'M20 5v6h-6'],
  right: ['m9 6 6 6-6 6'],
  search: ['M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z', 'm15.5 15.5 5 5'],
  send: ['M12 20V5', 'm5.5 11.5 6.5-6.5 6.5 6.5'],
  shield: ['M12 3 5 6v5.5c0 4.4 3 8 7 9.5 4-1.5 7-5.1 7-9.5V6z'],
  spark: [
    'M12 3v5',
    'M12 16v5',
    'M3 12h5',
    'M16 12h5',
    'm6 6 3 3',
    'm15 15 3 3',
    'm18 6-3 3',
    'm9 15-3 3',
  ],
  stop: ['M7 7h10v10H7z'],
  sun: [
    'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z',
    'M12 2.5v2',
    'M12 19.5v2',
    'M2.5 12h2',
    'M19.5 12h2',
    'm5.3 5.3 1.4 1.4',
    'm17.3 17.3 1.4 1.4',
    'm18.7 5.3-1.4 1.4',
    'm6.7 17.3-1.4 1.4',
  ],
  terminal: ['M3 5h18v14H3z', 'm7 9 3 3-3 3', 'M12.5 15H17'],
  think: ['M12 3a6 6 0 0 0-3.5 10.9V17h7v-3.1A6 6 0 0 0 12 3z', 'M9.5 20.5h5'],
  undo: ['M5 9h9a5 5 0 0 1 0 10H9', 'm9 5-4 4 4 4'],
  up: ['m6 15 6-6 6 6'],
  user: ['M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8z', 'M4.5 20.5c1-4 4-5.5 7.5-5.5s6.5 1.5 7.5 5.5'],
  warn: ['M12 4 2.8 20h18.4z', 'M12 10v4.5', 'M12 17.2v.1'],
  wire: ['M4 8h13', 'm14 4.5 3.5 3.5-3.5 3.5', 'M20 16H7', 'm10 12.5-3.5 3.5 3.5 3.5'],
};

/// A drawing that says nothing to screen readers: its button or its neighbour has the words.
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  svg.setAttribute('focusable', 'false');
  for (const line of ICONS[name] ?? ICONS.dot) {
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('d', line);
    svg.append(path);
  }
  return svg;
}

/// A button whose drawing stands for `label`.
export function iconButton(name, label, click, props = {}) {
  const { class: more = '', ...rest } = props;
  return el(
    'button',
    {
      type: 'button',
      class: `icon-button ${more}`.trim(),
      title: label,
      aria: { label },
      on: { click },
      ...rest,
    },
    icon(name),
  );
}

/// Tells those who do not see the page; `assertive` interrupts what is being read to them.
export function announce(text, assertive = false) {
  const region = document.getElementById(assertive ? 'told-now' : 'told');
  if (!region) return;
  // The same words twice are told twice only if they are a new node.
  region.replaceChildren(el('p', { text }));
}
