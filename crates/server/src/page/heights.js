// How tall the items of a list are: measured where they were seen, guessed where not.
//
// Pure. Sums are kept by blocks, so that a list of many items is walked in steps.

const GUESS_PX = 96;
const BLOCK = 128;

export class Heights {
  constructor() {
    this.known = [];
    /// Sums of the blocks; null where they are to be added up anew.
    this.sums = [];
    this.measured = { count: 0, total: 0 };
  }

  get length() {
    return this.known.length;
  }

  /// What an item is taken for that nobody has seen.
  guess() {
    const { count, total } = this.measured;
    return count < 8 ? GUESS_PX : total / count;
  }

  append(count) {
    for (let n = 0; n < count; n += 1) this.known.push(-GUESS_PX);
    this.sums.length = Math.ceil(this.known.length / BLOCK);
    if (this.sums.length > 0) this.touch(this.known.length - count);
  }

  prepend(count) {
    const guess = Math.round(this.guess());
    this.known = new Array(count).fill(-guess).concat(this.known);
    this.sums = new Array(Math.ceil(this.known.length / BLOCK));
  }

  remove(at) {
    this.known.splice(at, 1);
    this.sums = new Array(Math.ceil(this.known.length / BLOCK));
  }

  resize(length) {
    if (length > this.known.length) this.append(length - this.known.length);
    while (this.known.length > length) this.remove(this.known.length - 1);
  }

  touch(at) {
    for (let block = Math.floor(at / BLOCK); block < this.sums.length; block += 1)
      this.sums[block] = undefined;
  }

  /// A guess is kept as a negative number, so that it is known for one.
  get(at) {
    return Math.abs(this.known[at] ?? 0);
  }

  set(at, height) {
    const before = this.known[at];
    if (before === undefined || before === height) return;
    if (before < 0) {
      this.measured.count += 1;
      this.measured.total += height;
    } else {
      this.measured.total += height - before;
    }
    this.known[at] = height;
    this.sums[Math.floor(at / BLOCK)] = undefined;
  }

  block(index) {
    let sum = this.sums[index];
    if (sum === undefined) {
      sum = 0;
      const end = Math.min(this.known.length, (index + 1) * BLOCK);
      for (let at = index * BLOCK; at < end; at += 1) sum += Math.abs(this.known[at]);
      this.sums[index] = sum;
    }
    return sum;
  }

  /// The height of the items [from, to).
  sum(from, to) {
    let sum = 0;
    let at = from;
    const end = Math.min(to, this.known.length);
    while (at < end) {
      if (at % BLOCK === 0 && at + BLOCK <= end) {
        sum += this.block(at / BLOCK);
        at += BLOCK;
      } else {
        sum += Math.abs(this.known[at]);
        at += 1;
      }
    }
    return sum;
  }

  /// The item that stands `top` below the first one's beginning; the last one below all.
  at(top) {
    let left = top;
    let at = 0;
    while (at < this.known.length) {
      const isBlock = at % BLOCK === 0 && at + BLOCK <= this.known.length;
      const height = isBlock ? this.block(at / BLOCK) : Math.abs(this.known[at]);
      if (isBlock && height <= left) {
        left -= height;
        at += BLOCK;
        continue;
      }
      const one = Math.abs(this.known[at]);
      if (one > left) return at;
      left -= one;
      at += 1;
    }
    return Math.max(0, this.known.length - 1);
  }

  /// The first of the items that fill `height` before the item `to`.
  backFrom(to, height) {
    let at = Math.min(to, this.known.length);
    let sum = 0;
    while (at > 0 && sum < height) {
      at -= 1;
      sum += Math.abs(this.known[at]);
    }
    return at;
  }
}
