// The list of a session's items, of which only those near the reader are in the document.
//
// Keeps the reader's place: what comes in above does not move what is being read, and the end is
// followed only by those who are at the end. Knows items by their order and height, not by kind.

import { announce } from './dom.js';
import { Heights } from './heights.js';
import { parts } from './transcript-parts.js';
import { Views } from './views.js';

// How much of the list is in the document above and below what is seen, in heights of the view.
const MARGIN_VIEWS = 1.5;
// So near to the end counts as at the end.
const END_PX = 48;
const TOP_PX = 4;
// Older pages are asked for when so little is left above.
const OLDER_VIEWS = 2;
// An older page that could not be had is asked for again by itself after so long.
const OLDER_RETRY_MS = 10_000;

export class Transcript {
  /// Shows the session in `container`. Options: `onOlder()`, which brings an older
  /// page and resolves when it is in; `hasOlder()`; `onFork(seq)`; `onUndo({toolId, files})`;
  /// `onWait(requestId)`, when somebody wants to answer.
  constructor(container, session, options = {}) {
    this.session = session;
    this.options = options;
    this.heights = new Heights();
    /// Views of the items from `first` on, in order.
    this.first = 0;
    this.views = [];
    this.isFollowing = true;
    this.isDrawing = false;
    this.lastTop = 0;
    this.clock = null;
    Object.assign(
      this,
      parts(
        () => this.followEnd(true),
        () => this.retryOlder(),
      ),
    );
    container.replaceChildren(this.root);
    this.scroller.addEventListener('scroll', () => this.scrolled(), { passive: true });
    this.sizes = new ResizeObserver((entries) => this.resized(entries));
    this.sizes.observe(this.scroller);
    const { onFork, onUndo, onWait } = options;
    this.context = { onFork, onUndo, onWait };
    this.reset();
  }

  /// Takes the list out of the page.
  close() {
    this.isClosed = true;
    this.keepTime();
    clearTimeout(this.olderTimer);
    this.sizes.disconnect();
    this.root.remove();
  }

  get items() {
    return this.session.items;
  }

  /// Shows what has changed, at the next frame.
  update(changes) {
    for (const change of changes) this.take(change);
    this.drawSoon();
  }

  take({ kind, item, count }) {
    switch (kind) {
      case 'new':
        this.heights.append(1);
        break;
      case 'item':
        this.kept.dirty.add(item);
        break;
      case 'older':
        this.prepended(count);
        break;
      // Rare: the whole window is looked at again.
      case 'gone':
        this.removed(item);
        break;
      case 'reset':
        this.reset();
        break;
      default:
        break; // Not about items.
    }
  }

  reset() {
    this.views.forEach((view) => this.sizes.unobserve(view.node));
    this.list.replaceChildren();
    this.views = [];
    this.kept = new Views(this.context, this.sizes);
    this.heights = new Heights();
    this.heights.append(this.items.length);
    this.first = this.items.length;
    this.isFollowing = true;
    this.retryOlder();
    this.drawSoon();
  }

  prepended(count) {
    this.heights.prepend(count);
    this.first += count;
    // The items did not move; the space above them has grown.
    const anchor = this.seen();
    this.space();
    if (anchor) this.hold(anchor);
  }

  removed(item) {
    const view = this.kept.shown.get(item);
    const at = this.views.indexOf(view);
    if (at < 0) {
      // It was not in the document, and where it stood is not known any more.
      this.heights.resize(this.items.length);
      this.first = Math.min(this.first, this.items.length);
      return;
    }
    this.heights.remove(this.first + at);
    this.kept.forget(view);
    this.views.splice(at, 1);
  }

  drawSoon() {
    if (this.isDrawing || this.isClosed) return;
    this.isDrawing = true;
    const draw = () => {
      if (!this.isDrawing) return;
      this.isDrawing = false;
      this.draw();
    };
    requestAnimationFrame(draw);
  }

  draw() {
    if (this.isClosed) return;
    this.heights.resize(this.items.length);
    const anchor = this.isFollowing ? null : this.anchor();
    this.drawWindow();
    this.kept.refresh();
    this.pondering.hidden = !this.session.isPondering;
    this.keepTime();
    this.measure();
    this.settle(anchor);
    this.askOlder();
  }

  /// Clocks go on while a turn does.
  keepTime() {
    const runs = this.session.turn !== null && !this.isClosed;
    if (runs === (this.clock !== null)) return;
    clearInterval(this.clock);
    this.clock = runs
      ? setInterval(() => this.views.forEach((view) => view.tick(this.session.now())), 1000)
      : null;
  }

  /// Puts in and takes out items so that those around the view are in the document.
  drawWindow() {
    const [from, to] = this.wanted();
    const { items } = this;
    // Far away, or the list is not what it was: nothing of the old window stays.
    const isAnother = this.views.some((view, at) => view.item !== items[this.first + at]);
    if (isAnother || to <= this.first || from >= this.first + this.views.length) {
      this.views.forEach((view) => this.kept.forget(view));
      this.views = [];
      this.first = from;
    }
    while (this.first < from && this.views.length > 0) {
      this.kept.forget(this.views.shift());
      this.first += 1;
    }
    while (this.first + this.views.length > to) this.kept.forget(this.views.pop());
    const top = this.list.firstChild;
    const above = [];
    for (let at = from; at < this.first; at += 1) above.push(this.kept.make(items[at]));
    this.list.insertBefore(fragment(above), top);
    this.views.unshift(...above);
    this.first = from;
    const below = [];
    for (let at = this.first + this.views.length; at < to; at += 1)
      below.push(this.kept.make(items[at]));
    this.list.append(fragment(below));
    this.views.push(...below);
    this.space();
  }

  /// The items that should be in the document, [from, to).
  wanted() {
    const { clientHeight, scrollTop } = this.scroller;
    const margin = Math.max(clientHeight, 400) * MARGIN_VIEWS;
    const total = this.items.length;
    if (this.isFollowing) return [this.heights.backFrom(total, clientHeight + margin), total];
    const from = this.heights.at(scrollTop - margin);
    const to = Math.min(total, this.heights.at(scrollTop + clientHeight + margin) + 1);
    return [from, Math.max(to, Math.min(from + 1, total))];
  }

  space() {
    this.before.style.height = `${this.heights.sum(0, this.first)}px`;
    const end = this.first + this.views.length;
    this.after.style.height = `${this.heights.sum(end, this.items.length)}px`;
  }

  measure() {
    this.views.forEach((view, at) => {
      this.heights.set(this.first + at, heightOf(view.node));
    });
    this.space();
  }

  /// The item at the top of the view and where it stands there. Whoever went to the very top wants
  /// to see the first item, whatever its height turns out to be.
  anchor() {
    if (this.scroller.scrollTop < TOP_PX && this.items.length > 0) {
      return { item: this.items[0], top: -this.scroller.scrollTop };
    }
    return this.seen();
  }

  seen() {
    const { top, bottom } = this.scroller.getBoundingClientRect();
    for (const view of this.views) {
      const box = view.node.getBoundingClientRect();
      if (box.top >= bottom) break;
      if (box.bottom > top) return { item: view.item, top: box.top - top };
    }
    // Between windows: by the heights that are known.
    const at = this.heights.at(this.scroller.scrollTop);
    const item = this.items[at];
    if (!item) return null;
    return { item, top: this.heights.sum(0, at) - this.scroller.scrollTop };
  }

  /// Scrolls so that the anchor stands where it stood.
  hold({ item, top }) {
    const view = this.kept.shown.get(item);
    if (!view) return;
    const now = view.node.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
    if (Math.abs(now - top) < 0.5) return;
    this.scrollTo(this.scroller.scrollTop + now - top);
  }

  settle(anchor) {
    if (this.isFollowing) this.scrollTo(this.scroller.scrollHeight);
    else if (anchor) this.hold(anchor);
    this.jump.hidden = this.isFollowing || this.items.length === 0;
  }

  scrollTo(top) {
    this.scroller.scrollTop = top;
    this.lastTop = this.scroller.scrollTop;
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const left = scrollHeight - clientHeight - scrollTop;
    // Only who goes up leaves the end; that the end moved away is no such wish.
    if (scrollTop < this.lastTop - 2 && left > END_PX) this.isFollowing = false;
    else if (left <= END_PX && this.first + this.views.length >= this.items.length)
      this.isFollowing = true;
    this.lastTop = scrollTop;
    this.jump.hidden = this.isFollowing || this.items.length === 0;
    const [from, to] = this.wanted();
    const [has, end] = [this.first, this.first + this.views.length];
    const margin = MARGIN_VIEWS * clientHeight;
    const lacks =
      (from < has && this.heights.sum(from, has) > margin / 2) ||
      (to > end && this.heights.sum(end, to) > margin / 2) ||
      to <= has ||
      from >= end ||
      (from === 0 && has > 0) ||
      (to === this.items.length && end < to);
    if (lacks) this.drawSoon();
    else this.askOlder();
  }

  resized(entries) {
    if (this.isClosed || !entries.some(({ target }) => this.hasNewSize(target))) return;
    if (this.isFollowing) {
      this.measure();
      this.scrollTo(this.scroller.scrollHeight);
      return;
    }
    // Something above what is read may have grown: how much is told by the old heights.
    const anchor = this.anchorBefore();
    this.measure();
    if (anchor) this.hold(anchor);
    this.drawSoon();
  }

  /// Whoever comes into the document is told of too, and was measured already.
  hasNewSize(target) {
    if (target === this.scroller) return true;
    const at = this.views.findIndex((view) => view.node === target);
    return at >= 0 && Math.abs(this.heights.get(this.first + at) - heightOf(target)) >= 0.5;
  }

  /// Where the item at the top stood by the heights that were known, before something grew.
  anchorBefore() {
    let top = this.heights.sum(0, this.first) - this.scroller.scrollTop;
    for (const [at, view] of this.views.entries()) {
      const height = this.heights.get(this.first + at);
      if (top + height > 0) return { item: view.item, top };
      top += height;
    }
    return null;
  }

  /// To the newest item, and on with it as it grows.
  followEnd(isAsked = false) {
    this.isFollowing = true;
    this.drawSoon();
    if (isAsked) {
      this.scroller.focus({ preventScroll: true });
      announce('Newest message');
    }
  }

  async askOlder() {
    const { hasOlder, onOlder } = this.options;
    if (!onOlder || !hasOlder?.() || this.isAsking || this.isClosed) return;
    if (!this.noOlder.hidden) return;
    const isNear = this.scroller.scrollTop < this.scroller.clientHeight * OLDER_VIEWS;
    if (!isNear || this.first > 0) return;
    this.isAsking = true;
    this.older.hidden = false;
    try {
      await onOlder();
    } catch {
      this.olderFailed();
    } finally {
      this.isAsking = false;
      this.older.hidden = true;
      this.drawSoon();
    }
  }

  /// Said where the page would be; not asked for again with every picture that is drawn.
  olderFailed() {
    if (this.isClosed) return;
    this.noOlder.hidden = false;
    this.olderTimer = setTimeout(() => this.retryOlder(), OLDER_RETRY_MS);
  }

  /// Asks again for what could not be had: somebody wants it, or the server is back.
  retryOlder() {
    if (this.noOlder.hidden) return;
    clearTimeout(this.olderTimer);
    this.noOlder.hidden = true;
    this.drawSoon();
  }
}

/// With its fractions, which add up.
function heightOf(node) {
  return node.getBoundingClientRect().height;
}

function fragment(views) {
  const made = document.createDocumentFragment();
  views.forEach((view) => made.append(view.node));
  return made;
}
