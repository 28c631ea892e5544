import { describe, expect, it } from '@jest/globals'
import { admit, carriedHeaders, hostAndPort, readUrl, redirectLocation, redirectTarget } from './guarded-url.js'
import { AddressRefused } from './ssrf-guard.js'

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
