import fc from 'fast-check'

const SURROGATES_BEGIN = 0xd800
const SURROGATES = 0x800

/**
 * Any character of Unicode, as a `unit` of `fc.string`. The library's own `'binary'` makes a table of a million strings, which every
 * garbage collection of the worker then walks through.
 */
export const codePoint: fc.Arbitrary<string> = fc
  .nat(0x10_ff_ff - SURROGATES)
  .map((place) => String.fromCodePoint(place < SURROGATES_BEGIN ? place : place + SURROGATES))
