/**
 * Hands out faults in turn, one for every so many: the first one too, so that the shortest run has seen a fault, and each
 * kind as often as any other, whatever is drawn elsewhere.
 */
export class FaultRound<Fault> {
  private asked = 0

  constructor(
    private readonly faults: readonly Fault[],
    private readonly every: number,
  ) {}

  /** Undefined: this one is spared. */
  next(): Fault | undefined {
    const turn = this.asked++
    return turn % this.every === 0 ? this.faults[(turn / this.every) % this.faults.length] : undefined
  }
}
