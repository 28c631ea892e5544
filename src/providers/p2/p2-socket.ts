import { errors } from 'undici'
import type { RawData, WebSocket } from 'ws'
import type { UpstreamTimeouts } from '../../config/channel-schema.js'
import type { ByteSink, ByteSource } from '../../core/byte-stream.js'
import { GatewayError } from '../../core/errors.js'
import { clientDisconnected } from '../../core/request-context.js'
import { classifyFailure, type ExchangeContext } from '../../upstream/exchange.js'
import { malformedResponse } from '../../upstream/upstream-response.js'
import { timedOut } from '../../upstream/exchange.js'
import { decodeFrame, type P2Frame } from './p2-wire.js'

export interface P2SessionOptions {
  readonly exchange: ExchangeContext
  readonly timeouts: UpstreamTimeouts
  /** On the performance clock. */
  readonly deadlineAtMs: number
  /** What the code and the words of an error frame mean. */
  readonly refusal: (code: number, text: string) => GatewayError
  /** The audio is samples of so many bytes each; absent = audio of any length is whole. */
  readonly sampleBytes?: number
}

const NORMAL_CLOSURE = 1000

/**
 * One synthesis on a connection of its own: sends one request and hands on the audio of the frames that come back. Only
 * the upstream's last frame is an end; a close before it, whatever its code, is audio cut off. `start` comes before
 * everything else. `firstByteMs` bounds the wait for the first frame that is more than an acknowledgement, `idleMs` the
 * wait between frames while it is not paused, `deadlineAtMs` all of it.
 */
export class P2Session implements ByteSource {
  private sink!: ByteSink
  private isOver = false
  /** From the request to the first byte of audio. */
  private waitMs = 0
  private isPaused = false
  private hasBegun = false
  private audioBytes = 0
  private startedAtMs = 0
  private waitTimer: NodeJS.Timeout | undefined
  private totalTimer: NodeJS.Timeout | undefined
  private removeAbortListener: () => void = () => undefined

  constructor(
    private readonly socket: WebSocket,
    private readonly request: Buffer,
    private readonly options: P2SessionOptions,
  ) {}

  start(sink: ByteSink): void {
    this.sink = sink
    this.startedAtMs = performance.now()
    this.socket.on('message', this.onMessage).on('error', this.onError).on('close', this.onClose)
    this.awaitFrame()
    this.totalTimer = setTimeout(
      () => {
        this.abandon(timedOut('sent'))
      },
      Math.max(1, this.options.deadlineAtMs - this.startedAtMs),
    )
    this.removeAbortListener = this.options.exchange.disconnect.onAbort(() => {
      this.cancel()
    })
    this.socket.send(this.request)
    this.socket.resume()
  }

  pause(): void {
    if (this.isOver) return
    this.isPaused = true
    this.socket.pause()
    clearTimeout(this.waitTimer)
  }

  resume(): void {
    if (this.isOver) return
    this.isPaused = false
    this.socket.resume()
    this.awaitFrame()
  }

  cancel(): void {
    this.abandon(clientDisconnected())
  }

  private readonly onMessage = (message: RawData, isBinary: boolean): void => {
    const frame = isBinary && Buffer.isBuffer(message) ? decodeFrame(message) : undefined
    if (frame === undefined)
      this.abandon(malformedResponse('The upstream sent something that is not a frame of speech.'))
    else this.take(frame)
  }

  private take(frame: P2Frame): void {
    if (frame.kind === 'error') {
      this.abandon(this.options.refusal(frame.code, frame.text))
      return
    }
    if (frame.kind !== 'acknowledgement') this.hasBegun = true
    if (this.hasBegun) this.awaitFrame()
    if (frame.kind === 'audio') this.takeAudio(frame.audio, frame.last)
  }

  private takeAudio(audio: Buffer, isLast: boolean): void {
    if (this.audioBytes === 0 && audio.length > 0) this.markFirstByte()
    this.audioBytes += audio.length
    if (audio.length > 0) this.sink.data(audio)
    if (isLast) this.finish()
  }

  private markFirstByte(): void {
    this.waitMs = performance.now() - this.startedAtMs
    this.options.exchange.record.openWaitMs += this.waitMs
  }

  private finish(): void {
    if (this.isOver) return
    if (this.audioBytes === 0) {
      this.abandon(malformedResponse('The upstream answered without content.'))
      return
    }
    // Half a sample would turn all that is laid behind it into noise.
    if (this.audioBytes % (this.options.sampleBytes ?? 1) !== 0) {
      this.abandon(malformedResponse('The upstream ended its audio within a sample.'))
      return
    }
    this.settle()
    // The client bounds how long the upstream may take to agree; a paused socket would never see it agree.
    this.socket.close(NORMAL_CLOSURE)
    this.socket.resume()
    this.sink.end()
  }

  private readonly onError = (error: Error): void => {
    this.abandon(
      new GatewayError('upstream_failed', 'The upstream broke the protocol of its connection.', {
        cause: error,
        attempt: { phase: 'answered', channelError: true },
      }),
    )
  }

  private readonly onClose = (code: number): void => {
    this.abandon(
      new GatewayError('upstream_failed', 'The upstream closed the connection before its answer was complete.', {
        cause: new Error(`closed with ${code} after ${this.audioBytes} bytes of audio`),
        attempt: { phase: 'answered', channelError: true },
      }),
    )
  }

  /** Begins to wait anew; time in which the reader did not want more is not the upstream's. */
  private awaitFrame(): void {
    clearTimeout(this.waitTimer)
    if (this.isPaused) return
    const { firstByteMs, idleMs } = this.options.timeouts
    this.waitTimer = setTimeout(
      () => {
        const late = this.hasBegun ? new errors.BodyTimeoutError() : new errors.HeadersTimeoutError()
        this.abandon(classifyFailure(late, true))
      },
      this.hasBegun ? idleMs : firstByteMs,
    )
  }

  private abandon(error: GatewayError): void {
    if (this.isOver) return
    this.settle()
    this.socket.terminate()
    this.sink.fail(error)
  }

  private settle(): void {
    this.isOver = true
    clearTimeout(this.waitTimer)
    clearTimeout(this.totalTimer)
    this.removeAbortListener()
    this.socket.off('message', this.onMessage).off('error', this.onError).off('close', this.onClose)
    const { record } = this.options.exchange
    record.upstreamMs += performance.now() - this.startedAtMs
    record.openWaitMs -= this.waitMs
  }
}
