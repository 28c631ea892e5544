import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { eventually } from '../../test/support/eventually.js'
import { LimitedCalls, SESSION } from '../../test/support/limited-calls.js'
import {
  openReservingSession,
  type ReservingSession,
  type SocketPairs,
  startSocketPairs,
} from '../../test/support/realtime-session.js'
import type {
  Quota,
  EstimatedUse,
  ExhaustedLimit,
  TokensAndAudio,
  ReservationRefusal,
  Reservation,
} from '../core/quota.js'
import { type ResponseReserver, ResponseReservations, SessionUsageLimits, SessionLimitGuard } from './session-limits.js'

/** In a session: its client asks, its upstream begins, refuses or ends an answer, others have their turn. */
type Step =
  | { readonly what: 'ask'; readonly tokens: number }
  | { readonly what: 'begin'; readonly tokens: number }
  | { readonly what: 'end'; readonly tokens: number }
  | { readonly what: 'refuse' }
  | { readonly what: 'wait' }

const amount = fc.integer({ min: 0, max: 400 })
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ what: fc.constant('ask' as const), tokens: amount }),
  fc.record({ what: fc.constant('begin' as const), tokens: amount }),
  fc.record({ what: fc.constant('end' as const), tokens: amount }),
  fc.record({ what: fc.constantFrom('refuse' as const, 'wait' as const) }),
)
const SESSIONS = fc.array(fc.array(STEP, { maxLength: 12 }), { minLength: 1, maxLength: 8 })

const LIMIT = 1000

/** Runs a session to its end, whatever is still under way then; resolves with the tokens that its answers have used. */
async function run(calls: LimitedCalls, steps: readonly Step[]): Promise<number> {
  const session = await calls.enter(SESSION).catch(() => undefined)
  // Nothing was left at that moment.
  if (session === undefined) return 0
  const answers = new ResponseReservations(session.quota)
  let used = 0
  for (const step of steps) {
    if (step.what === 'ask') await answers.tryReserve(() => ({ tokens: step.tokens }), undefined)
    else if (step.what === 'begin') answers.begin(() => ({ tokens: step.tokens }))
    else if (step.what === 'refuse') answers.reject({ code: 'conversation_already_has_active_response' })
    else if (step.what === 'wait') await nextTurn()
    else {
      used += step.tokens
      answers.end({ tokens: step.tokens, audioSeconds: 0 })
    }
  }
  await session.end({ left: true })
  return used
}

describe('The counts of a key with realtime sessions', () => {
  it.each(['at once', 'awaited'] as const)(
    'are exact however their answers interleave, counted %s: what was used stays, the rest comes back',
    async (kind) => {
      await fc.assert(
        fc.asyncProperty(SESSIONS, async (sessions) => {
          const calls = new LimitedCalls({ tokensPerMinute: LIMIT }, kind)
          const used = await Promise.all(sessions.map((steps) => run(calls, steps)))
          await nextTurn()
          expect((await calls.used()).tokens).toBe(used.reduce((sum, tokens) => sum + tokens, 0))
        }),
        { numRuns: 200 },
      )
    },
  )

  it.each(['at once', 'awaited'] as const)(
    'never give out more than the limit at one time, counted %s',
    async (kind) => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 30 }), async (asked) => {
          const calls = new LimitedCalls({ tokensPerMinute: LIMIT }, kind)
          const given = await Promise.all(
            asked.map(async (tokens) => {
              const { quota } = calls.make()
              return (await new ResponseReservations(quota).tryReserve(() => ({ tokens }), undefined)) === undefined
                ? tokens
                : 0
            }),
          )
          const sum = given.reduce((total, tokens) => total + tokens, 0)
          expect(sum).toBeLessThanOrEqual(LIMIT)
          expect((await calls.used()).tokens).toBe(sum)
        }),
        { numRuns: 200 },
      )
    },
  )
})

describe('The limits of a realtime session', () => {
  /** Reserves under numbers, at once or when told; keeps what became of each. */
  class NumberedQuota implements Quota {
    readonly reserved: EstimatedUse[] = []
    readonly settled: [number, TokensAndAudio][] = []
    readonly spent: TokensAndAudio[] = []
    refusal: ReservationRefusal | undefined
    isAwaited = false
    release: () => void = () => undefined

    reserveEstimate(): undefined {
      return undefined
    }

    reserve(use: EstimatedUse): Reservation | Promise<Reservation> {
      const number = this.reserved.push(use)
      const made = { refusal: this.refusal, settle: (used: TokensAndAudio) => void this.settled.push([number, used]) }
      if (!this.isAwaited) return made
      return new Promise((resolve) => {
        this.release = () => {
          resolve(made)
        }
      })
    }

    consume(use: TokensAndAudio): void {
      this.spent.push(use)
    }

    exhaustedLimit(): undefined {
      return undefined
    }

    addHeaders(): undefined {
      return undefined
    }

    countRefusal(): never {
      throw new Error('the guard that refuses counts refusals')
    }
  }

  const NOTHING = { tokens: 0, audioSeconds: 0 }
  const unexpected = (): never => {
    throw new Error('was asked what it expects')
  }

  let quota: NumberedQuota
  let answers: ResponseReservations
  beforeEach(() => {
    quota = new NumberedQuota()
    answers = new ResponseReservations(quota)
  })
  afterEach(() => {
    jest.restoreAllMocks()
  })

  describe('The answers of a session', () => {
    it('are settled each by what it has used, in the order in which they began', () => {
      expect(answers.tryReserve(() => ({ tokens: 10 }), 'a')).toBeUndefined()
      expect(answers.tryReserve(() => ({ tokens: 20 }), 'b')).toBeUndefined()
      answers.begin(unexpected)
      answers.end({ tokens: 5 })
      answers.begin(unexpected)
      answers.end({ tokens: 6 })
      expect(quota.reserved).toEqual([{ tokens: 10 }, { tokens: 20 }])
      expect(quota.settled).toEqual([
        [1, { tokens: 5 }],
        [2, { tokens: 6 }],
      ])
      expect(quota.spent).toEqual([])
    })

    it('hold nothing once refused, and one that ends for all that is spent then', () => {
      quota.refusal = { limit: 'tokensPerMinute', message: 'There is no room.' }
      expect(answers.tryReserve(() => ({ tokens: 10 }), 'a')).toEqual({
        limit: 'tokensPerMinute',
        message: 'There is no room.',
      })
      answers.end({ tokens: 5 })
      expect(quota.settled).toEqual([])
      expect(quota.spent).toEqual([{ tokens: 5 }])
    })

    it('are told apart by their ids, also from one whose end never comes', () => {
      for (const id of ['lost', 'one', 'two']) {
        void answers.tryReserve(() => ({ tokens: 10 }), undefined)
        answers.begin(unexpected, id)
      }
      answers.end({ tokens: 2 }, 'two')
      answers.end({ tokens: 1 }, 'one')
      expect(quota.settled).toEqual([
        [3, { tokens: 2 }],
        [2, { tokens: 1 }],
      ])
    })

    it('are settled though the upstream never said that they begin', () => {
      void answers.tryReserve(() => ({ tokens: 10 }), undefined)
      answers.end()
      expect(quota.settled).toEqual([[1, NOTHING]])
    })

    it('that the client did not ask for are reserved when they begin, and settled though that takes longer than they do', async () => {
      quota.isAwaited = true
      answers.begin(() => ({ tokens: 30 }))
      expect(quota.reserved).toEqual([{ tokens: 30 }])
      answers.end({ tokens: 7 })
      expect(quota.settled).toEqual([])
      quota.release()
      await Promise.resolve()
      await Promise.resolve()
      expect(quota.settled).toEqual([[1, { tokens: 7 }]])
    })

    it('are waited for where their limits are counted elsewhere', async () => {
      quota.isAwaited = true
      const asking = answers.tryReserve(() => ({ tokens: 10 }), 'a')
      expect(asking).toBeInstanceOf(Promise)
      quota.release()
      expect(await asking).toBeUndefined()
      answers.begin(unexpected)
      answers.end({ tokens: 3 })
      expect(quota.settled).toEqual([[1, { tokens: 3 }]])
    })
  })

  describe('Answers under way', () => {
    it.each([
      ['a key with limits', new NumberedQuota()],
      ['one without', undefined],
    ])('are known of %s from the event that asks for them to their end', (_whose, counted) => {
      answers = new ResponseReservations(counted)
      expect(answers.isEmpty()).toBe(true)
      void answers.tryReserve(() => ({ tokens: 10 }), 'a')
      expect(answers.isEmpty()).toBe(false)
      answers.begin(unexpected, 'one')
      expect(answers.isEmpty()).toBe(false)
      answers.end({ tokens: 5 }, 'one')
      expect(answers.isEmpty()).toBe(true)
      answers.begin(() => ({}), 'two')
      expect(answers.isEmpty()).toBe(false)
      answers.end(undefined, 'two')
      expect(answers.isEmpty()).toBe(true)
    })

    it('are none once the upstream has refused them, or nothing has come of them for a minute', () => {
      answers = new ResponseReservations(undefined)
      const now = jest.spyOn(performance, 'now')
      now.mockReturnValue(1000)
      void answers.tryReserve(unexpected, 'a')
      void answers.tryReserve(unexpected, 'b')
      answers.reject({ event_id: 'a', code: 'any' })
      now.mockReturnValue(61_000)
      expect(answers.isEmpty()).toBe(false)
      now.mockReturnValue(61_001)
      expect(answers.isEmpty()).toBe(true)
    })
  })

  describe('An error of the upstream', () => {
    it.each<[string, object, number | undefined]>([
      ['gives back what the event that it names has reserved', { event_id: 'b', code: 'any' }, 2],
      ['gives back nothing for an event that asked for no answer', { event_id: 'c', code: 'any' }, undefined],
      [
        'gives back the oldest where there is an answer already',
        { code: 'conversation_already_has_active_response' },
        1,
      ],
      ['gives back the oldest where it names a field of one', { event_id: null, param: 'response.tools[0]' }, 1],
      ['gives back nothing where it says nothing of answers', { event_id: null, param: 'session.voice' }, undefined],
      ['gives back nothing where it is of a cancel', { event_id: null, param: 'response_id' }, undefined],
    ])('%s', (_what, error, number) => {
      void answers.tryReserve(() => ({ tokens: 10 }), 'a')
      void answers.tryReserve(() => ({ tokens: 20 }), 'b')
      answers.reject(error as Readonly<Record<string, unknown>>)
      expect(quota.settled).toEqual(number === undefined ? [] : [[number, NOTHING]])
    })

    it('takes nothing from an answer that is under way', () => {
      void answers.tryReserve(() => ({ tokens: 10 }), 'a')
      answers.begin(unexpected)
      answers.reject({ event_id: 'a', code: 'conversation_already_has_active_response' })
      expect(quota.settled).toEqual([])
    })
  })

  describe('An answer that never comes', () => {
    it('is forgotten after a minute, so that the next one is not taken for it', () => {
      const now = jest.spyOn(performance, 'now')
      now.mockReturnValue(1000)
      void answers.tryReserve(() => ({ tokens: 10 }), 'lost')
      now.mockReturnValue(61_000)
      void answers.tryReserve(() => ({ tokens: 20 }), 'next')
      expect(quota.settled).toEqual([])
      now.mockReturnValue(61_001)
      answers.begin(unexpected)
      answers.end({ tokens: 8 })
      expect(quota.settled).toEqual([
        [1, NOTHING],
        [2, { tokens: 8 }],
      ])
    })

    it('gives back what it holds once 32 others have been asked for', () => {
      for (let count = 0; count < 32; count++) void answers.tryReserve(() => ({ tokens: 1 }), undefined)
      expect(quota.settled).toEqual([])
      void answers.tryReserve(() => ({ tokens: 1 }), undefined)
      expect(quota.settled).toEqual([[1, NOTHING]])
    })
  })
})

describe('An answer whose reservation takes its time', () => {
  let pairs: SocketPairs
  let lab: ReservingSession
  let heard: string[]
  let told: Record<string, unknown>[]
  beforeEach(async () => {
    pairs = await startSocketPairs()
    lab = await openReservingSession(pairs)
    heard = []
    told = []
    lab.upstream.on('message', (message: Buffer) =>
      heard.push((JSON.parse(message.toString()) as { type: string }).type),
    )
    lab.client.on('message', (message: Buffer) => told.push(JSON.parse(message.toString()) as Record<string, unknown>))
  })
  afterEach(() => pairs.close())

  const CREATE = '{"type":"response.create","event_id":"mine"}'
  const CLEAR = '{"type":"input_audio_buffer.clear"}'
  const APPEND = '{"type":"input_audio_buffer.append","audio":"AAAA"}'
  const UNKNOWN = '{"type":"nothing","event_id":"odd"}'

  const isWaitedFor = (count: number): Promise<void> => eventually(() => lab.quota.answer.length === count)

  it('is overtaken by nothing: what is sent behind it stays behind it, and is judged in order', async () => {
    for (const event of [CLEAR, CREATE, APPEND, UNKNOWN, CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    await eventually(() => heard.length === 1)
    // The far end has gone round once more: whatever was on its way has come.
    lab.upstream.ping()
    await once(lab.upstream, 'pong')
    expect([heard, told]).toEqual([['input_audio_buffer.clear'], []])
    lab.quota.answer[0]?.()
    await isWaitedFor(2)
    await eventually(() => told.length === 1)
    expect(told).toMatchObject([{ error: { event_id: 'odd' } }])
    lab.quota.answer[1]?.()
    await eventually(() => heard.length === 5)
    expect(heard.slice(1)).toEqual([
      'response.create',
      'input_audio_buffer.append',
      'response.create',
      'input_audio_buffer.clear',
    ])
  })

  it('is refused before its upstream hears of it, and the session goes on', async () => {
    for (const event of [CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    lab.quota.answer[0]?.('There is no room.')
    await eventually(() => heard.length === 1 && told.length === 1)
    expect(heard).toEqual(['input_audio_buffer.clear'])
    const error = { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'There is no room.' }
    expect(told).toMatchObject([{ type: 'error', error: { ...error, event_id: 'mine' } }])
  })

  it('keeps nothing from the client that the upstream says meanwhile', async () => {
    lab.client.send(CREATE)
    await isWaitedFor(1)
    lab.upstream.send('{"type":"input_audio_buffer.speech_started"}')
    await eventually(() => told.length === 1)
    expect(heard).toEqual([])
  })

  it.each(['client', 'upstream'] as const)('does not keep a session whose %s has gone', async (who) => {
    for (const event of [CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    lab[who].terminate()
    // A client that is not read is seen to have gone when it is written to, or read again.
    lab.quota.answer[0]?.()
    await lab.session.ended
    expect(lab.quota.answer).toHaveLength(1)
  })

  it('is let begin and end by a session that is to finish meanwhile, and nothing behind it is', async () => {
    for (const event of [CREATE, CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    lab.session.finish()
    lab.upstream.send('{"type":"input_audio_buffer.cleared"}')
    await eventually(() => told.length === 1)
    expect(lab.session.endCause).toBeUndefined()
    const closed = once(lab.client, 'close')
    lab.quota.answer[0]?.()
    await eventually(() => heard.length === 1)
    lab.upstream.send('{"type":"response.created","response":{"id":"resp_1"}}')
    lab.upstream.send('{"type":"response.done","response":{"id":"resp_1"}}')
    expect((await closed)[0]).toBe(1001)
    expect([heard, told.map(({ type }) => type)]).toEqual([
      ['response.create'],
      ['input_audio_buffer.cleared', 'response.created', 'response.done'],
    ])
    expect(lab.quota.answer).toHaveLength(1)
  })

  it('is refused within a session that is to finish, which ends then', async () => {
    lab.client.send(CREATE)
    await isWaitedFor(1)
    lab.session.finish()
    const closed = once(lab.client, 'close')
    lab.quota.answer[0]?.('There is no room.')
    expect((await closed)[0]).toBe(1001)
    expect([heard, told]).toMatchObject([[], [{ error: { event_id: 'mine', code: 'rate_limit_exceeded' } }]])
  })

  it('does not keep a session that drains', async () => {
    for (const event of [CREATE, CLEAR]) lab.client.send(event)
    await isWaitedFor(1)
    lab.session.drain()
    await lab.session.ended
    lab.quota.answer[0]?.()
    await new Promise(setImmediate)
    expect(heard).toEqual([])
  })
})

class RecordingQuota implements Quota {
  readonly spent: TokensAndAudio[] = []
  readonly settled: TokensAndAudio[] = []
  readonly refusals: string[] = []
  limit: ExhaustedLimit | undefined

  reserveEstimate(): Promise<void> {
    return Promise.resolve()
  }

  reserve(): Reservation {
    return { refusal: this.limit, settle: (use) => void this.settled.push(use) }
  }

  consume(use: TokensAndAudio): void {
    this.spent.push(use)
  }

  exhaustedLimit(): ExhaustedLimit | undefined {
    return this.limit
  }

  countRefusal(limit: string): void {
    this.refusals.push(limit)
  }

  addHeaders(): void {
    return undefined
  }
}

const ANSWER = {
  total_tokens: 253,
  input_tokens: 132,
  output_tokens: 121,
  input_token_details: { audio_tokens: 60, cached_tokens: 64, cached_tokens_details: { audio_tokens: 20 } },
  output_token_details: { text_tokens: 30, audio_tokens: 90 },
}

/** As a session has it. */
const reserverOf = (quota: Quota | undefined): ResponseReserver => ({
  tryReserve: (_create, eventId) =>
    new SessionUsageLimits(quota, 'conversation').responses.tryReserve(() => ({}), eventId),
})

const event = (type: string): { type: string; frame: Buffer } => ({
  type,
  frame: Buffer.from(JSON.stringify({ type, event_id: 'mine' })),
})

describe('What a session spends', () => {
  it('is the tokens of each answer, and the audio that was new in it', () => {
    const quota = new RecordingQuota()
    new SessionUsageLimits(quota, 'conversation').record('response', ANSWER)
    expect(quota.spent).toEqual([{ tokens: 253, audioSeconds: 4 + 4.5 }])
  })

  it('is settled with what the answer has reserved, where it has', () => {
    const quota = new RecordingQuota()
    const spending = new SessionUsageLimits(quota, 'conversation')
    expect(spending.responses.tryReserve(() => ({ tokens: 500 }), undefined)).toBeUndefined()
    spending.record('response', ANSWER)
    spending.record('response', ANSWER)
    expect(quota.settled).toEqual([{ tokens: 253, audioSeconds: 8.5 }])
    expect(quota.spent).toEqual([{ tokens: 253, audioSeconds: 8.5 }])
  })

  it('is the audio of a transcription only where nothing answers it', () => {
    const quota = new RecordingQuota()
    const spending = new SessionUsageLimits(quota, 'conversation')
    spending.record('input_transcription', { seconds: 3 })
    spending.record('response', ANSWER)
    spending.record('input_transcription', { seconds: 3 })
    expect(quota.spent).toEqual([{ audioSeconds: 3 }, { tokens: 253, audioSeconds: 8.5 }, {}])
  })

  it('is the audio of a transcription that is billed by tokens, which are ten a second', () => {
    const quota = new RecordingQuota()
    const spending = new SessionUsageLimits(quota, 'conversation')
    spending.record('input_transcription', {
      input_tokens: 34,
      output_tokens: 5,
      input_token_details: { audio_tokens: 30 },
    })
    expect(quota.spent).toEqual([{ tokens: 39, audioSeconds: 3 }])
  })

  it('is, of a transcription session, the audio as it is sent: by the second, and only once', () => {
    const quota = new RecordingQuota()
    const spending = new SessionUsageLimits(quota, 'transcription')
    for (const seconds of [0.4, 0.5, 0.3, 0.7, 1.2]) spending.chargeSentAudio(seconds)
    spending.record('input_transcription', { seconds: 3 })
    spending.record('input_transcription', { input_tokens: 30, output_tokens: 5 })
    spending.chargeSentAudio(0.4)
    spending.chargeRest()
    spending.chargeRest()
    const spent = quota.spent.map(({ audioSeconds = 0, ...rest }) => ({
      ...rest,
      audioSeconds: Math.round(audioSeconds * 10) / 10,
    }))
    expect(spent).toEqual([
      { audioSeconds: 1.2 },
      { audioSeconds: 1.9 },
      { audioSeconds: 0 },
      { tokens: 35, audioSeconds: 0 },
      { audioSeconds: 0.4 },
    ])
  })

  it('is not the audio that is sent to a conversation', () => {
    const quota = new RecordingQuota()
    const spending = new SessionUsageLimits(quota, 'conversation')
    spending.chargeSentAudio(60)
    spending.chargeRest()
    expect(quota.spent).toEqual([])
  })

  it('is nothing of a key without limits', () => {
    expect(() => {
      new SessionUsageLimits(undefined, 'conversation').record('response', ANSWER)
    }).not.toThrow()
  })
})

describe('A session whose key has nothing left', () => {
  it('goes on as long as something is', () => {
    const quota = new RecordingQuota()
    const guard = new SessionLimitGuard(quota, reserverOf(quota))
    expect(guard.check(event('response.create'))).toBe('forward')
    expect(new SessionLimitGuard(undefined, reserverOf(undefined)).check(event('response.create'))).toBe('forward')
  })

  it('is refused every answer it asks for, and told of the first audio alone until the reset', () => {
    const quota = new RecordingQuota()
    const guard = new SessionLimitGuard(quota, reserverOf(quota))
    quota.limit = {
      limit: 'tokensPerMinute',
      message: 'The limit is used up.',
      endsAtMs: performance.now() + 60_000,
    }
    const told = {
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      message: 'The limit is used up.',
      eventId: 'mine',
    }
    expect(guard.check(event('response.create'))).toEqual(told)
    expect(guard.check(event('response.create'))).toEqual(told)
    expect(guard.check(event('input_audio_buffer.append'))).toEqual(told)
    expect(guard.check(event('input_audio_buffer.append'))).toBe('drop')
    expect(guard.check(event('response.cancel'))).toBe('forward')
    expect(guard.check(event('session.update'))).toBe('forward')
    quota.limit = { ...quota.limit, endsAtMs: performance.now() - 1 }
    void guard.check(event('input_audio_buffer.append'))
    quota.limit = undefined
    expect(guard.check(event('input_audio_buffer.append'))).toBe('forward')
  })

  it('is counted as refused each time it is told so, by the name of the limit', () => {
    const quota = new RecordingQuota()
    const guard = new SessionLimitGuard(quota, reserverOf(quota))
    void guard.check(event('response.create'))
    void guard.check(event('input_audio_buffer.append'))
    expect(quota.refusals).toEqual([])
    const message = 'The limit is used up.'
    quota.limit = { limit: 'tokensPerMinute', message, endsAtMs: performance.now() + 60_000 }
    for (let count = 0; count < 3; count++) void guard.check(event('input_audio_buffer.append'))
    expect(quota.refusals).toEqual(['tokensPerMinute'])
    quota.limit = { limit: 'audioSecondsPerMinute', message, endsAtMs: performance.now() + 60_000 }
    for (let count = 0; count < 2; count++) void guard.check(event('response.create'))
    void guard.check(event('session.update'))
    expect(quota.refusals).toEqual(['tokensPerMinute', 'audioSecondsPerMinute', 'audioSecondsPerMinute'])
  })
})
