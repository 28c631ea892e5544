import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import type { PriceRow } from '../config/settings.js'
import type { CountedUnits } from '../core/counted-units.js'
import { Price } from './prices.js'

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
