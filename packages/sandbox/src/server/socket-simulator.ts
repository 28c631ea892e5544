import type { IncomingMessage } from 'node:http'
import type { Exchange } from './exchange.js'
import type { RecordedRequest } from './recorded-request.js'
import { startSimulator } from './simulator-server.js'
import type { Simulator } from './simulator.js'
import type { SocketProtocol, SocketSimulator, SocketSimulatorOptions } from './websocket-protocol.js'
import { SocketReception } from './websocket-server.js'

/** Starts an HTTP server on the loopback interface that records each WebSocket session and lets the protocol hold it. */
export async function startSocketSimulator(
  protocol: SocketProtocol,
  options: SocketSimulatorOptions = {},
): Promise<SocketSimulator> {
  const simulator = new SocketSimulatorServer(protocol, options.maximumMessageBytes)
  await simulator.listen((exchange) => protocol.serve?.(exchange) ?? notFound(exchange), options)
  return simulator
}

const notFound = (exchange: Exchange): Promise<void> =>
  exchange.send(404, { 'content-type': 'text/plain' }, 'Not found\n')

/** The sessions first; the server that carries them, and what else it is asked, beside them. */
class SocketSimulatorServer extends SocketReception implements SocketSimulator {
  #server!: Simulator

  async listen(serve: (exchange: Exchange) => Promise<void>, options: SocketSimulatorOptions): Promise<void> {
    this.#server = await startSimulator(serve, options, {
      // Counted and reset from this side.
      violations: [],
      reset: () => undefined,
      upgrade: (message: IncomingMessage, head: Buffer) => {
        this.upgrade(message, head)
      },
      breakOff: () => {
        this.breakOff()
      },
    })
  }

  get port(): number {
    return this.#server.port
  }

  get url(): string {
    return this.#server.url.replace(/^http/, 'ws')
  }

  get httpUrl(): string {
    return this.#server.url
  }

  get requests(): readonly RecordedRequest[] {
    return this.#server.requests
  }

  override get violations(): readonly string[] {
    return [...super.violations, ...this.#server.violations]
  }

  get openConnections(): number {
    return this.#server.openConnections
  }

  override reset(): void {
    super.reset()
    this.#server.reset()
  }

  close(): Promise<void> {
    return this.#server.close()
  }
}
