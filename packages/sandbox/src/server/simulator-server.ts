import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Exchange } from './exchange.js'
import { type Fault, FaultQueue } from './faults.js'
import { RecordedRequest, RequestMemory } from './recorded-request.js'
import { ServedLedger } from './served-usage.js'

export interface SimulatorOptions {
  /** 0, the default, takes a free port. */
  readonly port?: number
  readonly host?: string
  /** Keep bodies of any size, and all of them. Default: the first mebibyte of each, 32 MiB in all. */
  readonly recordBodies?: boolean
  /** Pause between the frames of a stream in milliseconds, default 0. */
  readonly paceMs?: number
  /** Where it notes what it has served. Default: a ledger of its own. */
  readonly served?: ServedLedger
}

/** Answers one request. An error thrown while the caller is still there becomes a 500 and a violation. */
type SimulatorHandler = (exchange: Exchange) => Promise<void>

interface SimulatorEvents {
  /** The head of a request has arrived. */
  request: [RecordedRequest]
  /** The body was read to its end. */
  received: [RecordedRequest]
  /** The caller's socket went away before the answer was complete. */
  abort: [RecordedRequest]
}

/** A running simulator. The interface for tests and the sandbox. */
export interface Simulator {
  /** `http://127.0.0.1:<port>`, without a path. */
  readonly url: string
  readonly port: number
  /** Newest last, at most 1,000. */
  readonly requests: readonly RecordedRequest[]
  readonly lastRequest: RecordedRequest | undefined
  /** The violations of all remembered requests, and of the WebSocket sessions when there can be any. */
  readonly violations: readonly string[]
  readonly served: ServedLedger
  /** Sockets open now, idle keep-alive ones included. */
  readonly openConnections: number
  /** Requests whose exchange is not over. */
  readonly activeRequests: number
  /** Resolves with the first request that arrives after this call, once its body was read (or its caller left). */
  nextRequest(): Promise<RecordedRequest>
  /** Resolves with the first request after this call whose caller leaves before the answer is complete. */
  nextAbort(): Promise<RecordedRequest>
  /** Resolves when no exchange is active any more. */
  idle(): Promise<void>
  /**
   * The next request suffers this fault, or the next of this method where others may come in between; several are used
   * up in order, one per request.
   */
  queueFault(fault: Fault, method?: string): void
  /** Forgets recorded requests and queued faults. */
  reset(): void
  on<Name extends keyof SimulatorEvents>(event: Name, listener: (...args: SimulatorEvents[Name]) => void): this
  once<Name extends keyof SimulatorEvents>(event: Name, listener: (...args: SimulatorEvents[Name]) => void): this
  off<Name extends keyof SimulatorEvents>(event: Name, listener: (...args: SimulatorEvents[Name]) => void): this
  /** Stops listening and destroys every open socket. */
  close(): Promise<void>
}

/** The part of a simulator that holds its WebSocket sessions. */
interface UpgradeHandler {
  readonly violations: readonly string[]
  upgrade(message: IncomingMessage, head: Buffer): void
  reset(): void
  breakOff(): void
}

/**
 * Starts a server on the loopback interface that records each request and lets the handler judge and answer it. Upgrade
 * requests are ordinary ones unless there is a handler for them.
 */
export async function startSimulator(
  handler: SimulatorHandler,
  options: SimulatorOptions = {},
  upgrades?: UpgradeHandler,
): Promise<Simulator> {
  const simulator = new SimulatorServer(handler, options, upgrades)
  await simulator.listen()
  return simulator
}

class SimulatorServer extends EventEmitter<SimulatorEvents & { idle: [] }> implements Simulator {
  readonly served: ServedLedger
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #active = new Set<Exchange>()
  readonly #faults = new FaultQueue()
  readonly #memory: RequestMemory

  constructor(
    private readonly handler: SimulatorHandler,
    private readonly options: SimulatorOptions,
    private readonly upgrades: UpgradeHandler | undefined,
  ) {
    super()
    this.setMaxListeners(0)
    this.served = options.served ?? new ServedLedger()
    this.#memory = new RequestMemory(options.recordBodies ?? false)
    this.#server = createServer((message, response) => {
      void this.#serve(message, response)
    })
    // Longer than any pool keeps a socket, so that a reused connection is never closed under the caller's next request.
    this.#server.keepAliveTimeout = 65_000
    if (upgrades !== undefined) {
      this.#server.on('upgrade', (message: IncomingMessage, _socket, head: Buffer) => {
        upgrades.upgrade(message, head)
      })
    }
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
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
    return `http://${this.options.host ?? '127.0.0.1'}:${this.port}`
  }

  get requests(): readonly RecordedRequest[] {
    return this.#memory.requests
  }

  get lastRequest(): RecordedRequest | undefined {
    return this.requests.at(-1)
  }

  get violations(): readonly string[] {
    return [...this.requests.flatMap((request) => request.violations), ...(this.upgrades?.violations ?? [])]
  }

  get openConnections(): number {
    return this.#sockets.size
  }

  get activeRequests(): number {
    return this.#active.size
  }

  async nextRequest(): Promise<RecordedRequest> {
    const [request] = (await once(this, 'request')) as [RecordedRequest]
    await request.received
    return request
  }

  async nextAbort(): Promise<RecordedRequest> {
    const [request] = (await once(this, 'abort')) as [RecordedRequest]
    return request
  }

  async idle(): Promise<void> {
    if (this.#active.size > 0) await once(this, 'idle')
  }

  queueFault(fault: Fault, method?: string): void {
    this.#faults.add(fault, method)
  }

  reset(): void {
    this.#memory.clear()
    this.#faults.clear()
    this.upgrades?.reset()
  }

  async close(): Promise<void> {
    for (const exchange of this.#active) exchange.brokenOff = true
    this.upgrades?.breakOff()
    const closed = [once(this.#server, 'close'), ...[...this.#sockets].map((socket) => once(socket, 'close'))]
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(closed)
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = new RecordedRequest(message, this.options.recordBodies ?? false)
    const exchange = new Exchange(request, message, response, this.#faults.take(message.method), {
      paceMs: this.options.paceMs ?? 0,
      served: this.served,
    })
    this.#memory.add(request)
    this.#active.add(exchange)
    response.once('close', () => {
      this.#settle(exchange)
    })
    void request.received.then(() => {
      this.#memory.bodyReceived(request)
      this.emit('received', request)
    })
    this.emit('request', request)
    try {
      await this.handler(exchange)
      // A handler may answer without looking at the body; it is still read, so the record is whole.
      await exchange.drain()
    } catch (error) {
      const callerLeft = response.destroyed || message.errored !== null
      if (!callerLeft) reportFailure(exchange, error)
    }
  }

  #settle(exchange: Exchange): void {
    const { request, response } = exchange
    const outcome = exchange.brokenOff ? 'broken' : response.writableFinished ? 'finished' : 'aborted'
    this.#active.delete(exchange)
    request.markClosed(outcome)
    if (outcome === 'aborted') this.emit('abort', request)
    if (this.#active.size === 0) this.emit('idle')
  }
}

/** A bug of the simulator is printed, so that the test's output shows it. */
function reportFailure(exchange: Exchange, error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  exchange.request.violations.push(`simulator failure: ${text}`)
  if (exchange.response.headersSent) exchange.breakOff()
  else exchange.response.writeHead(500, { 'content-type': 'text/plain' }).end(`Simulator failure: ${text}\n`)
}
