import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Duplex } from 'node:stream'
import { describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { readSimpleRequest } from './simple-request.js'

const request = (lines: readonly string[], body = ''): Buffer =>
  Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1')

const POST = 'POST /v1/chat/completions HTTP/1.1'

describe('An ordinary request', () => {
  it.each([
    [[POST, 'host: x', 'content-length: 2'], '{}', '/v1/chat/completions', ''],
    [['GET /v1/models?limit=5 HTTP/1.1', 'Host: x', 'Connection: Keep-Alive'], '', '/v1/models', ''],
    [['DELETE / HTTP/1.1'], '', '/', ''],
    [['POST / HTTP/1.1', 'Content-Length: 0', 'X-Request-Id: mine-1.a:b_c '], '', '/', 'mine-1.a:b_c'],
    [['GET /a%20b;c HTTP/1.1', 'empty:', 'text: caf\xe9\t1'], '', '/a%20b;c', ''],
  ])('is read: %j', (lines, body, path, requestId) => {
    expect(readSimpleRequest(request(lines, body))).toEqual({ path, requestId })
  })
})

describe('Whatever is not exactly one ordinary request is left to the parser', () => {
  it.each([
    ['half a head', Buffer.from('POST / HTTP/1.1\r\nhost: x\r\n')],
    ['half a body', request([POST, 'content-length: 3'], '{}')],
    ['two requests', Buffer.concat([request(['GET / HTTP/1.1']), request(['GET / HTTP/1.1'])])],
    ['bytes behind the body', request([POST, 'content-length: 2'], '{}x')],
    ['a body without length', request([POST], '{}')],
    ['chunks', request([POST, 'transfer-encoding: chunked'], '0\r\n\r\n')],
    ['chunks and a length', request([POST, 'content-length: 5', 'Transfer-Encoding: chunked'], '0\r\n\r\n')],
    ['two lengths', request([POST, 'content-length: 2', 'Content-Length: 2'], '{}')],
    ['a length that is none', request([POST, 'content-length: +2'], '{}')],
    ['a folded header', request([POST, 'a: b', ' content-length: 2'], '{}')],
    ['a blank before the colon', request([POST, 'content-length : 2'], '{}')],
    ['a header without colon', request([POST, 'content-length 2'])],
    ['a bare line feed', request([POST, 'a: b\ncontent-length: 2'], '{}')],
    ['a bare carriage return', request([POST, 'a: b\rcontent-length: 2'], '{}')],
    ['a zero byte', request([POST, 'a: \0'])],
    ['an upgrade', request(['GET /v1/realtime HTTP/1.1', 'connection: Upgrade', 'upgrade: websocket'])],
    ['an upgrade that hides', request(['GET /v1/realtime HTTP/1.1', 'upgrade: websocket'])],
    ['the end of the connection', request(['GET / HTTP/1.1', 'connection: close'])],
    ['an expectation', request([POST, 'expect: 100-continue', 'content-length: 0'])],
    ['HTTP/1.0', request(['GET / HTTP/1.0'])],
    ['HEAD, whose answers have no body', request(['HEAD / HTTP/1.1'])],
    ['CONNECT', request(['CONNECT x:443 HTTP/1.1'])],
    ['a whole address', request(['GET http://x/ HTTP/1.1'])],
    ['an odd method', request(['get / HTTP/1.1'])],
    ['a fragment of a target', request(['GET /a b HTTP/1.1'])],
    ['an id that needs escaping', request(['GET / HTTP/1.1', 'x-request-id: a"b'])],
    ['two ids', request(['GET / HTTP/1.1', 'x-request-id: a', 'x-request-id: b'])],
    ['a very long head', request(['GET / HTTP/1.1', `a: ${'x'.repeat(8_192)}`])],
    ['nothing', Buffer.alloc(0)],
  ])('%s', (_what, bytes) => {
    expect(readSimpleRequest(bytes)).toBeUndefined()
  })
})

describe('What is read as an ordinary request', () => {
  const line = fc.constantFrom(
    ...[
      'host: x',
      'Content-Length: 4',
      'content-length: 0',
      'content-length:4 ',
      'content-length: 04',
      'Connection: keep-alive',
    ],
    ...[
      'connection: close',
      'x-request-id: abc',
      'X-Request-Id: d e',
      'transfer-encoding: chunked',
      'te: trailers',
      'a:b',
      ': c',
    ],
    ...[
      ' d: e',
      'f',
      'g: \x01',
      'upgrade: h2c',
      'expect: 100-continue',
      'Content-Length: 4, 4',
      'content_length: 4',
      'é: 1',
    ],
  )
  const start = fc.constantFrom(
    ...[
      'POST / HTTP/1.1',
      'GET /a?b=c HTTP/1.1',
      'DELETE /x HTTP/1.1',
      'POST  / HTTP/1.1',
      'POST /? HTTP/1.1',
      'POST / HTTP/1.0',
    ],
    ...['GET /\x7f HTTP/1.1', 'PUT / HTTP/1.1', 'POST /a#b HTTP/1.1'],
  )
  const end = fc.constantFrom('', 'abcd', 'abc', 'GET / HTTP/1.1\r\n\r\n', '4\r\nabcd\r\n0\r\n\r\n')
  const separator = fc.constantFrom('\r\n', '\r\n', '\r\n', '\n', '\r')

  it("is one request to Node's parser as well, with the same path and id, and nothing is left over", async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(
        start,
        fc.array(fc.tuple(separator, line), { maxLength: 4 }),
        end,
        async (first, lines, rest) => {
          const bytes = Buffer.from(`${first}${lines.flat().join('')}\r\n\r\n${rest}`, 'latin1')
          const read = readSimpleRequest(bytes)
          if (read === undefined) return
          accepted++
          const [seen, ...others] = await requestsIn(bytes)
          expect(others).toEqual([])
          expect(seen).toEqual({ ...read, complete: true })
        },
      ),
      { numRuns: 3_000 },
    )
    expect(accepted).toBeGreaterThan(40)
  })
})

interface Seen {
  readonly path: string
  readonly requestId: string
  readonly complete: boolean
}

const seen: { readonly request: IncomingMessage }[] = []
const server: Server = createServer({ requireHostHeader: false }, (incoming) => {
  seen.push({ request: incoming })
  incoming.resume()
}).on('clientError', (error) => {
  throw error
})

/** What Node's parser makes of the bytes of one connection. */
async function requestsIn(bytes: Buffer): Promise<Seen[]> {
  seen.length = 0
  const connection = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, done) => {
      done()
    },
  })
  server.emit('connection', connection)
  connection.push(bytes)
  await new Promise((done) => setImmediate(done))
  await new Promise((done) => setImmediate(done))
  const found = seen.map(({ request: { url = '', headers, complete } }) => ({
    path: url.split('?')[0] ?? '',
    requestId: String(headers['x-request-id'] ?? ''),
    complete,
  }))
  connection.destroy()
  return found
}
