import { describe, expect, it } from '@jest/globals'
import { renderError } from '../dialects/error-format.js'
import { REFUSAL_REASONS } from './admission.js'
import { refusalError, Refusals } from './refusals.js'

const PATHS = [
  '/v1/chat/completions',
  '/v1/audio/speech',
  '/v1/messages',
  '/vidgen/v1/videos/text2video',
  '/imggen/task/1/fetch',
  '/v1/document/parse',
  '/nowhere',
]

describe.each(PATHS)('A refusal on %s', (path) => {
  it.each(REFUSAL_REASONS)('for %s is over the wire what it is everywhere else', (reason) => {
    const refusals = new Refusals()
    for (const requestId of ['req_1', 'a'.repeat(128), 'x.Y:z-_0']) {
      const text = refusals.wireText(path, reason, requestId, Date.UTC(2026, 0, 2, 3, 4, 5))
      const [head = '', body = ''] = text.split('\r\n\r\n')
      const [statusLine = '', ...lines] = head.split('\r\n')
      const expected = renderError(refusalError(reason), path, requestId)
      expect(statusLine.split(' ').slice(0, 2)).toEqual(['HTTP/1.1', String(expected.status)])
      expect(Object.fromEntries(lines.map((line) => line.split(': ')))).toEqual({
        ...expected.headers,
        'content-length': String(Buffer.byteLength(expected.body)),
        date: 'Fri, 02 Jan 2026 03:04:05 GMT',
      })
      expect(body).toBe(expected.body)
    }
  })
})

describe('Refusals', () => {
  it('say 503, on messages 529, and when to come back', () => {
    const refusals = new Refusals()
    expect(refusals.wireText('/v1/chat/completions', 'loop_delay', 'r')).toMatch(
      /^HTTP\/1\.1 503 [^]*\r\nretry-after: 1\r\n/,
    )
    expect(refusals.wireText('/v1/messages', 'memory', 'r')).toMatch(/^HTTP\/1\.1 529 [^]*\r\nretry-after: 5\r\n/)
  })

  it('carry the date of their second, also when the clock is set back', () => {
    const refusals = new Refusals()
    const dateAt = (nowMs: number): string | undefined =>
      /\r\ndate: (.*)\r\n/.exec(refusals.wireText('/', 'memory', 'r', nowMs))?.[1]
    for (const nowMs of [5_000, 5_999, 6_000, 5_500, 0]) expect(dateAt(nowMs)).toBe(new Date(nowMs).toUTCString())
  })
})
