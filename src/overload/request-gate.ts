import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Dialect, PathMatch } from '../core/endpoint.js'
import type { Sharer } from '../core/fair-share.js'
import { GatewayError } from '../core/errors.js'
import { type RequestContext, newRequestId, requestIdOf } from '../core/request-context.js'
import { renderError } from '../dialects/error-format.js'
import { LinesPerSecond } from '../observability/access-log.js'
import { addHeaders, exposeHeaders, isForPage } from '../server/cors.js'
import { sendError, endResponse } from '../server/error-filter.js'
import type { Admission, RefusalReason } from './admission.js'
import type { CallerHeaders } from './caller-resolver.js'
import { FastReject, type FastRejectGate, type SimpleRequest } from './fast-reject.js'
import type { KnownRefusals } from './known-refusals.js'

interface RefusalForm {
  readonly message: string
  readonly retryAfterSeconds: number
}

const REFUSAL_FORMS: Readonly<Record<RefusalReason, RefusalForm>> = {
  concurrency: { message: 'The gateway has as many requests under way as it serves at once.', retryAfterSeconds: 1 },
  loop_delay: { message: 'The gateway has more requests than it can serve promptly.', retryAfterSeconds: 1 },
  memory: { message: 'The gateway is short of memory.', retryAfterSeconds: 5 },
}

const errorFor = ({ message, retryAfterSeconds }: RefusalForm): GatewayError =>
  new GatewayError('overloaded', message, { retryAfterSeconds })

/** Made once: what an error notes of its place in the code costs more than the whole refusal. */
const ERRORS: Readonly<Record<RefusalReason, GatewayError>> = {
  concurrency: errorFor(REFUSAL_FORMS.concurrency),
  loop_delay: errorFor(REFUSAL_FORMS.loop_delay),
  memory: errorFor(REFUSAL_FORMS.memory),
}

export const refusalError = (reason: RefusalReason): GatewayError => ERRORS[reason]

/** Stands for the request id while a refusal is rendered once for all; no message and no header contains it. */
const ID = 'REQUEST-ID'

type Headers = Readonly<Record<string, string>>
const NO_HEADERS: Headers = {}

/** A refusal with a gap for each place where the request id stands. */
interface Template {
  readonly head: readonly string[]
  readonly body: readonly string[]
  /** Of the body without ids. */
  readonly bodyBytes: number
}

/** Whole HTTP answers for refused requests, put together from parts that were rendered before. */
export class RefusalTemplates {
  private readonly templates = new WeakMap<GatewayError, Map<Dialect, Template>>()
  private date = ''
  private dateUntilMs = 0

  /**
   * Status line, headers and body as they go over the wire, in ASCII. The id must need no escaping in JSON. `headers` are sent
   * beside the error's own, the same for each request that is refused with it.
   */
  wireText(
    dialect: Dialect,
    error: GatewayError,
    requestId: string,
    { headers = NO_HEADERS, nowMs = Date.now() }: { readonly headers?: Headers; readonly nowMs?: number } = {},
  ): string {
    const { head, body, bodyBytes } = this.templateOf(dialect, error, headers)
    const length = bodyBytes + (body.length - 1) * requestId.length
    return `${head.join(requestId)}content-length: ${length}\r\ndate: ${this.dateText(nowMs)}\r\n\r\n${body.join(requestId)}`
  }

  /** An error is always sent with the same `headers`. */
  private templateOf(dialect: Dialect, error: GatewayError, headers: Headers): Template {
    const known = this.templates.get(error)
    const template = known?.get(dialect)
    if (template !== undefined) return template
    const made = makeTemplate(dialect, error, headers)
    this.templates.set(error, (known ?? new Map<Dialect, Template>()).set(dialect, made))
    return made
  }

  /** Spelled once a second, as every server does. */
  private dateText(nowMs: number): string {
    if (nowMs >= this.dateUntilMs || nowMs < this.dateUntilMs - 1000) {
      this.date = new Date(nowMs).toUTCString()
      this.dateUntilMs = Math.floor(nowMs / 1000) * 1000 + 1000
    }
    return this.date
  }
}

function makeTemplate(dialect: Dialect, error: GatewayError, further: Headers): Template {
  const { status, headers, body } = renderError(error, dialect, ID)
  const lines = Object.entries({ ...headers, ...further }).map(([name, value]) => `${name}: ${value}\r\n`)
  const bodyParts = body.split(ID)
  return {
    head: `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Overloaded'}\r\n${lines.join('')}`.split(ID),
    body: bodyParts,
    bodyBytes: Buffer.byteLength(bodyParts.join('')),
  }
}

/** Probes of the process, which cost it next to nothing. */
const PROBED_PATHS: ReadonlySet<string> = new Set(['/health/live', '/health/ready'])

/** Operators can help a process that has all it can do; these paths are open to every client, so that only a few are admitted. */
const OPERATORS_PATHS = '/admin/'
const OPERATORS_AT_ONCE = 4

/** How long after its last refusal the gate counts as refusing. */
const REFUSING_MS = 1_000

/** Such a body is here with its head, or about to be; on a connection that goes on nothing is lost by not waiting. */
const SMALL_BYTES = 65_536

type GateDecision = 'let_in' | RefusalReason

export interface RequestGateParts {
  readonly admission: Admission
  readonly known: KnownRefusals
  /** Whether refusals may do without what other answers carry, or do for their connection. */
  readonly mayBeBare: () => boolean
  readonly lastResponse: (socket: Socket) => ServerResponse | undefined
  readonly dialectOf: (path: string, isOfMessages: boolean) => Dialect
  readonly matchOf: (path: string) => PathMatch
  readonly sharerOf: (headers: CallerHeaders) => Sharer
  /** CORS headers, so that a page can read a refusal. */
  readonly corsHeadersOf: (origin: string | undefined) => Headers
  readonly nowMs: () => number
}

/**
 * Decides about every request before any work is done for it. The first refusals of a second are answered and logged like other
 * requests. Further ones are made as cheaply as possible, because their CPU time is taken from admitted requests.
 */
export class RequestGate implements FastRejectGate {
  private readonly templates = new RefusalTemplates()
  /** Of refusals that are calls like others; further ones are counted only. */
  private readonly lines: LinesPerSecond
  private lastRefusalAtMs = Number.NEGATIVE_INFINITY
  private isLettingIn = false
  private operatorsUnderWay = 0

  constructor(private readonly parts: RequestGateParts) {
    this.lines = new LinesPerSecond(parts.nowMs)
  }

  lastResponse(socket: Socket): ServerResponse | undefined {
    return this.parts.lastResponse(socket)
  }

  get isRefusing(): boolean {
    return this.parts.mayBeBare() && this.parts.nowMs() - this.lastRefusalAtMs < REFUSING_MS
  }

  /** Called once for each request, with its path and caller. An admitted request is under way until `end`. */
  check(path: string, sharer: Sharer): GateDecision {
    const reason = this.isLettingIn ? undefined : this.reasonFor(path, sharer)
    this.isLettingIn = false
    if (reason !== undefined) return reason
    this.parts.admission.begin(sharer)
    if (path.startsWith(OPERATORS_PATHS)) this.operatorsUnderWay++
    return 'let_in'
  }

  /** Called once for each request that was let in, when its response is over, with the bytes of its body and its response. */
  end(path: string, sharer: Sharer, bytes: number): void {
    this.parts.admission.end(sharer, bytes)
    if (path.startsWith(OPERATORS_PATHS)) this.operatorsUnderWay--
  }

  /**
   * Refuses without a call, a line in the log or anything else, when there are too many for that; false when there is
   * room for all of it, and `refuse` is to be used.
   */
  refuseBarely(
    reason: RefusalReason,
    path: string,
    { isOfMessages }: CallerHeaders,
    request: IncomingMessage,
    response: ServerResponse,
  ): boolean {
    if (this.lines.hasRoom() || !this.parts.mayBeBare()) return false
    this.answerBarely(refusalError(reason), this.parts.dialectOf(path, isOfMessages), request, response)
    return true
  }

  /** Refuses a request like others before it, for the same reason, when there are too many of them; false otherwise. */
  refuseLikeOthers(
    path: string,
    sharer: Sharer,
    headers: CallerHeaders,
    request: IncomingMessage,
    response: ServerResponse,
  ): boolean {
    if (!this.parts.mayBeBare()) return false
    const known = this.parts.known.find(this.parts.matchOf(path), request.method ?? '', sharer, headers)
    if (known === undefined) return false
    this.lastRefusalAtMs = this.parts.nowMs()
    this.answerBarely(known.error, known.call.dialect, request, response, known.headers)
    return true
  }

  private answerBarely(
    error: GatewayError,
    dialect: Dialect,
    request: IncomingMessage,
    response: ServerResponse,
    further: Headers = NO_HEADERS,
  ): void {
    const { socket } = request
    response.once('finish', () => {
      // The parser may still have to see the end of the request that was just answered.
      setImmediate(() => {
        FastReject.raise(socket, this)
      })
    })
    const { status, headers, body } = renderError(error, dialect, requestIdOf(request))
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    const whole = { ...headers, ...further, ...length }
    addHeaders(whole, this.parts.corsHeadersOf(request.headers.origin))
    if (isForPage(whole)) exposeHeaders(whole)
    response.writeHead(status, whole)
    if (response.shouldKeepAlive && isSmall(request)) response.end(body)
    else endResponse(body, request, response)
  }

  /** Refuses a call like any other that fails. */
  refuse(reason: RefusalReason, call: RequestContext, request: IncomingMessage, response: ServerResponse): void {
    sendError(refusalError(reason), call, request, response)
  }

  refusalText({ method, path, requestId, ...headers }: SimpleRequest): string | undefined {
    const sharer = this.parts.sharerOf(headers)
    const id = requestId === '' ? newRequestId() : requestId
    const known = this.parts.known.isBusy
      ? this.parts.known.find(this.parts.matchOf(path), method, sharer, headers)
      : undefined
    if (known !== undefined) {
      this.lastRefusalAtMs = this.parts.nowMs()
      return this.templates.wireText(known.call.dialect, known.error, id, { headers: known.headers })
    }
    const reason = this.reasonFor(path, sharer)
    return reason === undefined
      ? undefined
      : this.templates.wireText(this.parts.dialectOf(path, headers.isOfMessages), refusalError(reason), id)
  }

  letIn(parse: () => void): void {
    this.isLettingIn = true
    parse()
    this.isLettingIn = false
  }

  private reasonFor(path: string, sharer: Sharer): RefusalReason | undefined {
    if (this.isLetInAnyway(path)) return undefined
    const nowMs = this.parts.nowMs()
    const reason = this.parts.admission.check(nowMs, sharer)
    if (reason === undefined) return undefined
    this.parts.admission.countRefusal(reason)
    this.lastRefusalAtMs = nowMs
    return reason
  }

  /** Not judged at all: a judgement counts, and may use up the one place that a turn has left. */
  private isLetInAnyway(path: string): boolean {
    if (path.startsWith(OPERATORS_PATHS)) return this.operatorsUnderWay < OPERATORS_AT_ONCE
    return PROBED_PATHS.has(path)
  }
}

const isSmall = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= SMALL_BYTES
