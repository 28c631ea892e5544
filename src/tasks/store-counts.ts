/** What the store is asked to count, at most so often: every replica asks, at every scrape. */
const MINIMUM_INTERVAL_MS = 15_000
/** Older counts are no longer shown: nobody is to take them for news. */
const LIFETIME_MS = 60_000
/** Who asks for the first counts, or for newer ones, waits for them this long. */
const PATIENCE_MS = 500

/**
 * Counts that cost a query, for those who ask often. A store that does not answer holds up nobody for longer than half a
 * second: they get what was counted last, and no second query is begun beside the first.
 */
export class StoreCounts<Counts> {
  private counted: { readonly counts: Counts; readonly atMs: number } | undefined
  private counting: Promise<void> | undefined
  private beganAtMs = Number.NEGATIVE_INFINITY

  constructor(private readonly count: () => Promise<Counts>) {}

  /** The latest counts; undefined when there are none of the last minute. Never rejects. */
  async latest(): Promise<Counts | undefined> {
    const isDue = performance.now() - this.beganAtMs >= MINIMUM_INTERVAL_MS
    if (this.counting === undefined && isDue) this.begin()
    if (this.counting !== undefined) await this.patience(this.counting)
    const { counted } = this
    return counted !== undefined && performance.now() - counted.atMs < LIFETIME_MS ? counted.counts : undefined
  }

  private begin(): void {
    this.beganAtMs = performance.now()
    this.counting = this.count()
      .then(
        (counts) => {
          this.counted = { counts, atMs: performance.now() }
        },
        // A store that is away says so elsewhere.
        () => undefined,
      )
      .finally(() => {
        this.counting = undefined
      })
  }

  private patience(counting: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, PATIENCE_MS)
      void counting.then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
}
