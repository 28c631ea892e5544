/** Numbers that look random and are the same for the same seed (mulberry32), so that a corpus can be made again. */
export class Random {
  #state

  constructor(seed) {
    this.#state = seed >>> 0
  }

  /** In [0, 1). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** Whole, both ends included. */
  integer(from, to) {
    return from + Math.floor(this.next() * (to - from + 1))
  }

  chance(share) {
    return this.next() < share
  }

  pick(values) {
    return values[this.integer(0, values.length - 1)]
  }

  /** `count` different values, in random order. */
  sample(values, count) {
    const rest = [...values]
    const taken = []
    while (taken.length < count && rest.length > 0) taken.push(...rest.splice(this.integer(0, rest.length - 1), 1))
    return taken
  }
}
