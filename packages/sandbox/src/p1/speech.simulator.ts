import { synthesizeSpeech } from '../audio/speech-synthesizer.js'
import type { Exchange } from '../server/exchange.js'
import { parseJsonObject, textOf } from '../server/json-value.js'
import { estimateTokens, magicNumber } from '../server/magic-text.js'
import { type OpenAiFaultOptions, openAiFaults, renderRejection } from '../server/openai-errors.js'
import { OpenAiRejection, reject } from '../server/openai-rejection.js'
import type { Frame } from '../server/response-stream.js'
import type { ServedUnits } from '../server/served-ledger.js'
import { p1Headers } from './p1-headers.js'
import { judgeSpeechRequest, type SpeechRequest } from './speech-request.js'

const BODY_LIMIT_BYTES = 1024 * 1024
const CONTENT_TYPES = {
  mp3: 'audio/mpeg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
} as const
/** Bytes of one piece of `#bytes=N`, a multiple of 3 so that base64 pieces need no padding. */
const FLAT_PIECE_BYTES = 49_152
/** Audio tokens are counted by size. */
const BYTES_PER_TOKEN = 1600

/** POST /v1/audio/speech. */
export async function serveSpeech(exchange: Exchange): Promise<void> {
  const headers = p1Headers(exchange, { tokenLimits: true })
  const options: OpenAiFaultOptions = { headers, render: (body) => JSON.stringify(body), lineEnd: '\r\n' }
  const bytes = await exchange.readBody(BODY_LIMIT_BYTES)
  const body = bytes === undefined ? undefined : parseJsonObject(bytes)
  const text = body === undefined ? undefined : textOf(body['input'])
  if (await exchange.answeredByFault(openAiFaults(options), text)) return
  try {
    if (bytes === undefined) throw new OpenAiRejection(413, 'Request body too large.', { type: 'server_error' })
    if (!/^application\/json\s*(;|$)/i.test(exchange.request.headers['content-type'] ?? '')) {
      reject("This API method only accepts 'application/json' requests.", null, 'unsupported_content_type')
    }
    if (body === undefined) reject('We could not parse the JSON body of your request.')
    await speak(exchange, judgeSpeechRequest(body), options)
  } catch (error) {
    if (!(error instanceof OpenAiRejection)) throw error
    const refusal = renderRejection(error, options)
    await exchange.send(refusal.status, refusal.headers, refusal.body)
  }
}

async function speak(exchange: Exchange, request: SpeechRequest, options: OpenAiFaultOptions): Promise<void> {
  const flatBytes = magicNumber(request.input, 'bytes')
  const { format, speed } = request
  const audio = flatBytes === undefined ? synthesizeSpeech(request.input, { format, speed }) : flatPcm(flatBytes)
  if (!request.events) {
    let written = 0
    await exchange.stream(200, { ...options.headers, 'content-type': CONTENT_TYPES[format] }, audio, undefined, () => {
      written += 1
    })
    if (written > 0) exchange.serve(request.model, { characters: Array.from(request.input).length })
    return
  }
  const headers = {
    ...options.headers,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
  }
  const tally = new SpeechTally(request.input)
  await exchange.stream(200, headers, speechEvents(request.input, audio), openAiFaults(options), tally.note)
  exchange.serve(request.model, tally.units)
}

/** Each delta decodes on its own; the usage comes once, at the end. */
function* speechEvents(input: string, audio: Iterable<Buffer>): Generator<string> {
  let bytes = 0
  for (const piece of audio) {
    bytes += piece.length
    yield frame({ type: 'speech.audio.delta', audio: piece.toString('base64') })
  }
  const input_tokens = estimateTokens(input)
  const output_tokens = Math.ceil(bytes / BYTES_PER_TOKEN)
  const usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens }
  yield frame({ type: 'speech.audio.done', usage })
  yield 'data: [DONE]\r\n\r\n'
}

/** Tokens of the events written so far. */
class SpeechTally {
  #bytes = 0

  constructor(private readonly input: string) {}

  readonly note = (frame: Frame): void => {
    const audio = /"audio":"([^"]*)"\}\r/.exec(frame.toString())?.[1]
    this.#bytes += Buffer.from(audio ?? '', 'base64').length
  }

  get units(): ServedUnits {
    if (this.#bytes === 0) return {}
    return { promptTokens: estimateTokens(this.input), completionTokens: Math.ceil(this.#bytes / BYTES_PER_TOKEN) }
  }
}

function frame(event: object): string {
  return `data: ${JSON.stringify(event)}\r\n\r\n`
}

/** Exactly `total` bytes in the likeness of pcm: byte i is i modulo 251. Flat in memory for any size. */
function* flatPcm(total: number): Generator<Buffer> {
  const period = 251
  const pattern = Buffer.from(Array.from({ length: FLAT_PIECE_BYTES + period }, (_, index) => index % period))
  for (let sent = 0; sent < total; sent += FLAT_PIECE_BYTES) {
    const start = sent % period
    yield pattern.subarray(start, start + Math.min(FLAT_PIECE_BYTES, total - sent))
  }
}
