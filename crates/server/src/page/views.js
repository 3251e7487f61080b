// The views of a list's items: made when they come into the document, kept a while when they leave.

import { itemView } from './items.js';

// Views that left the document and are kept, with what the reader opened in them.
const SHELF_MAX = 200;

export class Views {
  /// `sizes` observes the views in the document.
  constructor(context, sizes) {
    this.context = context;
    this.sizes = sizes;
    /// item → its view, while it is in the document.
    this.shown = new Map();
    this.shelf = new Map();
    /// Items that have changed since their views were drawn.
    this.dirty = new Set();
  }

  /// The view of an item that comes into the document.
  make(item) {
    const view =
      this.shelf.get(item) ?? Object.assign(itemView(item, this.context), { item, isStale: true });
    this.shelf.delete(item);
    this.shown.set(item, view);
    if (view.isStale || this.dirty.has(item)) view.update();
    view.isStale = false;
    this.dirty.delete(item);
    this.sizes.observe(view.node);
    return view;
  }

  /// Takes a view out of the document.
  forget(view) {
    this.sizes.unobserve(view.node);
    this.shown.delete(view.item);
    view.node.remove();
    this.shelf.set(view.item, view);
    if (this.shelf.size > SHELF_MAX) this.shelf.delete(this.shelf.keys().next().value);
  }

  /// Draws what has changed; what is not in the document is drawn when it comes.
  refresh() {
    for (const item of this.dirty) {
      const view = this.shown.get(item);
      if (view) view.update();
      else if (this.shelf.has(item)) this.shelf.get(item).isStale = true;
    }
    this.dirty.clear();
  }
}
