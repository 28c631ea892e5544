import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

import { Exchange } from './exchange.js'
import { RecordedRequest } from './recorded-request.js'
import type { SocketProtocol, SocketSimulator, SocketSimulatorOptions } from './socket-protocol.js'
import { failureText, SocketReception } from './socket-reception.js'

/** Plain requests remembered; older ones are forgotten. */
const REMEMBERED_REQUESTS = 1000

/** Starts an HTTP server on the loopback interface that records each WebSocket session and lets the protocol hold it. */
export async function startSocketSimulator(
  protocol: SocketProtocol,
  options: SocketSimulatorOptions = {},
): Promise<SocketSimulator> {
  const simulator = new SocketSimulatorServer(protocol, options)
  await simulator.listen()
  return simulator
}

class SocketSimulatorServer extends SocketReception implements SocketSimulator {
  readonly #server: Server
  readonly #connections = new Set<Socket>()
  #requests: RecordedRequest[] = []

  constructor(
    private readonly protocol: SocketProtocol,
    private readonly options: SocketSimulatorOptions,
  ) {
    super(protocol, options.maximumMessageBytes)
    this.#server = createServer((message, response) => {
      void this.#serve(message, response)
    })
    this.#server.on('upgrade', (message: IncomingMessage, _socket, head: Buffer) => {
      this.upgrade(message, head)
    })
    this.#server.on('connection', (socket) => {
      this.#connections.add(socket)
      socket.once('close', () => this.#connections.delete(socket))
    })
  }

  async listen(): Promise<void> {
    this.#server.listen(this.options.port ?? 0, this.options.host ?? '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `ws://${this.options.host ?? '127.0.0.1'}:${this.port}`
  }

  get httpUrl(): string {
    return this.url.replace(/^ws/, 'http')
  }

  get requests(): readonly RecordedRequest[] {
    return this.#requests
  }

  override get violations(): readonly string[] {
    return [...super.violations, ...this.#requests.flatMap((request) => request.violations)]
  }

  get openConnections(): number {
    return this.#connections.size
  }

  override reset(): void {
    super.reset()
    this.#requests = []
  }

  async close(): Promise<void> {
    this.breakOff()
    const closed = [once(this.#server, 'close'), ...[...this.#connections].map((socket) => once(socket, 'close'))]
    this.#server.close()
    for (const socket of this.#connections) socket.destroy()
    await Promise.all(closed)
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = new RecordedRequest(message, false)
    const exchange = new Exchange(request, message, response, undefined, 0)
    this.#requests.push(request)
    if (this.#requests.length > REMEMBERED_REQUESTS) this.#requests.shift()
    response.once('close', () => {
      request.markClosed(response.writableFinished ? 'finished' : 'aborted')
    })
    try {
      if (this.protocol.serve === undefined) await exchange.send(404, { 'content-type': 'text/plain' }, 'Not found\n')
      else await this.protocol.serve(exchange)
      await exchange.drain()
    } catch (error) {
      if (response.destroyed || message.errored !== null) return
      request.violations.push(failureText(error))
      exchange.breakOff()
    }
  }
}
