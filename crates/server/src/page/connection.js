// Says how the connection is, and when it is tried again; says nothing while all is well.

import { announce } from './dom.js';

// A connection that comes at once needs no words.
const PATIENCE_MS = 500;

export class Connection {
  /// `draw(told, seconds)`: told is null while all is well.
  constructor(draw) {
    this.draw = draw;
    this.wasLost = false;
  }

  /// `state` as links tell it, or null where there is no session.
  show(state) {
    clearTimeout(this.patience);
    clearInterval(this.ticking);
    if (!state || state.state === 'open' || state.state === 'closed')
      return this.well(state?.state === 'open');
    if (state.state === 'connecting') {
      const told = {
        level: 'running',
        text: this.wasLost ? 'Connecting again…' : 'Connecting…',
        canRetry: false,
      };
      if (this.wasLost) return this.draw(told, 0);
      this.patience = setTimeout(() => this.draw(told, 0), PATIENCE_MS);
      return;
    }
    this.lost(state);
  }

  well(open) {
    if (open && this.wasLost) announce('Connected again.');
    this.wasLost = false;
    this.draw(null, 0);
  }

  lost({ retryInMs, why }) {
    if (!this.wasLost)
      announce(`${why ?? 'The connection was lost'}. It is tried again by itself.`, true);
    this.wasLost = true;
    const due = performance.now() + (retryInMs ?? 0);
    const told = { level: 'bad', text: why ?? 'The connection was lost', canRetry: true };
    const tick = () => this.draw(told, Math.max(0, Math.ceil((due - performance.now()) / 1000)));
    tick();
    this.ticking = setInterval(tick, 1000);
  }
}
