import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { GatewayError } from '../core/gateway-error.js'
import type { Query } from '../core/query.js'
import { assertKnown, cursorOf, readCursor, readGroups, readLimit, readPeriod } from './usage-query.js'

const NOW = Date.parse('2026-03-04T05:06:07.000Z')

function refusal(act: () => unknown): GatewayError {
  try {
    act()
  } catch (error) {
    if (error instanceof GatewayError) return error
  }
  throw new Error('nothing was refused')
}

describe('The period of a report', () => {
  it.each<[Query, string, string]>([
    [{}, '2026-03-03T05:06:07.000Z', '2026-03-04T05:06:07.000Z'],
    [{ to: '2026-02-01' }, '2026-01-31T00:00:00.000Z', '2026-02-01T00:00:00.000Z'],
    [{ from: '2026-02-01', to: '2026-02-02T12:30' }, '2026-02-01T00:00:00.000Z', '2026-02-02T12:30:00.000Z'],
    [{ from: '1767225600', to: '1767225601' }, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z'],
    [
      { from: '2026-01-01T00:00:00+02:00', to: '2026-01-01T00:00:00.5Z' },
      '2025-12-31T22:00:00.000Z',
      '2026-01-01T00:00:00.500Z',
    ],
    [{ from: '2024-02-29', to: '2024-03-01' }, '2024-02-29T00:00:00.000Z', '2024-03-01T00:00:00.000Z'],
    [{ from: '0' }, '1970-01-01T00:00:00.000Z', '2026-03-04T05:06:07.000Z'],
  ])('%j', (query, from, to) => {
    expect(readPeriod(query, NOW, Infinity)).toEqual({ fromMs: Date.parse(from), toMs: Date.parse(to) })
  })

  it.each<[string, Query]>([
    ['from', { from: 'yesterday' }],
    ['from', { from: '' }],
    ['from', { from: '2026-13-01' }],
    ['from', { from: '2026-02-29' }],
    ['from', { from: '2026-02-30T12:00:00+02:00' }],
    ['to', { from: '2026-02-01', to: '2026-02-30' }],
    ['to', { from: '2026-04-01', to: '2026-04-31T00:00' }],
    ['from', { from: '2026-02-01 00:00:00' }],
    ['from', { from: '2026' }],
    ['from', { from: '1767225600000' }],
    ['from', { from: '-5' }],
    ['from', { from: '1.5' }],
    ['from', { from: ['1', '2'] }],
    ['to', { to: '999999999999' }],
    ['to', { to: '2026-01-01T25:00:00Z' }],
    ['from', { from: '2026-02-02', to: '2026-02-01' }],
    ['from', { from: '2026-02-02', to: '2026-02-02' }],
  ])('is refused by the name of %s in %j', (param, query) => {
    expect(refusal(() => readPeriod(query, NOW, Infinity))).toMatchObject({
      kind: 'invalid_request',
      details: { param },
    })
  })

  it('is at most as long as it may be, and whoever asks for more is told by the name of from', () => {
    const day = 86_400_000
    expect(readPeriod({ from: '2026-01-01', to: '2026-01-03' }, NOW, 2 * day)).toMatchObject({
      toMs: Date.parse('2026-01-03'),
    })
    for (const query of [
      { from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00.001Z' },
      { from: '2026-01-01' },
      { from: '0' },
    ]) {
      const error = refusal(() => readPeriod(query, NOW, 2 * day))
      expect(error).toMatchObject({ kind: 'invalid_request', details: { param: 'from' } })
      expect(error.message).toBe("Invalid 'from': must be at most 2 days before to; ask for several periods.")
    }
  })
})

describe('The rest of a query', () => {
  it.each([
    [undefined, []],
    ['none', []],
    ['day', ['day']],
    ['model', ['model']],
    ['channel', ['channel']],
  ])('groups by %s', (word, groups) => {
    expect(readGroups(word === undefined ? {} : { group_by: word })).toEqual(groups)
  })

  it.each(['key', 'owner', 'constructor', '', 'day,model', ['day']])('groups by no %j', (word) => {
    expect(refusal(() => readGroups({ group_by: word }))).toMatchObject({ details: { param: 'group_by' } })
  })

  it('limits a page to 1 to 1000 records, 100 by default', () => {
    expect([{}, { limit: '1' }, { limit: '1000' }].map(readLimit)).toEqual([100, 1, 1000])
    for (const limit of ['0', '1001', '-1', '1e2', '1.0', '', ['1']])
      expect(refusal(() => readLimit({ limit }))).toMatchObject({ details: { param: 'limit' } })
  })

  it('takes a cursor back as it was given', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 9_000_000_000_000 }),
        fc.stringMatching(/^[\x20-\x7e]{1,200}$/),
        (atMs, id) => {
          expect(readCursor({ cursor: cursorOf({ atMs, id }) })).toEqual({ atMs, id })
        },
      ),
    )
    expect(readCursor({})).toBeUndefined()
  })

  it.each([
    '',
    'x',
    Buffer.from('1').toString('base64url'),
    Buffer.from('x y').toString('base64url'),
    Buffer.from('1 \0').toString('base64url'),
    ['a'],
  ])('refuses the cursor %j', (cursor) => {
    expect(refusal(() => readCursor({ cursor }))).toMatchObject({ details: { param: 'cursor' } })
  })

  it('refuses what nobody would read', () => {
    expect(
      refusal(() => {
        assertKnown({ form: '1' }, ['from'])
      }),
    ).toMatchObject({ details: { param: 'form' } })
    expect(() => {
      assertKnown({ from: '1' }, ['from', 'to'])
    }).not.toThrow()
  })
})
