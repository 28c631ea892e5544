import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'

/** The two ends of one WebSocket over the loopback interface. */
export interface SocketPair {
  /** Accepted by the server. */
  readonly server: WebSocket
  /** Dialled. */
  readonly client: WebSocket
}

export interface PairOptions {
  /** The end that the gateway gets: paused, and without a listener for errors. */
  readonly near: 'server' | 'client'
  /** Whether the other end, which is the test's, answers pings. */
  readonly autoPong?: boolean
}

export interface SocketPairs {
  open(options: PairOptions): Promise<SocketPair>
  close(): Promise<void>
}

/** What accepted sockets are limited to. */
export interface ServerLimits {
  readonly maxFragments?: number
  readonly maxPayload?: number
}

export async function startSocketPairs(limits: ServerLimits = {}): Promise<SocketPairs> {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  const acceptorWith = (autoPong: boolean): WebSocketServer =>
    new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, autoPong, ...limits })
  const [answering, silent] = [acceptorWith(true), acceptorWith(false)]
  const waiting = new Map<string, (socket: WebSocket) => void>()
  listener.on('upgrade', (request, connection, head) => {
    const { url = '' } = request
    const acceptor = url.startsWith('/silent') ? silent : answering
    acceptor.handleUpgrade(request, connection, head, (socket) => waiting.get(url)?.(socket))
  })
  const opened: WebSocket[] = []
  let count = 0
  return {
    open: async ({ near, autoPong = true }) => {
      const url = `/${near === 'client' && !autoPong ? 'silent' : 'answering'}/${++count}`
      const accepted = new Promise<WebSocket>((resolve) => waiting.set(url, resolve))
      const client = new WebSocket(`ws://127.0.0.1:${port}${url}`, {
        perMessageDeflate: false,
        autoPong: near === 'client' || autoPong,
      })
      const isOpen = once(client, 'open').then(() => {
        if (near === 'client') client.pause()
      })
      const server = await accepted
      if (near === 'server') server.pause()
      await isOpen
      waiting.delete(url)
      opened.push(client, server)
      // Broken connections are what these tests are about.
      const far = near === 'client' ? server : client
      far.on('error', () => undefined)
      return { server, client }
    },
    close: async () => {
      for (const socket of opened) socket.terminate()
      const closed = once(listener, 'close')
      listener.close()
      await closed
    },
  }
}
