/** What was served, in the units an upstream charges for. */
export type ServedUnits = Readonly<Record<string, number>>

/**
 * What a simulator has served, summed by model: the truth that a caller's accounts are held against. An answer that was
 * broken off counts as far as it was written.
 */
export class ServedLedger {
  readonly #sums = new Map<string, Map<string, number>>()

  add(model: string, units: ServedUnits): void {
    const sums = this.#sums.get(model) ?? new Map<string, number>()
    this.#sums.set(model, sums)
    for (const [unit, quantity] of Object.entries(units)) sums.set(unit, (sums.get(unit) ?? 0) + quantity)
  }

  /** By model, then by unit; units of which there was nothing are left out. */
  get sums(): Readonly<Record<string, ServedUnits>> {
    const served = [...this.#sums].map(([model, sums]) => [
      model,
      Object.fromEntries([...sums].filter(([, quantity]) => quantity > 0)),
    ])
    return Object.fromEntries(served) as Record<string, ServedUnits>
  }
}
