import type { ByteSink, ByteSource } from '../core/byte-stream.js'
import { GatewayError, scrubbedJson, scrubMessage } from '../core/errors.js'
import { clientDisconnected } from '../core/request-context.js'
import { FrameAssembler, framesOf, hasLine, jsonOf, type LineReader, readLines, StreamTail } from '../core/sse.js'

/** What one event-stream dialect looks like to the relay. */
export interface SseDialect {
  /**
   * Any of these means that the upstream finished what it had to say. A mark that begins with a field name (`data:`,
   * `event:`) counts at the beginning of a line only, where no text of a model can stand; others are JSON fragments
   * with an unescaped quote, which no text of a model can contain. In a line a space stands for any or none.
   */
  readonly completionMarks: readonly string[]
  /** Begins the frame with which the upstream reports a failure after the first byte; a space stands for any or none. */
  readonly errorMark: string
  /** Appended at the end of a complete stream that lacks it. */
  readonly terminator?: string
  /** Counts what of the answer has passed; one of its own for each stream. */
  readonly deltas?: FrameCounter
  /** What a stream has failed with that ends before it is complete; absent, or undefined = the upstream has failed. */
  readonly endedEarly?: () => GatewayError | undefined
  /** Whether a stream without a byte is complete, as it goes on with what has ended. */
  readonly mayBeEmpty?: boolean
  /** Worth waiting for although the caller has left. */
  readonly figures?: FiguresAtEnd
  /** The credential that was sent upstream: it may be quoted back in an error frame. */
  readonly secret?: string
  /** Laid over the members of the upstream's own error frame: what in it names the upstream's request instead of ours. */
  readonly errorMembers?: Readonly<Record<string, unknown>>
}

/** Counts what frames hold by their lines. */
export interface FrameCounter extends LineReader {
  readonly count: number
  /** Remembers the count, for `rollBack`. */
  checkpoint(): void
  rollBack(): void
}

/** The upstream's own figures of what a stream has used, where they come behind the answer. */
interface FiguresAtEnd {
  readonly areKnown: () => boolean
  /**
   * Whether the answer is complete, and the figures or the end must be next. `tail`: the last frames so far, see
   * `StreamTail`.
   */
  readonly areNext: (tail: Buffer) => boolean
}

/**
 * Inspects, and may shorten, a buffer of whole frames before it is relayed; the filter may reuse its memory. They stand at the end of
 * `tail` already.
 */
export type FramesFilter = (frames: Buffer, tail: StreamTail) => Buffer

export const KEEP_ALIVE_MS = 15_000
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n')

/** A single frame larger than this is not an event stream any more. */
const MAXIMUM_FRAME_BYTES = 16 * 1024 * 1024

/** Figures and the end of a stream fit in a fraction of it. */
const MAXIMUM_FIGURE_BYTES = 65_536

/** How long an upstream may take to say them when the caller has left. */
export const READ_ON_MS = 5_000

/**
 * Relays an event stream in whole frames: a cut can therefore never leave half a frame behind, keep-alive comments and
 * the final error frame always stand on a boundary, and a stream that stops without its dialect's completion mark
 * becomes a failure, however politely the connection was closed.
 */
export class SseRelay implements ByteSource, ByteSink {
  private sink!: ByteSink
  private readonly frames = new FrameAssembler()
  private readonly tail = new StreamTail()
  private readonly errorMark: Buffer
  private delivered = false
  private over = false
  /** Since the caller has left. */
  private readOnBytes: number | undefined
  /** Sends comments, or ends the relay when it has read on for long enough. */
  private timer: NodeJS.Timeout | undefined

  constructor(
    private readonly source: ByteSource,
    private readonly dialect: SseDialect,
    private readonly filter: FramesFilter = (frames) => frames,
  ) {
    this.errorMark = Buffer.from(dialect.errorMark)
  }

  start(sink: ByteSink): void {
    this.sink = sink
    this.timer = setInterval(() => {
      sink.data(KEEP_ALIVE)
    }, KEEP_ALIVE_MS)
    this.source.start(this)
  }

  pause(): void {
    this.source.pause()
  }

  resume(): void {
    this.source.resume()
  }

  cancel(): void {
    this.finish()
    this.source.cancel()
  }

  /** The answer is complete, and what it has used is about to be said: not another token is made for this. */
  readOn(): boolean {
    const { figures } = this.dialect
    if (this.over || figures === undefined || figures.areKnown() || !figures.areNext(this.tail.bytes)) return false
    clearInterval(this.timer)
    this.timer = setTimeout(() => {
      this.abandon(clientDisconnected())
    }, READ_ON_MS)
    this.readOnBytes = 0
    // The caller may have read too slowly.
    this.source.resume()
    return true
  }

  data(chunk: Buffer): void {
    if (this.over) return
    if (this.readOnBytes !== undefined) this.readOnBytes += chunk.length
    const frames = this.frames.add(chunk)
    if (frames !== undefined) this.forward(frames)
    if (this.frames.waitingBytes > MAXIMUM_FRAME_BYTES && !this.isOver) this.abandon(unreadable())
  }

  end(): void {
    if (this.over) return
    const { waitingBytes } = this.frames
    const isEmpty = this.dialect.mayBeEmpty === true && this.tail.bytes.length + waitingBytes === 0
    // The last frame of a finished stream may lack its empty line.
    if (waitingBytes > 0) {
      const frames = Buffer.concat([this.frames.takeRest(), Buffer.from('\n\n')])
      const { completionMarks, errorMark } = this.dialect
      if ([...completionMarks, errorMark].some((mark) => hasMark(frames, mark))) this.forward(frames)
      if (this.isOver) return
    }
    if (!(this.isComplete || isEmpty) || this.readOnBytes !== undefined) {
      this.fail(this.dialect.endedEarly?.() ?? cutShort())
      return
    }
    if (!this.isTerminated) this.sink.data(Buffer.from(this.dialect.terminator ?? ''))
    this.finish()
    this.sink.end()
  }

  fail(error: GatewayError): void {
    if (this.over) return
    this.finish()
    if (this.readOnBytes !== undefined) this.sink.fail(clientDisconnected())
    // Whatever happens to the connection after the last event, the caller has everything.
    else if (this.isComplete && this.isTerminated) this.sink.end()
    else this.sink.fail(error)
  }

  private forward(frames: Buffer): void {
    if (this.tookError(frames)) return
    this.tail.add(frames)
    const filtered = this.filter(frames, this.tail)
    if (this.readOnBytes !== undefined) {
      this.checkReadOn(this.readOnBytes)
      return
    }
    this.timer?.refresh()
    if (filtered.length === 0) return
    this.delivered = true
    this.sink.data(filtered)
  }

  private checkReadOn(bytes: number): void {
    const { figures } = this.dialect
    const isDue = figures !== undefined && (figures.areKnown() || figures.areNext(this.tail.bytes))
    if (!isDue || bytes > MAXIMUM_FIGURE_BYTES) this.abandon(clientDisconnected())
  }

  /** Counts on the way, as the lines are walked through here anyway. */
  private tookError(frames: Buffer): boolean {
    const { deltas } = this.dialect
    if (deltas === undefined) return hasLine(frames, this.errorMark) && this.forwardError(frames)
    deltas.checkpoint()
    if (!readLines(frames, this.errorMark, deltas)) return false
    // What stands before the error is forwarded, and counted, by itself.
    deltas.rollBack()
    if (this.forwardError(frames)) return true
    readLines(frames, this.errorMark, deltas)
    return false
  }

  private get isComplete(): boolean {
    return this.dialect.completionMarks.some((mark) => hasMark(this.tail.bytes, mark))
  }

  private get isTerminated(): boolean {
    const { terminator } = this.dialect
    return terminator === undefined || hasMark(this.tail.bytes, terminator.trimEnd())
  }

  /** Passes the upstream's own error frame on, scrubbed, and nothing after it; true when there was one. */
  private forwardError(frames: Buffer): boolean {
    for (const frame of framesOf(frames)) {
      const error = hasMark(frame, this.dialect.errorMark) ? reportedError(this.withoutSecret(frame)) : undefined
      if (error === undefined) continue
      const before = frames.subarray(0, frame.byteOffset - frames.byteOffset)
      if (before.length > 0) this.forward(before)
      if (!this.delivered) {
        this.abandon(error)
        return true
      }
      this.abandon(
        new GatewayError(error.kind, error.message, {
          ...error.details,
          frame: scrubbedFrame(this.withoutSecret(frame), this.dialect.errorMembers),
        }),
      )
      return true
    }
    return false
  }

  private withoutSecret(frame: Buffer): Buffer {
    const { secret } = this.dialect
    return secret === undefined ? frame : Buffer.from(frame.toString().replaceAll(secret, '[key]'))
  }

  private abandon(error: GatewayError): void {
    this.finish()
    this.source.cancel()
    this.sink.fail(this.readOnBytes === undefined ? error : clientDisconnected())
  }

  /** A method, as `forward` may have ended the relay since the last check. */
  private get isOver(): boolean {
    return this.over
  }

  private finish(): void {
    this.over = true
    clearInterval(this.timer)
  }
}

const hasMark = (frames: Buffer, mark: string): boolean =>
  /^(?:data|event):/.test(mark) ? hasLine(frames, Buffer.from(mark)) : frames.includes(mark)

/** The error a frame reports; some upstreams send its text alone. */
function reportedError(frame: Buffer): GatewayError | undefined {
  const data = jsonOf(frame)
  // Of the Responses API the members of the error may be those of the event.
  const error: unknown = data?.['error'] ?? (data?.['type'] === 'error' ? data : undefined)
  if (typeof error !== 'string' && (typeof error !== 'object' || error === null)) return undefined
  const message = typeof error === 'object' && 'message' in error ? error.message : error
  const text = typeof message === 'string' ? scrubMessage(message) : 'The upstream reported an error.'
  const isOverloaded = typeof error === 'object' && 'type' in error && error.type === 'overloaded_error'
  const kind = isOverloaded ? 'upstream_overloaded' : 'upstream_failed'
  return new GatewayError(kind, text, { attempt: { phase: 'answered', channelError: true } })
}

/** The frame anew from its parsed data: replacing words in its text could break an escape. */
function scrubbedFrame(frame: Buffer, members: SseDialect['errorMembers']): string {
  const text = frame.toString()
  const [eventLine] = /^event:[^\r\n]*\r?\n/m.exec(text) ?? ['']
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  return `${eventLine}data: ${scrubbedJson({ ...jsonOf(frame), ...members })}${newline}${newline}`
}

const cutShort = (): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream ended its answer before it was complete.', {
    attempt: { phase: 'sent', channelError: true },
    retryable: false,
  })

const unreadable = (): GatewayError =>
  new GatewayError('upstream_failed', 'The upstream sent something that is not an event stream.', {
    attempt: { phase: 'answered', channelError: true },
  })
