import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { CHAT_PATH, chatText } from '../support/chat-bodies.js'
import { MESSAGES, messageText } from '../support/m1-gateway.js'
import type { RawRequest } from '../support/raw-http.js'
import { STORE_START_MS } from '../support/stores.js'
import { getUsage, type ShownRecord, startUsageLab, type UsageLab } from '../support/usage-lab.js'

/** Whole millionths for each token, so that costs are whole numbers of these. */
const PRICES = [
  { models: ['o4-mini'], promptTokens: 1, completionTokens: 10, reasoningTokens: 40 },
  { models: ['gpt-*', 'claude-*'], promptTokens: 3, completionTokens: 15 },
]
/** What the simulator thinks before each choice with an effort of `low`. */
const LOW = 128

let lab: UsageLab

beforeAll(async () => {
  lab = await startUsageLab({ prices: PRICES })
}, STORE_START_MS)
afterAll(() => lab.close())

const chat = (model: string, more: object = {}): RawRequest => ({
  path: CHAT_PATH,
  body: chatText('#chunks=5', { model, ...more }),
})
const millionths = ({ cost }: ShownRecord): number => Math.round(Number(cost) * 1e6)

describe('Tokens of thought', () => {
  it.each([
    ['as a whole', {}, 1, null],
    // Pieces are counted: those of a thought that is not shown are none.
    ['as a stream', { stream: true }, 1, { completion_tokens: 5 }],
    ['for each choice', { n: 3 }, 3, null],
  ])('of chat stand in the record, and have their own price: %s', async (_how, more, choices, estimated) => {
    const { record } = await lab.recorded(chat('o4-mini', { reasoning_effort: 'low', ...more }))
    const [words, thoughts] = [5 * choices, LOW * choices]
    const { prompt_tokens: prompt = 0 } = record.units
    expect(record).toMatchObject({
      outcome: 'ok',
      units: { completion_tokens: words + thoughts, reasoning_tokens: thoughts },
      reported: { completion_tokens_details: { reasoning_tokens: thoughts } },
    })
    expect(record.estimated).toEqual(estimated)
    expect(millionths(record)).toBe(prompt + words * 10 + thoughts * 40)
  })

  it('are paid like words where they have no price', async () => {
    const { record } = await lab.recorded(chat('gpt-5', { reasoning_effort: 'low' }))
    expect(record.units['reasoning_tokens']).toBe(LOW)
    expect(millionths(record)).toBe((record.units['prompt_tokens'] ?? 0) * 3 + (5 + LOW) * 15)
  })

  it('are none where the upstream says so', async () => {
    const { record } = await lab.recorded(chat('o4-mini'))
    expect(record.units).toMatchObject({ completion_tokens: 5, reasoning_tokens: 0 })
  })

  it('of messages stand in the record as well', async () => {
    const thinking = { type: 'enabled', budget_tokens: 1024 }
    for (const stream of [false, true]) {
      const body = messageText('#chunks=5', { max_tokens: 2000, thinking, stream })
      const { record } = await lab.recorded({ path: MESSAGES, body })
      const { completion_tokens: completion = 0, reasoning_tokens: thoughts = 0 } = record.units
      expect(thoughts).toBeGreaterThan(0)
      expect(completion).toBe(5 + thoughts)
      expect(record.reported).toMatchObject({ output_tokens_details: { thinking_tokens: thoughts } })
    }
  })

  it('are summed for the caller', async () => {
    // Of a model that no other test here asks.
    const efforts = [{ reasoning_effort: 'low' }, { reasoning_effort: 'low', n: 4 }, {}]
    for (const effort of efforts) await lab.recorded(chat('gpt-5-mini', effort))
    const { body } = await getUsage<{ data: { model: string; units: Record<string, number> }[] }>(
      lab.gateway,
      '?group_by=model',
    )
    const units = body.data.find(({ model }) => model === 'gpt-5-mini')?.units
    expect(units).toMatchObject({ reasoning_tokens: 5 * LOW, completion_tokens: 5 * LOW + 6 * 5 })
  })
})
