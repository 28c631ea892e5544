import type { ByteSink, ByteSource } from './byte-source.js'
import type { GatewayError } from './gateway-error.js'
import type { Usage } from './request-context.js'
import { UpstreamAnswer } from './upstream-answer.js'
import { reportedUsage } from './usage.js'

/** Upstreams report the usage behind the choices; it and what follows it fit in here. */
const TAIL_BYTES = 8192

/** The key with its quotes unescaped, as no text of a model can hold it. */
const USAGE_KEY = '"usage"'

const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const QUOTE = 0x22
const BLANKS: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n'))

/** Whether bytes begin as an object with members does. */
export function beginsAsObject(bytes: Buffer): boolean {
  const brace = firstSign(bytes, 0)
  return bytes[brace] === OPEN_BRACE && bytes[firstSign(bytes, brace + 1)] === QUOTE
}

function firstSign(bytes: Buffer, from: number): number {
  let position = from
  while (BLANKS.has(bytes[position])) position++
  return position
}

/**
 * What the last member `usage` of a JSON object holds, with no more parsed than what stands from there to the end;
 * undefined when it cannot be told from that. Whatever follows the member, with a brace in front of it, is an object
 * itself exactly when the member is one of the outermost, and nothing of the end is missing or broken.
 */
export function usageAtEnd(bytes: Buffer): unknown {
  const start = bytes.lastIndexOf(USAGE_KEY)
  let before = start - 1
  while (BLANKS.has(bytes[before])) before--
  if (bytes[before] !== COMMA) return undefined
  try {
    return (JSON.parse(`{${bytes.toString('utf8', start)}`) as { readonly usage?: unknown }).usage
  } catch {
    return undefined
  }
}

/** The same answer; when its last byte has passed, the usage at its end is reported. For JSON too large to be held. */
export function withUsageFromTail(answer: UpstreamAnswer, found: (usage: Usage) => void): UpstreamAnswer {
  const { status, headers, body, onFailure } = answer
  return Buffer.isBuffer(body) ? answer : new UpstreamAnswer(status, headers, new UsageTail(body, found), onFailure)
}

class UsageTail implements ByteSource, ByteSink {
  private sink!: ByteSink
  private tail: Buffer = Buffer.alloc(0)

  constructor(
    private readonly source: ByteSource,
    private readonly found: (usage: Usage) => void,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.source.start(this)
  }

  pause(): void {
    this.source.pause()
  }

  resume(): void {
    this.source.resume()
  }

  cancel(): void {
    this.source.cancel()
  }

  data(chunk: Buffer): void {
    this.tail = Buffer.concat([this.tail, chunk.subarray(-TAIL_BYTES)]).subarray(-TAIL_BYTES)
    this.sink.data(chunk)
  }

  end(): void {
    const usage = reportedUsage(usageAtEnd(this.tail))
    if (usage !== undefined) this.found(usage)
    this.sink.end()
  }

  fail(error: GatewayError): void {
    this.sink.fail(error)
  }
}
