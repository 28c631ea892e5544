import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import {
  AddressRefused,
  admit,
  assertGuardHolds,
  carriedHeaders,
  checkedLookup,
  hostAndPort,
  isPublicAddress,
  readUrl,
  redirectLocation,
  redirectTarget,
  type ResolveHost,
} from './ssrf-guard.js'

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

describe('A URL to fetch', () => {
  it.each([
    '',
    'files.test/a',
    '//files.test/a',
    'file:///etc/passwd',
    'ftp://files.test/a',
    'gopher://files.test/',
    'data:text/plain,a',
    'javascript:alert(1)',
    'ws://files.test/',
    'http://',
    'http://a b/',
    'http://[::1%25eth0]/',
    'http://256.256.256.256/',
    'http://user@files.test/',
    'http://:secret@files.test/',
    'https://8.8.8.8@127.0.0.1/',
  ])('is none of these: %j', (text) => {
    expect(() => readUrl(text)).toThrow(AddressRefused)
  })

  it.each([
    ['http://127.1', '127.0.0.1:80'],
    ['https://FILES.test/a?b#c', 'files.test:443'],
    ['http://files.test:80/', 'files.test:80'],
    ['https://files.test:8443/', 'files.test:8443'],
    ['http://[0:0::1]:9/', '[::1]:9'],
    ['http:\\\\files.test\\a', 'files.test:80'],
  ])('has a host and a port in one spelling: %s', (text, expected) => {
    expect(hostAndPort(readUrl(text))).toBe(expected)
  })
})

describe('A URL that was read', () => {
  const judge = (text: string, allow: readonly string[] = []) => admit(readUrl(text), allow)

  it.each(['http://8.8.8.8/', 'https://8.8.8.8/', 'http://8.8.8.8:8080/', 'https://[2620:fe::fe]:8443/'])(
    'is admitted with a public address and a port of the web: %s',
    (text) => {
      expect(() => judge(text)).not.toThrow()
    },
  )

  it.each([0, 7, 19, 21, 22, 23, 25, 53, 110, 111, 143, 389, 465, 587, 993, 2049, 5060, 6667, 10_080])(
    'is refused on the port of another protocol: %i',
    (port) => {
      expect(() => judge(`http://files.test:${port}/`)).toThrow(AddressRefused)
    },
  )

  it.each([3306, 5432, 6379, 11_211, 27_017])('is refused on the port of a store: %i', (port) => {
    expect(() => judge(`https://files.test:${port}/`)).toThrow(AddressRefused)
  })

  it('is exempt as host and port stand in the configuration, and then all its addresses are', () => {
    const allow = ['127.0.0.1:25', 'files.test:9000']
    expect(judge('http://127.0.0.1:25/', allow)('127.0.0.1')).toBe(true)
    expect(judge('http://2130706433:25/', allow)('127.0.0.1')).toBe(true)
    expect(judge('https://files.test:9000/x', allow)('10.0.0.1')).toBe(true)
    expect(judge('https://files.test/x', allow)('10.0.0.1')).toBe(false)
    expect(judge('https://files.test.:9000/x', allow)('10.0.0.1')).toBe(false)
    expect(() => judge('http://127.0.0.1:26/', allow)).toThrow(AddressRefused)
  })
})

describe('A redirect', () => {
  const from = readUrl('https://files.test/a/b?c')

  it.each([301, 302, 303, 307, 308])('is an answer of status %i that says where to', (status) => {
    expect(redirectLocation({ status, headers: { location: '/x' } })).toBe('/x')
    expect(redirectLocation({ status, headers: {} })).toBeUndefined()
    expect(redirectLocation({ status, headers: { location: ['/x', '/y'] } })).toBeUndefined()
  })

  it.each([200, 201, 300, 304, 305, 404])('is not an answer of status %i', (status) => {
    expect(redirectLocation({ status, headers: { location: '/x' } })).toBeUndefined()
  })

  it.each([
    ['x', 'https://files.test/a/x'],
    ['/x', 'https://files.test/x'],
    ['//other.test/x', 'https://other.test/x'],
    ['https://other.test:1/x', 'https://other.test:1/x'],
  ])('is read against the address it came from: %s', (location, expected) => {
    expect(redirectTarget(location, from).href).toBe(expected)
  })

  it.each(['http://files.test/x', 'file:///x', 'https://u@files.test/', 'https://'])(
    'never leads to %s',
    (location) => {
      expect(() => redirectTarget(location, from)).toThrow(AddressRefused)
    },
  )

  it('may lead from http to https', () => {
    expect(redirectTarget('https://other.test/', readUrl('http://files.test/')).href).toBe('https://other.test/')
  })

  it('to another origin takes no header along that may be a credential, and none may come back', () => {
    const headers = [
      'Authorization',
      'a',
      'ACCEPT',
      'b',
      'cookie',
      'c',
      'x-api-key',
      'd',
      'x-other',
      'accept',
      'Range',
      'e',
    ]
    expect(carriedHeaders(headers, from, readUrl('https://files.test/elsewhere'))).toEqual(headers)
    for (const other of ['https://files.test:8443/', 'https://other.test/', 'https://sub.files.test/']) {
      expect(carriedHeaders(headers, from, readUrl(other))).toEqual(['ACCEPT', 'b', 'Range', 'e'])
    }
    expect(carriedHeaders(headers, readUrl('http://files.test/'), from)).toEqual(['ACCEPT', 'b', 'Range', 'e'])
  })
})

const lookup = checkedLookup
const judge = (url: string): void => {
  admit(readUrl(url), [])
}

/** A guard like the real one but for one form. */
const blindTo = (form: string) => ({
  lookup,
  admit: (url: string): void => {
    if (!url.includes(form)) judge(url)
  },
})

describe('The self-test of the guard', () => {
  it('passes on this platform', async () => {
    await assertGuardHolds()
  })

  it.each(['127.0.0.1/', '2130706433', '0x7f', '64:ff9b', '2002:7f00', '169.254', '@127', ':25', 'file:', '%25lo'])(
    'finds out that %s gets through, and says so',
    async (form) => {
      await expect(assertGuardHolds(blindTo(form))).rejects.toThrow('lets')
    },
  )

  it.each(['10.0.0.1', '::ffff:127.0.0.1'])('finds out that a host at %s gets through', async (address) => {
    const leaky: typeof checkedLookup = (resolve, isAccepted) =>
      lookup(resolve, (candidate) => candidate === address || isAccepted(candidate))
    await expect(assertGuardHolds({ admit: judge, lookup: leaky })).rejects.toThrow(`at ${address} through`)
  })

  it('finds out that nothing gets through', async () => {
    const closed = (): never => {
      throw new AddressRefused('closed')
    }
    await expect(assertGuardHolds({ admit: closed, lookup })).rejects.toThrow(AddressRefused)
    const blocked: typeof checkedLookup = (resolve) => lookup(resolve, () => false)
    await expect(assertGuardHolds({ admit: judge, lookup: blocked })).rejects.toThrow('every host')
  })

  it('does not take a failure of the guard for a refusal', async () => {
    const broken = (): never => {
      throw new TypeError('broken')
    }
    await expect(assertGuardHolds({ admit: broken, lookup })).rejects.toThrow(TypeError)
  })
})
