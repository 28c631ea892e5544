import { once } from 'node:events'
import type { Socket } from 'node:net'
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createGzip,
  deflateRawSync,
  deflateSync,
  gzipSync,
} from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { RecordingSink } from '../../test/support/byte-streams.js'
import { eventually } from '../../test/support/eventually.js'
import {
  attemptOf,
  failureOf,
  newCall,
  type RawUpstream,
  startRawUpstream,
  targetOf,
} from '../../test/support/raw-upstream.js'
import { collect } from '../core/byte-stream.js'
import { parseOpenAIError } from '../dialects/openai-wire.js'
import type { UpstreamResponse } from './exchange.js'
import { UpstreamClient } from './upstream-client.js'
import { HeaderAllowList, jsonResponse } from './upstream-response.js'

const MEBIBYTE = 1024 * 1024

const bodyOf = ({ body }: UpstreamResponse): Promise<Buffer> =>
  collect(body, Infinity, () => {
    throw new Error('unreachable')
  })

const UNDECODABLE = {
  kind: 'upstream_failed',
  details: { attempt: { phase: 'sent', channelError: true }, retryable: false },
}

describe('An answer in a content encoding that was not asked for', () => {
  let client: UpstreamClient
  let upstream: RawUpstream
  let answer: (socket: Socket, head: string) => void
  beforeEach(async () => {
    client = new UpstreamClient()
    upstream = await startRawUpstream((socket, head) => {
      answer(socket, head)
    })
  })
  afterEach(async () => {
    await client.onApplicationShutdown()
    await upstream.close()
  })

  const send = (call = newCall()): Promise<UpstreamResponse> => {
    const request = { method: 'POST', path: '/', headers: ['x-key', 'a'], body: Buffer.from('{}') } as const
    return client.send(request, targetOf(upstream.port), attemptOf(call), performance.now() + 20_000)
  }

  /** The answer to each request: one with these encodings. */
  const answerWith = (body: Buffer, encoding: string, status = '200 OK'): void => {
    answer = (socket) => {
      const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-encoding: ${encoding}\r\n`
      socket.write(`${head}content-length: ${body.length}\r\n\r\n`)
      socket.write(body)
    }
  }

  const TEXT = JSON.stringify({ choices: [{ message: { content: 'Hi! '.repeat(500) } }], usage: { total_tokens: 3 } })

  it('is asked for without any', async () => {
    let asked = ''
    answer = (socket, head) => {
      asked = head
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    }
    await send()
    expect(asked).toContain('accept-encoding: identity')
  })

  it.each<readonly [string, Buffer]>([
    ['gzip', gzipSync(TEXT)],
    ['x-gzip', gzipSync(TEXT)],
    ['GZIP', gzipSync(TEXT)],
    ['br', brotliCompressSync(TEXT)],
    ['deflate', deflateSync(TEXT)],
    ['deflate', deflateRawSync(TEXT)],
    ['gzip, br', brotliCompressSync(gzipSync(TEXT))],
    ['identity', Buffer.from(TEXT)],
  ])('is decoded, and its headers tell of none: %s', async (encoding, body) => {
    answerWith(body, encoding)
    const { response, value } = await jsonResponse(await send(), new HeaderAllowList())
    expect(value).toEqual(JSON.parse(TEXT))
    expect(response.body).toEqual(Buffer.from(TEXT))
    expect(response.headers).toEqual({ 'content-type': 'application/json' })
  })

  it('may be empty', async () => {
    answerWith(Buffer.alloc(0), 'gzip')
    expect(await bodyOf(await send())).toHaveLength(0)
  })

  it.each(['gzip', 'br'])('is a stream of which each frame arrives before the next is sent: %s', async (encoding) => {
    const encoder = encoding === 'gzip' ? createGzip() : createBrotliCompress()
    const flush = encoding === 'gzip' ? constants.Z_SYNC_FLUSH : constants.BROTLI_OPERATION_FLUSH
    const write = (text: string): void => {
      encoder.write(text)
      encoder.flush(flush)
    }
    answer = (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: ${encoding}\r\n\r\n`)
      encoder.pipe(socket)
      write('data: 1\n\n')
    }
    const { body } = await send()
    const sink = new RecordingSink()
    let received = ''
    const ended = new Promise<void>((resolve, reject) => {
      body.start({
        data: (chunk) => {
          sink.data(chunk)
          received += chunk.toString()
          if (received.endsWith('9\n\n')) encoder.end()
          else write(`data: ${Number(received.at(-3)) + 1}\n\n`)
        },
        end: resolve,
        fail: reject,
      })
    })
    await ended
    expect(sink.chunks).toHaveLength(9)
  })

  it('of an error is read like any other', async () => {
    const error = { message: 'The prompt is too long.', type: 'invalid_request_error', param: 'messages', code: 'long' }
    answerWith(gzipSync(JSON.stringify({ error })), 'gzip', '400 Bad Request')
    const failure = await parseOpenAIError(await send(), { callersKey: false, credentials: 'secret' })
    expect(failure).toMatchObject({ kind: 'invalid_request', message: error.message, details: { code: 'long' } })
  })

  it('that is not known keeps its status, and its body cannot be read', async () => {
    answerWith(Buffer.from('abc'), 'compress')
    const response = await send()
    expect(response.status).toBe(200)
    expect(await failureOf(bodyOf(response))).toMatchObject(UNDECODABLE)
  })

  it.each<readonly [string, string, Buffer]>([
    ['gzip', 'is cut off', gzipSync(TEXT).subarray(0, -9)],
    ['br', 'is cut off', brotliCompressSync(TEXT).subarray(0, -2)],
    ['gzip', 'is broken', Buffer.from(TEXT)],
    ['gzip, gzip, gzip, gzip', 'is nested without end', gzipSync(gzipSync(gzipSync(gzipSync(TEXT))))],
  ])('fails and never ends when it %s: %s', async (encoding, _name, body) => {
    answerWith(body, encoding)
    expect(await failureOf(bodyOf(await send()))).toMatchObject(UNDECODABLE)
  })

  const zeros = Buffer.alloc(64 * MEBIBYTE)
  it.each<readonly [string, () => Buffer]>([
    ['gzip', () => gzipSync(zeros)],
    ['br', () => brotliCompressSync(zeros, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })],
    ['gzip, gzip', () => gzipSync(gzipSync(zeros))],
    // Its outer form holds empty members without end; nothing of it ever comes out.
    ['gzip, br', () => brotliCompressSync(Buffer.alloc(64 * MEBIBYTE, gzipSync('')))],
  ])('that expands without end is bounded, and its connection closed: %s', async (encoding, bomb) => {
    let closed: Promise<unknown> | undefined
    const bytes = bomb()
    answer = (socket) => {
      closed = once(socket, 'close')
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: ${encoding}\r\nconnection: close\r\n\r\n`)
      socket.write(bytes)
    }
    let received = 0
    const { body } = await send()
    const failure = await failureOf(
      new Promise<void>((resolve, reject) => {
        body.start({ data: (chunk) => (received += chunk.length), end: resolve, fail: reject })
      }),
    )
    expect(failure).toMatchObject(UNDECODABLE)
    expect(received).toBeLessThanOrEqual(Math.max(16 * MEBIBYTE, 200 * bytes.length))
    await closed
  })

  it('waits for a slow reader, and loses nothing', async () => {
    const content = Buffer.from(Array.from({ length: 400_000 }, (_, index) => `${index}\n`).join(''))
    answerWith(gzipSync(content), 'gzip')
    const { body } = await send()
    const chunks: Buffer[] = []
    await new Promise<void>((resolve, reject) => {
      body.start({
        data: (chunk) => {
          chunks.push(chunk)
          body.pause()
          setImmediate(() => {
            body.resume()
          })
        },
        end: resolve,
        fail: reject,
      })
    })
    expect(Buffer.concat(chunks).equals(content)).toBe(true)
  })

  it('waits for a reader who paused before a byte of it had come', async () => {
    answerWith(gzipSync(TEXT), 'gzip')
    const { body } = await send()
    const sink = new RecordingSink()
    const ended = new Promise<void>((resolve) => {
      body.start({
        data: (chunk) => {
          sink.data(chunk)
        },
        end: resolve,
        fail: (error) => {
          sink.fail(error)
        },
      })
    })
    body.pause()
    // Others, begun later, are decoded meanwhile.
    for (let other = 0; other < 3; other++) await bodyOf(await send())
    expect(sink.chunks).toEqual([])
    body.resume()
    await ended
    expect(sink.text).toBe(TEXT)
  })

  it('that has come, and waits for a slow reader, is given up when the caller leaves', async () => {
    answerWith(gzipSync('Hi! '.repeat(100_000)), 'gzip')
    const call = newCall()
    const { body } = await send(call)
    const failed = failureOf(
      new Promise<void>((resolve, reject) => {
        body.start({ data: () => undefined, end: resolve, fail: reject })
        body.pause()
      }),
    )
    await eventually(() => call.log.upstreamMs > 0)
    call.disconnect.abort()
    expect(await failed).toMatchObject({ kind: 'caller_left' })
    await new Promise<void>((resolve) => {
      call.disconnect.whenReleased(resolve)
    })
  })

  it('that the caller does not want any more closes the connection of the upstream', async () => {
    let closed: Promise<unknown> | undefined
    answer = (socket) => {
      closed = once(socket, 'close')
      socket.write('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n')
      socket.write(gzipSync(TEXT).subarray(0, 40))
    }
    const { body } = await send()
    const failed = failureOf(
      new Promise<void>((resolve, reject) => {
        body.start({ data: () => undefined, end: resolve, fail: reject })
      }),
    )
    body.cancel()
    expect(await failed).toMatchObject({ kind: 'caller_left' })
    await closed
  })
})
