interface Part {
  close(): Promise<unknown>
}

/** Has a part closed at last, and gives it back. */
export type ClosedAtLast = <Started extends Part>(part: Started) => Started

/**
 * Starts what consists of several parts. `close` closes those that `start` has named, the last one first; where a step of
 * `start` fails, they are closed at once, before this rejects with what went wrong.
 */
export async function startParts<Whole extends object>(
  start: (closedAtLast: ClosedAtLast) => Promise<Whole>,
): Promise<Whole & { close(): Promise<void> }> {
  const parts: Part[] = []
  const close = async (): Promise<void> => {
    for (const part of parts.splice(0).reverse()) await part.close()
  }
  const closedAtLast: ClosedAtLast = (part) => {
    parts.push(part)
    return part
  }
  try {
    return { ...(await start(closedAtLast)), close }
  } catch (error) {
    await close()
    throw error
  }
}
