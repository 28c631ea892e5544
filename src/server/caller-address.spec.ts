import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { addressBehind } from './client-address.js'

const PROXIES = ['10.0.0.0/8', '127.0.0.1', 'fd00::/8']

describe('the address of a caller', () => {
  it.each([
    ['203.0.113.7', undefined, '203.0.113.7'],
    ['10.1.2.3', '203.0.113.7', '203.0.113.7'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['127.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['fd00::1', '2001:db8::7', '2001:db8::7'],
    // Several proxies of ours, one behind the other.
    ['10.1.2.3', '203.0.113.7, 10.9.9.9', '203.0.113.7'],
    ['10.1.2.3', '10.7.7.7,10.9.9.9', '10.7.7.7'],
    // What the caller wrote itself stands further left.
    ['10.1.2.3', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['10.1.2.3', '127.0.0.1, 203.0.113.7, 10.9.9.9', '203.0.113.7'],
    // IPv4 on a socket that takes both.
    ['::ffff:10.1.2.3', '203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', undefined, '203.0.113.7'],
    ['10.1.2.3', '::ffff:203.0.113.7', '203.0.113.7'],
    // Some proxies name the port, too.
    ['10.1.2.3', '203.0.113.7:50412', '203.0.113.7'],
    ['10.1.2.3', '[2001:db8::7]:50412', '2001:db8::7'],
    // No address: the last one that is known for sure.
    ['10.1.2.3', '203.0.113.7, unknown', '10.1.2.3'],
    ['10.1.2.3', '203.0.113.7, <script>, 10.9.9.9', '10.9.9.9'],
  ])('of %s that says %j is %s', (peer, forwardedFor, expected) => {
    expect(addressBehind(peer, forwardedFor, PROXIES)).toBe(expected)
  })

  it.each([
    ['203.0.113.7', PROXIES],
    ['::ffff:203.0.113.7', PROXIES],
    ['11.0.0.1', PROXIES],
    ['fc00::1', PROXIES],
    ['10.1.2.3', []],
  ])('is its own, whatever %s claims, when it is no proxy of %j', (peer, proxies) => {
    expect(addressBehind(peer, '198.51.100.1, 10.1.2.3', proxies)).toBe(peer.replace('::ffff:', ''))
  })

  it('is unknown when the connection is gone', () => {
    expect(addressBehind(undefined, '198.51.100.1', PROXIES)).toBeUndefined()
  })

  it('is never taken from further left than the first address that is no proxy, however long the list', () => {
    fc.assert(
      fc.property(fc.array(fc.ipV4(), { maxLength: 20 }), fc.array(fc.ipV4(), { maxLength: 5 }), (invented, own) => {
        const trusted = own.map((address) => address.replace(/^\d+/, '10'))
        const header = [...invented, '203.0.113.7', ...trusted].join(', ')
        expect(addressBehind('10.1.2.3', header, PROXIES)).toBe('203.0.113.7')
      }),
    )
  })
})
