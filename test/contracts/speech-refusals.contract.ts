import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { errorOf, type RawAnswer } from '../support/raw-http.js'
import {
  SPEECH_FORMS,
  startLab,
  withLab,
  type SpeechFault,
  type SpeechLab,
  type SpeechSetup,
  type Witness,
} from './speech-lab.js'

interface Refused {
  readonly status: number
  readonly type: string
  readonly code?: string | null
  readonly param?: string | null
}

/** The audio dialect's body with all its four keys, in an answer that clients may trust not to repeat. */
function expectRefusal(answer: RawAnswer, refused: Refused): void {
  expect(answer.headers['content-type']).toBe('application/json')
  const error = errorOf(answer)
  expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'type'])
  expect({ status: answer.status, ...error }).toMatchObject(refused)
  expect(error.message).toMatch(/^.{10,512}$/)
}

const FAILED = { status: 500, type: 'upstream_error', code: 'upstream_failed' }
const BUSY = { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded' }

/** Whose fault a refusal is, and what the caller hears of it. */
export function describeRefusals(setup: SpeechSetup, witness: Witness): void {
  let lab: SpeechLab
  beforeAll(async () => {
    lab = await startLab(setup, witness)
  })
  afterEach(() => {
    expect(lab.upstream.violations()).toEqual([])
    lab.upstream.reset()
  })
  afterAll(() => lab.close())

  describe.each(SPEECH_FORMS)('as %s', (form) => {
    const speak = (fields: object = {}): Promise<RawAnswer> => lab.speak('Hello.', { stream_format: form, ...fields })
    const after = (fault: SpeechFault): Promise<RawAnswer> => {
      lab.upstream.queueFault(fault)
      return speak()
    }

    it("a refusal that is the caller's fault is a bad request, and no retry is invited", async () => {
      const answer = await after('callersFault')
      expectRefusal(answer, { status: 400, type: 'invalid_request_error' })
      expect(answer.headers['x-should-retry']).toBe('false')
    })

    it("a refused key of the channel is the gateway's failure and never the caller's", async () => {
      const answer = await after('refusedKey')
      expectRefusal(answer, { ...FAILED, param: null })
      expect(answer.headers['x-should-retry']).toBe('false')
    })

    it('a busy upstream is a 429 that says when to come again', async () => {
      const answer = await after('busy')
      expectRefusal(answer, { ...BUSY, param: null })
      expect(answer.headers['retry-after']).toMatch(/^([1-9]|[1-5]\d|60)$/)
      expect(answer.headers['x-should-retry']).not.toBe('false')
    })

    it("an upstream that fails is the gateway's failure, which a retry may mend", async () => {
      const answer = await after('failure')
      expectRefusal(answer, { ...FAILED, param: null })
      expect(answer.headers['x-should-retry']).not.toBe('false')
    })

    it.each(['callersFault', 'refusedKey', 'busy', 'failure'] as const)(
      'a refusal (%s) is no speech that anybody is charged for',
      async (fault) => {
        const answer = await after(fault)
        const line = await lab.gateway.logLine(String(answer.headers['x-request-id']))
        expect(line).toMatchObject({ status: answer.status, channel: 'first' })
        expect(line).not.toHaveProperty('usage')
      },
    )

    it('a refusal that quotes the key does not pass it on', async () => {
      const answer = await after('quotesKey')
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(Object.keys(errorOf(answer)).sort()).toEqual(['code', 'message', 'param', 'type'])
      for (const secret of setup.credentials.split('|')) expect(answer.text).not.toContain(secret)
    })

    it('an unknown voice is a bad request that speaks of the voice', async () => {
      const answer = await speak({ voice: 'nobody-of-this-name' })
      expectRefusal(answer, { status: 400, type: 'invalid_request_error' })
      const { param, message } = errorOf(answer)
      expect(param === 'voice' || message.includes('voice')).toBe(true)
    })

    it('a text that is too long is refused before the upstream hears of it', async () => {
      const longest = 'a '.repeat(setup.maximumCharacters / 2)
      const answer = await speak({ input: `${longest}a` })
      const code = 'string_above_max_length'
      expectRefusal(answer, { status: 400, type: 'invalid_request_error', param: 'input', code })
      expect(lab.upstream.calls()).toBe(0)
    })

    if (setup.metadata.refused.length > 0)
      it.each(setup.metadata.refused)(
        'metadata %j is refused as %s before the upstream hears of it',
        async (metadata, param) => {
          const answer = await speak({ metadata })
          expectRefusal(answer, { status: 400, type: 'invalid_request_error', param })
          expect(lab.upstream.calls()).toBe(0)
        },
      )
  })

  describe('a key that the upstream does not know', () => {
    it("is the gateway's failure when it is the channel's", async () => {
      const channel = { credentials: `${setup.credentials}-revoked` }
      await withLab(setup, witness, { channel }, async ({ speak }) => {
        expectRefusal(await speak('Hello.'), { ...FAILED, param: null })
      })
    })

    it("is refused as the caller's own where the channel passes on the keys of callers", async () => {
      const asCaller = { channel: { credentials: 'caller' } }
      await withLab(setup, witness, asCaller, async ({ speakWith, upstream }) => {
        expect((await speakWith(setup.credentials, 'Hello.')).status).toBe(200)
        const refused = await speakWith(`${setup.credentials}-revoked`, 'Hello.')
        expectRefusal(refused, { status: 401, type: 'authentication_error', code: 'invalid_api_key' })
        expect(upstream.calls()).toBe(2)
      })
    })
  })

  describe.each(SPEECH_FORMS)('with a second channel, speech as %s', (form) => {
    it.each(['refusedKey', 'busy', 'failure'] as const)(
      'comes from there when the first fails with %s',
      async (fault) => {
        await withLab(setup, witness, { withSecond: true }, async ({ upstream, second, speak }) => {
          upstream.queueFault(fault)
          const answer = await speak('Hello.', { stream_format: form })
          expect({ status: answer.status, complete: answer.complete }).toEqual({ status: 200, complete: true })
          expect([upstream.calls(), second.calls()]).toEqual([1, 1])
        })
      },
    )

    it("is not asked for there when the request is the caller's fault", async () => {
      await withLab(setup, witness, { withSecond: true }, async ({ upstream, second, speak }) => {
        upstream.queueFault('callersFault')
        expect((await speak('Hello.', { stream_format: form })).status).toBe(400)
        expect([upstream.calls(), second.calls()]).toEqual([1, 0])
      })
    })
  })
}
