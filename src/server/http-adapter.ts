import { type IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ExpressAdapter } from '@nestjs/platform-express'
import express, { type Express } from 'express'
import { ProviderResponse } from '../core/byte-stream.js'
import { deferWrites } from '../core/deferred-writes.js'
import { type Dialect, UNKNOWN_PATH } from '../core/endpoint.js'
import { contextOf, findContext } from '../core/request-context.js'
import { internalFault, sendClientError, sendError } from './error-filter.js'
import { stampResponses } from './response-headers.js'
import { writeResponse } from './response-writer.js'
import {
  attachUpgrade,
  findUpgrade,
  PendingUpgrade,
  upgradableRequests,
  UpgradableServer,
  UpgradeResponse,
  type UpgradeHandler,
} from './upgrade.js'

interface ServerLimits {
  readonly headersTimeoutMs: number
  /** The longest a whole request may take to arrive; routes with small bodies have a tighter limit of their own. */
  readonly requestTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly checkIntervalMs: number
  readonly headerBytes: number
}

export const SERVER_LIMITS: ServerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 120_000,
  // Longer than the 60 s of common load balancers, so that they and not we close idle connections.
  keepAliveTimeoutMs: 75_000,
  checkIntervalMs: 1_000,
  headerBytes: 16_384,
}

/** Called for every request before Express sees it; false when it has answered by itself, and Express is not to see it. */
export type RequestStart = (request: IncomingMessage, response: ServerResponse) => unknown

/**
 * Nest on Express, set up for a relay: strict, case-sensitive routes, no headers of its own, an answer type of its own,
 * and requests and responses that are born with Express' prototypes. Express otherwise replaces the prototype of both
 * on every request, and V8 drops its optimised shapes: on Node 20 that is two thirds of a relayed call.
 */
export class GatewayHttpAdapter extends ExpressAdapter {
  private upgradeTaker: UpgradeHandler | undefined
  /** Nest's handlers of routes for POST without parameters, by their paths. */
  private readonly handlers = new Map<string, RouteHandler>()

  /** `registerLast` adds the routes that may wait: Express looks at routes in the order they were registered. */
  constructor(
    private readonly startRequest: RequestStart,
    private readonly registerLast: () => void = () => undefined,
    /** For what never becomes a request with a context of its own. */
    private readonly dialectOf: (path: string) => Dialect = () => UNKNOWN_PATH.dialect,
  ) {
    super(relayExpress())
  }

  /** Nest calls this once all routes of the application are in place. */
  override setNotFoundHandler(...parameters: Parameters<ExpressAdapter['setNotFoundHandler']>): unknown {
    this.registerLast()
    return super.setNotFoundHandler(...parameters)
  }

  /** Set by the socket server; until then every offer to leave HTTP is ignored. */
  serveUpgrades(taker: UpgradeHandler): void {
    this.upgradeTaker = taker
  }

  /** To the last request that was read from a connection; undefined once both are over and the connection goes on. */
  lastResponse(socket: Duplex): ServerResponse | undefined {
    return (socket as RespondedSocket)[LAST_RESPONSE]
  }

  /**
   * Express tries one route after the other, and takes 4 µs to come to a handler that a map finds at once: a twentieth of a relayed
   * chat. It keeps them all, for what the map does not find. As there, the first of equal paths wins; one without parameters wins over all
   * that have some.
   */
  override post(handler: RouteHandler): unknown
  override post(path: unknown, handler: RouteHandler): unknown
  override post(path: unknown, handler?: RouteHandler): unknown {
    if (handler === undefined) return super.post(path as RouteHandler)
    if (typeof path === 'string' && !PATH_PARAMETER.test(path) && !this.handlers.has(path))
      this.handlers.set(path, handler)
    return super.post(path, handler)
  }

  override initHttpServer(): void {
    const app = this.getInstance<Express>()
    const handle = app as unknown as RequestListener
    const messages = expressMessages(
      app,
      (request) => isFree(this.lastResponse(request.socket)) && this.upgradeTaker?.wants(request) === true,
    )
    const handleRequest = (request: IncomingMessage, response: ServerResponse): void => {
      if (this.startRequest(request, response) === false) return
      const handler = request.method === 'POST' ? this.handlers.get(findContext(request)?.path ?? '') : undefined
      if (handler === undefined) handle(request, response)
      else void runHandler(handler, request, response)
    }
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      const socket = request.socket as RespondedSocket
      // Its parser goes on to the end of what it has read.
      if (socket.destroyed) return
      const previous = socket[LAST_RESPONSE]
      socket[LAST_RESPONSE] = response
      if (previous === undefined || isFree(previous)) handleRequest(request, response)
      else {
        serveAfter(previous, socket, () => {
          handleRequest(request, response)
        })
      }
    }
    const server = new UpgradableServer(
      {
        ...messages,
        headersTimeout: SERVER_LIMITS.headersTimeoutMs,
        requestTimeout: SERVER_LIMITS.requestTimeoutMs,
        keepAliveTimeout: SERVER_LIMITS.keepAliveTimeoutMs,
        connectionsCheckingInterval: SERVER_LIMITS.checkIntervalMs,
        maxHeaderSize: SERVER_LIMITS.headerBytes,
        // Node would refuse a missing Host with an empty body; `requestFault` does so in the dialect of the path.
        requireHostHeader: false,
      },
      serve,
    )
    stampResponses(app.response)
    server.on('connection', deferWrites)
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const response = new messages.ServerResponse(request)
      server.adopt(socket)
      attachUpgrade(request, new PendingUpgrade(request, response, socket as Socket, head))
      serve(request, response)
    })
    // `100 Continue` is sent by the body reader: key and length are checked before.
    server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      server.emit('request', request, response)
    })
    // An unknown expectation changes nothing about the request.
    server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      server.emit('request', request, response)
    })
    server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
      sendClientError(new Error('CONNECT'), socket, undefined, this.dialectOf)
    })
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      // An answer to what is no request must not get into the responses that come before.
      if (((socket as RespondedSocket)[WAITING] ?? 0) > 0) socket.destroy()
      else sendClientError(error, socket, this.lastResponse(socket), this.dialectOf)
    })
    this.setHttpServer(server)
  }

  override reply(response: express.Response, body: unknown, statusCode?: number): unknown {
    if (body instanceof ProviderResponse) {
      writeResponse(body, response, contextOf(response.req))
      return undefined
    }
    const upgrade = body instanceof UpgradeResponse ? findUpgrade(response.req) : undefined
    if (upgrade === undefined) return super.reply(response, body, statusCode)
    this.upgradeTaker?.take(upgrade, body as UpgradeResponse)
    ;(this.getHttpServer() as UpgradableServer).handOver(response.req.socket)
    return undefined
  }
}

/** Where paths of Express have something to match. */
const PATH_PARAMETER = /[:*{}()[\]?+!\\]/

type RouteHandler = Parameters<ExpressAdapter['post']>[1]

/** What a handler of Nest throws has been answered by its exception filter; whatever comes here is a fault of the gateway. */
async function runHandler(handler: RouteHandler, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const fail = (cause: unknown): void => {
    sendError(internalFault(cause), contextOf(request), request, response)
  }
  const pass = (error?: unknown): void => {
    fail(error ?? new Error('The route has passed its request on.'))
  }
  // As Express does: `response.json` looks for it.
  ;(request as express.Request).res = response as express.Response
  try {
    await handler(request, response, pass)
  } catch (error) {
    fail(error)
  }
}

/** Stands on the socket itself: each entry of a weak map is looked at by every collection of the young heap. */
const LAST_RESPONSE = Symbol('lastAnswer')

const WAITING = Symbol('waitingRequests')

type RespondedSocket = Duplex & { [LAST_RESPONSE]?: ServerResponse | undefined; [WAITING]?: number }

/**
 * An idle connection would otherwise keep all of its last call, its body included: memory for each of thousands of
 * clients, and work for the collector, which has to move whatever outlives a few of its rounds. Called when a response
 * and when a request is over; the later of the two is forgotten with the other.
 */
function forgetResponse(socket: RespondedSocket): void {
  const answer = socket[LAST_RESPONSE]
  if (answer?.req.complete === true && isFree(answer) && answer.shouldKeepAlive) socket[LAST_RESPONSE] = undefined
}

/** A socket whose last answer is still being sent cannot be given away; an upgrade that does not wait is a request. */
const isFree = (last: ServerResponse | undefined): boolean =>
  last === undefined || (last.writableFinished && last.socket === null)

/** Of requests that wait on one connection; a client that sends more ahead has its connection closed: each waits in memory. */
const MAXIMUM_WAITING = 64

/**
 * Requests that a client sends before it has the response to the one before (pipelining) are served one after the other, each in a
 * turn of the event loop of its own: one connection must not fill the gateway. One whose client leaves before its turn is never
 * begun.
 */
function serveAfter(previous: ServerResponse, socket: RespondedSocket, work: () => void): void {
  socket[WAITING] = (socket[WAITING] ?? 0) + 1
  if (socket[WAITING] > MAXIMUM_WAITING) {
    socket.destroy()
    return
  }
  previous.once('close', () => {
    setImmediate(() => {
      socket[WAITING] = (socket[WAITING] ?? 1) - 1
      if (!socket.destroyed) work()
    })
  })
}

function relayExpress(): Express {
  const app = express()
  // The router takes these when it is created, which the first `use` does.
  app.set('case sensitive routing', true)
  app.set('strict routing', true)
  app.set('etag', false)
  app.set('query parser', 'simple')
  app.disable('x-powered-by')
  return app
}

interface MessageClasses {
  readonly IncomingMessage: typeof IncomingMessage
  readonly ServerResponse: typeof ServerResponse
}

/**
 * Message classes whose prototypes are the very ones Express wants, so that its `setPrototypeOf` finds them in place.
 * They are real subclasses: V8 then lays out an instance's properties as Node's own constructors would, while a plain
 * function applied to a bare object costs ten times as much for each message (bench/README.md says how to measure).
 */
function expressMessages(app: Express, wantsUpgrade: UpgradeHandler['wants']): MessageClasses {
  const GatewayRequest = upgradableRequests(wantsUpgrade, forgetResponse)
  class GatewayResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
    /** Node calls it when a response is over. */
    override detachSocket(socket: Socket): void {
      super.detachSocket(socket)
      forgetResponse(socket)
    }
  }
  app.request = adopt(app, GatewayRequest.prototype, express.request) as Express['request']
  app.response = adopt(app, GatewayResponse.prototype, express.response) as Express['response']
  return { IncomingMessage: GatewayRequest, ServerResponse: GatewayResponse }
}

/** What Express does to the prototypes it creates: its methods behind them, and the way back to the application. */
function adopt(app: Express, prototype: object, methods: object): object {
  Object.setPrototypeOf(prototype, methods)
  return Object.defineProperty(prototype, 'app', { value: app, configurable: true, enumerable: true, writable: true })
}
