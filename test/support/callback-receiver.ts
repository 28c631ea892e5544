import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedCallback {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export type ReceiverAnswer = (response: ServerResponse, received: ReceivedCallback) => void

/** A caller's own server: keeps what it is sent, and answers as the test says. */
export class CallbackReceiver {
  readonly received: ReceivedCallback[] = []
  /** By default every callback is taken. */
  answer: ReceiverAnswer = (response) => response.writeHead(204).end()
  underWay = 0
  mostUnderWay = 0
  private readonly events = new EventEmitter()
  private readonly server = createServer((request, response) => {
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay)
    response.once('close', () => this.underWay--)
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const received = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(pieces).toString() }
      this.received.push(received)
      this.answer(response, received)
      this.events.emit('received')
    })
  })

  /** On a free port unless one is named. */
  static async start(port = 0): Promise<CallbackReceiver> {
    const receiver = new CallbackReceiver()
    receiver.server.listen(port, '127.0.0.1')
    await once(receiver.server, 'listening')
    return receiver
  }

  /** `127.0.0.1:<port>`, as `ssrf.allow` takes it. */
  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  url(path = '/hook'): string {
    return `http://${this.host}${path}`
  }

  /** The `webhook-id` of everything received so far. */
  get webhookIds(): unknown[] {
    return this.received.map(({ headers }) => headers['webhook-id'])
  }

  /** Resolves once so many callbacks have come. */
  async has(count: number): Promise<void> {
    while (this.received.length < count) await once(this.events, 'received')
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close')
    this.server.close()
    this.server.closeAllConnections()
    await closed
  }
}
