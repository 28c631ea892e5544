import { randomUUID } from 'node:crypto'
import { Injectable } from '@nestjs/common'
import type { WebSocket } from 'ws'
import type { UpstreamAnswer } from '../../core/upstream-answer.js'
import { codePoints } from '../../core/validation-rules.js'
import { estimateSpeechUsage } from '../../dialects/speech-response.js'
import { PCM_SAMPLE_BYTES, spokenAnswer } from '../../dialects/spoken-answer.js'
import { accountRefusal } from '../../upstream/account-refusal.js'
import { UpstreamSockets } from '../../upstream/upstream-sockets.js'
import type { CallContext } from '../call-context.js'
import type { SpeechCall, SpeechFields, SpeechProvider } from '../speech.contract.js'
import { OggJoiner } from './ogg-concat.js'
import { handshakeRefusal, p2Refusal } from './p2-error.js'
import { type P2Format, p2Format } from './p2-formats.table.js'
import { encodeRequest } from './p2-frames.js'
import { type P2Key, parseP2Key } from './p2-key.js'
import { type P2Overlay, readP2Metadata } from './p2-metadata.js'
import { p2Request } from './p2-request.js'
import { P2SpeechSource } from './p2-speech.js'
import { p2Voice } from './p2-voices.table.js'
import { spokenPieces } from './spoken-pieces.js'

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

  async speak({ body: { fields } }: SpeechCall, context: CallContext): Promise<UpstreamAnswer> {
    const wish = wishOf(fields, context)
    const { format, pieces } = wish
    const { call, deadlineAtMs, target } = context
    let characters = 0
    const source = await P2SpeechSource.open({
      call,
      deadlineAtMs,
      timeouts: target.timeouts,
      pieces,
      requestFor: requestFor(fields, wish, context),
      onSpoken: (piece) => {
        characters += codePoints(piece)
      },
      dial: () => this.dial(wish.key, context),
      refusal: (code, text) => p2Refusal(code, text, context),
      ...(format.encoding === 'pcm' ? { sampleBytes: PCM_SAMPLE_BYTES } : {}),
      ...(format.encoding === 'ogg_opus' && pieces.length > 1 ? { joiner: new OggJoiner() } : {}),
    })
    const usage = () => estimateSpeechUsage(fields.input, { characters })
    return await spokenAnswer({ ...format, source, usage, characters: () => characters, call }, fields.stream_format)
  }

  private async dial({ accessToken }: P2Key, context: CallContext): Promise<WebSocket> {
    const { call, deadlineAtMs, target } = context
    const request = {
      path: STREAM_PATH,
      // A semicolon, and no blank behind it.
      headers: { authorization: `Bearer;${accessToken}` },
      maximumMessageBytes: MAXIMUM_MESSAGE_BYTES,
    }
    const { headers, socket, refusal } = await this.sockets.dial(request, target, call, deadlineAtMs)
    const logId = headers['x-tt-logid']
    if (typeof logId === 'string') call.log.upstreamRequestId = logId
    if (refusal !== undefined) throw await handshakeRefusal(refusal, context)
    return socket
  }
}

function wishOf(fields: SpeechFields, context: CallContext): Wish {
  const key = keyOf(context)
  const format = p2Format(fields.response_format)
  const overlay = readP2Metadata(fields.metadata, { pcm: format.encoding === 'pcm' })
  const pieces = spokenPieces(fields.input, overlay.request['text_type'] === 'ssml')
  return { key, format, overlay, pieces }
}

/** A pair the caller sent is the caller's to mend; the channel's own never is. */
function keyOf({ credentials, callersKey }: CallContext): P2Key {
  try {
    return parseP2Key(credentials)
  } catch (cause) {
    if (callersKey) throw cause
    throw accountRefusal('key', false, { cause, phase: 'unsent' })
  }
}

/** Checked metadata holds a number there, or nothing. */
const wishedSpeed = ({ speed }: SpeechFields, { overlay }: Wish): number =>
  (overlay.audio['speed_ratio'] as number | undefined) ?? speed ?? 1

function requestFor(fields: SpeechFields, wish: Wish, context: CallContext): (piece: string) => Buffer {
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
