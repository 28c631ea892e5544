import { describe, expect, it } from '@jest/globals'
import { parseBuffer } from 'music-metadata'

import { mp4File } from './mp4-file.js'

/** The types of the boxes in their order; containers are followed by what is in them. */
function boxTypes(bytes: Buffer): string[] {
  const types: string[] = []
  for (let at = 0; at < bytes.length;) {
    const size = bytes.readUInt32BE(at)
    const type = bytes.toString('latin1', at + 4, at + 8)
    types.push(type)
    if (['moov', 'trak', 'mdia', 'minf', 'stbl'].includes(type))
      types.push(...boxTypes(bytes.subarray(at + 8, at + size)))
    at += size
  }
  return types
}

describe('the file of a video', () => {
  const file = mp4File({ durationMs: 5100, width: 1280, height: 720 })

  it('is a few hundred bytes of boxes without a gap', () => {
    expect(boxTypes(file).join(' ')).toBe(
      'ftyp moov mvhd trak tkhd mdia mdhd hdlr minf vmhd dinf stbl stsd stts stsc stco stsz',
    )
    expect(file.length).toBeLessThan(1000)
  })

  it('is a video to a reader', async () => {
    const { format } = await parseBuffer(file, { mimeType: 'video/mp4' })
    expect(format).toMatchObject({ container: 'isom/iso2/mp41', hasVideo: true })
  })

  it('has its duration and the size of the picture in its headers', () => {
    const movie = file.indexOf('mvhd') + 16
    expect([file.readUInt32BE(movie), file.readUInt32BE(movie + 4)]).toEqual([1000, 5100])
    const track = file.indexOf('tkhd') + 80
    expect([file.readUInt16BE(track), file.readUInt16BE(track + 4)]).toEqual([1280, 720])
  })
})
