import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { STATUS_MESSAGES } from '@multi-model-gateway/sandbox/p3/p3-status.table.js'
import { readAndLeave, timeAbort } from '../support/aborted-calls.js'
import { expectRefused } from '../support/bad-requests.js'
import { SPEECH_PATH } from '../support/chat-bodies.js'
import { TEST_KEY } from '../support/gateway.js'
import { UPSTREAM_KEY } from '../support/p1-gateway.js'
import { type P3Gateway, p3Text, startP3Gateway } from '../support/p3-gateway.js'
import { errorOf, eventsOf, openRaw, type RawAnswer, sendRaw } from '../support/raw-http.js'
import { SHORT_TIMEOUTS } from '../support/upstream-faults.js'

/** The promise: an upstream whose caller has left is aborted within a second. */
const PROMISED_MS = 1_000

let lab: P3Gateway

beforeAll(async () => {
  lab = await startP3Gateway({ channel: SHORT_TIMEOUTS })
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const speak = (body: string, of = lab): Promise<RawAnswer> => sendRaw(of.gateway.url, { path: SPEECH_PATH, body })

const CALLERS = [1026, 1027, 1042, 1043, 1044, 2013, 2037, 2039, 2042, 2048, 2054, 20132]
const BUSY = [1002, 1039, 1041, 2045, 2056]

const statusOf = (code: number): number => (CALLERS.includes(code) ? 400 : BUSY.includes(code) ? 429 : 500)

const CODES = Object.keys(STATUS_MESSAGES).map((code) => [Number(code), statusOf(Number(code))] as const)
/** Ways to ask, and the ways in which the upstream answers them. */
const WAYS = [
  {},
  { stream_format: 'sse' },
  { metadata: { subtitle_enable: true } },
  { metadata: { output_format: 'url' } },
]

describe('a refusal with HTTP 200', () => {
  it.each(CODES)('of the code %s is %s for the caller, however the speech was asked for', async (code, status) => {
    for (const way of WAYS) {
      const answer = await speak(p3Text(`#${code} Hello`, way))
      expect(answer.status).toBe(status)
      expect(answer.headers['content-type']).toBe('application/json')
      expect(answer.headers['retry-after']).toBe(status === 429 ? (code === 2056 ? '60' : '1') : undefined)
      // The upstream's words reach whoever can do something about it.
      expect(answer.text.includes(STATUS_MESSAGES[code] ?? '-')).toBe(status === 400)
    }
    const first = await speak(p3Text(`#errfirst=${code} Hello`))
    expect([first.status, errorOf(first).code]).toEqual([status, errorOf(await speak(p3Text(`#${code} Hello`))).code])
  })

  it('is spoken on by another channel where it is the channel’s fault, and nowhere else', async () => {
    for (const [code, status] of CODES) {
      const pair = await startP3Gateway({ withSecond: true })
      try {
        pair.simulator.queueFault({
          kind: 'status',
          status: 200,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ data: null, base_resp: { status_code: code, status_msg: 'x' } }),
        })
        const answer = await speak(p3Text('Hello'), pair)
        const isTriedAgain = status === 429 || status === 500
        expect([code, answer.status, pair.second.requests.length]).toEqual(
          isTriedAgain ? [code, 200, 1] : [code, status, 0],
        )
      } finally {
        await pair.close()
      }
    }
  })

  it.each([
    [2038, 403, 'permission_error'],
    [1008, 429, 'rate_limit_error'],
    [1004, 401, 'authentication_error'],
  ])('of the code %s is %s where the caller’s own key was sent', async (code, status, type) => {
    const own = await startP3Gateway({ simulator: { apiKey: TEST_KEY }, channel: { credentials: 'caller' }, keys: [] })
    try {
      const answer = await speak(p3Text(`#${code} Hello`), own)
      expect([answer.status, errorOf(answer).type]).toEqual([status, type])
    } finally {
      await own.close()
    }
  })

  it('of the caller’s own key is the caller’s to know', async () => {
    const own = await startP3Gateway({ simulator: { apiKey: 'another' }, channel: { credentials: 'caller' }, keys: [] })
    try {
      const answer = await speak(p3Text('Hello'), own)
      expect([answer.status, errorOf(answer).type]).toEqual([401, 'authentication_error'])
      expect(own.simulator.lastRequest?.headers['authorization']).toBe(`Bearer ${TEST_KEY}`)
    } finally {
      await own.close()
    }
  })
})

describe('an answer with HTTP 200 whose verdict is', () => {
  it.each([-1, '0', '1004', null])('the status code %j is no speech, whatever else it holds', async (status_code) => {
    for (const [index, way] of WAYS.entries()) {
      lab.simulator.queueFault({
        kind: 'status',
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ data: { audio: 'fff364c4', status: 2 }, base_resp: { status_code, status_msg: 'x' } }),
      })
      const requestId = `verdict-${status_code}-${index}`
      const headers = { 'x-request-id': requestId }
      // The verdict comes behind the audio, so that a cut may be all that is left to say.
      const answer = await sendRaw(lab.gateway.url, { path: SPEECH_PATH, body: p3Text('Hello', way), headers }).catch(
        () => undefined,
      )
      expect(answer?.status === 200 && answer.complete && !answer.text.includes('"error"')).toBe(false)
      expect(await lab.gateway.logLine(requestId)).toMatchObject({ failure: { kind: 'upstream_failed' } })
    }
  })
})

describe('a failure after the first byte', () => {
  it.each(['#cut', '#reset', '#badhex', '#oddhex', '#badframe', '#errmid=1002'])(
    'as with %s is a cut of raw audio, and one error frame without terminator among events',
    async (word) => {
      const raw = await speak(p3Text(`${word} Hello there, a longer sentence.`))
      expect(raw.status).toBe(200)
      expect(raw.body.length).toBeGreaterThan(0)
      expect(raw.complete).toBe(false)
      const events = eventsOf(
        (await speak(p3Text(`${word} Hello there, a longer sentence.`, { stream_format: 'sse' }))).text,
      )
      expect(events.length).toBeGreaterThan(1)
      const last = JSON.parse(events.at(-1) ?? '') as { error?: { code: string } }
      expect(last.error?.code).toBe(word === '#errmid=1002' ? 'rate_limit_exceeded' : 'upstream_failed')
      expect(events.some((event) => event === '[DONE]' || event.includes('speech.audio.done'))).toBe(false)
    },
  )
})

describe('an upstream in trouble', () => {
  it.each([
    ['#500', 500, 'upstream_failed'],
    ['#503', 500, 'upstream_failed'],
    ['#401', 500, 'upstream_failed'],
    ['#quota', 500, 'upstream_failed'],
    ['#429', 429, 'rate_limit_exceeded'],
    ['#html', 500, 'upstream_failed'],
    ['#empty', 500, 'upstream_failed'],
    ['#malformed', 500, 'upstream_failed'],
    ['#hang', 500, 'upstream_timeout'],
    ['#jsonerr', 500, 'upstream_failed'],
  ])('as with %s becomes %s %s for the caller', async (word, status, code) => {
    for (const way of WAYS) {
      const answer = await speak(p3Text(`${word} Hello`, way))
      expect([answer.status, errorOf(answer).code]).toEqual([status, code])
      expect(answer.text).not.toContain(UPSTREAM_KEY)
    }
  })

  it('that falls silent in the middle is a visible cut', async () => {
    const raw = await speak(p3Text('#stall Hello there.'))
    expect([raw.status, raw.complete]).toEqual([200, false])
  })
})

describe('a caller who leaves', () => {
  it.each([
    ['before the speech begins', 'hang', {}],
    ['in the middle of raw audio', 'stall', {}],
    ['in the middle of events', 'stall', { stream_format: 'sse' }],
    ['while the audio is kept for its subtitles', 'stall', { metadata: { subtitle_enable: true } }],
  ] as const)('%s ends the work of the upstream within a second', async (_when, fault, more) => {
    const request = { path: SPEECH_PATH, body: p3Text('Hello there, a longer sentence.', more) }
    const patient = await startP3Gateway()
    try {
      patient.simulator.queueFault(fault)
      const { elapsedMs } = await timeAbort(patient.simulator, () => {
        const controller = new AbortController()
        const headers = { authorization: `Bearer ${TEST_KEY}`, 'content-type': 'application/json' }
        const { signal } = controller
        fetch(patient.gateway.url + SPEECH_PATH, { method: 'POST', body: request.body, headers, signal }).catch(
          () => undefined,
        )
        return () => {
          controller.abort()
        }
      })
      expect(elapsedMs).toBeLessThan(PROMISED_MS)
    } finally {
      await patient.close()
    }
  })

  it('after the first byte leaves nothing behind', async () => {
    lab.simulator.queueFault('stall')
    const aborted = lab.simulator.nextAbort()
    await readAndLeave(lab.gateway.url, { path: SPEECH_PATH, body: p3Text('Hello there, a longer sentence.') })
    await aborted
    await lab.simulator.idle()
    expect(lab.simulator.activeRequests).toBe(0)
  })
})

describe('a request that P3 could not honour', () => {
  it.each([
    [{ voice_setting: { pitch: 13 } }, 'metadata.voice_setting.pitch', 'decimal_above_max_value'],
    [{ voice_setting: { voice_id: 'other' } }, 'metadata.voice_setting.voice_id', 'unknown_parameter'],
    [{ output_format: 'mp3' }, 'metadata.output_format', 'invalid_value'],
    [{ model: 'speech-01-hd' }, 'metadata.model', 'unknown_parameter'],
    [{ audio_setting: {} }, 'metadata.audio_setting', 'unknown_parameter'],
  ])('is refused before the upstream hears of it: %j', async (metadata, param, code) => {
    await expectRefused(lab, { path: SPEECH_PATH, body: p3Text('Hello', { metadata }) }, { status: 400, code, param })
  })

  it('is refused for a text that is too long here, and at its border by the upstream', async () => {
    const body = p3Text('a '.repeat(5_001))
    const refusal = { status: 400, code: 'string_above_max_length', param: 'input' }
    await expectRefused(lab, { path: SPEECH_PATH, body }, refusal)
    const border = await speak(p3Text('a '.repeat(5_000)))
    expect([border.status, errorOf(border).message]).toEqual([400, expect.stringContaining('fewer than 10000')])
    const response = await openRaw(lab.gateway.url, { path: SPEECH_PATH, body: p3Text('a '.repeat(5_000).slice(1)) })
    expect(response.statusCode).toBe(200)
    response.destroy()
  })
})
