import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below every range from which systems take ports by themselves: such a port is still free after its process died. */
const PORTS = { lowest: 20_000, highest: 29_999 } as const

/** A port of 127.0.0.1 for a process that keeps it over restarts. Drawn anew in each run: two runs must not meet. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.lowest, PORTS.highest)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => {
        resolve(false)
      })
      server.listen(port, '127.0.0.1', () => {
        resolve(true)
      })
    })
    if (!isFree) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
