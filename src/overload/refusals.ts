import { STATUS_CODES } from 'node:http'
import { GatewayError } from '../core/gateway-error.js'
import type { Envelope } from '../dialects/envelope.js'
import { envelopeFor, renderError } from '../dialects/error-format.js'
import type { RefusalReason } from './admission.js'

interface Terms {
  readonly message: string
  readonly retryAfterSeconds: number
}

const TERMS: Readonly<Record<RefusalReason, Terms>> = {
  concurrency: { message: 'The gateway has as many requests under way as it serves at once.', retryAfterSeconds: 1 },
  loop_delay: { message: 'The gateway has more requests than it can serve promptly.', retryAfterSeconds: 1 },
  memory: { message: 'The gateway is short of memory.', retryAfterSeconds: 5 },
}

const errorFor = ({ message, retryAfterSeconds }: Terms): GatewayError =>
  new GatewayError('overloaded', message, { retryAfterSeconds })

/** Made once: what an error notes of its place in the code costs more than the whole refusal. */
const ERRORS: Readonly<Record<RefusalReason, GatewayError>> = {
  concurrency: errorFor(TERMS.concurrency),
  loop_delay: errorFor(TERMS.loop_delay),
  memory: errorFor(TERMS.memory),
}

export const refusalError = (reason: RefusalReason): GatewayError => ERRORS[reason]

/** Stands for the request id while a refusal is rendered once for all; no message and no header contains it. */
const ID = 'REQUEST-ID'

/** A refusal with a gap for each place where the request id stands. */
interface Template {
  readonly head: readonly string[]
  readonly body: readonly string[]
  /** Of the body without ids. */
  readonly bodyBytes: number
}

/** Whole HTTP answers for refused requests, put together from parts that were rendered before. */
export class Refusals {
  private readonly templates = new Map<Envelope, Map<RefusalReason, Template>>()
  private date = ''
  private dateUntilMs = 0

  /** Status line, headers and body as they go over the wire, in ASCII. The id must need no escaping in JSON. */
  wireText(path: string, reason: RefusalReason, requestId: string, nowMs: number = Date.now()): string {
    const { head, body, bodyBytes } = this.templateOf(path, reason)
    const length = bodyBytes + (body.length - 1) * requestId.length
    return `${head.join(requestId)}content-length: ${length}\r\ndate: ${this.dateText(nowMs)}\r\n\r\n${body.join(requestId)}`
  }

  private templateOf(path: string, reason: RefusalReason): Template {
    const envelope = envelopeFor(path)
    const known = this.templates.get(envelope)
    const template = known?.get(reason)
    if (template !== undefined) return template
    const made = makeTemplate(path, reason)
    this.templates.set(envelope, (known ?? new Map<RefusalReason, Template>()).set(reason, made))
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

function makeTemplate(path: string, reason: RefusalReason): Template {
  const { status, headers, body } = renderError(refusalError(reason), path, ID)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const bodyParts = body.split(ID)
  return {
    head: `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Overloaded'}\r\n${lines.join('')}`.split(ID),
    body: bodyParts,
    bodyBytes: Buffer.byteLength(bodyParts.join('')),
  }
}
