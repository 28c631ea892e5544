import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { piecesOf } from '../../../test/support/byte-streams.js'
import { EventDataReader } from './event-data-reader.js'

/** The data as it was handed on: `|` for the end of a line, `#` for the end of an event. */
function read(stream: string, cuts: readonly number[] = []): string {
  let seen = ''
  const reader = new EventDataReader({
    data: (piece) => {
      seen += piece.toString()
    },
    lineEnd: () => {
      seen += '|'
    },
    eventEnd: () => {
      seen += '#'
    },
  })
  for (const piece of piecesOf(Buffer.from(stream), cuts)) reader.write(piece)
  return seen
}

describe('the data of an event stream', () => {
  it.each([
    ['a line and an empty one', 'data: a\n\ndata: b\n\n', ' a|# b|#'],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ' a\r|# b\r|#'],
    ['no white space', 'data:a\n\n', 'a|#'],
    ['several lines of one event', 'data: a\ndata: b\n\n', ' a| b|#'],
    ['no end at all', 'data: a', ' a'],
    ['comments', ': data: x\n\ndata: a\n: y\n\n', '# a|#'],
    ['other fields', 'event: data: x\nid: 1\nretry: 5\ndata: a\n\n', ' a|#'],
    ['names that begin alike', 'dat\ndata\ndata2: x\nxdata: y\ndataa: z\nda\rta: x\n\n', '#'],
    ['colons in the data', 'data: data: a\n\n', ' data: a|#'],
    ['no data', 'data:\n\n', '|#'],
  ])('is read with %s, wherever it was cut', (_name, stream, expected) => {
    fc.assert(
      fc.property(fc.array(fc.nat(60)), (cuts) => {
        expect(read(stream, cuts)).toBe(expected)
      }),
    )
  })
})
