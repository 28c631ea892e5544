/** Drawn from a seed, so that a run that found something can be repeated as far as timing allows (mulberry32). */
export class Random {
  constructor(private state: number) {}

  /** Uniform in [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.state ^ (this.state >>> 15), this.state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low)
  }

  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[Math.floor(this.next() * items.length)]
  }

  /** One of the names, as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][]
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [name, weight] of entries) {
      left -= weight
      if (left < 0) return name
    }
    return (entries[0] as [Name, number])[0]
  }

  /** A generator of its own for somebody who draws at the same time. */
  fork(): Random {
    return new Random(Math.floor(this.next() * 2 ** 32))
  }
}
