import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Call } from '../../src/core/request-context.js'
import type { UpstreamTarget } from '../../src/upstream/upstream-client.js'

/** A TCP server that hands each request head to the test, which answers with whatever bytes it likes. */
export interface RawUpstream {
  readonly port: number
  /** Connections accepted so far. */
  readonly accepted: number
  readonly sockets: ReadonlySet<Socket>
  close(): Promise<void>
}

export async function startRawUpstream(onRequest: (socket: Socket, head: string) => void): Promise<RawUpstream> {
  const sockets = new Set<Socket>()
  let accepted = 0
  const server = createServer((socket) => {
    accepted++
    sockets.add(socket)
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const end = received.indexOf('\r\n\r\n')
      if (end === -1) return
      const head = received.slice(0, end)
      received = ''
      onRequest(socket, head)
    })
    // Resets are what these tests are about.
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted
    },
    sockets,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** A port of the loopback interface on which nobody listens. */
export async function unusedPort(): Promise<number> {
  const upstream = await startRawUpstream(() => undefined)
  await upstream.close()
  return upstream.port
}

export const GENEROUS_TIMEOUTS = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 20_000 }

export const targetOf = (port: number, changes: Partial<UpstreamTarget> = {}): UpstreamTarget => ({
  poolKey: `upstream ${port}`,
  origin: `http://127.0.0.1:${port}`,
  pathPrefix: '',
  timeouts: GENEROUS_TIMEOUTS,
  ...changes,
})

export const newCall = (path = '/v1/chat/completions'): Call => new Call('req_test', 'POST', path, performance.now())
