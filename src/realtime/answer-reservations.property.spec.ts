import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { LimitedCalls, SESSION } from '../../test/support/limited-calls.js'
import { AnswerReservations } from './session-limits.js'

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
  const answers = new AnswerReservations(session.allowance)
  let used = 0
  for (const step of steps) {
    if (step.what === 'ask') await answers.ask(() => ({ tokens: step.tokens }), undefined)
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
              const { allowance } = calls.make()
              return (await new AnswerReservations(allowance).ask(() => ({ tokens }), undefined)) === undefined
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
