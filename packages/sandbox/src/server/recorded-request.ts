import type { IncomingMessage } from 'node:http'
import type { ReceivedPart } from './multipart-reader.js'

/**
 * How a request ended, as seen from the upstream's socket.
 * - `finished`: the whole answer was handed to the network
 * - `aborted`: the caller's socket went away first
 * - `broken`: the simulator itself broke the connection off (a fault, or its own shutdown)
 */
export type RequestOutcome = 'finished' | 'aborted' | 'broken'

/** Bytes of a body that are kept when `recordBodies` is off. */
export const RECORDED_BODY_BYTES = 1024 * 1024

/**
 * One request as the simulator received it. Recorded when its head arrives; `body`, `receivedBytes` and `parts` fill up
 * until `received` resolves. Times are `performance.now()` values of this process, in milliseconds.
 */
export class RecordedRequest {
  readonly method: string
  /** The path without the query string. */
  readonly path: string
  readonly query: URLSearchParams
  /** Names in lower case; a repeated header is joined with `, `. */
  readonly headers: Readonly<Record<string, string>>
  readonly rawHeaders: readonly string[]
  /** What a relay must not have sent; a test asserts that it is empty. */
  readonly violations: string[] = []
  /** messages: calls since the user spoke that came back without the thoughts that they were made with, which upstreams let pass. */
  callsWithoutThoughts = 0
  /** Set for multipart bodies, in the order received. */
  parts: readonly ReceivedPart[] | undefined
  receivedBytes = 0
  readonly arrivedAtMs = performance.now()
  receivedAtMs: number | undefined
  closedAtMs: number | undefined
  /** Status line sent, once it was sent. */
  answeredStatus: number | undefined
  /** Resolves when the body was read to its end, or the request ended before that. */
  readonly received: Promise<void>
  /** Resolves when the exchange is over; never rejects. */
  readonly closed: Promise<RequestOutcome>

  readonly #keepBytes: number
  #chunks: Buffer[] = []
  #keptBytes = 0
  #resolveReceived!: () => void
  #resolveClosed!: (outcome: RequestOutcome) => void

  constructor(message: IncomingMessage, recordWholeBody: boolean) {
    const url = new URL(message.url ?? '/', 'http://simulator.invalid')
    this.method = message.method ?? 'GET'
    this.path = url.pathname
    this.query = url.searchParams
    this.rawHeaders = message.rawHeaders
    this.headers = joinHeaders(message.rawHeaders)
    this.#keepBytes = recordWholeBody ? Number.POSITIVE_INFINITY : RECORDED_BODY_BYTES
    this.received = new Promise((resolve) => (this.#resolveReceived = resolve))
    this.closed = new Promise((resolve) => (this.#resolveClosed = resolve))
  }

  /** The body as received; only its first mebibyte when `bodyTruncated`. */
  get body(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
    return this.#chunks[0] ?? Buffer.alloc(0)
  }

  get bodyTruncated(): boolean {
    return this.#keptBytes < this.receivedBytes
  }

  /** The content of a multipart part; undefined when the body was too large to be kept. */
  partBytes(part: ReceivedPart): Buffer | undefined {
    return this.bodyTruncated ? undefined : this.body.subarray(part.offset, part.offset + part.size)
  }

  /** The body parsed as JSON. Throws a SyntaxError when it is none. */
  json(): unknown {
    return JSON.parse(this.body.toString('utf8'))
  }

  /** Used by the server alone: counts a piece of the body and keeps it while the bound allows. */
  capture(chunk: Buffer): void {
    this.receivedBytes += chunk.length
    const room = this.#keepBytes - this.#keptBytes
    if (room <= 0) return
    const kept = chunk.length <= room ? chunk : Buffer.from(chunk.subarray(0, room))
    this.#chunks.push(kept)
    this.#keptBytes += kept.length
  }

  /** Used by the server alone: the bytes this record holds in memory. */
  get heldBytes(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  }

  /** Used by the server alone: gives the memory of an old body back. */
  forgetBody(): void {
    this.#chunks = []
    this.#keptBytes = 0
  }

  /** Used by the server alone. */
  markReceived(): void {
    this.receivedAtMs ??= performance.now()
    this.#resolveReceived()
  }

  /** Used by the server alone. */
  markClosed(outcome: RequestOutcome): void {
    this.closedAtMs ??= performance.now()
    this.#resolveClosed(outcome)
    this.#resolveReceived()
  }
}

function joinHeaders(rawHeaders: readonly string[]): Record<string, string> {
  const joined: Record<string, string> = {}
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase()
    const value = rawHeaders[index + 1] ?? ''
    const before = joined[name]
    joined[name] = before === undefined ? value : `${before}, ${value}`
  }
  return joined
}

/** Headers that belong between a caller and a relay and must not reach an upstream. */
const FORBIDDEN = [/^x-stainless-/, /^x-forwarded-/, /^(cookie|forwarded|via|x-real-ip|origin|referer)$/, /^proxy-/]

/** Headers that may carry a key. */
const CREDENTIALS = ['authorization', 'x-api-key', 'mj-api-secret'] as const

/** Notes every header a relay should have kept to itself. `credential` names the only header that may carry a key upstream. */
export function recordHeaderViolations(request: RecordedRequest, credential: (typeof CREDENTIALS)[number]): void {
  for (const name of Object.keys(request.headers)) {
    if (FORBIDDEN.some((pattern) => pattern.test(name))) request.violations.push(`forwarded header: ${name}`)
  }
  for (const other of CREDENTIALS) {
    if (other !== credential && request.headers[other] !== undefined) {
      request.violations.push(`forwarded header: ${other}`)
    }
  }
  const names = request.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
  if (names.filter((name) => name === credential).length > 1) request.violations.push(`repeated header: ${credential}`)
}

/** Requests remembered; older ones are forgotten. */
const REMEMBERED_REQUESTS = 1000
/** Memory for remembered bodies unless all are kept; beyond it the oldest bodies are dropped. */
const REMEMBERED_BODY_BYTES = 32 * 1024 * 1024

/** The requests a simulator remembers, newest last: 1,000 of them, and 32 MiB of bodies unless all bodies are kept. */
export class RequestMemory {
  #requests: RecordedRequest[] = []
  /** Requests whose bodies count towards the memory bound, oldest first. */
  readonly #holding: RecordedRequest[] = []
  #heldBytes = 0

  constructor(private readonly keepsAllBodies: boolean) {}

  get requests(): readonly RecordedRequest[] {
    return this.#requests
  }

  /** Called when the head of a request has arrived. */
  add(request: RecordedRequest): void {
    this.#requests.push(request)
    if (this.#requests.length > REMEMBERED_REQUESTS) this.#requests.shift()
  }

  /** Called when the body of a request was read to its end: only now is it known how much the record holds. */
  bodyReceived(request: RecordedRequest): void {
    if (this.keepsAllBodies) return
    this.#holding.push(request)
    this.#heldBytes += request.heldBytes
    while (this.#heldBytes > REMEMBERED_BODY_BYTES) {
      const oldest = this.#holding.shift()
      if (oldest === undefined) return
      this.#heldBytes -= oldest.heldBytes
      oldest.forgetBody()
    }
    if (this.#holding.length > REMEMBERED_REQUESTS) this.#heldBytes -= this.#holding.shift()?.heldBytes ?? 0
  }

  clear(): void {
    this.#requests = []
  }
}
