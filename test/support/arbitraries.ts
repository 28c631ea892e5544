// Replaces fast-check's `binary` unit and `webUrl`, whose table of all characters takes 85 MB of each worker.
import fc from 'fast-check'

const SURROGATES_BEGIN = 0xd800
const SURROGATES = 0x800

/** Undoes the mapping below: fast-check adds words such as `__proto__` only where each character can be mapped back. */
function placeOf(character: unknown): number {
  const isOne = typeof character === 'string' && /^[^\ud800-\udfff]$/u.test(character)
  const code = isOne ? (character.codePointAt(0) ?? 0) : Number.NaN
  return code < SURROGATES_BEGIN ? code : code - SURROGATES
}

/** Any character of Unicode: a `unit` of `fc.string`, a `stringUnit` of `fc.json`. */
export const codePoint: fc.Arbitrary<string> = fc
  .nat(0x10_ff_ff - SURROGATES)
  .map((place) => String.fromCodePoint(place < SURROGATES_BEGIN ? place : place + SURROGATES), placeOf)

const partOf = (signs: string): fc.Arbitrary<string> =>
  fc.string({
    unit: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...`aZ09-._~!$&'()*+,;=:@${signs}`.split('')) },
      { weight: 1, arbitrary: codePoint.map(encodeURIComponent) },
    ),
  })

const sometimes = fc.option(partOf('/?'), { nil: undefined, freq: 2 })

/** A web address; a query, a fragment and a port are each in half of them. */
export const webUrl: fc.Arbitrary<string> = fc
  .record({
    scheme: fc.constantFrom('http', 'https'),
    domain: fc.domain(),
    port: fc.option(fc.oneof(fc.constantFrom(80, 443), fc.nat(65_535)), { nil: undefined, freq: 2 }),
    path: fc.array(partOf('')),
    query: sometimes,
    fragment: sometimes,
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
