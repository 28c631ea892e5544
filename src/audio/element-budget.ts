const MAX_ELEMENTS = 4096

/** How many boxes or elements of one file are looked at, on all its levels together: nesting must not multiply them. */
export class ElementBudget {
  #left = MAX_ELEMENTS

  /** False when nothing is left: what follows counts as unreadable. */
  spend(): boolean {
    if (this.#left === 0) return false
    this.#left -= 1
    return true
  }
}
