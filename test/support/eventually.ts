import { setImmediate as nextTurn } from 'node:timers/promises'

const PATIENCE_MS = 5_000

/** Turns the event loop until the condition holds; for what announces itself by no event. */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineAtMs = performance.now() + PATIENCE_MS
  while (!(await condition())) {
    if (performance.now() > deadlineAtMs)
      throw new Error(`did not come true within ${PATIENCE_MS} ms: ${String(condition)}`)
    await nextTurn()
  }
}
