import { getDefaultHighWaterMark } from 'node:stream'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { parseConfig } from '../../test/support/config.js'
import {
  answerOf,
  type DocumentTarget,
  redirectTo,
  startDocumentTarget,
} from '../../test/support/document-stand-ins.js'
import { FORBIDDEN_URLS, newCall, startUntouchedServer, type UntouchedServer } from '../../test/support/raw-upstream.js'
import { spoolsLeft, useOwnSpoolFolder } from '../../test/support/upload-server.js'
import { ConfigStore } from '../config/config-store.js'
import type { ByteSink, ByteSource } from '../core/byte-stream.js'
import { GatewayError } from '../core/errors.js'
import { contentEncodings } from '../upstream/content-encoding.js'
import { SafeFetchClient } from '../upstream/safe-fetch.js'
import { AddressRefused, type ResolveHost } from '../upstream/ssrf-guard.js'
import { DocumentClient, type FetchedDocument, FetchesInFlight, spoolDecoded } from './document-fetch.js'

useOwnSpoolFolder()

describe('document client', () => {
  let target: DocumentTarget
  /** Listens at every address of this machine, and counts connections. */
  let untouched: UntouchedServer
  let resolve: ResolveHost
  let guarded: SafeFetchClient
  let client: DocumentClient

  const LOOPBACK = { address: '127.0.0.1', family: 4 }
  const PUBLIC = { address: '8.8.8.8', family: 4 }

  beforeEach(async () => {
    target = await startDocumentTarget()
    untouched = await startUntouchedServer()
    resolve = () => Promise.resolve([LOOPBACK])
    const allow = [`127.0.0.1:${target.port}`, `files.test:${target.port}`]
    const store = new ConfigStore(parseConfig(JSON.stringify({ ssrf: { allow } }), {}))
    guarded = new SafeFetchClient(store, (host) => resolve(host))
    client = new DocumentClient(guarded, store, new FetchesInFlight(store))
  })
  afterEach(async () => {
    await guarded.onApplicationShutdown()
    expect(untouched.accepted).toBe(0)
    await target.close()
    await untouched.close()
    expect(spoolsLeft()).toEqual([])
  })

  const fetchUrl = (url: string): Promise<FetchedDocument> => client.fetch(url, newCall(), performance.now() + 20_000)

  const refused = expect.objectContaining({
    kind: 'invalid_request',
    details: expect.objectContaining({ param: 'url', code: 'url_not_allowed', cause: expect.any(AddressRefused) }),
  })
  const expectRefused = async (url: string): Promise<void> => {
    const outcome = await fetchUrl(url).catch((error: unknown) => error)
    expect([url, outcome]).toEqual([url, refused])
  }

  describe('A private address', () => {
    it.each(FORBIDDEN_URLS)('is never reached: %s', async (_name, urlFor) => {
      await expectRefused(urlFor(untouched.port))
    })

    it('is never reached by a name, whatever else the name server says beside it', async () => {
      const url = `http://rebind.test:${untouched.port}/`
      for (const addresses of [[LOOPBACK], [PUBLIC, LOOPBACK], [LOOPBACK, PUBLIC], [{ address: '::1', family: 6 }]]) {
        resolve = () => Promise.resolve(addresses)
        await expectRefused(url)
      }
    })

    it('is never reached by a name that was public a moment ago', async () => {
      let asked = 0
      resolve = (host) => Promise.resolve([host === 'files.test' || asked++ > 0 ? LOOPBACK : PUBLIC])
      await guarded.assertAllowed(`http://rebind.test:${untouched.port}/`, 'url', 1000)
      await expectRefused(`http://rebind.test:${untouched.port}/`)
      asked = 1
      target.answers.set('/start', redirectTo(`http://rebind.test:${untouched.port}/`))
      await expectRefused(`http://files.test:${target.port}/start`)
      expect(target.heads).toHaveLength(1)
    })
  })

  describe('A document', () => {
    it('says where it came from, what it is called and what its server says about it', async () => {
      target.answers.set('/from', redirectTo(`http://files.test:${target.port}/a/b%2Fc%0d.pdf?d=e`))
      const headers = { 'content-type': 'application/pdf; a=b', 'cache-control': 'private\r\ncache-control: max-age=3' }
      target.answers.set('/a/b%2Fc%0d.pdf?d=e', answerOf('%PDF-', { status: '203 Other', headers }))
      const { file, ...facts } = await fetchUrl(target.url('/from'))
      const url = `http://files.test:${target.port}/a/b%2Fc%0d.pdf?d=e`
      expect(facts).toEqual({ url, status: 203, cacheControl: 'private, max-age=3' })
      expect(file).toMatchObject({ contentType: 'application/pdf; a=b', name: 'c.pdf', baseUrl: url })
      expect((await file.spool.read(0, 9)).toString()).toBe('%PDF-')
      await file.spool.remove()
    })

    it.each([
      ['SSH-2.0-OpenSSH_9.0\r\n', 'The server of the document does not speak HTTP.'],
      ['HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n', 'The server of the document does not speak HTTP.'],
      ['HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut', 'The connection to the server of the document broke off.'],
    ])('of a server that sends %j has failed, with a message for the caller', async (bytes, message) => {
      target.answers.set('/', (socket) => socket.end(bytes))
      await expect(fetchUrl(target.url('/'))).rejects.toMatchObject({ kind: 'upstream_failed', message })
    })

    it('is asked for in the same words after a redirect to another host', async () => {
      target.answers.set('/from', redirectTo(`http://files.test:${target.port}/to`))
      const { file } = await fetchUrl(target.url('/from'))
      await file.spool.remove()
      const [before, after] = target.heads.map((head) => head.split('\r\n').slice(2).sort())
      expect(after).toEqual(before)
      expect(after?.join()).toContain('accept-encoding: gzip, br')
    })
  })
})

describe('A fetched body', () => {
  const MEGABYTE = 1_000_000

  afterEach(() => {
    expect(spoolsLeft()).toEqual([])
  })

  /** A body that comes when it is told to. */
  class Trickle implements ByteSource {
    cancelled = false
    private sink: ByteSink | undefined

    start(sink: ByteSink): void {
      this.sink = sink
    }

    pause(): void {
      // What comes is little.
    }

    resume(): void {
      // It was never paused.
    }

    cancel(): void {
      this.cancelled = true
    }

    async send(bytes: number): Promise<void> {
      while (this.sink === undefined) await nextTurn()
      this.sink.data(Buffer.alloc(bytes))
      await nextTurn()
    }
  }

  /** A body of these chunks, one per turn while it is not paused. */
  class Pieces implements ByteSource {
    cancelled = false
    taken = 0
    private sink: ByteSink | undefined
    private isPaused = false

    constructor(
      private readonly pieces: readonly Buffer[],
      private readonly failure?: GatewayError,
    ) {}

    start(sink: ByteSink): void {
      this.sink = sink
      setImmediate(this.next)
    }

    pause(): void {
      this.isPaused = true
    }

    resume(): void {
      if (!this.isPaused) return
      this.isPaused = false
      setImmediate(this.next)
    }

    cancel(): void {
      this.cancelled = true
    }

    private readonly next = (): void => {
      if (this.cancelled || this.isPaused) return
      const piece = this.pieces[this.taken++]
      if (piece !== undefined) {
        this.sink?.data(piece)
        setImmediate(this.next)
      } else if (this.failure === undefined) this.sink?.end()
      else this.sink?.fail(this.failure)
    }
  }

  const cutEvery = (bytes: Buffer, length: number): Buffer[] =>
    Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) => bytes.subarray(at * length, (at + 1) * length))

  async function decoded(pieces: readonly Buffer[], encoding: string, maximumBytes = 50 * MEGABYTE): Promise<Buffer> {
    const spool = await spoolDecoded(new Pieces(pieces), contentEncodings(encoding), maximumBytes)
    const chunks: Buffer[] = []
    for await (const chunk of spool.createReadStream() as AsyncIterable<Buffer>) chunks.push(chunk)
    await spool.remove()
    return Buffer.concat(chunks)
  }

  const ENCODERS: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
    ['', (bytes) => bytes],
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['gzip, br', (bytes) => brotliCompressSync(gzipSync(bytes))],
    ['br, identity,gzip', (bytes) => gzipSync(brotliCompressSync(bytes))],
    ['deflate, GZIP, deflate', (bytes) => deflateSync(gzipSync(deflateRawSync(bytes)))],
  ]

  /** A gzip file whose blocks hold nothing: each byte that is sent costs work, and none comes out. */
  function hollowGzip(bytes: number): Buffer {
    const emptyBlock = Buffer.from([0x00, 0x00, 0x00, 0xff, 0xff])
    return Buffer.concat([gzipSync('').subarray(0, 10), Buffer.alloc(bytes, emptyBlock)])
  }

  it('is what it was before it was encoded, however it is cut', async () => {
    const content = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 2000 }),
      fc.integer({ min: 1, max: 300_000 }).map((length) => new Uint8Array(length)),
    )
    await fc.assert(
      fc.asyncProperty(
        content,
        fc.constantFrom(...ENCODERS),
        fc.integer({ min: 1, max: 5000 }),
        async (bytes, [name, encode], cut) => {
          const original = Buffer.from(bytes)
          const arrived = await decoded(cutEvery(encode(original), cut), name)
          expect(arrived.equals(original)).toBe(true)
        },
      ),
      { numRuns: 60 },
    )
  })

  it('is empty when nothing came, whatever encoding was announced', async () => {
    for (const [name] of ENCODERS) expect(await decoded([], name)).toHaveLength(0)
    expect(await decoded([], 'zstd')).toHaveLength(0)
  })

  it.each(['none', 'utf-8', 'UTF8', 'identity', ' , identity,none'])(
    'is as it stands where its encoding is %j',
    async (name) => {
      expect((await decoded([Buffer.from('plain')], name)).toString()).toBe('plain')
      expect((await decoded([gzipSync('packed')], `${name}, gzip`)).toString()).toBe('packed')
    },
  )

  it('packed more often than three times is not unpacked', async () => {
    const packed = [1, 2, 3, 4].reduce((bytes) => gzipSync(bytes), Buffer.from('deep'))
    await expect(decoded([packed], 'gzip, gzip, gzip, gzip')).rejects.toMatchObject({ kind: 'upstream_failed' })
  })

  it('larger than the limit in any of its forms is too large, whatever comes out at the end', async () => {
    const hollow = hollowGzip(2 * MEGABYTE)
    for (const [bytes, name] of [
      [hollow, 'gzip'],
      [gzipSync(hollow), 'gzip, gzip'],
      [brotliCompressSync(Buffer.alloc(2 * MEGABYTE)), 'br'],
    ] as const) {
      await expect(decoded(cutEvery(bytes, 10_000), name, MEGABYTE)).rejects.toMatchObject({
        kind: 'payload_too_large',
      })
    }
  })

  it('of several gzip members is all of them', async () => {
    const both = Buffer.concat([gzipSync('one'), gzipSync('two')])
    expect((await decoded([both], 'gzip')).toString()).toBe('onetwo')
  })

  it('is broken when any byte is missing at its end', async () => {
    const original = Buffer.from('A kettle is a vessel in which water is brought to the boil.')
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...ENCODERS.slice(1)), fc.nat(), async ([name, encode], at) => {
        const bytes = encode(original)
        const cut = bytes.subarray(0, 1 + (at % (bytes.length - 1)))
        await expect(decoded([cut], name)).rejects.toMatchObject({ kind: 'upstream_failed' })
      }),
      { numRuns: 60 },
    )
  })

  it('stops where it passes the limit: the rest is neither read nor kept', async () => {
    const plain = Buffer.alloc(MEGABYTE)
    const packed = gzipSync(plain)
    // What the buffers of a source and three transforms hold on the way.
    const heldPieces = (7 * getDefaultHighWaterMark(false)) / packed.length
    for (const [encoding, body] of [
      ['gzip', new Pieces(Array.from({ length: 2_000 }, () => packed))],
      ['', new Pieces(Array.from({ length: 2_000 }, () => plain))],
    ] as const) {
      await expect(spoolDecoded(body, contentEncodings(encoding), 5 * MEGABYTE)).rejects.toMatchObject({
        kind: 'payload_too_large',
      })
      expect(body.cancelled).toBe(true)
      expect(body.taken).toBeLessThan(Math.max(150, heldPieces))
    }
  })

  it('fails as it failed on its way, wherever that was', async () => {
    const failure = new GatewayError('upstream_timeout', 'Words.')
    const packed = gzipSync(Buffer.alloc(100_000, 'ab'))
    for (const pieces of [[], [packed.subarray(0, 5)], [packed]]) {
      await expect(spoolDecoded(new Pieces(pieces, failure), ['gzip'], MEGABYTE)).rejects.toBe(failure)
      await expect(spoolDecoded(new Pieces(pieces, failure), [], MEGABYTE)).rejects.toBe(failure)
    }
  })

  it('that comes too slowly is given up, however regularly something comes', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] })
    try {
      const body = new Trickle()
      const slow = expect(spoolDecoded(body, [], MEGABYTE)).rejects.toMatchObject({ kind: 'upstream_timeout' })
      await body.send(10_240)
      await jest.advanceTimersByTimeAsync(10_000)
      for (let second = 0; second < 10; second++) {
        await body.send(1_000)
        await jest.advanceTimersByTimeAsync(1_000)
      }
      await slow
      expect(body.cancelled).toBe(true)
    } finally {
      jest.useRealTimers()
    }
  })

  it('in an unknown encoding is refused at once', async () => {
    const body = new Pieces([Buffer.from('a'), Buffer.from('b')])
    await expect(spoolDecoded(body, ['compress'], MEGABYTE)).rejects.toMatchObject({ kind: 'upstream_failed' })
    expect(body.cancelled).toBe(true)
  })
})
