/** What became of one request. */
const OUTCOMES = ['good', 'late', 'refused', 'badRefusal', 'otherStatus', 'broken', 'unanswered', 'unsent']

/** Answers by second and by kind; latencies of those that were served. */
export class Tally {
  #seconds = []
  latenciesMs = []
  refusedMs = []
  sentLateMs = []

  constructor(startMs) {
    this.startMs = startMs
  }

  /** One request that was due at `dueMs` has come to its end now. */
  count(outcome, dueMs, nowMs) {
    const second = this.#second(dueMs)
    second[outcome] += 1
    if (outcome === 'good' || outcome === 'late') {
      this.latenciesMs.push(nowMs - dueMs)
      second.latenciesMs.push(nowMs - dueMs)
    } else if (outcome === 'refused') this.refusedMs.push(nowMs - dueMs)
  }

  total(outcome) {
    return this.#seconds.reduce((sum, second) => sum + second[outcome], 0)
  }

  get all() {
    return OUTCOMES.reduce((sum, outcome) => sum + this.total(outcome), 0)
  }

  /** One entry for each second in which requests were due: counts by outcome and `latenciesMs`. */
  get seconds() {
    return this.#seconds
  }

  #second(dueMs) {
    const index = Math.max(0, Math.floor((dueMs - this.startMs) / 1000))
    while (this.#seconds.length <= index) {
      this.#seconds.push({ ...Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])), latenciesMs: [] })
    }
    return this.#seconds[index]
  }
}
