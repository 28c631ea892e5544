import { randomBytes } from 'node:crypto'
import type { Exchange } from '../server/exchange.js'
import type { Frame } from '../server/response-stream.js'
import { bitrateOf, type P3Audio, recut } from './p3-audio.js'
import type { P3Words } from './p3-errors.js'
import type { P3Request } from './p3-request.js'
import { invisibleRatio, spokenUnits, usageCharacters, wordsOf } from './p3-text.js'

const MOST_FILES = 1000

/** Something a link leads to: made again for each download, so that links cost no memory. */
export interface P3File {
  readonly contentType: string
  readonly frames: () => Iterable<Frame>
  /** Too large to be joined: sent without Content-Length. */
  readonly flat: boolean
}

/** The storage behind the links of P3's answers. A link lives `lifetimeMs`. */
export class P3Files {
  readonly #files = new Map<string, P3File & { readonly expiresAtMs: number }>()

  constructor(private readonly lifetimeMs: number) {}

  /** Path under which the file can be got from now on; without a file the link is dead. */
  publish(extension: string, file: P3File | undefined): string {
    const path = `/files/${randomBytes(16).toString('hex')}.${extension}`
    if (file !== undefined) this.#files.set(path, { ...file, expiresAtMs: performance.now() + this.lifetimeMs })
    const oldest = this.#files.size > MOST_FILES ? this.#files.keys().next().value : undefined
    if (oldest !== undefined) this.#files.delete(oldest)
    return path
  }

  /** Answers a GET of a link. The storage belongs to someone else, so a credential sent to it is a violation. */
  async serve(exchange: Exchange): Promise<void> {
    const { request } = exchange
    for (const name of ['authorization', 'x-api-key', 'cookie']) {
      if (request.headers[name] !== undefined) request.violations.push(`credential sent to a file link: ${name}`)
    }
    const file = this.#files.get(request.path)
    if (file === undefined || file.expiresAtMs <= performance.now()) {
      this.#files.delete(request.path)
      await exchange.send(404, { 'content-type': 'application/xml' }, '<Error><Code>NoSuchKey</Code></Error>')
      return
    }
    const headers = { 'content-type': file.contentType, 'x-oss-object-type': 'Normal' }
    if (file.flat) await exchange.stream(200, headers, file.frames())
    else await exchange.send(200, headers, Buffer.concat(Array.from(file.frames(), (frame) => Buffer.from(frame))))
  }
}

/** An odd number of bytes, a little over 20 ms of pcm. */
const ODD_PIECE_BYTES = 961
const SPOILT_PIECE = 2
/** Stands where the audio goes, so that the JSON around it can be written while the audio is being made. */
const AUDIO_PLACE = '%AUDIO%'
/** Longer texts are handed over in pieces of about this many characters. */
const JOINED_CHARACTERS = 1024 * 1024

export interface AnswerParts {
  readonly request: P3Request
  readonly audio: P3Audio
  readonly words: P3Words
  readonly traceId: string
  readonly subtitleUrl?: string | undefined
}

/** One good answer: its audio as JSON or as the chunks of an event stream. */
export class P3Answer {
  #sizeBytes: number | undefined

  constructor(private readonly parts: AnswerParts) {}

  /** The JSON answer; with a URL the audio is behind it. */
  *json(audioUrl?: string): Generator<string, void, undefined> {
    yield* joined(this.#body(2, audioUrl === undefined ? this.#hexPieces() : [audioUrl]))
  }

  /** The event stream: one frame per audio piece, then the last chunk. */
  *events(): Generator<string, void, undefined> {
    const { words, request, audio } = this.parts
    const oneshot = words.has('oneshot')
    let index = 0
    for (const piece of oneshot ? [] : this.#hexPieces()) {
      const broken = words.has('badframe') && index === SPOILT_PIECE
      yield broken ? 'data: {"data":{"audio":"ff\n\n' : `data: ${[...this.#body(1, [piece])].join('')}\n\n`
      index += 1
    }
    const repeated = words.has('aggregate') || (request.aggregated ?? !audio.flat)
    yield* joined(wrapped('data: ', this.#body(2, oneshot || repeated ? this.#hexPieces() : []), '\n\n'))
    if (words.has('done')) yield 'data: [DONE]\n\n'
  }

  /** One JSON object around the audio's text. */
  *#body(status: 1 | 2, audioText: Iterable<string>): Generator<string, void, undefined> {
    yield this.#around(status, undefined)[0]
    yield* audioText
    // The size is known now that the audio has been made.
    yield this.#around(status, status === 2 ? this.#extraInfo() : undefined)[1]
  }

  #around(status: 1 | 2, extra_info: object | undefined): readonly [string, string] {
    const { traceId: trace_id, subtitleUrl, words } = this.parts
    const base_resp = { status_code: 0, status_msg: status === 2 ? 'success' : '' }
    const subtitle_file = status === 2 ? subtitleUrl : undefined
    const json = words.has('order')
      ? { base_resp, trace_id, data: { ced: '', status, subtitle_file, audio: AUDIO_PLACE }, extra_info }
      : { data: { audio: AUDIO_PLACE, subtitle_file, status, ced: '' }, extra_info, trace_id, base_resp }
    const [head = '', tail = ''] = JSON.stringify(json).split(AUDIO_PLACE)
    return [head, tail]
  }

  #extraInfo(): object | undefined {
    const { request, words, audio } = this.parts
    if (words.has('nousage')) return undefined
    const units = spokenUnits(request.text, request.speed)
    const audio_size = this.#countedBytes()
    return {
      audio_length: Math.round(audio.lengthMs),
      audio_sample_rate: audio.sampleRate,
      audio_size,
      bitrate: bitrateOf(audio, request.format, audio_size),
      word_count: wordsOf(units).length,
      invisible_character_ratio: invisibleRatio(request.text),
      usage_characters: usageCharacters(units),
      audio_format: request.format,
      audio_channel: audio.channels,
    }
  }

  #countedBytes(): number {
    if (this.#sizeBytes !== undefined) return this.#sizeBytes
    let bytes = 0
    for (const piece of this.#pieces()) bytes += piece.length
    return bytes
  }

  *#pieces(): Generator<Buffer, void, undefined> {
    let bytes = 0
    const whole = this.parts.audio.pieces()
    for (const piece of this.parts.words.has('odd') ? recut(whole, ODD_PIECE_BYTES) : whole) {
      bytes += piece.length
      yield piece
    }
    this.#sizeBytes = bytes
  }

  *#hexPieces(): Generator<string, void, undefined> {
    const { words } = this.parts
    let index = 0
    for (const piece of this.#pieces()) {
      const hex = piece.toString('hex')
      const spoilt = index === SPOILT_PIECE
      if (spoilt && words.has('badhex')) yield `g${hex.slice(1)}`
      else yield spoilt && words.has('oddhex') ? hex.slice(1) : hex
      index += 1
    }
  }
}

function* wrapped(head: string, middle: Iterable<string>, tail: string): Generator<string, void, undefined> {
  yield head
  yield* middle
  yield tail
}

/** The same text in one piece, or in pieces of about a mebibyte. */
function* joined(pieces: Iterable<string>): Generator<string, void, undefined> {
  let waiting: string[] = []
  let characters = 0
  for (const piece of pieces) {
    waiting.push(piece)
    characters += piece.length
    if (characters < JOINED_CHARACTERS) continue
    yield waiting.join('')
    waiting = []
    characters = 0
  }
  if (waiting.length > 0) yield waiting.join('')
}
