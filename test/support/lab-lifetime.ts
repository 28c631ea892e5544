import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals'

interface Resettable {
  reset(): void
}

/** What the tests of a describe can share. */
interface SharedLab {
  readonly simulator?: Resettable
  readonly second?: Resettable
  close(): Promise<unknown>
}

/** Starts a lab before the tests of a describe and closes it after them; its simulators are reset before each test. */
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

/** Closes after each test what it has opened, the last first. */
export function closeAfterEach(): <Part extends { close(): unknown }>(part: Part) => Part {
  const parts: { close(): unknown }[] = []
  afterEach(async () => {
    for (const part of parts.splice(0).reverse()) await part.close()
  })
  return (part) => {
    parts.push(part)
    return part
  }
}
