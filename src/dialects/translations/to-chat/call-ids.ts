/** Ids of the calls of one answer, by which a client brings their results: some upstreams leave them out, or give several calls the same. */
export class AnswerCallIds {
  private readonly given = new Set<string>()

  /** `made`: the id of the call at an index that has none of its own. */
  constructor(private readonly made: (index: number) => string) {}

  /** Of the next call. */
  next(id: string | undefined, index: number): string {
    const own = id === undefined || this.given.has(id) ? this.made(index) : id
    this.given.add(own)
    return own
  }
}
