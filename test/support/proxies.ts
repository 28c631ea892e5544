import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Stands between the gateway and an upstream, and keeps the upstream's answers back when told to. */
export interface HoldingProxy {
  readonly url: string
  readonly port: number
  /** From now on no byte of an answer gets through. */
  hold(): void
  /** Lets through what was kept back, and everything after it. */
  release(): void
  /** Breaks every connection off; what was kept back is lost. */
  cut(): void
  close(): Promise<void>
}

export async function startHoldingProxy(upstreamPort: number): Promise<HoldingProxy> {
  const pairs = new Set<{ readonly caller: Socket; readonly upstream: Socket }>()
  let isHolding = false
  const server = createServer((caller) => {
    const upstream = connect(upstreamPort, '127.0.0.1')
    const pair = { caller, upstream }
    pairs.add(pair)
    caller.on('data', (chunk: Buffer) => upstream.write(chunk))
    upstream.on('data', (chunk: Buffer) => caller.write(chunk))
    if (isHolding) upstream.pause()
    for (const socket of [caller, upstream]) {
      socket.on('error', () => undefined)
      socket.on('close', () => {
        pairs.delete(pair)
        caller.destroy()
        upstream.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const cut = (): void => {
    for (const { caller, upstream } of [...pairs]) {
      caller.destroy()
      upstream.destroy()
    }
  }
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    hold: () => {
      isHolding = true
      for (const { upstream } of pairs) upstream.pause()
    },
    release: () => {
      isHolding = false
      for (const { upstream } of pairs) upstream.resume()
    },
    cut,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      cut()
      await closed
    },
  }
}
