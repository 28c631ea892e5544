import { describe, expect, it } from '@jest/globals'
import type { Units } from '../core/request-context.js'
import type { UsageRecord } from '../core/usage-record.js'
import { PriceTable } from './price-table.js'
import { pricedUse, settledRecord } from './priced-record.js'
import type { UsageNote } from './usage-note.js'

const PRICES = new PriceTable([
  { models: ['flat'], requests: '0.5' },
  { models: ['gpt-*'], promptTokens: '1', completionTokens: '2' },
])

const note = (changes: Partial<UsageNote> = {}): UsageNote => ({
  id: undefined,
  atMs: 1_800_000_000_000,
  requestId: 'req_1',
  keyId: 'team-a',
  ownerId: 'team-a',
  kind: 'request',
  route: '/v1/chat/completions',
  model: 'gpt-4o',
  usageClass: 'chat',
  channelId: 'p1-main',
  outcome: 'ok',
  durationMs: 12.6,
  usage: undefined,
  unitsText: undefined,
  estimate: undefined,
  prices: PRICES,
  ...changes,
})
const recordOf = (of: UsageNote): UsageRecord => settledRecord(of, pricedUse(of))
const reported = (units: Units): Partial<UsageNote> => ({ usage: { units, estimated: false } })

describe('A record', () => {
  it('holds the upstream’s own figures as they were, and the units read from them', () => {
    const units = { prompt_tokens: 1_000_000, completion_tokens: 3, prompt_tokens_details: { text_tokens: 7 } }
    expect(recordOf(note(reported(units)))).toMatchObject({
      durationMs: 13,
      units: { promptTokens: 1_000_000, completionTokens: 3 },
      reported: JSON.stringify(units),
      estimated: null,
      pricing: 'priced',
      cost: '1.000006',
    })
  })

  it('marks what the gateway counted as an estimate, and prices it', () => {
    const usage = { units: { prompt_tokens: 10 }, estimated: true }
    expect(recordOf(note({ usage }))).toMatchObject({
      units: { promptTokens: 10 },
      reported: null,
      estimated: '{"prompt_tokens":10}',
      cost: '0.00001',
    })
  })

  it('has both where both are known, and is priced by the upstream’s', () => {
    const both = note({ ...reported({ prompt_tokens: 10 }), estimate: { prompt_tokens: 12 } })
    expect(recordOf(both)).toMatchObject({
      units: { promptTokens: 10 },
      reported: '{"prompt_tokens":10}',
      estimated: '{"prompt_tokens":12}',
    })
  })

  it.each<[string, Partial<UsageNote>, string, string | null]>([
    ['nothing was used', {}, 'free', '0'],
    ['zeros were used', reported({ prompt_tokens: 0, completion_tokens: 0 }), 'free', '0'],
    ['nothing was used of a model without a price', { model: 'other' }, 'free', '0'],
    ['something was used without a price', { model: 'other', ...reported({ prompt_tokens: 1 }) }, 'unpriced', null],
    ['one of its units has no price', reported({ prompt_tokens: 1, seconds: 2 }), 'unpriced', null],
    ['nobody knows what the figures are', reported({ credits: 3 }), 'unpriced', null],
    ['nobody knows what deep figures are', reported({ bill: { credits: 3 } }), 'unpriced', null],
    ['figures nobody knows are zeros', reported({ credits: 0, bill: { credits: 0 } }), 'free', '0'],
    ['it has no model', { model: undefined, ...reported({ prompt_tokens: 1 }) }, 'unpriced', null],
    ['requests have a price', { model: 'flat' }, 'priced', '0.5'],
    [
      'requests have a price, and the units are included',
      { model: 'flat', ...reported({ seconds: 3 }) },
      'priced',
      '0.5',
    ],
    ['requests have a price and it was refused', { model: 'flat', outcome: 'refused' }, 'free', '0'],
    [
      'requests have a price and the caller left after the first words',
      { model: 'flat', outcome: 'caller_left', ...reported({ prompt_tokens: 3 }) },
      'priced',
      '0.5',
    ],
    [
      'requests have a price and it is no request',
      { model: 'flat', kind: 'task', ...reported({ videos: 0 }) },
      'free',
      '0',
    ],
  ])('says so when %s', (_what, changes, pricing, cost) => {
    expect(recordOf(note(changes))).toMatchObject({ pricing, cost })
  })

  it('has an id of its own, whatever the caller chose for the request', () => {
    const ids = new Set(Array.from({ length: 100 }, () => recordOf(note()).id))
    expect(ids.size).toBe(100)
    expect(recordOf(note({ id: 'task video 1' })).id).toBe('task video 1')
  })

  it('names a model as no database minds it', () => {
    const model = `a\0b\ud800c${'x'.repeat(500)}`
    const stored = recordOf(note({ model })).model
    expect(stored).toBe(`abc${'x'.repeat(251)}`)
    expect(recordOf(note({ model: `${'x'.repeat(255)}😀` })).model).toBe('x'.repeat(255))
  })
})
