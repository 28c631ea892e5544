// Node reads the source maps of all that it loads, at once, and keeps them. Most of what a bundle's map tells is about packages.

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const VALUES = new Map(DIGITS.split('').map((digit, value) => [digit, value]))
/** A digit has five bits, and one that says that another digit follows; the lowest bit of a number is its sign. */
const CONTINUED = 32

/** The numbers of one segment of `mappings`. */
function decoded(segment) {
  const numbers = []
  let [value, shift] = [0, 0]
  for (const character of segment) {
    const digit = VALUES.get(character)
    value |= (digit & (CONTINUED - 1)) << shift
    shift += 5
    if (digit & CONTINUED) continue
    numbers.push(value & 1 ? -(value >>> 1) : value >>> 1)
    ;[value, shift] = [0, 0]
  }
  return numbers
}

function encoded(number) {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1
  let text = ''
  do {
    const bits = rest & (CONTINUED - 1)
    rest >>>= 5
    text += DIGITS[rest > 0 ? bits | CONTINUED : bits]
  } while (rest > 0)
  return text
}

/**
 * A source map without what `isOwn` does not want: a place in such a source stays one of the bundle. Names are left out too, as
 * bundles keep them.
 */
export function ownSourceMap({ version, sources, mappings }, isOwn) {
  const places = new Map()
  for (const [index, source] of sources.entries()) if (isOwn(source)) places.set(index, places.size)
  // Each number is the difference to the one before; the column begins anew with each line.
  let read = [0, 0, 0]
  let written = [0, 0, 0]
  const lines = mappings.split(';').map((line) => {
    let [column, writtenColumn, isForeign] = [0, 0, true]
    let text = ''
    for (const segment of line === '' ? [] : line.split(',')) {
      const [columns, ...steps] = decoded(segment)
      column += columns
      if (steps.length > 0) read = read.map((number, index) => number + steps[index])
      const place = steps.length > 0 ? places.get(read[0]) : undefined
      // What follows a place of ours would be taken for it.
      if (place === undefined && isForeign) continue
      const next = [place, read[1], read[2]]
      text += (text === '' ? '' : ',') + encoded(column - writtenColumn)
      if (place !== undefined) text += next.map((number, index) => encoded(number - written[index])).join('')
      if (place !== undefined) written = next
      writtenColumn = column
      isForeign = place === undefined
    }
    return text
  })
  return { version, sources: [...places.keys()].map((index) => sources[index]), names: [], mappings: lines.join(';') }
}
