import type { GatewayError } from './errors.js'
import type { UsageReader } from './request-context.js'

/** Receives a body piece by piece. Exactly one of `end` and `fail` comes last, and nothing after it. */
export interface ByteSink {
  data(chunk: Buffer): void
  end(): void
  fail(error: GatewayError): void
  /** Asked once, when the caller has left: whether what is still to come is needed all the same. Absent = no. */
  readOn?(): boolean
}

/**
 * A body on its way. Nothing flows before `start`; `pause` and `resume` carry back-pressure to wherever the bytes come
 * from; `cancel` gives the rest up and frees the connection. Deliberately smaller than a Node stream: a relayed chunk
 * costs one function call.
 */
export interface ByteSource {
  /** The whole body, when all of it has arrived before anyone asked for it; `start` is then not needed. */
  readonly complete?: Buffer | undefined
  start(sink: ByteSink): void
  pause(): void
  resume(): void
  cancel(): void
}

/** A body that was collected in full, or the error that kept it from being so. Never more than `maximumBytes`. */
export function collect(source: ByteSource, maximumBytes: number, tooLarge: () => GatewayError): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let received = 0
    source.start({
      data: (chunk) => {
        received += chunk.length
        chunks.push(chunk)
        if (received <= maximumBytes) return
        // Rejects first: cancelling reports a failure of its own.
        reject(tooLarge())
        source.cancel()
      },
      end: () => {
        resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, received))
      },
      fail: reject,
    })
  })
}

/** Up to here a copy costs less than a write of its own; memory set aside for copies is what collections cost most for. */
const SMALL_BYTES = 4_096

/** The same bytes in fewer pieces: small ones next to each other are copied into one, larger ones stay as they are. */
export function joinedPieces(pieces: readonly Buffer[]): Buffer[] {
  const joined: Buffer[] = []
  let small: Buffer[] = []
  for (const piece of pieces) {
    if (piece.length < SMALL_BYTES) {
      small.push(piece)
      continue
    }
    joined.push(...oneOf(small), piece)
    small = []
  }
  joined.push(...oneOf(small))
  return joined
}

const oneOf = (pieces: readonly Buffer[]): readonly Buffer[] => (pieces.length > 1 ? [Buffer.concat(pieces)] : pieces)

/** Called once at the end of a body that was still on its way; without an error it was complete. */
export interface ResponseListener {
  over(error: GatewayError | undefined): void
}

/** What a provider hands back and the relay writes to the caller: complete bytes, or a body still on its way. */
export class ProviderResponse {
  /** Listener for the end of a body that is still on its way. */
  listener: ResponseListener | undefined

  constructor(
    readonly status: number,
    /** Already reduced to what may reach a caller; framing headers are the relay's. */
    readonly headers: Record<string, string>,
    readonly body: Buffer | ByteSource,
    /** Asked when the body is over; absent where nothing is charged for. */
    readonly usage?: UsageReader,
    /**
     * How a failure after the first byte shows: `frame` = one error frame in the caller's dialect and no terminator,
     * `cut` = the connection is destroyed, because bytes of a file cannot say that they are incomplete.
     */
    readonly onFailure: 'frame' | 'cut' = 'cut',
  ) {}
}

/** Bytes that may wait beyond what was asked for before the source is paused. */
const SPARE_BYTES = 65_536

/** When the beginning of a body is enough. */
export interface PeekRules {
  /** Enough to go on with: 1 = the first bytes. */
  readonly bytes: number
  /** Whether what has arrived is enough, checked with each piece; a body that fills the spare bytes goes on without. */
  readonly until?: () => boolean
  /** Silence after which to go on all the same; absent = wait for bytes or the end. */
  readonly graceMs?: number
}

/**
 * Holds the beginning of a body back before anything is promised to the caller, so that an upstream which answers 200
 * and then fails can still become a proper error, or be replaced by another channel. Resolves when enough bytes are
 * there, the body has ended, or the grace time has passed; rejects when the body fails before that, or in the same turn.
 */
export async function peek(source: ByteSource, rules: PeekRules): Promise<PeekedSource> {
  const peeked = await new Promise<PeekedSource>((resolve) => {
    let grace: NodeJS.Timeout | undefined
    const held = new PeekedSource(source, rules, () => {
      clearTimeout(grace)
      resolve(held)
    })
    if (rules.graceMs !== undefined) {
      grace = setTimeout(() => {
        resolve(held)
      }, rules.graceMs)
    }
    source.start(held)
  })
  if (peeked.failure !== undefined) throw peeked.failure
  return peeked
}

/** A body whose beginning is at hand. `start` delivers that beginning first; nothing is lost or reordered. */
export class PeekedSource implements ByteSource, ByteSink {
  /** Handed to the sink. */
  passedBytes = 0
  private held: Buffer[] = []
  private heldBytes = 0
  private sink: ByteSink | undefined
  private outcome: { readonly error?: GatewayError } | undefined

  constructor(
    private readonly source: ByteSource,
    private readonly rules: Pick<PeekRules, 'bytes' | 'until'>,
    private readonly settle: () => void,
  ) {}

  /** Of a body that has failed already. */
  get failure(): GatewayError | undefined {
    return this.outcome?.error
  }

  /** The whole body, when it has ended already. */
  get complete(): Buffer | undefined {
    if (this.outcome === undefined || this.outcome.error !== undefined) return undefined
    return this.held.length === 1 ? this.held[0] : Buffer.concat(this.held)
  }

  data(chunk: Buffer): void {
    if (this.sink !== undefined) {
      this.passedBytes += chunk.length
      this.sink.data(chunk)
      return
    }
    this.held.push(chunk)
    this.heldBytes += chunk.length
    if (this.isOverfull) this.source.pause()
    if (this.isEnough) this.settle()
  }

  end(): void {
    this.outcome = {}
    this.settle()
    this.sink?.end()
  }

  fail(error: GatewayError): void {
    this.outcome = { error }
    this.settle()
    this.sink?.fail(error)
  }

  start(sink: ByteSink): void {
    this.sink = sink
    this.passedBytes = this.heldBytes
    for (const chunk of this.held) sink.data(chunk)
    this.held = []
    if (this.outcome?.error !== undefined) sink.fail(this.outcome.error)
    else if (this.outcome !== undefined) sink.end()
    else if (this.isOverfull) this.source.resume()
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

  private get isEnough(): boolean {
    return this.isOverfull || (this.heldBytes >= this.rules.bytes && this.rules.until?.() !== false)
  }

  private get isOverfull(): boolean {
    return this.heldBytes > this.rules.bytes + SPARE_BYTES
  }
}
