import { readFileSync } from 'node:fs'
import { expect } from '@jest/globals'
import type { AudioFacts } from '../../src/audio/audio-facts.js'
import { inspectAudio } from '../../src/audio/audio-inspector.js'
import { GatewayError } from '../../src/core/gateway-error.js'
import { SpooledFile } from '../../src/core/spooled-file.js'

const FIXTURES = new URL('../../src/audio/inspection/fixtures/', import.meta.url)

/** One of the recordings beside the inspector. */
export const sample = (name: string): Buffer => readFileSync(new URL(name, FIXTURES))

/** Inspects from memory and from disk; both must say the same. */
export async function inspect(content: Buffer, filename: string): Promise<AudioFacts> {
  const results = await Promise.allSettled(
    [1, 1024 * 1024].map((memoryBytes) => inspectSpooled(content, filename, memoryBytes)),
  )
  const [disk, memory] = results
  expect(disk).toEqual(memory)
  if (disk?.status === 'fulfilled') return disk.value
  throw disk?.reason instanceof Error ? disk.reason : new Error('nothing was thrown')
}

/** Inspects a file that lies on disk when it may take one byte of memory, and in memory otherwise. */
export async function inspectSpooled(content: Buffer, filename: string, memoryBytes: number): Promise<AudioFacts> {
  const spool = new SpooledFile({
    memoryBytes: Math.max(memoryBytes, content.length >> 1, 1) * (memoryBytes > 1 ? 4 : 1),
  })
  try {
    await spool.append(content)
    await spool.finish()
    return await inspectAudio(spool, filename)
  } finally {
    await spool.remove()
  }
}

/** The code of the refusal. Throws when the file is accepted. */
export async function codeOf(content: Buffer, filename: string): Promise<string | undefined> {
  const error = await inspect(content, filename).catch((reason: unknown) => reason)
  if (!(error instanceof GatewayError)) throw new Error(`expected a refusal, got ${JSON.stringify(error)}`)
  expect(error).toMatchObject({ kind: 'invalid_request', details: { param: 'file' } })
  return error.details.code
}

export const text = (content: string): Buffer => Buffer.from(content, 'latin1')
/** An ID3v2.3 tag with `size` bytes of padding. */
export function id3(size: number): Buffer {
  const digits = [21, 14, 7, 0].map((shift) => (size >> shift) & 0x7f)
  return Buffer.concat([text('ID3\u0003\0\0'), Buffer.from(digits), Buffer.alloc(size)])
}
/** A WAV of one second of 16 kHz mono with the given sizes in its header. */
export function wav(options: { dataSize?: number; bytes?: number; format?: number } = {}): Buffer {
  const bytes = options.bytes ?? 32_000
  const header = Buffer.alloc(44)
  header.write('RIFF\0\0\0\0WAVEfmt ', 'latin1')
  header.writeUInt32LE(0xffffffff, 4)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(options.format ?? 1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(16_000, 24)
  header.writeUInt32LE(32_000, 28)
  header.writeUInt16LE(2, 32)
  header.writeUInt16LE(16, 34)
  header.write('data', 36)
  header.writeUInt32LE(options.dataSize ?? bytes, 40)
  return Buffer.concat([header, Buffer.alloc(bytes, 3)])
}
