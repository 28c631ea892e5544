import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, it } from '@jest/globals'
import { ABORT_LIMIT_MS, promised } from '../support/eventually.js'
import { errorOf, type RawAnswer } from '../support/gateway.js'
import { shareLab } from '../support/lab-lifetime.js'
import type { CountingProxy } from '../support/proxies.js'
import {
  flatAudio,
  SPEECH_FORMATS,
  SPEECH_FORMS,
  speechEvents,
  type SpeechFault,
  type SpeechLab,
  type SpeechSetup,
  startLab,
  withSpeechLab,
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
export function describeRefusals(setup: SpeechSetup, exposed: string[]): void {
  let lab: SpeechLab
  shareLab(async () => (lab = await startLab(setup, exposed)))
  afterEach(() => {
    expect(lab.upstream.violations()).toEqual([])
    lab.upstream.reset()
  })

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
      'a refusal (%s) is no speech that is charged',
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
      const answer = await speak({ voice: 'no-such-voice' })
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
      await withSpeechLab(setup, exposed, { channel }, async ({ speak }) => {
        expectRefusal(await speak('Hello.'), { ...FAILED, param: null })
      })
    })

    it("is refused as the caller's own where the channel passes on the keys of callers", async () => {
      const asCaller = { channel: { credentials: 'caller' } }
      await withSpeechLab(setup, exposed, asCaller, async ({ speakWith, upstream }) => {
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
        await withSpeechLab(setup, exposed, { withSecond: true }, async ({ upstream, second, speak }) => {
          upstream.queueFault(fault)
          const answer = await speak('Hello.', { stream_format: form })
          expect({ status: answer.status, complete: answer.complete }).toEqual({ status: 200, complete: true })
          expect([upstream.calls(), second.calls()]).toEqual([1, 1])
        })
      },
    )

    it("is not asked for there when the request is the caller's fault", async () => {
      await withSpeechLab(setup, exposed, { withSecond: true }, async ({ upstream, second, speak }) => {
        upstream.queueFault('callersFault')
        expect((await speak('Hello.', { stream_format: form })).status).toBe(400)
        expect([upstream.calls(), second.calls()]).toEqual([1, 0])
      })
    })
  })
}

/** Some ten seconds of speech. */
const LONG_TEXT = 'The kettle is on the stove, and the tea is not far away. '.repeat(3)
const PACE_MS = 40
const LARGE_BYTES = 50_000_000
/** What three loopback hops may hold in the kernel's buffers for a reader who does not read. */
const IN_FLIGHT_BYTES = 40_000_000
const IDLE_MS = 700
const PATIENT_IDLE_MS = 1_500
/** Longer than the upstream may be silent: a reader who reads nothing meanwhile is not the upstream's fault. */
const QUIET_MS = 1_900
const LOOK_EVERY_MS = 50

/** What holds between the first byte of speech and the last. */
export function describeStreams(setup: SpeechSetup, exposed: string[]): void {
  describe('the first byte of speech', () => {
    let lab: SpeechLab
    shareLab(async () => (lab = await startLab(setup, exposed, { paceMs: PACE_MS })))
    afterEach(() => {
      expect(lab.upstream.violations()).toEqual([])
      lab.upstream.reset()
    })

    describe.each(SPEECH_FORMS)('as %s', (form) => {
      it.each(SPEECH_FORMATS)('in %s reaches the caller while the upstream is still speaking', async (format) => {
        const disconnected = lab.upstream.nextDisconnect()
        const response = await lab.open(LONG_TEXT, { response_format: format, stream_format: form })
        const [first] = (await once(response, 'data')) as [Buffer]
        expect(response.statusCode).toBe(200)
        expect(first.length).toBeGreaterThan(0)
        expect(lab.upstream.speaking()).toBe(1)
        response.destroy()
        await within(promised(ABORT_LIMIT_MS), disconnected)
      })
    })
  })

  describe.each(SPEECH_FORMS)('speech as %s', (form) => {
    const impatient = { channel: { timeouts: { idleMs: IDLE_MS } } }
    const breaks = [
      ['whose upstream is cut off', 'cut', {}, 'upstream_failed'],
      ...(setup.seesShortEnd[form]
        ? [['whose upstream ends too early', 'shortEnd', {}, 'upstream_failed'] as const]
        : []),
      ['whose upstream falls silent', 'stall', impatient, 'upstream_timeout'],
    ] as const

    it.each(breaks)('%s is visibly not whole', async (_name, fault, options, code) => {
      await withSpeechLab(setup, exposed, { ...options, withSecond: true }, async ({ upstream, second, speak }) => {
        upstream.queueFault(fault)
        const answer = await speak(LONG_TEXT, { stream_format: form })
        expect(answer.status).toBe(200)
        if (form === 'audio') expect(answer.complete).toBe(false)
        else {
          const { types, error } = speechEvents(answer)
          expect(types.at(-1)).toBe('error')
          expect(new Set(types.slice(0, -1))).toEqual(new Set(['speech.audio.delta']))
          expect(error).toMatchObject({ type: 'upstream_error', code, message: expect.any(String), param: null })
          expect(answer.complete).toBe(true)
        }
        // What has begun is never begun again elsewhere: the caller would hear it twice.
        expect([upstream.calls(), second.calls()]).toEqual([1, 0])
      })
    })
  })

  describe.each(SPEECH_FORMS)('a caller of speech as %s who leaves', (form) => {
    it('before its first byte ends the work of the upstream within a second', async () => {
      await withSpeechLab(setup, exposed, {}, async ({ upstream, ask }) => {
        upstream.queueFault('hang')
        const arrived = upstream.nextCall()
        const disconnected = upstream.nextDisconnect()
        const controller = new AbortController()
        const answer = ask(LONG_TEXT, { stream_format: form }, controller.signal)
        answer.catch(() => undefined)
        await arrived
        controller.abort()
        await within(promised(ABORT_LIMIT_MS), disconnected)
        await expect(answer).rejects.toThrow('aborted')
      })
    })

    it('in the middle ends the work of the upstream within a second, which is not held against it', async () => {
      await withSpeechLab(setup, exposed, { withSecond: true }, async ({ upstream, second, open, speak }) => {
        upstream.queueFault('stall')
        const disconnected = upstream.nextDisconnect()
        const response = await open(LONG_TEXT, { stream_format: form })
        await once(response, 'data')
        response.destroy()
        await within(promised(ABORT_LIMIT_MS), disconnected)
        expect((await speak('Hello.', { stream_format: form })).status).toBe(200)
        expect([upstream.calls(), second.calls()]).toEqual([2, 0])
      })
    })
  })

  describe.each(SPEECH_FORMS)('a slow reader of speech as %s', (form) => {
    it('pauses the upstream, is not taken for a silent one, and then receives all of it', async () => {
      const channel = { timeouts: { idleMs: PATIENT_IDLE_MS } }
      await withSpeechLab(setup, exposed, { channel, isCounted: true }, async ({ upstream, open, counter }) => {
        const fields = { response_format: 'pcm', stream_format: form }
        const response = await open(`#bytes=${LARGE_BYTES}`, fields)
        expect(response.statusCode).toBe(200)
        const sentBytes = await settled(counter)
        expect(sentBytes).toBeGreaterThan(0)
        expect(sentBytes).toBeLessThan(IN_FLIGHT_BYTES)
        expect(upstream.speaking()).toBe(1)
        expect(await flatAudio(response, form)).toEqual({ bytes: LARGE_BYTES, isTrue: true, complete: true })
      })
    })
  })
}

/** Rejects when the event is late. */
async function within(limitMs: number, event: Promise<unknown>): Promise<void> {
  const late = pause(limitMs, undefined, { ref: false }).then(() => {
    throw new Error(`it did not happen within ${limitMs} ms`)
  })
  await Promise.race([event, late])
}

/** Bytes the upstream has sent once it has sent nothing more for `QUIET_MS`. */
async function settled(counter: CountingProxy | undefined): Promise<number> {
  const total = (): number => counter?.sentBytes.reduce((sum, bytes) => sum + bytes, 0) ?? 0
  let before = total()
  let grewAtMs = performance.now()
  while (performance.now() - grewAtMs < QUIET_MS) {
    await pause(LOOK_EVERY_MS)
    if (total() === before) continue
    before = total()
    grewAtMs = performance.now()
  }
  return before
}
