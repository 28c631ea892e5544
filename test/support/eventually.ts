import { setImmediate as nextTurn } from 'node:timers/promises'

const PATIENCE_MS = 5_000

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
