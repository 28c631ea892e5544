import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Stands before a server that may fall silent, as a machine does whose power is gone. */
export interface SilentProxy {
  readonly port: number
  /** From now on nothing gets through in either direction, and no connection is closed, not even one whose client closes it. */
  silence(): void
  close(): Promise<void>
}

export async function startSilentProxy(target: number): Promise<SilentProxy> {
  const sockets = new Set<Socket>()
  let isSilent = false
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => undefined)
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client)
    if (isSilent) return
    const upstream = keep(connect({ port: target, host: '127.0.0.1', allowHalfOpen: true }))
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', (bytes: Buffer) => isSilent || to.write(bytes))
      from.on('end', () => isSilent || to.end())
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    silence: () => {
      isSilent = true
    },
    close: async () => {
      const closed = once(server, 'close')
      for (const socket of sockets) socket.destroy()
      server.close()
      await closed
    },
  }
}
