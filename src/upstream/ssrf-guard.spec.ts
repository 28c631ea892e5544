import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { readUrl } from './guarded-url.js'
import { AddressRefused, checkedLookup, isPublicAddress, type ResolveHost } from './ssrf-guard.js'

/** First and last address of each refused range, written down apart from the code's own table. */
const REFUSED_IPV4 = [
  ['0.0.0.0', '0.255.255.255'],
  ['10.0.0.0', '10.255.255.255'],
  ['100.64.0.0', '100.127.255.255'],
  ['127.0.0.0', '127.255.255.255'],
  ['168.63.129.16', '168.63.129.16'],
  ['169.254.0.0', '169.254.255.255'],
  ['172.16.0.0', '172.31.255.255'],
  ['192.0.0.0', '192.0.0.255'],
  ['192.0.2.0', '192.0.2.255'],
  ['192.88.99.0', '192.88.99.255'],
  ['192.168.0.0', '192.168.255.255'],
  ['198.18.0.0', '198.19.255.255'],
  ['198.51.100.0', '198.51.100.255'],
  ['203.0.113.0', '203.0.113.255'],
  ['224.0.0.0', '255.255.255.255'],
].map(([first = '', last = '']) => [numberOf(first), numberOf(last)] as const)

/** First and last pair of hextets of each range that is let through, and of each that is not although it lies inside. */
const GLOBAL_IPV6 = [0x2000_0000, 0x3fff_ffff] as const
const REFUSED_IPV6 = [
  [0x2001_0000, 0x2001_01ff],
  [0x2001_0db8, 0x2001_0db8],
  [0x2002_0000, 0x2002_ffff],
  [0x3fff_0000, 0x3fff_0fff],
] as const

const within = (value: number, [first, last]: readonly [number, number]): boolean => value >= first && value <= last
const isRefusedIpv4 = (value: number): boolean => REFUSED_IPV4.some((range) => within(value, range))
const isPublicIpv6 = (start: number): boolean =>
  within(start, GLOBAL_IPV6) && !REFUSED_IPV6.some((range) => within(start, range))

function numberOf(dotted: string): number {
  return dotted.split('.').reduce((total, octet) => total * 256 + Number(octet), 0)
}

const dotted = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')
const hostOf = (spelling: string): string => readUrl(`http://${spelling}/`).hostname.replace(/^\[|\]$/g, '')

const anyIpv4 = fc.integer({ min: 0, max: 0xffff_ffff })
/** Range borders and their neighbours, which chance would not meet. */
const edgeIpv4 = fc
  .tuple(fc.constantFrom(...REFUSED_IPV4.flat()), fc.integer({ min: -1, max: 1 }))
  .map(([edge, step]) => Math.min(Math.max(edge + step, 0), 0xffff_ffff))
const ipv4 = fc.oneof(anyIpv4, edgeIpv4)

const edgeStart = fc
  .tuple(fc.constantFrom(...GLOBAL_IPV6, ...REFUSED_IPV6.flat()), fc.integer({ min: -1, max: 1 }))
  .map(([edge, step]) => edge + step)
const ipv6Start = fc.oneof(anyIpv4, edgeStart)
const hextet = fc.integer({ min: 0, max: 0xffff })
const hextets = fc.tuple(ipv6Start, fc.array(hextet, { minLength: 6, maxLength: 6 })).map(([start, rest]) => ({
  start,
  text: [Math.floor(start / 65_536), start % 65_536, ...rest].map((part) => part.toString(16)).join(':'),
}))

describe('An IPv4 address', () => {
  it('is public unless it lies in a range that is not', () => {
    fc.assert(
      fc.property(ipv4, (value) => {
        expect(isPublicAddress(dotted(value))).toBe(!isRefusedIpv4(value))
      }),
      { numRuns: 2000 },
    )
  })

  it('is the same in whatever spelling a URL has it', () => {
    const spellings = (value: number): string[] => [
      String(value),
      `0x${value.toString(16)}`,
      `0${value.toString(8)}`,
      `${value >>> 24}.${value & 0xff_ffff}`,
      dotted(value)
        .split('.')
        .map((octet) => `0${Number(octet).toString(8)}`)
        .join('.'),
      dotted(value)
        .split('.')
        .map((octet) => `0X${Number(octet).toString(16)}`)
        .join('.'),
      `${dotted(value)}.`,
      // Full-width digits and ideographic full stops.
      dotted(value)
        .replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
        .replaceAll('.', '。'),
    ]
    fc.assert(
      fc.property(ipv4, (value) => {
        for (const spelling of spellings(value)) expect([spelling, hostOf(spelling)]).toEqual([spelling, dotted(value)])
      }),
    )
  })
})

describe('An IPv6 address', () => {
  it('is public only as global unicast, outside of what is refused there', () => {
    fc.assert(
      fc.property(hextets, ({ start, text }) => {
        for (const spelling of [text, text.toUpperCase(), hostOf(`[${text}]`)]) {
          expect([spelling, isPublicAddress(spelling)]).toEqual([spelling, isPublicIpv6(start)])
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('that carries an IPv4 address is not public, whichever that is', () => {
    fc.assert(
      fc.property(ipv4, (value) => {
        const high = (value >>> 16).toString(16)
        const low = (value & 0xffff).toString(16)
        for (const address of [
          `::ffff:${dotted(value)}`,
          `::ffff:${high}:${low}`,
          `::ffff:0:${high}:${low}`,
          `::${dotted(value)}`,
          `64:ff9b::${dotted(value)}`,
          `64:ff9b:1::${high}:${low}`,
          `2002:${high}:${low}::1`,
          `2001:0:${high}:${low}::1`,
        ]) {
          expect([address, isPublicAddress(address)]).toEqual([address, false])
          expect([address, isPublicAddress(hostOf(`[${address}]`))]).toEqual([address, false])
        }
      }),
    )
  })

  it.each([
    '::',
    '::1',
    'fe80::1',
    'fec0::1',
    'fc00::1',
    'fd00:ec2::254',
    'ff02::1',
    '100::1',
    '5f00::1',
    '2001:db8::1',
  ])('of a special purpose is not public: %s', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  it.each(['2606:4700:4700::1111', '2a00:1450:4001::1', '2001:4860:4860::8888', '2620:fe::fe'])(
    'of a public service is public: %s',
    (address) => {
      expect(isPublicAddress(address)).toBe(true)
    },
  )
})

describe('What is no address', () => {
  it.each(['', 'localhost', '2606:4700::1111%eth0', '8.8.8', '08.8.8.8', ' 8.8.8.8', '8.8.8.8/32', '[2606:4700::1]'])(
    'is not public: %j',
    (text) => {
      expect(isPublicAddress(text)).toBe(false)
    },
  )
})

describe('A checked lookup', () => {
  const PUBLIC = { address: '8.8.8.8', family: 4 }
  const PRIVATE = { address: '127.0.0.1', family: 4 }
  const MAPPED = { address: '::ffff:127.0.0.1', family: 6 }

  /** What a socket is told. */
  const answer = (resolve: ResolveHost, all = true): Promise<readonly unknown[]> =>
    new Promise((settle) => {
      checkedLookup(resolve, isPublicAddress)('files.test', { all }, (error, ...rest) => {
        settle(error === null ? rest : [error])
      })
    })

  it('hands over exactly what it has checked, having asked once', async () => {
    let asked = 0
    const resolve = (): Promise<(typeof PUBLIC)[]> => {
      asked++
      return Promise.resolve([PUBLIC])
    }
    expect(await answer(resolve)).toEqual([[PUBLIC]])
    expect(asked).toBe(1)
    expect(await answer(resolve, false)).toEqual(['8.8.8.8', 4])
  })

  it.each([[[PRIVATE]], [[PUBLIC, PRIVATE]], [[PRIVATE, PUBLIC]], [[PUBLIC, MAPPED]], [[]]])(
    'refuses a host when one address of it is not public, or when it has none: %j',
    async (addresses) => {
      for (const all of [true, false]) {
        expect(await answer(() => Promise.resolve(addresses), all)).toEqual([expect.any(AddressRefused)])
      }
    },
  )

  it('passes on that a name is not known', async () => {
    const unknown = Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
    expect(await answer(() => Promise.reject(unknown))).toEqual([unknown])
  })
})
