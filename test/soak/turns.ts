/**
 * Hands out its items in turn: one to the first who asks and then one to every so many, so that even the shortest run has
 * one, and each item comes as often as any other whatever else is drawn.
 */
export class Turns<Item> {
  private asked = 0

  constructor(
    private readonly items: readonly Item[],
    private readonly every: number,
  ) {}

  /** Undefined: not this time. */
  next(): Item | undefined {
    const turn = this.asked++
    return turn % this.every === 0 ? this.items[(turn / this.every) % this.items.length] : undefined
  }
}
