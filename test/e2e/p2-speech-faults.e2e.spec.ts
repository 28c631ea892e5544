import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { JsonObject } from '@multi-model-gateway/sandbox/server/json-value.js'
import type { SocketFault } from '@multi-model-gateway/sandbox/server/websocket-protocol.js'
import { SPEECH_PATH } from '../support/chat-bodies.js'
import {
  P2_ACCESS_TOKEN,
  P2_APP_ID,
  type P2Gateway,
  p2Text,
  startP2Gateway,
  withP2Gateway,
} from '../support/p2-gateway.js'
import { errorOf, eventsOf, type RawAnswer, sendRaw } from '../support/raw-http.js'

const SENTENCE = 'Hello there, this is a sentence that takes the upstream some frames to say.'
const FORMS = ['audio', 'sse'] as const

let lab: P2Gateway

beforeAll(async () => {
  lab = await startP2Gateway({
    simulator: { gapMs: 60_000 },
    channel: { timeouts: { connectMs: 5_000, firstByteMs: 700, idleMs: 700 } },
  })
})
beforeEach(() => {
  lab.simulator.reset()
})
afterAll(() => lab.close())

const speak = (stream_format: string, { gateway } = lab): Promise<RawAnswer> =>
  sendRaw(gateway.url, { path: SPEECH_PATH, body: p2Text(SENTENCE, { stream_format, response_format: 'pcm' }) })

async function speakWith(fault: SocketFault, form: string): Promise<RawAnswer> {
  lab.simulator.queueFault(fault)
  return await speak(form)
}

const status = (code: number, body = '{"code":3001,"message":"words of the upstream"}'): SocketFault => ({
  kind: 'status',
  status: code,
  body,
})

const FAILED = [500, 'upstream_error', 'upstream_failed'] as const
const TIMED_OUT = [500, 'upstream_error', 'upstream_timeout'] as const
const BUSY = [429, 'rate_limit_error', 'rate_limit_exceeded'] as const

/** Failures before the first audio, and what the caller sees: status, type, code, param. */
const REFUSALS: readonly (readonly [string, SocketFault, readonly [number, string, string | null, string?]])[] = [
  ['3001', '#err3001', [400, 'invalid_request_error', null]],
  ['3003', '#err3003', BUSY],
  ['3005', '#err3005', FAILED],
  ['3006', '#err3006', FAILED],
  ['3010', '#err3010', [400, 'invalid_request_error', 'string_above_max_length', 'input']],
  ['3011', '#err3011', [400, 'invalid_request_error', 'invalid_value', 'input']],
  ['3030', '#err3030', TIMED_OUT],
  ['3031', '#err3031', FAILED],
  ['3032', '#err3032', TIMED_OUT],
  ['3040', '#err3040', FAILED],
  ['3050', '#err3050', [400, 'invalid_request_error', 'voice_not_found', 'voice']],
  ['3050, compressed', '#err3050 #gziperr', [400, 'invalid_request_error', 'voice_not_found', 'voice']],
  ['3050 as JSON', '#err3050 #jsonerr', [400, 'invalid_request_error', 'voice_not_found', 'voice']],
  ['an unknown code', '#err4711', FAILED],
  ['an unknown grant', '#errgrant', FAILED],
  ['a used-up trial', '#errquota', FAILED],
  ['too many at a time', '#errconcurrency', BUSY],
  ['a voice nobody has bought', '#erraccess', FAILED],
  ['a voice of another cluster', '#errengine', FAILED],
  ['a frame that is none', '#garbage', FAILED],
  ['a text message', '#textframe', FAILED],
  ['silence', '#hang', TIMED_OUT],
  ['silence instead of the upgrade', { kind: 'hang' }, TIMED_OUT],
  ['a reset instead of the upgrade', { kind: 'reset' }, FAILED],
  ['401 instead of the upgrade', status(401), FAILED],
  ['403 instead of the upgrade', status(403), FAILED],
  ['404 instead of the upgrade', status(404), FAILED],
  ['429 instead of the upgrade', status(429), BUSY],
  ['500 instead of the upgrade', status(500), FAILED],
  ['503 without JSON instead of the upgrade', status(503, '<html>'), FAILED],
]

describe.each(FORMS)('a P2 that fails before the first audio, asked for %s', (form) => {
  it.each(REFUSALS)('with %s', async (_name, fault, [httpStatus, type, code, param = null]) => {
    const answer = await speakWith(fault, form)
    expect(answer.status).toBe(httpStatus)
    expect(answer.headers['content-type']).toBe('application/json')
    expect(errorOf(answer)).toMatchObject({ type, code, param })
    expect(answer.headers['retry-after']).toBe(httpStatus === 429 ? '1' : undefined)
    expect(answer.text).not.toMatch(/grant|resource|Engine|lifetime|words/)
    await lab.simulator.idle()
    expect(lab.simulator.openConnections).toBe(0)
  })

  it.each(['#errgrant', '#errquota', '#erraccess', status(401)])(
    'for the account of the channel (%j) says that no retry helps',
    async (fault) => {
      expect((await speakWith(fault, form)).headers['x-should-retry']).toBe('false')
    },
  )

  it('shows its words where the caller can do something about it', async () => {
    expect(errorOf(await speakWith('#err3050', form)).message).toBe('voice type not exist')
    expect(errorOf(await speakWith('#err3050 #gziperr #jsonerr', form)).message).toBe('voice type not exist')
  })
})

const MIDDLE: readonly (readonly [string, string])[] = [
  ['#errmid', 'upstream_failed'],
  ['#errmid #err3003', 'rate_limited'],
  ['#cut', 'upstream_failed'],
  ['#closeearly', 'upstream_failed'],
  ['#slow', 'upstream_timeout'],
]

describe('a P2 that fails in the middle of its audio', () => {
  it.each(MIDDLE)('(%s) cuts raw audio off, so that it cannot pass for whole', async (fault, kind) => {
    const answer = await speakWith(fault, 'audio')
    expect(answer).toMatchObject({ status: 200, complete: false })
    expect(answer.body.length).toBeGreaterThan(0)
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    expect(line).toMatchObject({ status: 200, failure: { kind } })
    // A piece that was not spoken to its end is no speech that anybody is charged for.
    expect(line).not.toHaveProperty('usage')
    await lab.simulator.idle()
  })

  it.each(FORMS)('charges for the pieces before the one that broke, asked for %s', async (stream_format) => {
    const text = `${SENTENCE} `.repeat(20) + '#cut in the middle of this.'
    const body = p2Text(text, { stream_format, response_format: 'pcm' })
    const answer = await sendRaw(lab.gateway.url, { path: SPEECH_PATH, body })
    const pieces = lab.simulator.sessions.map(({ decoded }) => String(requestOf(decoded[0])['text']))
    expect([pieces.length, pieces.join('')]).toEqual([2, text])
    const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
    const units = { input_characters: pieces[0]?.length, spoken_seconds: expect.any(Number) }
    expect(line['usage']).toEqual({ units, estimated: true })
  })

  it.each(MIDDLE)('(%s) ends events with one error and nothing after it', async (fault) => {
    const answer = await speakWith(fault, 'sse')
    expect(answer).toMatchObject({ status: 200, complete: true })
    const events = eventsOf(answer.text)
    expect(events[0]).toContain('speech.audio.delta')
    expect(JSON.parse(events.at(-1) ?? '')).toMatchObject({ error: { param: null } })
    expect(answer.text).not.toMatch(/speech\.audio\.done|\[DONE\]/)
  })
})

const requestOf = (sent: JsonObject | undefined): JsonObject => sent?.['request'] as JsonObject

describe('the odd ways of P2', () => {
  it.each(['#noack', '#bareack', '#flag2', '#flag2bare', '#merge', '#emptylast'])(
    '(%s) change no byte',
    async (way) => {
      const plain = await speak('audio')
      const odd = await speakWith(way, 'audio')
      expect(odd).toMatchObject({ status: 200, complete: true })
      expect(odd.body.equals(plain.body)).toBe(true)
      expect(lab.simulator.violations).toEqual([])
    },
  )
})

describe('the credentials of a channel at P2', () => {
  it('are in no answer and in no log, whatever happens', async () => {
    for (const simulator of [
      { apiKey: 'other-app|other-token' },
      { apiKey: 'other-app|other-token', wrongToken: 'frame' },
    ]) {
      await withP2Gateway({ simulator: simulator as { apiKey: string } }, async (refused) => {
        const answer = await speak('audio', refused)
        expect([answer.status, answer.headers['x-should-retry']]).toEqual([500, 'false'])
        const line = await refused.gateway.logLine(String(answer.headers['x-request-id']))
        expect(JSON.stringify(line['failure'])).toContain('requested grant not found')
        expectNoCanary(`${JSON.stringify(answer.headers)}${answer.text}${refused.gateway.logText()}`)
      })
    }
    for (const [, fault] of REFUSALS) {
      const answer = await speakWith(fault, 'audio')
      expectNoCanary(`${JSON.stringify(answer.headers)}${answer.text}`)
    }
    const quoting = await speakWith(status(401, `{"message":"bad ${P2_APP_ID} ${P2_ACCESS_TOKEN}"}`), 'audio')
    expectNoCanary(quoting.text)
    await lab.gateway.logLine(String(quoting.headers['x-request-id']))
    expectNoCanary(lab.gateway.logText())
  })
})

function expectNoCanary(text: string): void {
  expect(text.length).toBeGreaterThan(100)
  for (const canary of [P2_APP_ID, P2_ACCESS_TOKEN]) expect(text).not.toContain(canary)
}
