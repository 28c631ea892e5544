const SHORTEST_MS = 100
const LONGEST_MS = 30_000

/** Whoever has lived so long did not die of its start. */
const SETTLED_MS = 60_000

/** How long a place stays empty after its worker died: longer each time while they die young. */
export class RestartDelay {
  private early = 0

  /** In milliseconds, after a worker that lived so long. */
  after(livedMs: number): number {
    this.early = livedMs >= SETTLED_MS ? 0 : this.early + 1
    return Math.min(SHORTEST_MS * 2 ** Math.max(0, this.early - 1), LONGEST_MS)
  }
}
