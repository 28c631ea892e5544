import { randomUUID } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import type { WebSocket } from 'ws'
import type { ByteSink, ByteSource, ProviderResponse } from '../../core/byte-stream.js'
import type { GatewayError } from '../../core/errors.js'
import { clientDisconnected } from '../../core/request-context.js'
import { codePoints } from '../../core/validation-rules.js'
import { assertInputLength, inputTooLong } from '../../dialects/speech-formats.js'
import { estimateSpeechUsage, PCM_SAMPLE_BYTES, speechResponse } from '../../dialects/speech-response.js'
import { classifyFailure } from '../../upstream/exchange.js'
import { accountError } from '../../upstream/upstream-error.js'
import { UpstreamSockets } from '../../upstream/websocket-client.js'
import type { AttemptContext, SpeechCall, SpeechFields, SpeechProvider } from '../contract.js'
import { OggJoiner } from './ogg-concat.js'
import { encodeRequest, handshakeError, parseP2Error } from './p2-wire.js'
import {
  type P2Format,
  p2Format,
  type P2Key,
  type P2Overlay,
  p2Request,
  p2Voice,
  parseP2Key,
  readP2Metadata,
} from './p2-request.js'
import { P2Session, type P2SessionOptions } from './p2-socket.js'
import { isSpeakable, textPieces } from './split-text.js'

export interface P2SpeechPlan extends P2SessionOptions {
  /** What is spoken, in order; at least one. */
  readonly pieces: readonly string[]
  /** The one binary message that asks for a piece; a new one, with an id of its own, each time. */
  readonly requestFor: (piece: string) => Buffer
  /** Called for each piece that was spoken to its end, or until the caller left; refused or broken ones are not billed. */
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
    else this.fail(clientDisconnected())
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
      if (!this.hasSpoken) this.plan.exchange.record.firstByteMs = performance.now() - this.dialledAtMs
      this.hasSpoken = true
      this.hasSpokenPiece = true
      this.pass(() => this.plan.joiner?.push(chunk) ?? chunk)
    },
    end: () => {
      this.session = undefined
      this.countPiece()
      const isLast = this.spokenPieces === this.plan.pieces.length
      this.pass(() => this.plan.joiner?.endOfLink(isLast) ?? EMPTY)
      if (isLast) this.end()
      else this.dialNext()
    },
    fail: (error) => {
      if (error.kind === 'caller_left' && this.hasSpokenPiece && !this.isOver) this.countPiece()
      this.fail(error)
    },
  }

  private countPiece(): void {
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

/** In code points; what is longer than one synthesis takes is spoken in pieces. */
const MAXIMUM_CHARACTERS = 4096
/** Marked-up text cannot be parted, so it must fit into one synthesis. */
const MAXIMUM_SSML_BYTES = 1024

/**
 * What is spoken of a text, in order. Pieces that say nothing are left out, since the upstream refuses them; a text that
 * says nothing at all stays, so that the upstream is the judge of it. Throws `invalid_request` for a text too long.
 */
function spokenPieces(input: string, isSsml: boolean): readonly string[] {
  assertInputLength(input, MAXIMUM_CHARACTERS)
  if (isSsml) {
    if (Buffer.byteLength(input) > MAXIMUM_SSML_BYTES) throw inputTooLong(`${MAXIMUM_SSML_BYTES} bytes of SSML`)
    return [input]
  }
  const pieces = textPieces(input)
  const spoken = pieces.filter(isSpeakable)
  return spoken.length > 0 ? spoken : pieces
}

const STREAM_PATH = '/api/v1/tts/ws_binary'

/** The whole speech of the longest piece in one frame stays far below this. */
const MAXIMUM_MESSAGE_BYTES = 16 * 1024 * 1024

/** Shown in the upstream's logs; who calls is not the upstream's business. */
const USER_ID = 'gateway'

/** A channel's options; the configuration has checked them. */
interface P2Options {
  readonly voices?: Readonly<Record<string, string>>
  readonly cluster?: string
  readonly speedRange?: { readonly minimum: number; readonly maximum: number }
}

/** Everything of a request that can be wrong is found before a connection is made. */
interface Wish {
  readonly key: P2Key
  readonly format: P2Format
  readonly overlay: P2Overlay
  readonly pieces: readonly string[]
}

/** Speech at P2: one synthesis over one WebSocket for each piece of the text. It knows no style instructions. */
@Injectable()
export class P2SpeechProvider implements SpeechProvider {
  constructor(private readonly sockets: UpstreamSockets) {}

  async speak({ body: { fields } }: SpeechCall, context: AttemptContext): Promise<ProviderResponse> {
    const wish = wishOf(fields, context)
    const { format, pieces } = wish
    const { deadlineAtMs, target } = context
    let characters = 0
    const source = await P2SpeechSource.open({
      exchange: context,
      deadlineAtMs,
      timeouts: target.timeouts,
      pieces,
      requestFor: requestFor(fields, wish, context),
      onSpoken: (piece) => {
        characters += codePoints(piece)
      },
      dial: () => this.dial(wish.key, context),
      refusal: (code, text) => parseP2Error(code, text, context),
      ...(format.encoding === 'pcm' ? { sampleBytes: PCM_SAMPLE_BYTES } : {}),
      ...(format.encoding === 'ogg_opus' && pieces.length > 1 ? { joiner: new OggJoiner() } : {}),
    })
    const usage = () => estimateSpeechUsage(fields.input, { characters })
    return await speechResponse({ ...format, source, usage, characters: () => characters }, fields.stream_format)
  }

  private async dial({ accessToken }: P2Key, context: AttemptContext): Promise<WebSocket> {
    const { deadlineAtMs, record, target } = context
    const request = {
      path: STREAM_PATH,
      // A semicolon, and no blank behind it.
      headers: { authorization: `Bearer;${accessToken}` },
      maximumMessageBytes: MAXIMUM_MESSAGE_BYTES,
    }
    const { headers, socket, refusal } = await this.sockets.dial(request, target, context, deadlineAtMs)
    const logId = headers['x-tt-logid']
    if (typeof logId === 'string') record.upstreamRequestId = logId
    if (refusal !== undefined) throw await handshakeError(refusal, context)
    return socket
  }
}

function wishOf(fields: SpeechFields, context: AttemptContext): Wish {
  const key = keyOf(context)
  const format = p2Format(fields.response_format)
  const overlay = readP2Metadata(fields.metadata, { pcm: format.encoding === 'pcm' })
  const pieces = spokenPieces(fields.input, overlay.request['text_type'] === 'ssml')
  return { key, format, overlay, pieces }
}

/** A pair the caller sent is the caller's to mend; the channel's own never is. */
function keyOf({ credentials, callersKey }: AttemptContext): P2Key {
  try {
    return parseP2Key(credentials)
  } catch (cause) {
    if (callersKey) throw cause
    throw accountError('key', false, { cause, phase: 'unsent' })
  }
}

/** Checked metadata holds a number there, or nothing. */
const wishedSpeed = ({ speed }: SpeechFields, { overlay }: Wish): number =>
  (overlay.audio['speed_ratio'] as number | undefined) ?? speed ?? 1

function requestFor(fields: SpeechFields, wish: Wish, context: AttemptContext): (piece: string) => Buffer {
  const { voices, cluster = 'volcano_tts', speedRange = { minimum: 0.8, maximum: 2 } } = context.options as P2Options
  const parts = {
    ...wish.key,
    cluster,
    userId: USER_ID,
    voiceType: p2Voice(fields.voice, voices),
    encoding: wish.format.encoding,
    speedRatio: Math.min(speedRange.maximum, Math.max(speedRange.minimum, wishedSpeed(fields, wish))),
    model: context.upstreamModel,
    overlay: wish.overlay,
  }
  return (text) => encodeRequest(p2Request({ ...parts, text, reqid: randomUUID() }))
}
