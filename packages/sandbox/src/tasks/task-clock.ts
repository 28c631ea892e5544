/** Time as a simulator of long-running tasks sees it: the real one, or one that a test moves. */
export interface TaskClock {
  /** Unix milliseconds. */
  nowMs(): number
  /** Runs once after the delay; the returned function cancels it. */
  after(delayMs: number, run: () => void): () => void
}

export const realClock: TaskClock = {
  nowMs: () => Date.now(),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs)
    // A task that is under way must not keep a process alive that has nothing else to do.
    timer.unref()
    return () => {
      clearTimeout(timer)
    }
  },
}

interface Timer {
  readonly atMs: number
  readonly run: () => void
}

/** Stands still until `advance` is called. */
export class VirtualClock implements TaskClock {
  #nowMs: number
  /** In the order they were set up. */
  readonly #timers = new Set<Timer>()

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + delayMs, run }
    this.#timers.add(timer)
    return () => {
      this.#timers.delete(timer)
    }
  }

  /** Moves on and runs what falls due on the way, in the order of time; also what is set up by that. */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms
    for (;;) {
      const next = this.#earliest()
      if (next === undefined || next.atMs > untilMs) break
      this.#timers.delete(next)
      this.#nowMs = next.atMs
      next.run()
    }
    this.#nowMs = untilMs
  }

  #earliest(): Timer | undefined {
    let earliest: Timer | undefined
    for (const timer of this.#timers) if (earliest === undefined || timer.atMs < earliest.atMs) earliest = timer
    return earliest
  }
}

/** At most one timer for each task. */
export class TaskTimers<Task> {
  readonly #cancels = new Map<Task, () => void>()

  constructor(private readonly clock: TaskClock) {}

  /** Replaces the task's timer. */
  set(task: Task, delayMs: number, run: () => void): void {
    this.clear(task)
    const cancel = this.clock.after(delayMs, () => {
      this.#cancels.delete(task)
      run()
    })
    this.#cancels.set(task, cancel)
  }

  clear(task: Task): void {
    this.#cancels.get(task)?.()
    this.#cancels.delete(task)
  }

  clearAll(): void {
    for (const task of [...this.#cancels.keys()]) this.clear(task)
  }
}
