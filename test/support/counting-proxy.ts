import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Stands between the gateway and an upstream and counts what the upstream has sent; passes back-pressure on. */
export interface CountingProxy {
  readonly url: string
  /** Bytes from the upstream, by connection in the order they were opened. */
  readonly sentBytes: readonly number[]
  readonly close: () => Promise<void>
}

export async function startCountingProxy(upstreamPort: number): Promise<CountingProxy> {
  const sentBytes: number[] = []
  const sockets = new Set<Socket>()
  const server = createServer((caller) => {
    const upstream = connect(upstreamPort, '127.0.0.1')
    const index = sentBytes.push(0) - 1
    upstream.on('data', (chunk: Buffer) => {
      sentBytes[index] = (sentBytes[index] ?? 0) + chunk.length
    })
    caller.pipe(upstream)
    upstream.pipe(caller)
    for (const [socket, other] of [
      [caller, upstream],
      [upstream, caller],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => other.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sentBytes,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
