// Node reads the source maps of all that it loads, at once, and keeps them. Most of what a bundle's map tells is about packages.

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
/** Value of each digit by its character code; -1 for what is none. */
const VALUES = new Int8Array(128).fill(-1)
for (let value = 0; value < DIGITS.length; value++) VALUES[DIGITS.charCodeAt(value)] = value
/** A digit has five bits, and one that says that another digit follows; the lowest bit of a number is its sign. */
const CONTINUED = 32
const LINE_END = ';'

/** Reads the numbers of the segment at `start` of `mappings` into `numbers`; returns where it ends. */
function readSegment(mappings, start, numbers) {
  let [at, count, value, shift] = [start, 0, 0, 0]
  for (; at < mappings.length; at++) {
    const digit = VALUES[mappings.charCodeAt(at)]
    if (digit < 0) break
    value |= (digit & (CONTINUED - 1)) << shift
    shift += 5
    if (digit & CONTINUED) continue
    numbers[count++] = value & 1 ? -(value >>> 1) : value >>> 1
    value = shift = 0
  }
  numbers.length = count
  return at
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

/** Writes segments, each number as the difference to the one before; the column begins anew with each line. */
class MappingsWriter {
  parts = []
  column = 0
  place = [0, 0, 0]
  separator = ''

  endLine() {
    this.parts.push(LINE_END)
    this.separator = ''
    this.column = 0
  }

  /** `place`: index of the source, line and column in it; undefined for one that is not told. */
  add(column, place) {
    let text = this.separator + encoded(column - this.column)
    for (const [index, number] of (place ?? []).entries()) text += encoded(number - this.place[index])
    this.parts.push(text)
    this.separator = ','
    this.column = column
    this.place = place ?? this.place
  }
}

/**
 * A source map without what `isOwn` does not want: a place in such a source stays one of the bundle. Names are left out too, as
 * bundles keep them.
 */
export function ownSourceMap({ version, sources, mappings }, isOwn) {
  const places = new Map()
  for (const [index, source] of sources.entries()) if (isOwn(source)) places.set(index, places.size)
  const writer = new MappingsWriter()
  const numbers = []
  const read = [0, 0, 0]
  let [column, isForeign] = [0, true]
  for (let at = 0; at < mappings.length; at++) {
    at = readSegment(mappings, at, numbers)
    if (numbers.length > 0) {
      column += numbers[0]
      if (numbers.length > 1) for (let index = 0; index < read.length; index++) read[index] += numbers[index + 1]
      const source = numbers.length > 1 ? places.get(read[0]) : undefined
      // What follows a place of ours would be taken for it.
      if (source !== undefined) writer.add(column, [source, read[1], read[2]])
      else if (!isForeign) writer.add(column)
      isForeign = source === undefined
    }
    if (mappings[at] !== LINE_END) continue
    writer.endLine()
    column = 0
    isForeign = true
  }
  return {
    version,
    sources: [...places.keys()].map((index) => sources[index]),
    names: [],
    mappings: writer.parts.join(''),
  }
}
