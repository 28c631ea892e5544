import { describe, expect, it } from '@jest/globals'
import { type CallerHeaders, CallerResolver, networkOf } from './caller-resolver.js'

describe('CallerResolver', () => {
  const keys = new Map([['first-key', 'first']])
  let proxies: readonly string[] = []
  let digests = 0
  const resolver = new CallerResolver(
    {
      digestOf: (token) => {
        digests++
        return `digest of ${token}`
      },
      idOf: (digest) => keys.get(digest.slice('digest of '.length)),
    },
    () => proxies,
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

  it('makes the digest of a key once while there are fewer than 16,384 of them, and of an invented one each time', () => {
    const digestsOf = (token: string, times: number): number => {
      const before = digests
      for (let count = 0; count < times; count++) resolver.of(headers({ authorization: `Bearer ${token}` }))
      return digests - before
    }
    keys.set('seldom', 'seldom')
    expect(digestsOf('seldom', 3)).toBe(1)
    expect(digestsOf('invented', 3)).toBe(3)
    for (let index = 0; index < 16_384; index++) {
      keys.set(`key-${index}`, `id-${index}`)
      resolver.of(headers({ apiKey: `key-${index}` }))
    }
    expect(digestsOf('seldom', 1)).toBe(1)
    expect(resolver.of(headers({ apiKey: 'key-7' }))).toEqual({ keyId: 'id-7' })
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
