import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { HttpParser, MalformedHttp, type ResponseHeaders } from './http-parser.js'

/** What a parser has told of one response. */
class Reading {
  readonly heads: (readonly [number, ResponseHeaders])[] = []
  readonly pieces: Buffer[] = []
  mayKeepAlive: boolean | undefined
  readonly parser = new HttpParser({
    onHead: (status, headers) => {
      this.heads.push([status, headers])
    },
    onBody: (piece) => {
      this.pieces.push(Buffer.from(piece))
    },
    onComplete: (mayKeepAlive) => {
      expect(this.mayKeepAlive).toBeUndefined()
      this.mayKeepAlive = mayKeepAlive
    },
  })

  constructor(...chunks: readonly (string | Buffer)[]) {
    this.parser.begin()
    // As from a socket: the memory of a chunk is its own.
    for (const chunk of chunks)
      this.parser.execute(typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : Buffer.from(chunk))
  }

  get body(): string {
    return Buffer.concat(this.pieces).toString('latin1')
  }
}

const OK = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`

describe('A response', () => {
  it.each([
    ['with a length', `${OK}Content-Length: 2\r\n\r\nok`, 'ok'],
    ['with a length of zero', `${OK}content-length: 0\r\n\r\n`, ''],
    ['in chunks', `${CHUNKED}3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\n`, 'abc0123456789'],
    ['in chunks, as another spells it', `${OK}Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`, 'a'],
    [
      'in chunks whose sizes have zeros in front',
      `${CHUNKED}${'0'.repeat(20)}3\r\nabc\r\n${'0'.repeat(20)}\r\n\r\n`,
      'abc',
    ],
    ['with extensions of chunks', `${CHUNKED}3;a=b;c="d e"\r\nabc\r\n0;x\r\n\r\n`, 'abc'],
    ['with trailers', `${CHUNKED}3\r\nabc\r\n0\r\nx-sum: 1\r\nx-end: \r\n\r\n`, 'abc'],
    ['behind empty lines', `\r\n\r\n${OK}content-length: 2\r\n\r\nok`, 'ok'],
    ['without a reason', 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok', 'ok'],
    ['with a status that has no body', 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n', ''],
    ['that is not modified', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n', ''],
    [
      'behind announcements',
      `HTTP/1.1 100\r\n\r\nHTTP/1.1 103 Hints\r\na: b\r\n\r\n${OK}content-length: 2\r\n\r\nok`,
      'ok',
    ],
  ])('%s is read to its end, and its connection goes on', (_name, text, body) => {
    const { heads, body: read, mayKeepAlive } = new Reading(text)
    expect(read).toBe(body)
    expect(heads.at(-1)?.[0]).toBe(Number(/HTTP\/1\.1 ([2-9]\d\d)/.exec(text)?.[1]))
    expect(mayKeepAlive).toBe(true)
  })

  it.each([
    ['that says so', `${OK}Connection: Close\r\ncontent-length: 2\r\n\r\nok`],
    ['that says so among others', `${OK}connection: x, close\r\ncontent-length: 2\r\n\r\nok`],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok'],
    ['of HTTP/1.0 in chunks', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
  ])('%s ends its connection', (_name, text) => {
    const { body, mayKeepAlive } = new Reading(text)
    expect(body).toBe('ok')
    expect(mayKeepAlive).toBe(false)
  })

  it.each([
    ['with a length', `${OK}content-length: 2\r\n\r\nok`],
    ['without a body', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['in chunks', `${CHUNKED}2\r\nok\r\n0\r\n\r\n`],
  ])('%s is the last of its connection when more comes with it', (_name, text) => {
    const reading = new Reading()
    expect(() => {
      reading.parser.execute(Buffer.from(`${text}${OK}content-length: 4\r\n\r\nevil`))
    }).toThrow(MalformedHttp)
    expect(reading.heads).toHaveLength(1)
    expect(reading.mayKeepAlive).toBe(false)
  })

  it('without a length lasts until its connection ends', () => {
    const reading = new Reading(`${OK}\r\nab`, 'c')
    expect(reading.mayKeepAlive).toBeUndefined()
    expect(reading.parser.finish()).toBe(true)
    expect(reading.body).toBe('abc')
    expect(reading.mayKeepAlive).toBe(false)
  })

  it.each([
    ['', []],
    ['half a head', [`${OK}content-`]],
    ['half a body', [`${OK}content-length: 3\r\n\r\nab`]],
    ['chunks', [`${CHUNKED}3\r\nabc\r\n`]],
    ['a last chunk without the end of the trailers', [`${CHUNKED}0\r\n`]],
    ['a whole one', [`${OK}content-length: 0\r\n\r\n`]],
  ])('is not ended by the end of the connection after %s', (_name, chunks) => {
    expect(new Reading(...chunks).parser.finish()).toBe(false)
  })

  it('has its headers by their names in lower case, repeated ones as a list, bytes as Latin-1', () => {
    const head = 'X-A:1\r\nx-b: \t two words \t\r\nSet-Cookie: a\r\nset-cookie: b\r\nx-empty:\r\nx-high: \xe9\r\n'
    const { heads } = new Reading(`${OK}${head}__proto__: x\r\nconstructor: y\r\ncontent-length: 0\r\n\r\n`)
    const [[, headers] = [0, {}]] = heads
    expect(headers).toEqual({
      'x-a': '1',
      'x-b': 'two words',
      'set-cookie': ['a', 'b'],
      'x-empty': '',
      'x-high': '\xe9',
      constructor: 'y',
      'content-length': '0',
    })
    expect(Object.getPrototypeOf(headers)).toBe(Object.prototype)
  })
})

describe('Refused is', () => {
  const head = (lines: string): string => `${OK}${lines}\r\n\r\n`
  it.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
    ['another protocol, as soon as its first bytes are there', 'SSH'],
    ['an empty line that ends in CR alone', '\rHTTP/1.1 200 OK\r\n\r\n'],
    ['another version', 'HTTP/2 200\r\n\r\n'],
    ['a version that is none', 'HTTP/1.2 200 OK\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a status that begins with 0', 'HTTP/1.1 099 OK\r\n\r\n'],
    ['two spaces before the status', 'HTTP/1.1  200 OK\r\n\r\n'],
    ['a control character in the reason', 'HTTP/1.1 200 O\0K\r\n\r\n'],
    ['a switch of protocols', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
    ['a line that ends in LF alone', 'HTTP/1.1 200 OK\ncontent-length: 0\r\n\r\n'],
    ['a header that ends in LF alone', head('a: b\ncontent-length: 0')],
    ['a CR within a header', head('a: b\rc\r\ncontent-length: 0')],
    ['a NUL within a header', head('a: b\0c\r\ncontent-length: 0')],
    ['a header without a colon', head('abc\r\ncontent-length: 0')],
    ['a header without a name', head(': b\r\ncontent-length: 0')],
    ['a space before a colon', head('content-length : 0')],
    ['a name with a character that is no token', head('a(b): c')],
    ['a header that goes on in the next line', head('a: b\r\n c\r\ncontent-length: 0')],
    ['a length that is no number', head('content-length: x')],
    ['a signed length', head('content-length: +1')],
    ['a negative length', head('content-length: -1')],
    ['a hexadecimal length', head('content-length: 0x1')],
    ['an empty length', head('content-length:')],
    ['a length beyond what a number holds', head('content-length: 9999999999999999')],
    ['a list of lengths', head('content-length: 2, 2')],
    ['a length given twice', head('content-length: 2\r\nContent-Length: 2')],
    ['a length beside chunks', head('content-length: 2\r\ntransfer-encoding: chunked')],
    ['chunks beside a length', head('transfer-encoding: chunked\r\ncontent-length: 2')],
    ['an unknown transfer encoding', head('transfer-encoding: gzip, chunked')],
    ['chunks given twice', head('transfer-encoding: chunked\r\ntransfer-encoding: chunked')],
    ['a transfer encoding that is only like chunks', head('transfer-encoding: xchunked')],
    ['a chunk without a size', `${CHUNKED}\r\nabc\r\n`],
    ['a size that is no number', `${CHUNKED}zz\r\nabc\r\n`],
    ['a size with a prefix', `${CHUNKED}0x3\r\nabc\r\n`],
    ['a signed size', `${CHUNKED}+3\r\nabc\r\n`],
    ['a space behind a size', `${CHUNKED}3 \r\nabc\r\n`],
    ['a size beyond what a number holds', `${CHUNKED}fffffffffffff\r\n`],
    ['a size that ends in LF alone', `${CHUNKED}3\nabc\r\n0\r\n\r\n`],
    ['a control character in an extension', `${CHUNKED}3;a\0\r\nabc\r\n`],
    ['a chunk that is longer than its size', `${CHUNKED}3\r\nabcd\r\n`],
    ['a chunk that ends in LF alone', `${CHUNKED}3\r\nabc\n0\r\n\r\n`],
    ['a chunk that ends in CR alone', `${CHUNKED}3\r\nabc\r0\r\n\r\n`],
    ['a trailer without a colon', `${CHUNKED}0\r\nabc\r\n\r\n`],
    ['a trailer that goes on in the next line', `${CHUNKED}0\r\na: b\r\n c\r\n\r\n`],
    ['a head of more than 16 KiB', head(`a: ${'x'.repeat(16_384)}`)],
    ['trailers of more than 16 KiB', `${CHUNKED}0\r\n${`a: ${'x'.repeat(1_000)}\r\n`.repeat(17)}\r\n`],
  ])('%s', (_name, text) => {
    expect(() => new Reading(text)).toThrow(MalformedHttp)
  })

  it.each([
    ['a head', `${OK}a: `],
    ['a size', CHUNKED],
    ['a trailer', `${CHUNKED}0\r\na: `],
  ])('%s that does not end, once it has 16 KiB', (name, beginning) => {
    const byte = name === 'a size' ? '0' : 'x'
    const reading = new Reading(beginning)
    const drip = (): void => {
      for (let index = 0; index < 17; index++) reading.parser.execute(Buffer.from(byte.repeat(1_024)))
    }
    expect(drip).toThrow(MalformedHttp)
  })
})

describe('Wherever a response is cut on its way', () => {
  const BYTES = [...Array.from({ length: 300 }, (_, index) => index % 256)]
  const content = Buffer.from(BYTES)
  const chunk = (bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)};x=y\r\n`), bytes, Buffer.from('\r\n')])
  const large = Buffer.alloc(9_000, 'abcdefg')
  const body = Buffer.concat([content, content.subarray(0, 1), large, content])
  const chunked = Buffer.concat([
    Buffer.from('HTTP/1.1 103 Hints\r\na: b\r\n\r\n'),
    Buffer.from(CHUNKED),
    ...[content, content.subarray(0, 1), large, content].map(chunk),
    Buffer.from('0\r\nx-sum: 1\r\n\r\n'),
  ])
  const sized = Buffer.concat([Buffer.from(`${OK}content-length: ${body.length}\r\n\r\n`), body])

  it.each([
    ['in chunks', chunked],
    ['behind an empty line', Buffer.concat([Buffer.from('\r\n'), chunked])],
    ['with a length', sized],
  ])('its bytes and its end are the same (%s)', (_name, bytes) => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 30 }), (cuts) => {
        const places = [0, ...cuts.toSorted((one, other) => one - other), bytes.length]
        const chunks = places.slice(1).map((place, index) => bytes.subarray(places[index], place))
        const reading = new Reading(...chunks)
        expect(Buffer.concat(reading.pieces).equals(body)).toBe(true)
        expect(reading.mayKeepAlive).toBe(true)
      }),
    )
  })

  it('byte by byte, too', () => {
    const reading = new Reading(...Array.from(chunked, (byte) => Buffer.from([byte])))
    expect(Buffer.concat(reading.pieces).equals(body)).toBe(true)
    expect(reading.mayKeepAlive).toBe(true)
  })
})

describe('Small chunks that come together', () => {
  it('are one piece; large ones stay where they are', () => {
    const small = '5\r\nhello\r\n'.repeat(100)
    expect(new Reading(`${CHUNKED}${small}0\r\n\r\n`).pieces).toHaveLength(1)
    const large = `1388\r\n${'x'.repeat(5_000)}\r\n`
    expect(new Reading(`${CHUNKED}${small}${large}${small}0\r\n\r\n`).pieces).toHaveLength(2)
  })
})
