import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Stands between the gateway and an upstream and hands on what the upstream sends in pieces of an odd length. */
export interface CuttingProxy {
  readonly url: string
  readonly close: () => Promise<void>
}

const PIECE_BYTES = 1001

export async function startCuttingProxy(upstreamPort: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, (caller) => {
    const upstream = connect(upstreamPort, '127.0.0.1')
    for (const socket of [caller, upstream]) sockets.add(socket)
    // A connection that breaks breaks the other one.
    pipeline(caller, upstream).catch(() => undefined)
    pipeline(upstream, inPieces, caller).catch(() => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Each in a turn of its own, so that the reader does not see two of them at once. */
async function* inPieces(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    for (let start = 0; start < chunk.length; start += PIECE_BYTES) {
      yield chunk.subarray(start, start + PIECE_BYTES)
      await nextTurn()
    }
  }
}
