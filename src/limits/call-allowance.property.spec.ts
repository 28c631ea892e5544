import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { LimitedCalls, served, tokens, WORK } from '../../test/support/limited-calls.js'
import { GatewayError } from '../core/gateway-error.js'

/** One call: what it expects, what it uses, how it ends, and how many turns of others happen between its steps. */
interface Plan {
  readonly expected: number
  readonly used: number
  readonly ending: 'answered' | 'failed' | 'left' | 'left early' | 'unreported'
  readonly pauses: readonly number[]
}

const PLAN: fc.Arbitrary<Plan> = fc.record({
  expected: fc.integer({ min: 1, max: 400 }),
  used: fc.integer({ min: 0, max: 300 }),
  ending: fc.constantFrom('answered', 'failed', 'left', 'left early', 'unreported'),
  pauses: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 3, maxLength: 3 }),
})

const LIMITS = { requestsPerMinute: 20, tokensPerMinute: 1000, concurrency: 4 }

async function turns(count = 0): Promise<void> {
  for (let turn = 0; turn < count; turn++) await nextTurn()
}

/** Runs a call to its end; resolves with the tokens it has to pay. */
async function run(calls: LimitedCalls, { expected, used, ending, pauses }: Plan): Promise<number> {
  const one = calls.make()
  try {
    await turns(pauses[0])
    const entering = one.enter(WORK)
    // Whatever is under way then: the first wait, or nothing any more.
    if (ending === 'left early') await one.end({ left: true })
    await entering
    await turns(pauses[1])
    await one.expect({ tokens: expected })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    await one.end({ status: 429 })
    return 0
  }
  if (ending === 'left early') return 0
  served(one)
  expect((await calls.used()).underWay).toBeLessThanOrEqual(LIMITS.concurrency)
  await turns(pauses[2])
  if (ending === 'answered') await one.end({ usage: tokens(0, used) })
  else if (ending === 'left') await one.end({ left: true, usage: tokens(0, used) })
  else await one.end({ status: ending === 'failed' ? 502 : 200 })
  return { answered: used, left: used, failed: 0, unreported: expected }[ending]
}

describe('The counts of a key', () => {
  it.each(['at once', 'awaited'] as const)(
    'are exact however its calls interleave, counted %s: what was used stays, the rest comes back',
    async (kind) => {
      await fc.assert(
        fc.asyncProperty(fc.array(PLAN, { minLength: 1, maxLength: 30 }), async (plans) => {
          const calls = new LimitedCalls(LIMITS, kind)
          const paid = await Promise.all(plans.map((plan) => run(calls, plan)))
          await nextTurn()
          const { underWay, tokens: used, requests } = await calls.used()
          expect({ underWay, used }).toEqual({ underWay: 0, used: paid.reduce((sum, count) => sum + count, 0) })
          expect(requests).toBeLessThanOrEqual(LIMITS.requestsPerMinute)
        }),
        { numRuns: 200 },
      )
    },
  )
})
