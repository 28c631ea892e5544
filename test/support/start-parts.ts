interface Part {
  close(): Promise<unknown>
}

/** Has a part closed at last, and gives it back. */
export type ClosedAtLast = <Started extends Part>(part: Started) => Started

/**
 * Starts what consists of several parts. `close` closes those that `start` has named, the last one first, every one of them
 * though another cannot be closed, and rejects with what went wrong first. Where a step of `start` fails, they are closed at
 * once, before this rejects with what went wrong.
 */
export async function startParts<Whole extends object>(
  start: (closedAtLast: ClosedAtLast) => Promise<Whole>,
): Promise<Whole & { close(): Promise<void> }> {
  const parts: Part[] = []
  const close = async (): Promise<void> => {
    const closings: Promise<unknown>[] = []
    for (const part of parts.splice(0).reverse()) {
      const closing = part.close()
      closings.push(closing)
      await Promise.allSettled([closing])
    }
    await Promise.all(closings)
  }
  const closedAtLast: ClosedAtLast = (part) => {
    parts.push(part)
    return part
  }
  try {
    return { ...(await start(closedAtLast)), close }
  } catch (error) {
    // Not what cannot be closed: why it did not start is what is to be read.
    await close().catch(() => undefined)
    throw error
  }
}
