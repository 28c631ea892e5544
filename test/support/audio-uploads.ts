import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { RawRequest } from './raw-http.js'
import { fieldPart, filePart, MULTIPART, multipartBytes, type RawPart } from './upload-server.js'

export const TRANSCRIPTIONS = '/v1/audio/transcriptions'
export const TRANSLATIONS = '/v1/audio/translations'

/** A short recording of the named kind. */
export const sample = (name: string): Buffer =>
  readFileSync(new URL(`../../src/audio/inspection/fixtures/${name}`, import.meta.url))

const WAV_HEADER_BYTES = 44
/** 16 kHz, 16 bit, mono. */
export const WAV_BYTES_PER_SECOND = 32_000

/** A WAV file of exactly this many bytes, header included; no two kilobytes of it are alike. */
export function wavOf(bytes: number): Buffer {
  const wav = Buffer.alloc(bytes)
  wav.write('RIFF\0\0\0\0WAVEfmt ', 'latin1')
  wav.writeUInt32LE(bytes - 8, 4)
  wav.writeUInt32LE(16, 16)
  wav.writeUInt16LE(1, 20)
  wav.writeUInt16LE(1, 22)
  wav.writeUInt32LE(16_000, 24)
  wav.writeUInt32LE(WAV_BYTES_PER_SECOND, 28)
  wav.writeUInt16LE(2, 32)
  wav.writeUInt16LE(16, 34)
  wav.write('data', 36)
  wav.writeUInt32LE(bytes - WAV_HEADER_BYTES, 40)
  for (let at = WAV_HEADER_BYTES; at + 4 <= bytes; at += 1024) wav.writeUInt32LE(at, at)
  return wav
}

export const wavOfSeconds = (seconds: number): Buffer => wavOf(WAV_HEADER_BYTES + seconds * WAV_BYTES_PER_SECOND)

export const sha1 = (bytes: Buffer): string => createHash('sha1').update(bytes).digest('hex')

/** A request with these parts, in this order. */
export const upload = (
  parts: readonly RawPart[],
  path = TRANSCRIPTIONS,
  headers: RawRequest['headers'] = {},
): RawRequest => ({ path, headers: { ...MULTIPART, ...headers }, body: multipartBytes(parts) })

/** The usual form: a file called `a.wav`, then these fields. */
export const form = (
  fields: readonly (readonly [name: string, value: string])[],
  file = wavOfSeconds(1),
): RawPart[] => [filePart(file), ...fields.map(([name, value]) => fieldPart(name, value))]

/** What uploads have left behind: files by name and, where the system tells, open files that lost theirs. */
export function spoolsLeft(): string[] {
  const named = readdirSync(tmpdir()).filter((name) => name.startsWith('gateway-upload-'))
  return process.platform === 'linux' ? [...named, ...openSpools()] : named
}

function openSpools(): string[] {
  return readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${descriptor}`)
      return target.includes('gateway-upload-') ? [target] : []
    } catch {
      return []
    }
  })
}
