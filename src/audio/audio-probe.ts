import { extname } from 'node:path'
import type { SpooledFile } from '../core/spooled-file.js'
import { type AudioFacts, ByteWindow, emptyFile, notAudio, undecodable } from './audio-facts.js'
import { inspectMp4, inspectWebm, isMp4 } from './mp4-webm.js'
import {
  endOfId3Tags,
  inspectMpegAudio,
  inspectMpegProgram,
  isAdts,
  isMpegAudio,
  isMpegProgram,
  secondsOfFrames,
} from './mpeg.js'
import { inspectFlac, inspectOgg, inspectWav, isRiff } from './wav-flac-ogg.js'

const TIME_LIMIT_MS = 1000
/** Only the last page of an Ogg file tells its length. In MPEG audio the library's scan is slow; frames are counted elsewhere. */
const NEEDS_FULL_SCAN: ReadonlySet<string> = new Set(['audio/ogg'])
/** The library reads tables in one piece as long as the file says they are. */
const MAX_READ_BYTES = 4 * 1024 * 1024

/**
 * Duration of the audio in seconds, if it can be read within the time limit. Never throws: a file the library
 * cannot read may still be read upstream.
 */
export async function durationOf(
  bytes: ByteWindow,
  contentType: string,
  timeLimitMs = TIME_LIMIT_MS,
): Promise<number | undefined> {
  try {
    // Loaded with the first file that needs it.
    const { parseBlob } = await import('music-metadata')
    const blob = new WindowBlob(bytes, contentType, { start: 0, end: bytes.size }, performance.now() + timeLimitMs)
    const { format } = await parseBlob(blob, { duration: NEEDS_FULL_SCAN.has(contentType), skipCovers: true })
    return format.duration !== undefined && Number.isFinite(format.duration) && format.duration > 0
      ? format.duration
      : undefined
  } catch {
    return undefined
  }
}

/** A blob that reads from the spool. All reads of the library pass here, so that the time limit is enforced here. */
class WindowBlob extends Blob {
  override readonly size: number
  readonly #bytes: ByteWindow
  readonly #range: { readonly start: number; readonly end: number }
  readonly #deadlineMs: number

  constructor(
    bytes: ByteWindow,
    type: string,
    range: { readonly start: number; readonly end: number },
    deadlineMs: number,
  ) {
    super([], { type })
    this.size = range.end - range.start
    this.#bytes = bytes
    this.#range = range
    this.#deadlineMs = deadlineMs
  }

  override slice(start = 0, end = this.size): Blob {
    const range = { start: this.#range.start + start, end: Math.min(this.#range.start + end, this.#range.end) }
    return new WindowBlob(this.#bytes, this.type, range, this.#deadlineMs)
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    if (this.size > MAX_READ_BYTES || performance.now() > this.#deadlineMs)
      throw new Error('the file takes too much to read')
    return new Uint8Array(await this.#bytes.bytes(this.#range.start, this.size)).buffer
  }
}

const MPEG_AUDIO_EXTENSIONS: ReadonlySet<string> = new Set(['mp3', 'mpga', 'mpeg'])
const EBML_MAGIC = Buffer.from([0x1a, 0x45, 0xdf, 0xa3])

/**
 * Detects the format of an uploaded audio file by its bytes, then by its name, without reading all of it.
 * @throws GatewayError `invalid_request`, param `file`, with code `empty_file` (no bytes), `invalid_audio_format` (no
 * accepted kind of file) or `audio_undecodable` (an accepted kind, without audio that a decoder could read)
 */
export async function inspectAudio(spool: SpooledFile, filename: string): Promise<AudioFacts> {
  if (spool.size === 0) throw emptyFile()
  const file = new ByteWindow(spool)
  const tagBytes = await endOfId3Tags(file)
  if (tagBytes > 0 && tagBytes >= file.size) throw undecodable('there is nothing behind its tag')
  // The tag is left out from here on: it may be larger than the audio.
  const audio = file.from(tagBytes)
  const extension = extname(filename).slice(1).toLowerCase()
  const facts = await inspectContent(audio, extension, tagBytes > 0)
  if (facts.container === 'wav' || facts.container === 'mpeg-program') return facts
  const known = await durationOf(audio, facts.contentType)
  const durationSeconds = known ?? (facts.container === 'mpeg-audio' ? await secondsOfFrames(audio) : undefined)
  return durationSeconds === undefined ? facts : { ...facts, durationSeconds }
}

async function inspectContent(audio: ByteWindow, extension: string, isTagged: boolean): Promise<AudioFacts> {
  const head = Buffer.from(await audio.bytes(0, 12))
  if (isRiff(head)) return inspectWav(audio)
  if (head.toString('latin1', 0, 4) === 'fLaC') return inspectFlac(audio)
  if (head.toString('latin1', 0, 4) === 'OggS') return inspectOgg(audio)
  if (head.subarray(0, 4).equals(EBML_MAGIC)) return inspectWebm(audio, extension)
  if (isMp4(head)) return inspectMp4(audio, extension)
  if (isMpegProgram(head)) return inspectMpegProgram(audio)
  if (isAdts(head)) throw notAudio()
  const facts = await inspectMpegAudio(audio, isTagged || MPEG_AUDIO_EXTENSIONS.has(extension))
  if (facts !== undefined) return facts
  throw isTagged || isMpegAudio(head) ? undecodable('no MPEG audio frames follow each other') : notAudio()
}
