// The list of sessions on a phone: a drawer over the page, out of everybody's way while it is shut.

const NARROW = '(max-width: 760px)';

export class Drawer {
  constructor({ app, sidebar, stage, scrim, button, search }) {
    Object.assign(this, { app, sidebar, stage, scrim, button, search });
    scrim.addEventListener('click', () => this.show(false));
    matchMedia(NARROW).addEventListener('change', () => this.show(false));
    this.settle();
  }

  get isNarrow() {
    return matchMedia(NARROW).matches;
  }

  get isOpen() {
    return this.app.classList.contains('drawer');
  }

  show(shown) {
    this.app.classList.toggle('drawer', shown);
    this.scrim.hidden = !shown || !this.isNarrow;
    const had = this.sidebar.contains(document.activeElement);
    this.settle();
    if (shown) this.search.focus();
    else if (had && this.isNarrow) this.button.focus();
  }

  /// What is out of sight is out of the keyboard's way too.
  settle() {
    this.sidebar.inert = this.isNarrow && !this.isOpen;
    this.stage.inert = this.isNarrow && this.isOpen;
  }
}
