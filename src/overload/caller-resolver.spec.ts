import { describe, expect, it } from '@jest/globals'
import { type CallerHeaders, CallerResolver, networkOf } from './caller-resolver.js'

describe('CallerResolver', () => {
  const keys = new Map([['first-key', 'first']])
  let proxies: readonly string[] = []
  let digests = 0
  let nowMs = 0
  const resolver = new CallerResolver(
    {
      digestOf: (token) => {
        digests++
        return `digest of ${token}`
      },
      idOf: (digest) => keys.get(digest.slice('digest of '.length)),
    },
    () => proxies,
    () => nowMs,
  )
  const headers = (sent: Partial<CallerHeaders>): CallerHeaders => ({
    ...{ authorization: undefined, apiKey: undefined, isOfMessages: false, forwardedFor: undefined, peer: '192.0.2.1' },
    ...sent,
  })

  it.each([
    { authorization: 'Bearer first-key' },
    { authorization: 'bearer;first-key ' },
    { authorization: 'first-key' },
    { apiKey: 'first-key' },
  ])('finds a key in %j', (sent) => {
    expect(resolver.of(headers(sent))).toEqual({ keyId: 'first' })
  })

  it('tells callers without a key apart by their address, behind a trusted proxy by the one it forwards', () => {
    expect(resolver.of(headers({ authorization: 'Bearer invented' })).member).toBe('192.0.2.1')
    const forwarded = headers({ forwardedFor: '198.51.100.7', peer: '192.0.2.1' })
    expect(resolver.of(forwarded).member).toBe('192.0.2.1')
    proxies = ['192.0.2.1']
    expect(resolver.of(forwarded).member).toBe('198.51.100.7')
  })

  it('takes a key that was replaced for its id no longer', () => {
    const sent = headers({ authorization: 'Bearer first-key' })
    expect(resolver.of(sent).keyId).toBe('first')
    keys.delete('first-key')
    keys.set('second-key', 'first')
    expect(resolver.of(sent)).not.toHaveProperty('keyId', 'first')
    expect(resolver.of(headers({ authorization: 'Bearer second-key' })).keyId).toBe('first')
  })

  describe('the digest of a key', () => {
    const digestsOf = (authorization: string, times = 1): number => {
      const before = digests
      for (let count = 0; count < times; count++) resolver.of(headers({ authorization }))
      return digests - before
    }
    const useKeys = (count: number): void => {
      for (let index = 0; index < count; index++) {
        keys.set(`key-${index}`, `id-${index}`)
        resolver.of(headers({ apiKey: `key-${index}` }))
      }
    }

    it('is made once while it is used', () => {
      keys.set('steady', 'steady')
      expect(digestsOf('Bearer steady', 3)).toBe(1)
      for (let minute = 0; minute < 5; minute++) {
        nowMs += 60_000
        useKeys(1)
        expect(digestsOf('Bearer steady')).toBe(0)
      }
    })

    it('is made anew after two minutes without use, or 16,384 further keys', () => {
      keys.set('seldom', 'seldom')
      expect(digestsOf('Bearer seldom', 2)).toBe(1)
      for (let minute = 0; minute < 2; minute++) {
        nowMs += 60_000
        keys.set(`other-${minute}`, 'other')
        digestsOf(`Bearer other-${minute}`)
      }
      expect(digestsOf('Bearer seldom')).toBe(1)
      useKeys(16_385)
      expect(digestsOf('Bearer seldom')).toBe(1)
      expect(resolver.of(headers({ apiKey: 'key-7' }))).toEqual({ keyId: 'id-7' })
    })

    it.each(['Bearer invented', 'bearer;first-key', 'Bearer  first-key', 'Bearer first-key '])(
      'is made each time for an invented key and an odd header: %j',
      (authorization) => {
        keys.set('first-key', 'first')
        expect(digestsOf(authorization, 3)).toBe(3)
      },
    )
  })
})

it.each([
  ['2001:db8:0:7:a:b:c:d', '2001:db8:0:7'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.1'],
  ['192.0.2.1', '192.0.2.1'],
])('counts %s as one of %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})
