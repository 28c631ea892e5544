import type { GatewayError } from '../errors/gateway-error.js'
import type { ByteSink, ByteSource } from './byte-source.js'
import type { Usage } from './call.js'
import { UpstreamAnswer } from './upstream-answer.js'
import { reportedUsage } from './usage.js'

/** Upstreams report the usage behind the choices; it and what follows it fit in here. */
const TAIL_BYTES = 8192

/** The key with its quotes unescaped, as no text of a model can hold it. */
const USAGE_KEY = /"usage"\s*:\s*(?=\{)/g

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
    const usage = usageIn(this.tail.toString('latin1'))
    if (usage !== undefined) this.found(usage)
    this.sink.end()
  }

  fail(error: GatewayError): void {
    this.sink.fail(error)
  }
}

function usageIn(text: string): Usage | undefined {
  const key = [...text.matchAll(USAGE_KEY)].at(-1)
  if (key === undefined) return undefined
  const start = key.index + key[0].length
  // Usage objects nest; the first brace that makes the text JSON is theirs.
  for (let end = text.indexOf('}', start); end !== -1; end = text.indexOf('}', end + 1)) {
    try {
      return reportedUsage(JSON.parse(text.slice(start, end + 1)))
    } catch {
      continue
    }
  }
  return undefined
}
