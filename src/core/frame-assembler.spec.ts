import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { FrameAssembler } from './frame-assembler.js'

const frames = fc.array(fc.constantFrom('data: a\n\n', 'data: b\r\n\r\n', ': c\n\n', 'data: d\ndata: e\n\n', 'data: f'))

describe('A stream in any chunks', () => {
  it('comes out whole, in regions that end with a frame', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 7 })), (parts, sizes) => {
        const stream = parts.join('')
        const assembler = new FrameAssembler()
        let out = ''
        for (let position = 0, index = 0; position < stream.length; index++) {
          const size = sizes[index % Math.max(1, sizes.length)] ?? 3
          const region = assembler.add(Buffer.from(stream.slice(position, position + size)))
          if (region !== undefined) expect(region.toString()).toMatch(/\n\r?\n$/)
          out += region?.toString() ?? ''
          position += size
        }
        expect(assembler.waitingBytes).toBe(stream.length - out.length)
        expect(out + assembler.takeRest().toString()).toBe(stream)
        expect(assembler.waitingBytes).toBe(0)
      }),
    )
  })
})
