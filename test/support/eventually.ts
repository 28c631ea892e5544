import type { ServerResponse } from 'node:http'
import { availableParallelism, loadavg } from 'node:os'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'

/** Milliseconds of work of this process so far: on a busy machine the clock says more about the others. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Turns of the event loop that take so much of the processor each, one after the other, until they are stopped. */
export function endlessWork(turnMs: number): { stop(): void } {
  let isWorking = true
  const turn = (): void => {
    const { user, system } = process.cpuUsage()
    const endsAtMicroseconds = user + system + turnMs * 1000
    for (let used = 0; used < endsAtMicroseconds;) {
      const now = process.cpuUsage()
      used = now.user + now.system
    }
    if (isWorking) setImmediate(turn)
  }
  setImmediate(turn)
  return {
    stop: () => {
      isWorking = false
    },
  }
}

/** Responses that a server sends on request only. */
export class HeldAnswers {
  readonly #responses: ServerResponse[] = []

  readonly hold = (response: ServerResponse): void => {
    this.#responses.push(response)
  }

  /** Answers all that are held with 204. */
  releaseAll(): void {
    for (const response of this.#responses.splice(0)) take(response)
  }
}

/** Answers with 204, at once. */
export const take = (response: ServerResponse): unknown => response.writeHead(204).end()

/** Numbers in [0, 1) that are the same in every run (a linear congruential generator). */
export function seededRandom(seed = 42): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

/** Generous: a machine may be busy with twenty other things. */
const PATIENCE_MS = 60_000

/** What takes longer leaves the processor to those it waits for. */
const QUICK_TURNS = 200

/**
 * Turns the event loop until the condition holds; for what announces itself by no event. The error of a wait that ran out
 * shows what `seen` gives then.
 */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  seen?: () => unknown,
  patienceMs: number = PATIENCE_MS,
): Promise<void> {
  const deadlineAtMs = performance.now() + patienceMs
  for (let turn = 1; !(await condition()); turn++) {
    if (performance.now() > deadlineAtMs) {
      const last = seen === undefined ? '' : `; seen: ${inspect(await seen(), { depth: 5 })}`
      throw new Error(`did not come true within ${patienceMs} ms: ${String(condition)}${last}`)
    }
    await (turn <= QUICK_TURNS ? nextTurn() : pause(1))
  }
}

/** The promise: a call whose client has disconnected ends at its upstream within a second. */
export const ABORT_LIMIT_MS = 1_000

/**
 * The time in which something is promised to happen, measured by the clock: as many times longer as the machine has more to do
 * than processors to do it.
 */
export function promised(milliseconds: number): number {
  const [load = 0] = loadavg()
  return milliseconds * Math.max(1, load / availableParallelism())
}

/** Rows are kept with their time in milliseconds. */
export async function laterMillisecond(): Promise<void> {
  const startMs = Date.now()
  while (Date.now() <= startMs) await new Promise((resolve) => setImmediate(resolve))
}
