import { afterEach, describe, expect, it, jest } from '@jest/globals'
import type { Allowance, ExpectedUse, TokensAndAudio, WorkRefusal, WorkReservation } from '../core/quota.js'
import { AnswerReservations } from './session-limits.js'

/** Reserves under numbers, at once or when told; keeps what became of each. */
class NumberedAllowance implements Allowance {
  readonly reserved: ExpectedUse[] = []
  readonly settled: [number, TokensAndAudio][] = []
  readonly spent: TokensAndAudio[] = []
  refusal: WorkRefusal | undefined
  isAwaited = false
  release: () => void = () => undefined

  expect(): undefined {
    return undefined
  }

  reserve(use: ExpectedUse): WorkReservation | Promise<WorkReservation> {
    const number = this.reserved.push(use)
    const made = { refusal: this.refusal, settle: (used: TokensAndAudio) => void this.settled.push([number, used]) }
    if (!this.isAwaited) return made
    return new Promise((resolve) => {
      this.release = () => {
        resolve(made)
      }
    })
  }

  spend(use: TokensAndAudio): void {
    this.spent.push(use)
  }

  spentLimit(): undefined {
    return undefined
  }

  noteRefusal(): never {
    throw new Error('whoever tells the caller counts')
  }
}

const NOTHING = { tokens: 0, audioSeconds: 0 }
const unexpected = (): never => {
  throw new Error('was asked what it expects')
}

afterEach(() => {
  jest.restoreAllMocks()
})

describe('The answers of a session', () => {
  it('are settled each by what it has used, in the order in which they began', () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    expect(answers.ask(() => ({ tokens: 10 }), 'a')).toBeUndefined()
    expect(answers.ask(() => ({ tokens: 20 }), 'b')).toBeUndefined()
    answers.begin(unexpected)
    answers.end({ tokens: 5 })
    answers.begin(unexpected)
    answers.end({ tokens: 6 })
    expect(allowance.reserved).toEqual([{ tokens: 10 }, { tokens: 20 }])
    expect(allowance.settled).toEqual([
      [1, { tokens: 5 }],
      [2, { tokens: 6 }],
    ])
    expect(allowance.spent).toEqual([])
  })

  it('hold nothing once refused, and one that ends for all that is spent then', () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    allowance.refusal = { limit: 'tokensPerMinute', message: 'There is no room.' }
    expect(answers.ask(() => ({ tokens: 10 }), 'a')).toEqual({ limit: 'tokensPerMinute', message: 'There is no room.' })
    answers.end({ tokens: 5 })
    expect(allowance.settled).toEqual([])
    expect(allowance.spent).toEqual([{ tokens: 5 }])
  })

  it('are told apart by their ids, also from one whose end never comes', () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    for (const id of ['lost', 'one', 'two']) {
      void answers.ask(() => ({ tokens: 10 }), undefined)
      answers.begin(unexpected, id)
    }
    answers.end({ tokens: 2 }, 'two')
    answers.end({ tokens: 1 }, 'one')
    expect(allowance.settled).toEqual([
      [3, { tokens: 2 }],
      [2, { tokens: 1 }],
    ])
  })

  it('are settled though the upstream never said that they begin', () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    void answers.ask(() => ({ tokens: 10 }), undefined)
    answers.end()
    expect(allowance.settled).toEqual([[1, NOTHING]])
  })

  it('that nobody asked for are reserved when they begin, and settled though that takes longer than they do', async () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    allowance.isAwaited = true
    answers.begin(() => ({ tokens: 30 }))
    expect(allowance.reserved).toEqual([{ tokens: 30 }])
    answers.end({ tokens: 7 })
    expect(allowance.settled).toEqual([])
    allowance.release()
    await Promise.resolve()
    await Promise.resolve()
    expect(allowance.settled).toEqual([[1, { tokens: 7 }]])
  })

  it('are waited for where their limits are counted elsewhere', async () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    allowance.isAwaited = true
    const asking = answers.ask(() => ({ tokens: 10 }), 'a')
    expect(asking).toBeInstanceOf(Promise)
    allowance.release()
    expect(await asking).toBeUndefined()
    answers.begin(unexpected)
    answers.end({ tokens: 3 })
    expect(allowance.settled).toEqual([[1, { tokens: 3 }]])
  })
})

describe('Answers under way', () => {
  it.each([
    ['a key with limits', new NumberedAllowance()],
    ['one without', undefined],
  ])('are known of %s from the event that asks for them to their end', (_whose, allowance) => {
    const answers = new AnswerReservations(allowance)
    expect(answers.isEmpty()).toBe(true)
    void answers.ask(() => ({ tokens: 10 }), 'a')
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
    const answers = new AnswerReservations(undefined)
    const now = jest.spyOn(performance, 'now')
    now.mockReturnValue(1000)
    void answers.ask(unexpected, 'a')
    void answers.ask(unexpected, 'b')
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
    ['gives back the oldest where there is an answer already', { code: 'conversation_already_has_active_response' }, 1],
    ['gives back the oldest where it names a field of one', { event_id: null, param: 'response.tools[0]' }, 1],
    ['gives back nothing where it says nothing of answers', { event_id: null, param: 'session.voice' }, undefined],
    ['gives back nothing where it is of a cancel', { event_id: null, param: 'response_id' }, undefined],
  ])('%s', (_what, error, number) => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    void answers.ask(() => ({ tokens: 10 }), 'a')
    void answers.ask(() => ({ tokens: 20 }), 'b')
    answers.reject(error as Readonly<Record<string, unknown>>)
    expect(allowance.settled).toEqual(number === undefined ? [] : [[number, NOTHING]])
  })

  it('takes nothing from an answer that is under way', () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    void answers.ask(() => ({ tokens: 10 }), 'a')
    answers.begin(unexpected)
    answers.reject({ event_id: 'a', code: 'conversation_already_has_active_response' })
    expect(allowance.settled).toEqual([])
  })
})

describe('An answer that never comes', () => {
  it('is forgotten after a minute, so that the next one is not taken for it', () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    const now = jest.spyOn(performance, 'now')
    now.mockReturnValue(1000)
    void answers.ask(() => ({ tokens: 10 }), 'lost')
    now.mockReturnValue(61_000)
    void answers.ask(() => ({ tokens: 20 }), 'next')
    expect(allowance.settled).toEqual([])
    now.mockReturnValue(61_001)
    answers.begin(unexpected)
    answers.end({ tokens: 8 })
    expect(allowance.settled).toEqual([
      [1, NOTHING],
      [2, { tokens: 8 }],
    ])
  })

  it('gives back what it holds once 32 others have been asked for', () => {
    const allowance = new NumberedAllowance()
    const answers = new AnswerReservations(allowance)
    for (let count = 0; count < 32; count++) void answers.ask(() => ({ tokens: 1 }), undefined)
    expect(allowance.settled).toEqual([])
    void answers.ask(() => ({ tokens: 1 }), undefined)
    expect(allowance.settled).toEqual([[1, NOTHING]])
  })
})
