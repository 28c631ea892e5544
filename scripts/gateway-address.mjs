// Where a gateway of its own process listens.
import { createInterface } from 'node:readline'

const READY_WITHIN_MS = 60_000

/** The address that it names once it listens; a child that does not is ended, and the error has what it wrote. */
export async function addressOf(child, readyWithinMs = READY_WITHIN_MS) {
  const lines = []
  const timer = setTimeout(() => child.kill(), readyWithinMs)
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const [, address] = / listens at (http\S+)/.exec(line) ?? []
      if (address !== undefined) return address
      lines.push(line)
    }
    throw new Error(`The gateway ended before it listened:\n${lines.join('\n')}`)
  } finally {
    clearTimeout(timer)
    // What it writes from now on must not fill the pipe.
    child.stdout.resume()
  }
}
