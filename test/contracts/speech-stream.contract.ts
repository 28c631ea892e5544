import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import type { CountingProxy } from '../support/counting-proxy.js'
import { flatAudio, speechEvents } from './speech-answers.js'
import {
  SPEECH_FORMATS,
  SPEECH_FORMS,
  startLab,
  withLab,
  type SpeechLab,
  type SpeechSetup,
  type Witness,
} from './speech-lab.js'

/** Some ten seconds of speech. */
const LONG_TEXT = 'The kettle is on the stove, and the tea is not far away. '.repeat(3)
const PACE_MS = 40
/** The promise: an upstream whose caller has left is aborted within a second. */
const PROMISED_MS = 1_000
const LARGE_BYTES = 50_000_000
/** What three loopback hops may hold in the kernel's buffers for a reader who does not read. */
const IN_FLIGHT_BYTES = 40_000_000
const IDLE_MS = 700
const PATIENT_IDLE_MS = 1_500
/** Longer than the upstream may be silent: a reader who reads nothing meanwhile is not the upstream's fault. */
const QUIET_MS = 1_900
const LOOK_EVERY_MS = 50

/** Fifty megabytes through four hops of one process, beside other workers. */
const LARGE_TEST_MS = 120_000

/** What holds between the first byte of speech and the last. */
export function describeStreams(setup: SpeechSetup, witness: Witness): void {
  describe('the first byte of speech', () => {
    let lab: SpeechLab
    beforeAll(async () => {
      lab = await startLab(setup, witness, { paceMs: PACE_MS })
    })
    afterEach(() => {
      expect(lab.upstream.violations()).toEqual([])
      lab.upstream.reset()
    })
    afterAll(() => lab.close())

    describe.each(SPEECH_FORMS)('as %s', (form) => {
      it.each(SPEECH_FORMATS)('in %s reaches the caller while the upstream is still speaking', async (format) => {
        const departed = lab.upstream.nextDeparture()
        const response = await lab.open(LONG_TEXT, { response_format: format, stream_format: form })
        const [first] = (await once(response, 'data')) as [Buffer]
        expect(response.statusCode).toBe(200)
        expect(first.length).toBeGreaterThan(0)
        expect(lab.upstream.speaking()).toBe(1)
        response.destroy()
        await within(PROMISED_MS, departed)
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
      await withLab(setup, witness, { ...options, withSecond: true }, async ({ upstream, second, speak }) => {
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
      await withLab(setup, witness, {}, async ({ upstream, ask }) => {
        upstream.queueFault('hang')
        const arrived = upstream.nextCall()
        const departed = upstream.nextDeparture()
        const controller = new AbortController()
        const answer = ask(LONG_TEXT, { stream_format: form }, controller.signal)
        answer.catch(() => undefined)
        await arrived
        controller.abort()
        await within(PROMISED_MS, departed)
        await expect(answer).rejects.toThrow('aborted')
      })
    })

    it('in the middle ends the work of the upstream within a second, which is not held against it', async () => {
      await withLab(setup, witness, { withSecond: true }, async ({ upstream, second, open, speak }) => {
        upstream.queueFault('stall')
        const departed = upstream.nextDeparture()
        const response = await open(LONG_TEXT, { stream_format: form })
        await once(response, 'data')
        response.destroy()
        await within(PROMISED_MS, departed)
        expect((await speak('Hello.', { stream_format: form })).status).toBe(200)
        expect([upstream.calls(), second.calls()]).toEqual([2, 0])
      })
    })
  })

  describe.each(SPEECH_FORMS)('a slow reader of speech as %s', (form) => {
    it(
      'pauses the upstream, is not taken for a silent one, and then receives all of it',
      async () => {
        const channel = { timeouts: { idleMs: PATIENT_IDLE_MS } }
        await withLab(setup, witness, { channel, isCounted: true }, async ({ upstream, open, counter }) => {
          const fields = { response_format: 'pcm', stream_format: form }
          const response = await open(`#bytes=${LARGE_BYTES}`, fields)
          expect(response.statusCode).toBe(200)
          const sentBytes = await settled(counter)
          expect(sentBytes).toBeGreaterThan(0)
          expect(sentBytes).toBeLessThan(IN_FLIGHT_BYTES)
          expect(upstream.speaking()).toBe(1)
          expect(await flatAudio(response, form)).toEqual({ bytes: LARGE_BYTES, isTrue: true, complete: true })
        })
      },
      LARGE_TEST_MS,
    )
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
