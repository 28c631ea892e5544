import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals'

interface Resettable {
  reset(): void
}

/** What the tests of a describe can share. */
interface SharedLab {
  readonly simulator?: Resettable
  /** The simulator of a second channel. */
  readonly second?: Resettable
  close(): Promise<unknown>
}

/**
 * Starts a lab before the tests of a describe and closes it after them. `simulator` and `second`, where it has them, are reset
 * before each test. `start` only starts: a lab that it does not return is not closed. Labs are closed in the order they are shared.
 */
export function shareLab(start: () => Promise<SharedLab>): void {
  let lab: SharedLab | undefined
  beforeAll(async () => {
    lab = await start()
  })
  beforeEach(() => {
    lab?.simulator?.reset()
    lab?.second?.reset()
  })
  afterAll(() => lab?.close())
}

/** Something with a `close` method, or the function that closes it. */
type Closeable = { close(): unknown } | (() => unknown)

/** Closes after each test what it has opened, the last first; what cannot be closed fails the test once the rest is closed. */
export function closeAfterEach(): <Part extends Closeable>(part: Part) => Part {
  const parts: Closeable[] = []
  afterEach(async () => {
    const failures: unknown[] = []
    for (const part of parts.splice(0).reverse()) {
      try {
        await (typeof part === 'function' ? part() : part.close())
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 1) throw new AggregateError(failures, 'several parts could not be closed')
    if (failures.length === 1) throw failures[0]
  })
  return (part) => {
    parts.push(part)
    return part
  }
}
