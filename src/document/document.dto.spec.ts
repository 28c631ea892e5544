import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { assertNotOwnAddress, documentUrl, nameIn, normalizedUrl } from './document.dto.js'

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
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), (url) => {
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
