import type { WebSocket } from 'ws'
import type { ByteSink, ByteSource } from '../../core/byte-source.js'
import type { GatewayError } from '../../core/gateway-error.js'
import { callerLeft } from '../../core/request-context.js'
import { classifyFailure } from '../../upstream/upstream-failure.js'
import type { OggJoiner } from './ogg-concat.js'
import { P2Session, type P2SessionTerms } from './p2-socket.js'

export interface P2SpeechPlan extends P2SessionTerms {
  /** What is spoken, in order; at least one. */
  readonly pieces: readonly string[]
  /** The one binary message that asks for a piece; a new one, with an id of its own, each time. */
  readonly requestFor: (piece: string) => Buffer
  /**
   * Told of each piece that was spoken to its end, or until the caller left: a refused or broken piece is no speech that
   * anybody should be charged for.
   */
  readonly onSpoken: (piece: string) => void
  /** A fresh connection, paused; rejects with a `GatewayError`. */
  readonly dial: () => Promise<WebSocket>
  /** Makes one stream of several, where a format cannot simply be laid end to end. */
  readonly joiner?: OggJoiner
}

const EMPTY = Buffer.alloc(0)

/**
 * A text spoken piece by piece, one synthesis after the other, as one body. `open` dials for the first piece, so that a
 * refusal is known before anything is promised to the caller; the next is dialled when the one before it has ended.
 */
export class P2SpeechSource implements ByteSource {
  private sink: ByteSink | undefined
  private session: P2Session | undefined
  private spokenPieces = 0
  private hasSpoken = false
  private hasSpokenPiece = false
  private isPaused = false
  private isOver = false

  private constructor(
    private readonly plan: P2SpeechPlan,
    private readonly firstSocket: WebSocket,
    private readonly dialledAtMs: number,
  ) {}

  static async open(plan: P2SpeechPlan): Promise<P2SpeechSource> {
    const dialledAtMs = performance.now()
    return new P2SpeechSource(plan, await plan.dial(), dialledAtMs)
  }

  start(sink: ByteSink): void {
    this.sink = sink
    this.speakOn(this.firstSocket)
  }

  pause(): void {
    this.isPaused = true
    this.session?.pause()
  }

  resume(): void {
    this.isPaused = false
    this.session?.resume()
  }

  cancel(): void {
    if (this.session !== undefined) this.session.cancel()
    else if (this.sink === undefined) this.firstSocket.terminate()
    else this.fail(callerLeft())
  }

  private speakOn(socket: WebSocket): void {
    const piece = this.plan.pieces[this.spokenPieces] ?? ''
    this.session = new P2Session(socket, this.plan.requestFor(piece), this.plan)
    this.session.start(this.ofPiece)
    if (this.isPaused) this.session.pause()
  }

  /** What becomes of the audio of each piece. */
  private readonly ofPiece: ByteSink = {
    data: (chunk) => {
      if (!this.hasSpoken) this.plan.call.log.firstByteMs = performance.now() - this.dialledAtMs
      this.hasSpoken = true
      this.hasSpokenPiece = true
      this.pass(() => this.plan.joiner?.push(chunk) ?? chunk)
    },
    end: () => {
      this.session = undefined
      this.notePiece()
      const isLast = this.spokenPieces === this.plan.pieces.length
      this.pass(() => this.plan.joiner?.endOfLink(isLast) ?? EMPTY)
      if (isLast) this.end()
      else this.dialNext()
    },
    fail: (error) => {
      if (error.kind === 'caller_left' && this.hasSpokenPiece && !this.isOver) this.notePiece()
      this.fail(error)
    },
  }

  private notePiece(): void {
    this.plan.onSpoken(this.plan.pieces[this.spokenPieces] ?? '')
    this.spokenPieces++
    this.hasSpokenPiece = false
  }

  private pass(join: () => Buffer): void {
    if (this.isOver) return
    const chunk = this.joined(join)
    if (chunk.length > 0) this.sink?.data(chunk)
  }

  /** Audio that cannot be joined ends the speech, like audio that does not come. */
  private joined(join: () => Buffer): Buffer {
    try {
      return join()
    } catch (error) {
      this.fail(classifyFailure(error as Error, true))
      this.session?.cancel()
      return EMPTY
    }
  }

  private dialNext(): void {
    if (this.isOver) return
    this.plan.dial().then(
      (socket) => {
        if (this.isOver) socket.terminate()
        else this.speakOn(socket)
      },
      (error: unknown) => {
        this.fail(classifyFailure(error as Error, false))
      },
    )
  }

  private end(): void {
    if (this.isOver) return
    this.isOver = true
    this.sink?.end()
  }

  private fail(error: GatewayError): void {
    if (this.isOver) return
    this.isOver = true
    this.sink?.fail(error)
  }
}
