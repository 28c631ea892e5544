import { describe, expect, it } from '@jest/globals'
import type { Allowance, SpentLimit, TokensAndAudio, WorkReservation } from '../core/quota.js'
import { type AnswerDesk, SessionSpending, SpentGuard } from './session-spending.js'

class RecordingAllowance implements Allowance {
  readonly spent: TokensAndAudio[] = []
  readonly settled: TokensAndAudio[] = []
  readonly refusals: string[] = []
  limit: SpentLimit | undefined

  expect(): Promise<void> {
    return Promise.resolve()
  }

  reserve(): WorkReservation {
    return { refusal: this.limit, settle: (use) => void this.settled.push(use) }
  }

  spend(use: TokensAndAudio): void {
    this.spent.push(use)
  }

  spentLimit(): SpentLimit | undefined {
    return this.limit
  }

  noteRefusal(limit: string): void {
    this.refusals.push(limit)
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
const deskOf = (allowance: Allowance | undefined): AnswerDesk => ({
  ask: (_create, eventId) => new SessionSpending(allowance).answers.ask(() => ({}), eventId),
})

const event = (type: string): { type: string; frame: Buffer } => ({
  type,
  frame: Buffer.from(JSON.stringify({ type, event_id: 'mine' })),
})

describe('What a session spends', () => {
  it('is the tokens of each answer, and the audio that was new in it', () => {
    const allowance = new RecordingAllowance()
    new SessionSpending(allowance).note('response', ANSWER)
    expect(allowance.spent).toEqual([{ tokens: 253, audioSeconds: 4 + 4.5 }])
  })

  it('is settled with what the answer has reserved, where it has', () => {
    const allowance = new RecordingAllowance()
    const spending = new SessionSpending(allowance)
    expect(spending.answers.ask(() => ({ tokens: 500 }), undefined)).toBeUndefined()
    spending.note('response', ANSWER)
    spending.note('response', ANSWER)
    expect(allowance.settled).toEqual([{ tokens: 253, audioSeconds: 8.5 }])
    expect(allowance.spent).toEqual([{ tokens: 253, audioSeconds: 8.5 }])
  })

  it('is the audio of a transcription only where nothing answers it', () => {
    const allowance = new RecordingAllowance()
    const spending = new SessionSpending(allowance)
    spending.note('input_transcription', { seconds: 3 })
    spending.note('response', ANSWER)
    spending.note('input_transcription', { seconds: 3 })
    expect(allowance.spent).toEqual([{ audioSeconds: 3 }, { tokens: 253, audioSeconds: 8.5 }, {}])
  })

  it('is nothing of a key without limits', () => {
    expect(() => {
      new SessionSpending(undefined).note('response', ANSWER)
    }).not.toThrow()
  })
})

describe('A session whose key has nothing left', () => {
  it('goes on as long as something is', () => {
    const allowance = new RecordingAllowance()
    const guard = new SpentGuard(allowance, deskOf(allowance))
    expect(guard.judge(event('response.create'))).toBe('forward')
    expect(new SpentGuard(undefined, deskOf(undefined)).judge(event('response.create'))).toBe('forward')
  })

  it('is refused every answer it asks for, and told of the first audio alone until the reset', () => {
    const allowance = new RecordingAllowance()
    const guard = new SpentGuard(allowance, deskOf(allowance))
    allowance.limit = {
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
    expect(guard.judge(event('response.create'))).toEqual(told)
    expect(guard.judge(event('response.create'))).toEqual(told)
    expect(guard.judge(event('input_audio_buffer.append'))).toEqual(told)
    expect(guard.judge(event('input_audio_buffer.append'))).toBe('drop')
    expect(guard.judge(event('response.cancel'))).toBe('forward')
    expect(guard.judge(event('session.update'))).toBe('forward')
    allowance.limit = { ...allowance.limit, endsAtMs: performance.now() - 1 }
    void guard.judge(event('input_audio_buffer.append'))
    allowance.limit = undefined
    expect(guard.judge(event('input_audio_buffer.append'))).toBe('forward')
  })

  it('is counted as refused each time it is told so, by the name of the limit', () => {
    const allowance = new RecordingAllowance()
    const guard = new SpentGuard(allowance, deskOf(allowance))
    void guard.judge(event('response.create'))
    void guard.judge(event('input_audio_buffer.append'))
    expect(allowance.refusals).toEqual([])
    const message = 'The limit is used up.'
    allowance.limit = { limit: 'tokensPerMinute', message, endsAtMs: performance.now() + 60_000 }
    for (let count = 0; count < 3; count++) void guard.judge(event('input_audio_buffer.append'))
    expect(allowance.refusals).toEqual(['tokensPerMinute'])
    allowance.limit = { limit: 'audioSecondsPerMinute', message, endsAtMs: performance.now() + 60_000 }
    for (let count = 0; count < 2; count++) void guard.judge(event('response.create'))
    void guard.judge(event('session.update'))
    expect(allowance.refusals).toEqual(['tokensPerMinute', 'audioSecondsPerMinute', 'audioSecondsPerMinute'])
  })
})
