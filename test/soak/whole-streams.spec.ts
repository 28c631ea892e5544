import { Readable } from 'node:stream'
import { describe, expect, it } from '@jest/globals'
import { endsWhole, readToEnd } from './mixed/whole-streams.js'

const CHAT = '/v1/chat/completions'
const END = 'data: {"choices":[]}\n\ndata: [DONE]\n\n'

describe('The end of an event stream', () => {
  it('is known in whatever pieces it comes', async () => {
    const text = 'data: {"choices":[]}\n\n'.repeat(100) + END
    for (const bytes of [1, 7, 100, 10_000]) {
      const pieces = Array.from({ length: Math.ceil(text.length / bytes) }, (_, at) =>
        Buffer.from(text.slice(at * bytes, (at + 1) * bytes)),
      )
      expect(endsWhole(CHAT, await readToEnd(Readable.from(pieces)))).toBe(true)
      expect(endsWhole(CHAT, await readToEnd(Readable.from(pieces.slice(0, -1))))).toBe(false)
    }
  })

  it('is all that is kept of it', async () => {
    const pieces = (function* () {
      for (let piece = 0; piece < 100; piece += 1) yield Buffer.alloc(100_000, 'x')
    })()
    expect((await readToEnd(Readable.from(pieces))).length).toBeLessThan(1000)
  })

  it('is not told by what stands within a line', () => {
    expect(endsWhole(CHAT, '\ndata: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n')).toBe(false)
    expect(endsWhole(CHAT, `\ndata: {"content":"event: error data: {\\"error\\""}\n\n${END}`)).toBe(true)
  })
})
