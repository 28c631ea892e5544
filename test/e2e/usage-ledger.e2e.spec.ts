import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { UsageRecord } from '../../src/core/usage-record.js'
import { CHAT_PATH } from '../support/chat-bodies.js'
import { eventually } from '../support/eventually.js'
import { expectedCost, recordedCost } from '../support/expected-costs.js'
import { MESSAGES } from '../support/m1-gateway.js'
import { accountOf } from '../support/run-call.js'
import { brokenTranscripts, failedCalls, leftCalls } from '../support/run-calls.js'
import { servedCalls } from '../support/served-calls.js'
import { STORE_START_MS } from '../support/stores.js'
import { answersOf, startUsageRun, type UsageRun } from '../support/usage-run.js'

const ROUNDS = 8
const RUN_MS = 240_000

let lab: UsageRun

beforeAll(async () => {
  lab = await startUsageRun()
}, STORE_START_MS)
afterAll(() => lab.close())

/** Whole numbers from 1 to `most`, the same in every run (a linear congruential generator). */
function seeded(seed: number): (most: number) => number {
  let state = seed
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return 1 + Math.floor((state / 2 ** 32) * most)
  }
}

/** Makes every kind of call, and gives the records that must come of it. */
async function round(draw: (most: number) => number): Promise<readonly string[]> {
  const first = brokenTranscripts(lab, draw)
  for (const { run } of first) await run()
  const together = [...servedCalls(lab, draw), ...leftCalls(lab, draw), ...failedCalls(lab, draw)]
  await Promise.all(together.map(({ run }) => run()))
  return [...first, ...together].flatMap(({ leaves }) => leaves)
}

/** By channel and model; units of which there was nothing are left out. */
async function accounts(): Promise<unknown> {
  const byChannel: Record<string, Record<string, unknown>> = {}
  for (const { channelId, model, units } of await lab.sums()) {
    const used = Object.fromEntries(Object.entries(units).filter(([, quantity]) => quantity > 0))
    byChannel[channelId ?? ''] = { ...byChannel[channelId ?? ''], [model ?? '']: used }
  }
  return byChannel
}

/** What must have been counted of a stream: its simulator sends a token in each piece, and none of those it keeps to itself. */
function shownTokens({ route, units }: UsageRecord): object {
  const shown = (units.completionTokens ?? 0) - (units.reasoningTokens ?? 0)
  return route === CHAT_PATH ? { completion_tokens: shown } : { output_tokens: shown }
}

describe('The accounts of a mixed run', () => {
  const expected: string[] = []

  beforeAll(async () => {
    const draw = seeded(20_261_122)
    for (let count = 0; count < ROUNDS; count++) expected.push(...(await round(draw)))
    await lab.idle()
    await eventually(async () => (await lab.sums()).reduce((sum, each) => sum + each.records, 0) >= expected.length)
  }, RUN_MS)

  it('hold one record for each call, answer and task, with its outcome, and whose figures these are', async () => {
    expect((await lab.records()).map(accountOf).sort()).toEqual([...expected].sort())
  })

  it('say what the upstreams say they served, to the unit', async () => {
    expect(await accounts()).toEqual(lab.served())
    // Errors that cancel each other would be seen here: one caller too many, another too few.
    const used = (await lab.records()).filter(({ units }) => Object.values(units).some((quantity) => quantity > 0))
    expect(answersOf(used)).toEqual(lab.answers())
  })

  it('hold what was counted of the streams that came to their end beside what their upstreams say', async () => {
    const streams = (await lab.records()).filter(
      ({ route, reported, estimated }) =>
        (route === CHAT_PATH || route === MESSAGES) && reported !== null && estimated !== null,
    )
    expect(streams).toHaveLength(4 * ROUNDS)
    // Thoughts of messages are shown, in pieces that are no tokens.
    const plain = streams.filter(({ route, units }) => route === CHAT_PATH || (units.reasoningTokens ?? 0) === 0)
    expect(plain).toHaveLength(3 * ROUNDS)
    expect(plain.map(({ estimated }) => JSON.parse(estimated ?? '') as unknown)).toEqual(plain.map(shownTokens))
  })

  it('leave nothing unpriced, and cost what the table says', async () => {
    const records = await lab.records()
    expect(records.filter(({ pricing }) => pricing === 'unpriced')).toEqual([])
    expect(records.filter((record) => recordedCost(record) !== expectedCost(record, lab.prices))).toEqual([])
    const thought = records.filter(({ units }) => (units.reasoningTokens ?? 0) > 0)
    expect(thought).toHaveLength(3 * ROUNDS)
  })
})
