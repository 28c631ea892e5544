import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import { SpooledFile } from '../core/spooled-file.js'
import { durationOf } from './audio-probe.js'
import { ByteWindow } from './byte-window.js'

async function durationIn(content: Buffer, contentType: string, timeLimitMs?: number): Promise<number | undefined> {
  const spool = new SpooledFile({ memoryBytes: 65_536 })
  await spool.append(content)
  await spool.finish()
  try {
    return await durationOf(new ByteWindow(spool), contentType, timeLimitMs)
  } finally {
    await spool.remove()
  }
}

const frames = readFileSync(new URL('fixtures/tone-no-xing.mp3', import.meta.url)).subarray(20)

describe('durationOf', () => {
  it('finds the length of a long file without loading it', async () => {
    const repeats = 2000
    const seconds = await durationIn(Buffer.concat(Array.from({ length: repeats }, () => frames)), 'audio/mpeg')
    expect(seconds).toBeCloseTo(0.576 * repeats, -1)
  })

  it('gives up at its time limit', async () => {
    expect(await durationIn(frames, 'audio/mpeg')).toBeCloseTo(0.576, 2)
    expect(await durationIn(frames, 'audio/mpeg', -1)).toBeUndefined()
  })

  it('does not know rather than fail on what the library cannot read', async () => {
    expect(await durationIn(Buffer.from('no audio'), 'audio/flac')).toBeUndefined()
  })
})
