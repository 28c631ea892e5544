import type { ByteSink, ByteSource } from './byte-source.js'
import type { GatewayError } from './gateway-error.js'

/** Bytes that may wait beyond what was asked for before the source is paused. */
const SPARE_BYTES = 65_536

export interface HoldRules {
  /** Enough to go on with: 1 = the first bytes. */
  readonly bytes: number
  /** Silence after which to go on all the same; absent = wait for bytes or the end. */
  readonly graceMs?: number
}

/**
 * Holds the beginning of a body back before anything is promised to the caller, so that an upstream which answers 200
 * and then fails can still become a proper error, or be replaced by another channel. Resolves when enough bytes are
 * there, the body has ended, or the grace time has passed; rejects when the body fails before that.
 */
export function hold(source: ByteSource, rules: HoldRules): Promise<HeldSource> {
  return new Promise((resolve, reject) => {
    let grace: NodeJS.Timeout | undefined
    const held = new HeldSource(source, rules.bytes, (error) => {
      clearTimeout(grace)
      if (error === undefined) resolve(held)
      else reject(error)
    })
    if (rules.graceMs !== undefined) {
      grace = setTimeout(() => {
        resolve(held)
      }, rules.graceMs)
    }
    source.start(held)
  })
}

/** A body whose beginning is at hand. `start` delivers that beginning first; nothing is lost or reordered. */
export class HeldSource implements ByteSource, ByteSink {
  private held: Buffer[] = []
  private heldBytes = 0
  private sink: ByteSink | undefined
  private outcome: { readonly error?: GatewayError } | undefined

  constructor(
    private readonly source: ByteSource,
    private readonly enoughBytes: number,
    private readonly settle: (error?: GatewayError) => void,
  ) {}

  /** The whole body, when it has ended already. */
  get complete(): Buffer | undefined {
    if (this.outcome === undefined || this.outcome.error !== undefined) return undefined
    return this.held.length === 1 ? this.held[0] : Buffer.concat(this.held)
  }

  data(chunk: Buffer): void {
    if (this.sink !== undefined) {
      this.sink.data(chunk)
      return
    }
    this.held.push(chunk)
    this.heldBytes += chunk.length
    if (this.isOverfull) this.source.pause()
    if (this.heldBytes >= this.enoughBytes) this.settle()
  }

  end(): void {
    this.outcome = {}
    this.settle()
    this.sink?.end()
  }

  fail(error: GatewayError): void {
    this.outcome = { error }
    this.settle(error)
    this.sink?.fail(error)
  }

  start(sink: ByteSink): void {
    this.sink = sink
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

  private get isOverfull(): boolean {
    return this.heldBytes > this.enoughBytes + SPARE_BYTES
  }
}
