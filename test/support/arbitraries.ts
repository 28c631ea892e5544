// What fast-check has as well, without its table of every character: a million strings that each garbage collection walks through.
import fc from 'fast-check'

const SURROGATES_BEGIN = 0xd800
const SURROGATES = 0x800

/** Any character of Unicode: a `unit` of `fc.string`, a `stringUnit` of `fc.json`. */
export const codePoint: fc.Arbitrary<string> = fc
  .nat(0x10_ff_ff - SURROGATES)
  .map((place) => String.fromCodePoint(place < SURROGATES_BEGIN ? place : place + SURROGATES))

const urlPart = fc.string({
  unit: fc.oneof(fc.stringMatching(/^[\w.~!$&()*+,;=:@-]$/), codePoint.map(encodeURIComponent)),
  maxLength: 20,
})

/** As a browser sends it, with a port, a query and a fragment now and then. */
export const webUrl: fc.Arbitrary<string> = fc
  .record({
    scheme: fc.constantFrom('http', 'https'),
    domain: fc.domain(),
    port: fc.option(fc.nat(65_535), { nil: undefined }),
    path: fc.array(urlPart, { maxLength: 4 }),
    query: fc.option(urlPart, { nil: undefined }),
    fragment: fc.option(urlPart, { nil: undefined }),
  })
  .map(({ scheme, domain, port, path, query, fragment }) =>
    [
      `${scheme}://${domain}`,
      port === undefined ? '' : `:${port}`,
      ...path.map((part) => `/${part}`),
      query === undefined ? '' : `?${query}`,
      fragment === undefined ? '' : `#${fragment}`,
    ].join(''),
  )
