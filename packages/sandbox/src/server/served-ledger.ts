/** What was served, in the units an upstream charges for. */
export type ServedUnits = Readonly<Record<string, number>>

const REMEMBERED_ANSWERS = 1000

/**
 * What a simulator has served, summed by model and answer by answer: the truth that a caller's accounts are held against. An
 * answer that was broken off counts as far as it was written.
 */
export class ServedLedger {
  readonly #sums = new Map<string, Map<string, number>>()
  readonly #answers = new Map<string, ServedUnits[]>()

  add(model: string, units: ServedUnits): void {
    const sums = this.#sums.get(model) ?? new Map<string, number>()
    this.#sums.set(model, sums)
    this.#note(model, units)
    for (const [unit, quantity] of Object.entries(units)) sums.set(unit, (sums.get(unit) ?? 0) + quantity)
  }

  /** The last thousand answers of each model, in order; units of which there was nothing are left out. */
  get answers(): Readonly<Record<string, readonly ServedUnits[]>> {
    return Object.fromEntries(this.#answers)
  }

  #note(model: string, units: ServedUnits): void {
    const answers = this.#answers.get(model) ?? []
    this.#answers.set(model, answers)
    answers.push(Object.fromEntries(Object.entries(units).filter(([, quantity]) => quantity > 0)))
    if (answers.length > REMEMBERED_ANSWERS) answers.shift()
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
