import { inflateSync } from 'node:zlib'

import { describe, expect, it } from '@jest/globals'

import { pngFile } from './png-file.js'

describe('a picture', () => {
  const file = pngFile(3, 'c03030')

  it('is a PNG of its size and colour', () => {
    expect(file.subarray(0, 16).toString('hex')).toBe('89504e470d0a1a0a0000000d49484452')
    expect([file.readUInt32BE(16), file.readUInt32BE(20)]).toEqual([3, 3])
    const at = file.indexOf('IDAT')
    const pixels = inflateSync(file.subarray(at + 4, at + 4 + file.readUInt32BE(at - 4)))
    expect(pixels.toString('hex')).toBe(`00${'c03030'.repeat(3)}`.repeat(3))
  })

  it('ends with the checksum every PNG ends with', () => {
    expect(file.subarray(-12).toString('hex')).toBe('0000000049454e44ae426082')
  })
})
