import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'

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

const PATIENCE_MS = 20_000

/** Turns the event loop until the condition holds; for what announces itself by no event. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  patienceMs: number = PATIENCE_MS,
): Promise<void> {
  const deadlineAtMs = performance.now() + patienceMs
  while (!(await condition())) {
    if (performance.now() > deadlineAtMs)
      throw new Error(`did not come true within ${patienceMs} ms: ${String(condition)}`)
    await nextTurn()
  }
}
