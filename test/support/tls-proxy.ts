import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { selfSigned } from './self-signed.js'

export interface TlsProxy {
  /** `https://127.0.0.1:<port>`; its certificate is nobody's. */
  readonly url: string
  close(): Promise<void>
}

/** Ends TLS in front of a server on this machine, as a load balancer would: for clients that insist on `wss:`. */
export async function startTlsProxy(serverUrl: string): Promise<TlsProxy> {
  const port = Number(new URL(serverUrl).port)
  const sockets = new Set<TLSSocket>()
  const listener = createServer(selfSigned('localhost'), (outer) => {
    const inner = connect(port, '127.0.0.1')
    sockets.add(outer)
    outer.once('close', () => {
      sockets.delete(outer)
      inner.destroy()
    })
    inner.once('close', () => outer.destroy())
    outer.on('error', () => undefined)
    inner.on('error', () => undefined)
    outer.pipe(inner).pipe(outer)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    url: `https://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    close: async () => {
      const closed = once(listener, 'close')
      listener.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
