import { readFileSync } from 'node:fs'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { parse } from 'yaml'
import { parseConfig } from '../../test/support/config.js'
import type { ModelClass } from '../config/model-classes.js'
import type { PriceRow } from '../config/settings.js'
import type { Units } from '../core/request-context.js'
import type { CountedUnits, UsageRecord } from '../core/usage-record.js'
import { PROVIDERS } from '../app/providers.js'
import { builtInModels } from '../routing/channel.js'
import { Bill, Decimal, Price, PriceTable, unitPrice } from './prices.js'
import { pricedUse, settledRecord, type UsageEntry } from './usage-entry.js'

const textOf = (scale: number, ...entries: (readonly [quantity: number, price: string])[]): string | undefined => {
  const bill = new Bill(scale, false)
  for (const [quantity, price] of entries) bill.add(quantity, unitPrice(Decimal(price), scale))
  return bill.text
}

describe('A bill', () => {
  it.each<[string, number, (readonly [number, string])[], string]>([
    ['nothing', 3, [], '0'],
    ['whole prices', 0, [[7, '30']], '210'],
    ['zeros at the end', 3, [[4, '0.250']], '1'],
    ['less than one', 6, [[3, '0.000002']], '0.000006'],
    ['the largest safe number', 0, [[1, '9007199254740991']], '9007199254740991'],
    [
      'one more than that',
      0,
      [
        [1, '9007199254740991'],
        [1, '1'],
      ],
      '9007199254740992',
    ],
    [
      'two products, of which one is not safe',
      12,
      [
        [3, '0.000000000001'],
        [1_000_000, '999999999999'],
      ],
      '999999999999000000.000000000003',
    ],
    [
      'parts of a unit',
      4,
      [
        [0.1, '0.0003'],
        [2, '0.0003'],
      ],
      '0.00063',
    ],
  ])('adds up exactly: %s', (_what, scale, entries, expected) => {
    expect(textOf(scale, ...entries)).toBe(expected)
  })

  it('says what decimals say, whatever the figures', () => {
    const quantity = fc.oneof(fc.nat(), fc.maxSafeNat(), fc.double({ min: 0, max: 1e6, noNaN: true }))
    const price = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 12 }))
    fc.assert(
      fc.property(fc.array(fc.tuple(quantity, price), { maxLength: 8 }), (drawn) => {
        const entries = drawn.map(([count, [digits, places]]) => {
          const text = String(digits).padStart(places + 1, '0')
          return [count, places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`] as const
        })
        const expected = entries.reduce((sum, [count, each]) => sum.plus(Decimal(each).times(count)), Decimal(0))
        expect(textOf(12, ...entries)).toBe(expected.toFixed())
      }),
    )
  })
})

describe('The example’s price table', () => {
  const { prices } = parse(readFileSync(new URL('../../gateway.example.yaml', import.meta.url), 'utf8')) as {
    readonly prices: object[]
  }
  const table = new PriceTable(parseConfig(JSON.stringify({ prices }), {}).prices)

  const TOKENS: CountedUnits = { promptTokens: 9, cachedTokens: 2, completionTokens: 5, reasoningTokens: 1 }
  const AUDIO_TOKENS: CountedUnits = { ...TOKENS, audioInputTokens: 3, cachedAudioTokens: 1, audioOutputTokens: 2 }
  const SPEECH: readonly CountedUnits[] = [{ characters: 5 }, { promptTokens: 2, completionTokens: 9 }]
  const HEARD: readonly CountedUnits[] = [
    { audioSeconds: 5.5 },
    { promptTokens: 5, audioInputTokens: 5, completionTokens: 2 },
  ]

  /** All units that upstreams of a class report, or the gateway counts for them. */
  const USED: Readonly<Record<ModelClass, readonly CountedUnits[]>> = {
    tts: [{ characters: 5 }],
    'tts-style': SPEECH,
    'stt-standard': [{ audioSeconds: 5.5 }],
    'stt-generation': HEARD,
    'stt-diarize': HEARD,
    // Only sessions serve them, whose transcriptions have rows of their own.
    'stt-realtime': [],
    chat: [TOKENS],
    responses: [TOKENS],
    'chat-audio': [AUDIO_TOKENS],
    messages: [{ ...TOKENS, cacheWriteTokens: 3, cacheWriteHourTokens: 1 }],
    embedding: [{ promptTokens: 9 }],
    realtime: [AUDIO_TOKENS],
    video: [{ videos: 1 }],
    image: [{ images: 1 }],
  }

  it.each(builtInModels(PROVIDERS).map(({ id, class: modelClass }) => [id, modelClass] as const))(
    'has a price for all that %s (%s) uses',
    (id, modelClass) => {
      for (const units of USED[modelClass])
        expect(Number(table.find(id, 'any', 'request')?.costOf(units, 1))).toBeGreaterThan(0)
    },
  )

  it.each<[string, string, CountedUnits]>([
    ['documents', 'request', { documents: 1, pages: 4 }],
    ['images', 'task', { images: 1 }],
    ['p2-tts', 'request', { characters: 3 }],
    ['gpt-realtime', 'input_transcription', { audioSeconds: 2 }],
    ['gpt-realtime', 'input_transcription', { promptTokens: 2, audioInputTokens: 2, completionTokens: 1 }],
  ])('has a price for %s (%s)', (model, kind, units) => {
    expect(Number(table.find(model, 'any', kind as 'request')?.costOf(units, 1))).toBeGreaterThan(0)
  })
})

describe('The price table', () => {
  const table = new PriceTable([
    { models: ['*'], kind: 'input_transcription', audioSeconds: '9' },
    { models: ['tts-1'], channels: ['cheap'], characters: '1' },
    { models: ['tts-*', 'speech-*'], characters: '2' },
    { models: ['tts-1'], characters: '3' },
  ])

  const millionCharacters = (model: string, channel: string): string | undefined =>
    table.find(model, channel, 'request')?.costOf({ characters: 1_000_000 }, 1)

  it.each([
    ['tts-1', 'cheap', '1'],
    ['tts-1', 'other', '2'],
    ['speech-02-hd', 'cheap', '2'],
    ['TTS-1', 'cheap', undefined],
    ['gpt-4o', 'cheap', undefined],
  ])('gives %s on %s the first row that fits', (model, channel, cost) => {
    expect(millionCharacters(model, channel)).toBe(cost)
    // The second time from the cache.
    expect(millionCharacters(model, channel)).toBe(cost)
  })

  it('keeps rows for what sessions hear apart from all others', () => {
    expect(table.find('gpt-realtime', 'p1', 'input_transcription')?.costOf({ audioSeconds: 1 }, 0)).toBe('9')
    expect(table.find('gpt-realtime', 'p1', 'response')).toBeUndefined()
    expect(table.find('tts-1', 'cheap', 'input_transcription')?.costOf({ audioSeconds: 1 }, 0)).toBe('9')
  })

  it('knows its rows whatever a caller invented in between', () => {
    for (let index = 0; index < 25_000; index++) millionCharacters(`tts-${index}`, 'other')
    expect(millionCharacters('tts-1', 'cheap')).toBe('1')
  })
})

const row = (prices: Omit<PriceRow, 'models'>): Price => new Price({ models: ['*'], ...prices })
const cost = (prices: Omit<PriceRow, 'models'>, units: CountedUnits, requests = 1): string | undefined =>
  row(prices).costOf(units, requests)

const CHAT = { promptTokens: '2.50', cachedTokens: '1.25', completionTokens: '10' }

describe('The cost of what was used', () => {
  it.each<[string, Omit<PriceRow, 'models'>, CountedUnits, string]>([
    ['tokens, per million', CHAT, { promptTokens: 1000, completionTokens: 200 }, '0.0045'],
    ['a single token', { promptTokens: '0.000001' }, { promptTokens: 1 }, '0.000000000001'],
    ['cached tokens, which are not paid twice', CHAT, { promptTokens: 1000, cachedTokens: 400 }, '0.002'],
    [
      'audio that was cached, at its own price',
      { promptTokens: '4', cachedTokens: '0.4', audioInputTokens: '32', cachedAudioTokens: '0.5' },
      { promptTokens: 100, cachedTokens: 60, audioInputTokens: 30, cachedAudioTokens: 10 },
      // 10 × 0.5 + 50 × 0.4 + 20 × 32 + 20 × 4
      '0.000745',
    ],
    [
      'audio that was cached, without a price of its own',
      { promptTokens: '4', cachedTokens: '0.4', audioInputTokens: '32' },
      { promptTokens: 100, cachedTokens: 60, audioInputTokens: 30, cachedAudioTokens: 10 },
      // 60 × 0.4 + 20 × 32 + 20 × 4
      '0.000744',
    ],
    [
      'what is written to a cache, for minutes and for an hour',
      { promptTokens: '3', cachedTokens: '0.3', cacheWriteTokens: '3.75', cacheWriteHourTokens: '6' },
      { promptTokens: 100, cachedTokens: 50, cacheWriteTokens: 30, cacheWriteHourTokens: 10 },
      // 10 × 6 + 20 × 3.75 + 50 × 0.3 + 20 × 3
      '0.00021',
    ],
    [
      'spoken and thought tokens, which are not paid twice',
      { completionTokens: '10', audioOutputTokens: '64', reasoningTokens: '20' },
      { completionTokens: 100, audioOutputTokens: 50, reasoningTokens: 30 },
      '0.004',
    ],
    [
      'parts without a price of their own, as their whole',
      { promptTokens: '2', completionTokens: '8' },
      { promptTokens: 10, cachedTokens: 4, audioInputTokens: 3, completionTokens: 10, reasoningTokens: 9 },
      '0.0001',
    ],
    ['parts that are more than their whole', CHAT, { promptTokens: 10, cachedTokens: 1000 }, '0.0000125'],
    ['characters', { characters: '15' }, { characters: 41 }, '0.000615'],
    [
      'whole minutes, although 60 does not divide their price',
      { audioMinutes: '0.007' },
      { audioSeconds: 60 },
      '0.007',
    ],
    ['a second, rounded at the twelfth digit', { audioMinutes: '0.007' }, { audioSeconds: 1 }, '0.000116666667'],
    [
      'seconds as an upstream measures them',
      { audioSeconds: '0.0001' },
      { audioSeconds: 1.7000000476837158 },
      '0.00017000000476837158',
    ],
    ['videos', { videos: '0.35' }, { videos: 2 }, '0.7'],
    ['images', { images: '0.05' }, { images: 1 }, '0.05'],
    ['documents by the page', { pages: '0.001' }, { documents: 1, pages: 12 }, '0.012'],
    ['documents each', { documents: '0.01' }, { documents: 1, pages: 12 }, '0.01'],
    ['documents by both', { documents: '0.01', pages: '0.001' }, { documents: 1, pages: 12 }, '0.022'],
    ['a request with all that it used', { requests: '0.02' }, { promptTokens: 1_000_000, characters: 3 }, '0.02'],
    [
      'a request, and what has a price beside it',
      { requests: '0.02', promptTokens: '1' },
      { promptTokens: 1_000_000 },
      '1.02',
    ],
    ['zeros, which need no price', {}, { promptTokens: 0, videos: 0 }, '0'],
    ['what is given away on purpose', { promptTokens: '0' }, { promptTokens: 5 }, '0'],
  ])('is exact for %s', (_what, prices, units, expected) => {
    expect(cost(prices, units)).toBe(expected)
  })

  it.each<[string, Omit<PriceRow, 'models'>, CountedUnits]>([
    ['completion', { promptTokens: '1' }, { promptTokens: 5, completionTokens: 1 }],
    ['the rest of a prompt', { cachedTokens: '1' }, { promptTokens: 5, cachedTokens: 4 }],
    ['time', { promptTokens: '1' }, { audioSeconds: 0.1 }],
    ['pages', { requests: undefined as never }, { documents: 1, pages: 1 }],
    ['anything', {}, { videos: 1 }],
  ])('is not known where %s has no price', (_what, prices, units) => {
    expect(cost(prices, units)).toBeUndefined()
  })

  /** Prices of up to six digits behind the point, and the same in millionths. */
  const price = fc.integer({ min: 0, max: 999_999_999 })
  const text = (millionths: number): string =>
    `${Math.floor(millionths / 1e6)}.${String(millionths % 1e6).padStart(6, '0')}`
  const count = fc.integer({ min: 0, max: 1_000_000_000 })

  it('is what integers say, for any figures: each token is paid once', () => {
    fc.assert(
      fc.property(
        fc.record({ whole: price, cached: price, audio: price, out: price, spoken: price, thought: price }),
        fc.record({ rest: count, cached: count, audio: count, said: count, spoken: count, thought: count }),
        (p, n) => {
          const units = {
            promptTokens: n.rest + n.cached + n.audio,
            cachedTokens: n.cached,
            audioInputTokens: n.audio,
            completionTokens: n.said + n.spoken + n.thought,
            audioOutputTokens: n.spoken,
            reasoningTokens: n.thought,
          }
          const prices = {
            promptTokens: text(p.whole),
            cachedTokens: text(p.cached),
            audioInputTokens: text(p.audio),
            completionTokens: text(p.out),
            audioOutputTokens: text(p.spoken),
            reasoningTokens: text(p.thought),
          }
          const pairs: [number, number][] = [
            [n.rest, p.whole],
            [n.cached, p.cached],
            [n.audio, p.audio],
            [n.said, p.out],
            [n.spoken, p.spoken],
            [n.thought, p.thought],
          ]
          // In 10^-12: millionths of a price per million.
          const expected = pairs.reduce((sum, [tokens, each]) => sum + BigInt(tokens) * BigInt(each), 0n)
          expect(inTrillionths(cost(prices, units) ?? '')).toBe(expected)
        },
      ),
    )
  })

  it('of all calls together is the sum of their costs, whichever way they are parted', () => {
    fc.assert(
      fc.property(
        price,
        price,
        fc.array(fc.tuple(count, count), { minLength: 1, maxLength: 20 }),
        (prompt, out, calls) => {
          const prices = { promptTokens: text(prompt), completionTokens: text(out) }
          const each = calls.map(([promptTokens, completionTokens]) => cost(prices, { promptTokens, completionTokens }))
          const together = cost(prices, {
            promptTokens: calls.reduce((sum, [tokens]) => sum + tokens, 0),
            completionTokens: calls.reduce((sum, [, tokens]) => sum + tokens, 0),
          })
          const sum = each.reduce((total, one) => total + inTrillionths(one ?? ''), 0n)
          expect(inTrillionths(together ?? '')).toBe(sum)
        },
      ),
    )
  })

  it('is never paid for more tokens than there were, whatever the parts claim', () => {
    const units = fc.record({
      promptTokens: count,
      cachedTokens: count,
      cachedAudioTokens: count,
      cacheWriteTokens: count,
      cacheWriteHourTokens: count,
      audioInputTokens: count,
    })
    const one = { promptTokens: '1', cachedTokens: '1', cacheWriteTokens: '1', audioInputTokens: '1' }
    fc.assert(
      fc.property(units, (used) => {
        expect(inTrillionths(cost(one, used) ?? '')).toBe(BigInt(used.promptTokens) * 1_000_000n)
      }),
    )
  })
})

function inTrillionths(decimal: string): bigint {
  const [whole = '', behind = ''] = decimal.split('.')
  expect(behind.length).toBeLessThanOrEqual(12)
  return BigInt(whole) * 1_000_000_000_000n + BigInt(behind.padEnd(12, '0'))
}

const PRICES = new PriceTable([
  { models: ['flat'], requests: '0.5' },
  { models: ['gpt-*'], promptTokens: '1', completionTokens: '2' },
])

const entry = (changes: Partial<UsageEntry> = {}): UsageEntry => ({
  sessionModel: undefined,
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
const recordOf = (of: UsageEntry): UsageRecord => settledRecord(of, pricedUse(of))
const reported = (units: Units): Partial<UsageEntry> => ({ usage: { units, estimated: false } })

describe('A record', () => {
  it('holds the upstream’s own figures as they were, and the units read from them', () => {
    const units = { prompt_tokens: 1_000_000, completion_tokens: 3, prompt_tokens_details: { text_tokens: 7 } }
    expect(recordOf(entry(reported(units)))).toMatchObject({
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
    expect(recordOf(entry({ usage }))).toMatchObject({
      units: { promptTokens: 10 },
      reported: null,
      estimated: '{"prompt_tokens":10}',
      cost: '0.00001',
    })
  })

  it('has both where both are known, and is priced by the upstream’s', () => {
    const both = entry({ ...reported({ prompt_tokens: 10 }), estimate: { prompt_tokens: 12 } })
    expect(recordOf(both)).toMatchObject({
      units: { promptTokens: 10 },
      reported: '{"prompt_tokens":10}',
      estimated: '{"prompt_tokens":12}',
    })
  })

  it.each<[string, Partial<UsageEntry>, string, string | null]>([
    ['nothing was used', {}, 'free', '0'],
    ['zeros were used', reported({ prompt_tokens: 0, completion_tokens: 0 }), 'free', '0'],
    ['nothing was used of a model without a price', { model: 'other' }, 'free', '0'],
    ['something was used without a price', { model: 'other', ...reported({ prompt_tokens: 1 }) }, 'unpriced', null],
    ['one of its units has no price', reported({ prompt_tokens: 1, seconds: 2 }), 'unpriced', null],
    ['the figures are unknown', reported({ credits: 3 }), 'unpriced', null],
    ['deep figures are unknown', reported({ bill: { credits: 3 } }), 'unpriced', null],
    ['unknown figures are zeros', reported({ credits: 0, bill: { credits: 0 } }), 'free', '0'],
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
    expect(recordOf(entry(changes))).toMatchObject({ pricing, cost })
  })

  it('has an id of its own, whatever the caller chose for the request', () => {
    const ids = new Set(Array.from({ length: 100 }, () => recordOf(entry()).id))
    expect(ids.size).toBe(100)
    expect(recordOf(entry({ id: 'task video 1' })).id).toBe('task video 1')
  })

  it('names a model as no database minds it', () => {
    const model = `a\0b\ud800c${'x'.repeat(500)}`
    const stored = recordOf(entry({ model })).model
    expect(stored).toBe(`abc${'x'.repeat(251)}`)
    expect(recordOf(entry({ model: `${'x'.repeat(255)}😀` })).model).toBe('x'.repeat(255))
  })
})
