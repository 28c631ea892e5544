import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import {
  fieldPart,
  filePart,
  MULTIPART,
  multipartBytes,
  requestBytes,
  startUploadServer,
  type UploadServer,
} from '../../test/support/upload-server.js'
import type { MultipartLimits } from './multipart.js'

const CHUNKED_HEAD = Buffer.from(
  `POST / HTTP/1.1\r\nhost: x\r\ncontent-type: ${MULTIPART['content-type']}\r\ntransfer-encoding: chunked\r\n\r\n`,
)
const chunk = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
// Without a collection the measure would count what is already given up.
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const MEBIBYTE = 1024 * 1024

let server: UploadServer
async function start(limits: Partial<MultipartLimits> = {}): Promise<void> {
  server = await startUploadServer(limits)
}
afterEach(async () => {
  const leftovers = server.leftovers()
  await server.close()
  expect(leftovers).toEqual([])
})

describe('limits on an upload', () => {
  it('refuses a declared length over the limit before reading the body', async () => {
    await start({ bodyBytes: 1000 })
    const next = server.next()
    const head = requestBytes(Buffer.alloc(0), { ...MULTIPART, 'content-length': '1001' })
    server.send([head])
    expect((await next).error).toMatchObject({ kind: 'payload_too_large' })
  })

  it('refuses a chunked body as soon as it passes the limit', async () => {
    await start({ bodyBytes: 300_000 })
    const next = server.next()
    const begin = multipartBytes([filePart(Buffer.alloc(310_000))]).subarray(0, 300_500)
    server.send([CHUNKED_HEAD, chunk(begin)])
    expect((await next).error).toMatchObject({ kind: 'payload_too_large' })
  })

  it('refuses a file over the limit with both numbers, without reading the body on', async () => {
    await start({ fileBytes: 200_000 })
    const next = server.next()
    const body = multipartBytes([filePart(Buffer.alloc(20 * MEBIBYTE))])
    server.send([requestBytes(body, MULTIPART)])
    const { error, readBytes } = await next
    expect(error).toMatchObject({ kind: 'invalid_request', details: { code: 'file_too_large', param: 'file' } })
    expect(error?.message).toContain('200000')
    expect(error?.message).toContain('200001')
    expect(readBytes).toBeLessThan(2 * MEBIBYTE)
  })

  it('refuses a body that does not arrive in time', async () => {
    await start({ bodyTimeoutMs: 50 })
    const next = server.next()
    const whole = requestBytes(multipartBytes([filePart(Buffer.alloc(2 * MEBIBYTE))]), MULTIPART)
    server.send([whole.subarray(0, 1.5 * MEBIBYTE)])
    expect((await next).error).toMatchObject({ kind: 'request_timeout' })
  })

  it('keeps its memory flat while 25 MiB come in and go to disk', async () => {
    await start()
    const next = server.next()
    const block = Buffer.alloc(MEBIBYTE, 'audio')
    const frame = multipartBytes([filePart(''), fieldPart('model', 'm')])
    const at = frame.indexOf('\r\n\r\n') + 4
    const socket = server.send([CHUNKED_HEAD, chunk(frame.subarray(0, at))])
    await once(socket, 'connect')
    collectGarbage()
    const before = process.memoryUsage().arrayBuffers
    let peak = 0
    for (let sent = 0; sent < 25; sent += 1) {
      if (!socket.write(chunk(block))) await once(socket, 'drain')
      collectGarbage()
      peak = Math.max(peak, process.memoryUsage().arrayBuffers - before)
    }
    // The sender is in this process and holds copies of a block or two; a gateway that keeps the file reaches 25.
    expect(peak).toBeLessThan(15 * MEBIBYTE)
    socket.write(Buffer.concat([chunk(frame.subarray(at)), LAST_CHUNK]))
    const outcome = await next
    expect(outcome.file?.bytes.length).toBe(25 * MEBIBYTE)
    expect(outcome.file?.bytes.subarray(24 * MEBIBYTE).equals(block)).toBe(true)
  })
})

describe('an upload that goes wrong on its way', () => {
  it('is given up when the client goes away in the middle of the file', async () => {
    await start()
    const next = server.next()
    const whole = requestBytes(multipartBytes([filePart(Buffer.alloc(4 * MEBIBYTE))]), MULTIPART)
    const socket = server.send([])
    socket.write(whole.subarray(0, 3 * MEBIBYTE), () => socket.resetAndDestroy())
    expect((await next).error).toMatchObject({ kind: 'caller_left' })
  })

  it('is an internal error when the disk refuses', async () => {
    await start()
    await rm(server.directory, { recursive: true })
    const next = server.next()
    server.send([requestBytes(multipartBytes([filePart(Buffer.alloc(2 * MEBIBYTE))]), MULTIPART)])
    const { error } = await next
    expect(error).toMatchObject({ kind: 'internal', cause: { code: 'ENOENT' } })
    expect(error?.message).not.toContain(server.directory)
    server.leftovers = () => []
  })

  it('ends in a refusal, wherever it is cut off, and leaves nothing behind', async () => {
    await start({ bodyTimeoutMs: 5000 })
    const body = multipartBytes([fieldPart('model', 'm'), filePart(Buffer.alloc(3000, 'x')), fieldPart('p', 'q')])
    const whole = requestBytes(body, MULTIPART)
    const headBytes = whole.length - body.length
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: body.length - 5 }), fc.boolean(), async (keep, honest) => {
        const next = server.next()
        const cut = body.subarray(0, keep)
        // An honest sender announces what it sends; the other one promises more and closes.
        server.send(honest ? [requestBytes(cut, MULTIPART)] : [whole.subarray(0, headBytes + keep)], !honest)
        expect((await next).error?.kind).toBe(honest ? 'invalid_request' : 'caller_left')
        expect(server.leftovers()).toEqual([])
      }),
      { numRuns: 60 },
    )
  })

  it('never hangs or leaks on bytes changed at random', async () => {
    await start({ bodyTimeoutMs: 5000 })
    const body = multipartBytes([fieldPart('model', 'm'), filePart('abc'), fieldPart('p', 'q')])
    const change = fc.tuple(fc.nat(body.length - 1), fc.integer({ min: 0, max: 255 }))
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
        const next = server.next()
        const changed = Buffer.from(body)
        for (const [index, value] of changes) changed[index] = value
        server.send([requestBytes(changed, MULTIPART)])
        const { error } = await next
        expect(['invalid_request', undefined]).toContain(error?.kind)
        expect(server.leftovers()).toEqual([])
      }),
      { numRuns: 150 },
    )
  })
})

describe('the cut of the bytes', () => {
  it('does not change what is received', async () => {
    await start()
    const tricky = Buffer.from('\r\n--\r\n------spec\r\n------spec-boundar\r\n--')
    const body = multipartBytes([
      fieldPart('model', 'whisper-1'),
      { head: 'Content-Disposition: form-data; name=file; filename=dir\\a b.wav', content: tricky },
      fieldPart('include[]', ''),
    ])
    const cuts = fc.array(fc.nat(body.length), { maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(cuts, fc.boolean(), async (at, everyByte) => {
        const borders = everyByte ? Array.from(body.keys()) : [...at].sort((a, b) => a - b)
        const pieces = [0, ...borders].map((start, index) => body.subarray(start, borders[index] ?? body.length))
        const next = server.next()
        server.send([CHUNKED_HEAD, ...pieces.filter((piece) => piece.length > 0).map(chunk), LAST_CHUNK])
        const outcome = await next
        expect(outcome.error).toBeUndefined()
        expect(outcome.fields).toEqual([
          ['model', 'whisper-1'],
          ['include[]', ''],
        ])
        expect(outcome.file).toMatchObject({ filename: 'a b.wav', fieldIndex: 1 })
        expect(outcome.file?.bytes.equals(tricky)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })
})
