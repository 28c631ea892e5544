import { describe, expect, it } from '@jest/globals'
import { parseConfig } from '../../test/support/config.js'
import { dialectOf } from '../../test/support/endpoints.js'
import { UNKNOWN_PATH } from '../core/endpoint.js'
import { renderError } from '../dialects/error-format.js'
import { Admission, REFUSAL_REASONS } from './admission.js'
import { KnownRefusals } from './known-refusals.js'
import { refusalError, RefusalTemplates, RequestGate } from './request-gate.js'

const ANYONE = { keyId: 'anyone' }

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
    const refusals = new RefusalTemplates()
    for (const requestId of ['req_1', 'a'.repeat(128), 'x.Y:z-_0']) {
      const text = refusals.wireText(dialectOf(path), refusalError(reason), requestId, {
        nowMs: Date.UTC(2026, 0, 2, 3, 4, 5),
      })
      const [head = '', body = ''] = text.split('\r\n\r\n')
      const [statusLine = '', ...lines] = head.split('\r\n')
      const expected = renderError(refusalError(reason), dialectOf(path), requestId)
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

describe('RefusalTemplates', () => {
  it('say 503, on messages 529, and when to come back', () => {
    const refusals = new RefusalTemplates()
    expect(refusals.wireText(dialectOf('/v1/chat/completions'), refusalError('loop_delay'), 'r')).toMatch(
      /^HTTP\/1\.1 503 [^]*\r\nretry-after: 1\r\n/,
    )
    expect(refusals.wireText(dialectOf('/v1/messages'), refusalError('memory'), 'r')).toMatch(
      /^HTTP\/1\.1 529 [^]*\r\nretry-after: 5\r\n/,
    )
  })

  it('carry the date of their second, also when the clock is set back', () => {
    const refusals = new RefusalTemplates()
    const dateAt = (nowMs: number): string | undefined =>
      /\r\ndate: (.*)\r\n/.exec(refusals.wireText(dialectOf('/'), refusalError('memory'), 'r', { nowMs }))?.[1]
    for (const nowMs of [5_000, 5_999, 6_000, 5_500, 0]) expect(dateAt(nowMs)).toBe(new Date(nowMs).toUTCString())
  })
})

describe('request gate', () => {
  const { admission: SETTINGS } = parseConfig('{}', {})

  const CHAT = '/v1/chat/completions'

  /** The gate of a process that refuses requests, in a turn of its event loop that has lasted too long already. */
  function busyGate(): RequestGate {
    let nowMs = 1_000
    const admission = new Admission(() => SETTINGS, { nowMs: () => nowMs })
    for (let turn = 0; turn < 10; turn++) {
      nowMs += 250
      admission.loop.turned(nowMs, 0, 250)
    }
    nowMs += 50
    return new RequestGate({
      ...{ admission, dialectOf },
      known: new KnownRefusals({ keyFault: () => undefined, onRepeated: () => undefined, nowMs: () => nowMs }),
      mayBeBare: () => true,
      corsHeadersOf: () => ({}),
      lastResponse: () => undefined,
      matchOf: () => UNKNOWN_PATH,
      sharerOf: () => ANYONE,
      nowMs: () => nowMs,
    })
  }

  describe('A turn that has room for one more request', () => {
    it('gives it to the first that comes', () => {
      const gate = busyGate()
      expect([gate.check(CHAT, ANYONE), gate.check(CHAT, ANYONE)]).toEqual(['let_in', 'loop_delay'])
    })

    it.each(['/health/live', '/health/ready', '/admin/v1/keys'])(
      'does not give it to %s, which is let in anyway',
      (path) => {
        const gate = busyGate()
        expect([gate.check(path, ANYONE), gate.check(CHAT, ANYONE), gate.check(CHAT, ANYONE)]).toEqual([
          'let_in',
          'let_in',
          'loop_delay',
        ])
      },
    )

    it('gives it to no caller in place of operators beyond those that are let in at once', () => {
      const gate = busyGate()
      const operators = Array.from({ length: 6 }, () => gate.check('/admin/v1/keys', ANYONE))
      expect(operators).toEqual(['let_in', 'let_in', 'let_in', 'let_in', 'let_in', 'loop_delay'])
    })
  })

  describe('A probe', () => {
    it('is let in however many there are, and none is counted as refused', () => {
      const gate = busyGate()
      const verdicts = Array.from({ length: 50 }, () => gate.check('/health/live', ANYONE))
      expect(new Set(verdicts)).toEqual(new Set(['let_in']))
      expect(gate.isRefusing).toBe(false)
    })
  })
})
