import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'

/** A server at every address of this machine that counts who comes; it answers every request with 200. */
export interface UntouchedServer {
  readonly port: number
  /** Connections accepted so far. */
  readonly accepted: number
  close(): Promise<void>
}

export async function startUntouchedServer(): Promise<UntouchedServer> {
  let accepted = 0
  const server = createServer((socket) => {
    accepted++
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok')
    })
  })
  // Both families where the machine has them.
  await listen(server, '::').catch(() => listen(server, '0.0.0.0'))
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      await closed
    },
  }
}

async function listen(server: Server, host: string): Promise<void> {
  server.listen(0, host)
  await once(server, 'listening')
}
