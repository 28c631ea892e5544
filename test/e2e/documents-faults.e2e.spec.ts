import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../support/audio-uploads.js'
import { type DocumentLab, startDocumentLab } from '../support/document-lab.js'
import { answerOf, encodedAs, GZIPPED_PAGE, PAGE, PAGE_HEAD, type TargetAnswer } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'
import { unusedPort } from '../support/raw-upstream.js'
import { startTlsProxy, type TlsProxy } from '../support/tls-proxy.js'

const DOCUMENT_BYTES = 4_000_000

let lab: DocumentLab
let closedPort: number
let tls: TlsProxy

beforeAll(async () => {
  closedPort = await unusedPort()
  tls = await startTlsProxy('http://127.0.0.1:1')
  lab = await startDocumentLab({
    sections: {
      limits: { documentBytes: DOCUMENT_BYTES },
    },
    alsoExempt: [`127.0.0.1:${closedPort}`, 'nobody.invalid:80', `localhost:${closedPort}`, new URL(tls.url).host],
  })
})
afterEach(async () => {
  await eventually(() => lab.target.sockets.size === 0)
  lab.target.reset()
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(async () => {
  await lab.close()
  await tls.close()
})

const endingAfter =
  (bytes: string | Buffer): TargetAnswer =>
  (socket) =>
    socket.end(bytes)

describe('a document that arrives broken is a failure of its server:', () => {
  it.each<readonly [string, TargetAnswer]>([
    ['cut before its length', endingAfter(`${PAGE_HEAD}content-length: 5000\r\n\r\n${PAGE}`)],
    ['cut between chunks', endingAfter(`${PAGE_HEAD}transfer-encoding: chunked\r\n\r\n5\r\n<html\r\n`)],
    ['cut in the head', endingAfter('HTTP/1.1 200 OK\r\ncontent-ty')],
    ['closed without an answer', (socket) => socket.destroy()],
    [
      'reset in the body',
      (socket) => void socket.write(`${PAGE_HEAD}content-length: 9\r\n\r\nab`, () => socket.resetAndDestroy()),
    ],
    ['that is no HTTP', endingAfter('SSH-2.0-OpenSSH_9.2\r\n')],
    ['with a chunk that is none', endingAfter(`${PAGE_HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n<html>\r\n`)],
    ['with two lengths', endingAfter(`${PAGE_HEAD}content-length: 5\r\ncontent-length: 6\r\n\r\n<html>`)],
    ['with a head without end', endingAfter(`${PAGE_HEAD}x: ${'y'.repeat(100_000)}`)],
    ['as gzip that is none', encodedAs('gzip', Buffer.from(PAGE))],
    ['as gzip that ends early', encodedAs('gzip', GZIPPED_PAGE.subarray(0, -9))],
    [
      'as gzip with a changed byte',
      encodedAs('gzip', Buffer.concat([GZIPPED_PAGE.subarray(0, -5), Buffer.from('abcde')])),
    ],
    ['as brotli that ends early', encodedAs('br', brotliCompressSync(PAGE).subarray(0, -5))],
    ['as deflate that ends early', encodedAs('deflate', deflateSync(PAGE).subarray(0, -5))],
    ['as brotli that is none', encodedAs('br', GZIPPED_PAGE)],
    ['in an encoding nobody asked for', encodedAs('zstd', GZIPPED_PAGE)],
    ['in more encodings than anybody uses', encodedAs('gzip, gzip, gzip, gzip', GZIPPED_PAGE)],
  ])('%s', async (_name, answer) => {
    lab.target.answers.set('/broken', answer)
    const { status, text, body } = await lab.parse('/broken')
    expect([status, body.code, body.request_id]).toEqual([502, 5000, expect.stringMatching(/^req_/)])
    expect(body.message).toMatch(/document/)
    expect(text).not.toContain('127.0.0.1')
  })

  it('with more bytes than its length says, it ends where its length says', async () => {
    const cut = Buffer.from(`${PAGE}canary`)
    lab.target.answers.set('/long', answerOf(cut, { headers: { 'content-length': String(PAGE.length) } }))
    const { text, body } = await lab.parse('/long')
    expect(body.data.markdown).toContain('A kettle')
    expect(text).not.toContain('canary')
  })
})

describe('a server that cannot be asked is a failure, in words that name no address:', () => {
  it.each([
    ['nobody listens', () => `http://127.0.0.1:${closedPort}/`, /cannot be reached/],
    ['nobody listens under any address of a name', () => `http://localhost:${closedPort}/`, /cannot be reached/],
    ['nobody knows the name', () => 'http://nobody.invalid/', /host of the document is not known/],
    ['its certificate is nobody’s', () => `${tls.url}/`, /cannot prove who it is/],
  ])('%s', async (_name, url, words) => {
    const { status, text, body } = await lab.parse(url())
    expect([status, body.code]).toEqual([502, 5000])
    expect(body.message).toMatch(words)
    expect(text).not.toMatch(/127\.0|::1|ECONN|ENOTFOUND|EAI/)
  })
})

describe('a document over the limit', () => {
  const zeros = Buffer.alloc(1_000_000)

  it('is refused by its length, before it is read', async () => {
    lab.target.answers.set('/huge', `${PAGE_HEAD}content-length: ${DOCUMENT_BYTES + 1}\r\n\r\n<html>`)
    const { status, body } = await lab.parse('/huge')
    expect([status, body.code]).toEqual([413, 1200])
  })

  it('is refused where it passes the limit, and its server is hung up on', async () => {
    let sentBytes = 0
    lab.target.answers.set('/endless', (socket) => {
      socket.write(`${PAGE_HEAD}\r\n`)
      void pour(socket, () => {
        sentBytes += zeros.length
        return zeros
      })
    })
    const { status } = await lab.parse('/endless')
    expect(status).toBe(413)
    expect(sentBytes).toBeLessThan(DOCUMENT_BYTES + 64 * zeros.length)
  })

  it.each([
    ['exactly at the limit', 0, 200],
    ['one byte over it', 1, 413],
  ])('is counted after its encoding is taken off: %s', async (_name, more, expected) => {
    const bytes = Buffer.from(PAGE.padEnd(DOCUMENT_BYTES + more, ' '))
    lab.target.answers.set('/packed', encodedAs('gzip', gzipSync(bytes)))
    lab.target.answers.set('/plain', answerOf(bytes))
    expect((await lab.parse('/packed', { no_cache: true })).status).toBe(expected)
    expect((await lab.parse('/plain', { no_cache: true })).status).toBe(expected)
  })

  it.each([
    ['gzip', 'gzip'],
    ['brotli', 'br'],
  ])('hidden in %s stops at the limit, whatever it would become', async (_name, encoding) => {
    const zip = encoding === 'gzip' ? gzipSync : brotliCompressSync
    const bomb = zip(Buffer.alloc(50_000_000))
    lab.target.answers.set('/bomb', (socket) => {
      socket.write(`${PAGE_HEAD}content-encoding: ${encoding}\r\n\r\n`)
      // As often as it is taken: in gzip, one member after the other goes on for ever.
      void pour(socket, () => bomb)
    })
    const heldBefore = process.memoryUsage().rss
    const { status } = await lab.parse('/bomb')
    expect(status).toBe(413)
    expect(process.memoryUsage().rss - heldBefore).toBeLessThan(150_000_000)
  })
})

/** Sends pieces, no faster than they are taken, until the other side hangs up. */
async function pour(socket: Socket, piece: () => Buffer): Promise<void> {
  while (!socket.destroyed) {
    if (!socket.write(piece()))
      await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined)
    await nextTurn()
  }
}
