import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { webUrl } from '../../test/support/arbitraries.js'
import { cpuMs } from '../../test/support/eventually.js'
import {
  assertNotOwnAddress,
  documentUrl,
  flagOf,
  flagText,
  nameIn,
  normalizedUrl,
  timeout,
  timeoutMsOf,
  timeoutText,
} from './document.dto.js'

describe('The URL of a document', () => {
  it.each([
    'http://example.org',
    'HTTPS://EXAMPLE.ORG:8443/a?b#c',
    'http://例え.jp/パス',
    'http://93.184.216.34/',
    'http://[2606:4700::1]/',
    `http://example.org/${'a'.repeat(8192 - 19)}`,
  ])('may be %s', (url) => {
    expect(documentUrl(url, 'url')).toBeUndefined()
  })

  it.each([
    undefined,
    null,
    7,
    '',
    '  ',
    '//example.org/',
    'example.org',
    'http://',
    'http://exa mple.org/',
    'ws://example.org/',
    'javascript:alert(1)',
    'http://a@example.org/',
    'http://:b@example.org/',
    'http://example.org/\r\nx: y',
    'http://example.org/\u0085',
    `http://example.org/${'a'.repeat(8192 - 18)}`,
  ])('may not be %j', (url) => {
    expect(documentUrl(url, 'url')).toMatchObject({ path: 'url', message: expect.stringContaining("'url'") })
  })

  it.each([
    ['HTTP://Example.ORG:80/A?b=C', 'http://example.org/A?b=C'],
    ['https://example.org:443', 'https://example.org/'],
    ['https://example.org:80/', 'https://example.org:80/'],
    ['http://example.org/a#part', 'http://example.org/a'],
    ['http://example.org/a#', 'http://example.org/a'],
    ['http://example.org/a#/route', 'http://example.org/a#/route'],
    ['http://example.org/a#!route', 'http://example.org/a#!route'],
    ['http://example.org/a/../b?x#p?q', 'http://example.org/b?x'],
    [' http://example.org/a ', 'http://example.org/a'],
  ])('has one spelling: %s is %s', (url, expected) => {
    expect(normalizedUrl(url)).toBe(expected)
  })

  it('is its own one spelling once it has been given that, and still the same page', () => {
    fc.assert(
      fc.property(webUrl, (url) => {
        const once = normalizedUrl(url)
        expect(normalizedUrl(once)).toBe(once)
        const [asked, kept] = [new URL(url), new URL(once)]
        expect([kept.origin, kept.pathname, kept.search]).toEqual([asked.origin, asked.pathname, asked.search])
      }),
    )
  })

  it.each([
    ['http://example.org/a/report.pdf?x=y', 'report.pdf'],
    ['http://example.org/a%20b.txt#c', 'a b.txt'],
    ['http://example.org/%ff.txt', '%ff.txt'],
    ['http://example.org/a/', ''],
    ['http://example.org', ''],
  ])('names the document by its last segment: %s is %j', (url, name) => {
    expect(nameIn(url)).toBe(name)
  })
})

describe('The address of the gateway itself', () => {
  const refused = (url: string, publicUrl: string | undefined): boolean => {
    try {
      assertNotOwnAddress(url, publicUrl)
      return false
    } catch (error) {
      expect(error).toMatchObject({ kind: 'invalid_request', details: { param: 'url' } })
      return true
    }
  }

  it.each([
    ['https://gw.example.org/v1/models', 'https://gw.example.org', true],
    ['http://gw.example.org/', 'https://gw.example.org', true],
    ['https://GW.example.org:443/health/live', 'https://gw.example.org', true],
    ['https://gw.example.org./', 'https://gw.example.org', true],
    ['https://gw.example.org:8443/', 'https://gw.example.org', false],
    ['https://example.org/', 'https://gw.example.org', false],
    ['https://gw.example.org.evil.test/', 'https://gw.example.org', false],
    ['https://example.org/gateway/v1/models', 'https://example.org/gateway', true],
    ['https://example.org/gateway', 'https://example.org/gateway', true],
    ['https://example.org/gateways', 'https://example.org/gateway', false],
    ['https://example.org/', 'https://example.org/gateway', false],
    ['https://example.org/', undefined, false],
  ])('%s under the public URL %s: %s', (url, publicUrl, expected) => {
    expect(refused(url, publicUrl)).toBe(expected)
  })
})

const LIMITS = { defaultTimeoutMs: 30_000, maximumTimeoutMs: 120_000 }

describe('A timeout', () => {
  it.each([
    [undefined, 30_000],
    [null, 30_000],
    [20, 20_000],
    [0.25, 250],
    [120, 120_000],
    [120.001, 120_000],
    [999, 120_000],
    [999.999, 120_000],
    [1000, 1000],
    [1500.5, 1500.5],
    [119_999, 119_999],
    [120_000, 120_000],
    [Number.MAX_VALUE, 120_000],
    ['20', 20_000],
    ['1e3', 1000],
    [' .5 ', 500],
  ])('of %j lasts %d ms', (value, expected) => {
    expect(timeoutMsOf(value, LIMITS)).toBe(expected)
  })

  it('lasts longer than nothing and no longer than the operator allows, whatever the caller wants', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.001, noNaN: true, noDefaultInfinity: true }), (seconds) => {
        expect(timeout(seconds, 'timeout')).toBeUndefined()
        const timeoutMs = timeoutMsOf(seconds, LIMITS)
        expect(timeoutMs).toBeGreaterThan(0)
        expect(timeoutMs).toBeLessThanOrEqual(120_000)
      }),
    )
  })

  it('means the same as a number and as its text', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.001, max: 1e9, noNaN: true }), (seconds) => {
        expect(timeoutText(String(seconds), 'timeout')).toBeUndefined()
        expect(timeoutMsOf(String(seconds), LIMITS)).toBe(timeoutMsOf(seconds, LIMITS))
      }),
    )
  })

  it.each([0, -0, -1, 1e-242, 0.0009, NaN, Infinity, '1', true, null, [], {}])('may not be %j in JSON', (value) => {
    expect(timeout(value, 'timeout')).toMatchObject({ path: 'timeout' })
  })

  it.each([
    1,
    '',
    ' ',
    '0',
    '-1',
    '+',
    '.',
    '1,5',
    '1s',
    '0x1',
    'NaN',
    'Infinity',
    '1e999',
    '1e-999',
    '1e-242',
    ['1'],
    '１',
  ])('may not be %j in a form', (value) => {
    expect(timeoutText(value, 'timeout')).toMatchObject({ path: 'timeout' })
  })

  it.each(['1'.repeat(65_536) + 'x', `${' '.repeat(65_536)}x`, `1.${'0'.repeat(65_536)}`, '0'.repeat(33)])(
    'of many characters in a form is refused at once',
    (value) => {
      const startedAtMs = cpuMs()
      expect(timeoutText(value, 'timeout')).toMatchObject({ path: 'timeout' })
      expect(cpuMs() - startedAtMs).toBeLessThan(100)
    },
  )
})

describe('A flag in a form', () => {
  it.each([
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
  ])('may be %j', (value, expected) => {
    expect(flagText(value, 'no_cache')).toBeUndefined()
    expect(flagOf(value)).toBe(expected)
  })

  it('is off when it is absent', () => {
    expect([flagOf(undefined), flagOf(null)]).toEqual([false, false])
  })

  it.each(['', 'yes', 'TRUE', '2', 'toString', true, ['true']])('may not be %j', (value) => {
    expect(flagText(value, 'no_cache')).toMatchObject({ path: 'no_cache' })
  })
})
