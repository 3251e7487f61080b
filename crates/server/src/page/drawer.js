// The list of sessions where there is little room: a drawer over the page.
//
// While it is shut it is in nobody's way, also not in the keyboard's.

const NARROW = '(max-width: 760px)';
// With the wire view open there is less room.
const NARROW_WITH_WIRE = '(max-width: 1180px)';

export class Drawer {
  constructor({ app, sidebar, behind, scrim, button }) {
    Object.assign(this, { app, sidebar, behind, scrim, button });
    scrim.addEventListener('click', () => this.show(false));
    for (const query of [NARROW, NARROW_WITH_WIRE]) {
      matchMedia(query).addEventListener('change', () => this.show(false));
    }
    this.settle();
  }

  get isNarrow() {
    const isShared = this.app.classList.contains('with-wire');
    return matchMedia(NARROW).matches || (isShared && matchMedia(NARROW_WITH_WIRE).matches);
  }

  get isOpen() {
    return this.app.classList.contains('drawer');
  }

  show(shown) {
    this.app.classList.toggle('drawer', shown);
    this.scrim.hidden = !shown || !this.isNarrow;
    const had = this.sidebar.contains(document.activeElement);
    this.settle();
    // Not the search field: on a phone that would open the keyboard.
    if (shown) this.sidebar.querySelector('.drawer-close').focus();
    else if (had && this.isNarrow) this.button.focus();
  }

  /// What is out of sight is out of the keyboard's way too.
  settle() {
    this.sidebar.inert = this.isNarrow && !this.isOpen;
    for (const part of this.behind) part.inert = this.isNarrow && this.isOpen;
  }
}
