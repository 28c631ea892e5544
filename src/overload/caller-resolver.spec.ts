import { describe, expect, it } from '@jest/globals'
import { digestOfKey } from '../core/caller.js'
import type { Sharer } from '../core/fair-share.js'
import { type CallerHeaders, CallerResolver, networkOf, sentKeyOf } from './caller-resolver.js'

describe('CallerResolver', () => {
  const keys = new Map([[digestOfKey('first-key'), 'first']])
  let proxies: readonly string[] = []
  const resolver = new CallerResolver(
    (sha256) => keys.get(sha256),
    () => proxies,
  )
  const sharerOf = (headers: CallerHeaders): Sharer => resolver.of(headers, sentKeyOf(headers))
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
    expect(sharerOf(headers(sent))).toEqual({ keyId: 'first' })
  })

  it('tells callers without a key apart by their address, behind a trusted proxy by the one it forwards', () => {
    expect(sharerOf(headers({ authorization: 'Bearer invented' })).member).toBe('192.0.2.1')
    const forwarded = headers({ forwardedFor: '198.51.100.7', peer: '192.0.2.1' })
    expect(sharerOf(forwarded).member).toBe('192.0.2.1')
    proxies = ['192.0.2.1']
    expect(sharerOf(forwarded).member).toBe('198.51.100.7')
  })

  it('takes a key that was replaced for its id no longer', () => {
    const sent = headers({ authorization: 'Bearer first-key' })
    expect(sharerOf(sent).keyId).toBe('first')
    keys.delete(digestOfKey('first-key'))
    keys.set(digestOfKey('second-key'), 'first')
    expect(sharerOf(sent)).not.toHaveProperty('keyId', 'first')
    expect(sharerOf(headers({ authorization: 'Bearer second-key' })).keyId).toBe('first')
  })

  it('makes no digest of what is too long for a key', () => {
    expect(sentKeyOf(headers({ authorization: 'x'.repeat(521) }))).toBeUndefined()
    expect(sentKeyOf(headers({ authorization: '' }))).toBeUndefined()
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
