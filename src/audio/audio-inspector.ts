import { extname } from 'node:path'
import type { SpooledFile } from '../core/spooled-file.js'
import { type AudioFacts, emptyFile, notAudio, undecodable } from './audio-facts.js'
import { durationOf } from './audio-probe.js'
import { ByteWindow } from './byte-window.js'
import { inspectFlac } from './flac.js'
import { inspectWebm } from './mp4-webm.js'
import { inspectMp4, isMp4 } from './mp4.js'
import { inspectMpegProgram, isMpegProgram } from './mpeg-program.js'
import { endOfId3Tags, inspectMpegAudio, isAdts, isMpegAudio, secondsOfFrames } from './mpeg.js'
import { inspectOgg } from './wav-flac-ogg.js'
import { inspectWav, isRiff } from './wav.js'

const MPEG_AUDIO_EXTENSIONS: ReadonlySet<string> = new Set(['mp3', 'mpga', 'mpeg'])
const EBML_MAGIC = Buffer.from([0x1a, 0x45, 0xdf, 0xa3])

/**
 * What an uploaded audio file is, by its bytes first and its name second, without reading it as a whole.
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
