import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

const PREFIX = '/edge'

/** The reverse proxy under whose address a gateway is known in public. */
export interface PublicEdge {
  /** What `server.publicUrl` is; has a path of its own. */
  readonly url: string
  /** To be called once the gateway listens. */
  leadTo(gatewayUrl: string): void
  /** Requests so far. */
  readonly requests: number
  close(): Promise<void>
}

export async function startPublicEdge(): Promise<PublicEdge> {
  let gateway = ''
  let requests = 0
  const server = createServer((incoming, outgoing) => {
    const { method, headers, url = '' } = incoming
    requests++
    const target = new URL(gateway + url.slice(PREFIX.length))
    const forwarded = request(target, { method, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PREFIX}`,
    leadTo: (gatewayUrl) => {
      gateway = gatewayUrl
    },
    get requests() {
      return requests
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
