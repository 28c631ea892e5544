import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import fc from 'fast-check'
import { eventually } from '../../test/support/eventually.js'
import { heldBytes, heldBytesAtMost } from '../../test/support/held-memory.js'
import {
  BOUNDARY,
  fieldPart,
  filePart,
  MULTIPART,
  multipartBytes,
  type RawPart,
  requestBytes,
  spoolsLeft,
  useOwnSpoolFolder,
  startUploadServer,
  type UploadOutcome,
  type UploadServer,
} from '../../test/support/upload-server.js'
import type { SpooledFile } from '../core/spooled-file.js'
import { faultOfFieldName, type MultipartLimits, safeFileName } from './multipart.js'
import { spoolBody } from './spool-body.js'

const MEBIBYTE = 1_048_576

useOwnSpoolFolder()

describe('A multipart upload', () => {
  const CHUNKED_HEAD = Buffer.from(
    `POST / HTTP/1.1\r\nhost: x\r\ncontent-type: ${MULTIPART['content-type']}\r\ntransfer-encoding: chunked\r\n\r\n`,
  )
  const chunk = (bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  const LAST_CHUNK = Buffer.from('0\r\n\r\n')
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

    const MOST_HELD_BYTES = 15 * MEBIBYTE

    it('keeps its memory flat while 25 MiB come in and go to disk', async () => {
      await start()
      const next = server.next()
      const block = Buffer.alloc(MEBIBYTE, 'audio')
      const frame = multipartBytes([filePart(''), fieldPart('model', 'm')])
      const at = frame.indexOf('\r\n\r\n') + 4
      const socket = server.send([CHUNKED_HEAD, chunk(frame.subarray(0, at))])
      await once(socket, 'connect')
      const before = heldBytes()
      let peak = 0
      for (let sent = 0; sent < 25; sent += 1) {
        if (!socket.write(chunk(block))) await once(socket, 'drain')
        peak = Math.max(peak, heldBytesAtMost(before + MOST_HELD_BYTES) - before)
      }
      // The sender is in this process and holds copies of a block or two; a gateway that keeps the file reaches 25.
      expect(peak).toBeLessThan(MOST_HELD_BYTES)
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
})

describe('multipart', () => {
  let server: UploadServer
  beforeAll(async () => {
    server = await startUploadServer({ bodyBytes: 300_000, fileBytes: 200_000 })
  })
  afterEach(() => {
    expect(server.leftovers()).toEqual([])
  })
  afterAll(() => server.close())

  async function post(body: Buffer, headers: Readonly<Record<string, string>> = MULTIPART): Promise<UploadOutcome> {
    const next = server.next()
    const socket = server.send([requestBytes(body, headers)])
    const outcome = await next
    await once(socket, 'close')
    return outcome
  }

  const postParts = (...parts: readonly RawPart[]): Promise<UploadOutcome> => post(multipartBytes(parts))

  function expectRefusal(outcome: UploadOutcome, kind: string, param?: string): void {
    expect(outcome.error).toMatchObject({ kind })
    expect(outcome.error?.details.param).toBe(param)
  }

  describe('an upload in good order', () => {
    it('keeps the fields in the order received with their raw names, and the place of the file among them', async () => {
      const outcome = await postParts(
        fieldPart('model', 'whisper-1'),
        fieldPart('include[]', 'logprobs'),
        filePart('RIFF', 'a.wav'),
        fieldPart('include[]', 'other'),
        fieldPart('chunking_strategy[type]', 'server_vad'),
        fieldPart('prompt', ''),
      )
      expect(outcome.fields).toEqual([
        ['model', 'whisper-1'],
        ['include[]', 'logprobs'],
        ['include[]', 'other'],
        ['chunking_strategy[type]', 'server_vad'],
        ['prompt', ''],
      ])
      expect(outcome.file).toMatchObject({ filename: 'a.wav', contentType: 'audio/wav', fieldIndex: 2 })
      expect(outcome.file?.bytes.toString()).toBe('RIFF')
    })

    it.each([
      ['Content-Type: text/html; charset="gb2312"', 'text/html; charset="gb2312"'],
      ['content-TYPE:application/PDF ', 'application/PDF'],
      ['X-Other: a', ''],
    ])('says what its file is claimed to be as it was written, and nothing otherwise: %s', async (line, claimed) => {
      const head = 'Content-Disposition: form-data; name="file"; filename="a"'
      const outcome = await postParts(
        { head: 'Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain', content: 'filename="b"' },
        { head: `${head}\r\n${line}`, content: 'x' },
      )
      expect(outcome.file?.claimedType).toBe(claimed)
    })

    it('may have no file: what is missing is for the route to say', async () => {
      const outcome = await postParts(fieldPart('model', 'whisper-1'))
      expect(outcome).toMatchObject({ fields: [['model', 'whisper-1']] })
      expect(outcome.file).toBeUndefined()
    })

    it('reads unquoted names, filename* and a path in the file name, as .NET clients write them', async () => {
      const outcome = await postParts(
        { head: 'Content-Disposition: form-data; name=model', content: 'whisper-1' },
        {
          head: "Content-Disposition: form-data; name=file; filename=Assets\\a.mp3; filename*=utf-8''Assets%5C%C3%BC.mp3",
          content: 'x',
        },
      )
      expect(outcome.fields).toEqual([['model', 'whisper-1']])
      expect(outcome.file?.filename).toBe('ü.mp3')
    })

    it.each([
      ['filename=Assets\\a b.mp3', 'a b.mp3'],
      ['filename="C:\\Assets\\a.mp3"', 'a.mp3'],
      ['filename=/tmp/a.mp3 ', 'a.mp3'],
      ['filename="a; filename=b c.mp3"', 'a; filename=b c.mp3'],
    ])('reads a file name written as %s', async (parameter, filename) => {
      const head = `Content-Type: audio/mpeg\r\nContent-Disposition: form-data; name=file; ${parameter}`
      const outcome = await postParts({ head, content: 'x' }, fieldPart('model', 'm'))
      expect(outcome.file).toMatchObject({ filename, contentType: 'audio/mpeg' })
      expect(outcome.fields).toEqual([['model', 'm']])
    })

    it('reads UTF-8 in names and values', async () => {
      const outcome = await postParts(fieldPart('prompt', 'Grüße 🎙'), filePart('x', 'Grüße.wav'))
      expect(outcome.fields).toEqual([['prompt', 'Grüße 🎙']])
      expect(outcome.file?.filename).toBe('Grüße.wav')
    })

    it('does not stumble over bytes that are not UTF-8', async () => {
      const outcome = await postParts(
        { ...fieldPart('prompt', ''), content: Buffer.from([0xff, 0xfe, 0x41]) },
        filePart('x'),
      )
      expect(outcome.fields).toEqual([['prompt', '\ufffd\ufffdA']])
    })

    it('strips line ends from the file name', async () => {
      const outcome = await postParts(filePart('x', 'a%0D%0AX-Evil: 1.wav'))
      expect(outcome.file?.filename).toBe('aX-Evil: 1.wav')
    })

    it('takes an empty file, a preamble, an epilogue and a quoted boundary', async () => {
      const body = Buffer.concat([
        Buffer.from('preamble\r\n'),
        multipartBytes([filePart('')]),
        Buffer.from(`--${BOUNDARY}\r\n`),
      ])
      const outcome = await post(body, { 'content-type': `Multipart/Form-Data; charset=utf-8; Boundary="${BOUNDARY}"` })
      expect(outcome.error).toBeUndefined()
      expect(outcome.file?.bytes.length).toBe(0)
    })

    it('ignores parts after the end boundary', async () => {
      const body = multipartBytes([filePart('x'), fieldPart('model', 'm')])
      const outcome = await post(
        Buffer.concat([body, multipartBytes([fieldPart('model', 'b'), fieldPart('model', 'c')])]),
      )
      expect(outcome.error).toBeUndefined()
      expect(outcome.fields).toEqual([['model', 'm']])
    })

    it.each([
      ['before a part', `\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="prompt"\r\n\r\np`],
      ['before the end', ''],
    ])('takes a boundary written twice %s: no part lies between', async (_place, next) => {
      const field = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="model"\r\n\r\nm`
      const outcome = await post(Buffer.from(`${field}\r\n--${BOUNDARY}${next}\r\n--${BOUNDARY}--\r\n`))
      expect(outcome.error).toBeUndefined()
      expect(outcome.fields).toEqual(
        next === ''
          ? [['model', 'm']]
          : [
              ['model', 'm'],
              ['prompt', 'p'],
            ],
      )
    })

    it('takes a boundary that its sender should have quoted', async () => {
      const boundary = '----=_Part_1_12.34'
      const body = Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--${boundary}--\r\n`,
      )
      const outcome = await post(body, { 'content-type': `multipart/form-data; boundary=${boundary}` })
      expect(outcome.fields).toEqual([['model', 'm']])
    })

    it('keeps bytes that look like the boundary inside the file', async () => {
      const content = Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}\r\n-- --\r\n\r\n--`)
      const outcome = await postParts(filePart(content), fieldPart('model', 'm'))
      expect(outcome.file?.bytes.equals(content)).toBe(true)
      expect(outcome.fields).toEqual([['model', 'm']])
    })

    it('accepts a file of exactly the limit', async () => {
      const outcome = await postParts(filePart(Buffer.alloc(200_000, 7)))
      expect(outcome.file?.bytes.length).toBe(200_000)
    })
  })

  describe('parts that are refused', () => {
    it.each<[string, readonly RawPart[], string]>([
      ['a second file', [filePart('x'), filePart('y')], 'file'],
      ['a file under another name', [filePart('x', 'a.wav', 'audio')], 'audio'],
      ['a file under another name after the file', [filePart('x'), filePart('y', 'b.wav', 'audio')], 'audio'],
      ['a file list', [filePart('x', 'a.wav', 'file[]')], 'file[]'],
      ['the file as text', [fieldPart('file', 'RIFF')], 'file'],
      ['a file without a name', [filePart('x', '')], 'file'],
      ['a file named by a folder', [filePart('x', 'folder/')], 'file'],
      [
        'a file without a filename',
        [
          {
            head: 'Content-Disposition: form-data; name="file"\r\nContent-Type: application/octet-stream',
            content: 'x',
          },
        ],
        'file',
      ],
      ['two models', [fieldPart('model', 'a'), filePart('x'), fieldPart('model', 'b')], 'model'],
      ['a model list', [fieldPart('model[]', 'a')], 'model[]'],
      ['__proto__', [fieldPart('__proto__', 'a')], '__proto__'],
      ['a nested prototype', [fieldPart('a[constructor][prototype]', 'a')], 'a[constructor][prototype]'],
      ['a huge array index', [fieldPart('a[4294967294]', '1'), fieldPart('a[b]', '2')], 'a[4294967294]'],
      ['deep nesting', [fieldPart('a[b][c][d][e][f]', '1')], 'a[b][c][d][e][f]'],
      ['a long name', [fieldPart('n'.repeat(101), '1')], 'n'.repeat(101)],
      ['a long value', [fieldPart('prompt', 'p'.repeat(65_537))], 'prompt'],
      [
        'an unknown charset',
        [
          {
            head: 'Content-Disposition: form-data; name="p"\r\nContent-Type: text/plain; charset=x-none',
            content: 'é',
          },
        ],
        'p',
      ],
    ])('%s', async (_case, parts, param) => {
      expectRefusal(await postParts(...parts), 'invalid_request', param)
    })

    it.each([
      ['a file under another name', [filePart('x', 'a.wav', 'audio')], 'file part "audio"'],
      ['one after the file', [filePart('x'), filePart('y', 'b.wav', 'audio')], 'file part "audio"'],
      ['a second file', [filePart('x'), filePart('y')], 'a second one'],
    ])('%s is told which one is accepted', async (_case, parts, got) => {
      const { error } = await postParts(...parts)
      expect(error?.message).toBe(`Only one file part, named "file", is accepted; got ${got}.`)
    })

    it('a file sent as text is told that a file part with a filename is expected', async () => {
      const outcome = await postParts(fieldPart('file', 'RIFF'))
      expect(outcome.error?.message).toBe('Expected "file" to be a file part with a filename.')
    })

    it('more than 64 fields', async () => {
      const fields = Array.from({ length: 64 }, (_, index) => fieldPart(`f${index}`, 'v'))
      expect((await postParts(...fields, filePart('x'))).fields.length).toBe(64)
      expectRefusal(await postParts(...fields, fieldPart('one-more', 'v')), 'invalid_request')
    })
  })

  describe('bodies that are refused', () => {
    const good = multipartBytes([fieldPart('model', 'm'), filePart('x')])

    it.each([
      'application/json',
      'multipart/mixed; boundary=x',
      'multipart/form-data-x; boundary=x',
      'application/x-www-form-urlencoded',
      '',
    ])('another media type: %j', async (type) => {
      expectRefusal(await post(good, type === '' ? {} : { 'content-type': type }), 'unsupported_media_type')
    })

    it('a compressed body', async () => {
      expectRefusal(await post(good, { ...MULTIPART, 'content-encoding': 'gzip' }), 'unsupported_media_type')
    })

    it.each(['', '; boundary=', '; boundary=""', `; boundary=${'b'.repeat(71)}`, '; boundary="a\tb"', '; boundary=ä'])(
      'an unusable boundary: %j',
      async (parameter) => {
        expectRefusal(await post(good, { 'content-type': `multipart/form-data${parameter}` }), 'invalid_request')
      },
    )

    const field = fieldPart('model', 'm')
    it.each<[string, Buffer]>([
      ['nothing at all', Buffer.alloc(0)],
      ['no boundary in it', Buffer.from('hello')],
      ['another boundary', Buffer.from(good.toString('latin1').replaceAll(BOUNDARY, 'other'), 'latin1')],
      ['no end boundary', good.subarray(0, good.length - 4)],
      ['an end inside the file', good.subarray(0, good.indexOf('\r\nx') + 3)],
      ['an end inside the part headers', good.subarray(0, good.indexOf('filename'))],
      ['a header line without a colon', multipartBytes([{ head: 'Content-Disposition form-data', content: 'x' }])],
      ['no header lines', Buffer.from(`--${BOUNDARY}\r\n\r\nx\r\n--${BOUNDARY}--\r\n`)],
      ['no Content-Disposition', multipartBytes([field, { head: 'Content-Type: text/plain', content: 'x' }])],
      [
        'another disposition',
        multipartBytes([field, { head: 'Content-Disposition: attachment; name="a"', content: 'x' }]),
      ],
      [
        'a broken disposition',
        multipartBytes([field, { head: 'Content-Disposition: form-data; name="a', content: 'x' }]),
      ],
      ['a part without a name', multipartBytes([field, { head: 'Content-Disposition: form-data', content: 'x' }])],
      ['a boundary that goes on', multipartBytes([filePart(`a\r\n--${BOUNDARY}more\r\nb`), field])],
      ['a head that runs into the next part', Buffer.from(good.toString().replace('"model"\r\n\r\nm', '"model"'))],
      ['part headers without end', multipartBytes([{ head: `X: ${'x'.repeat(20_000)}`, content: 'x' }])],
    ])('%s', async (_case, body) => {
      expectRefusal(await post(body), 'invalid_request')
    })
  })
})

const NONE: ReadonlySet<string> = new Set()

describe('safeFileName', () => {
  it.each([
    ['a.wav', 'a.wav'],
    ['/etc/passwd.mp3', 'passwd.mp3'],
    ['Assets\\speech\\a.mp3', 'a.mp3'],
    ['../../a.wav', 'a.wav'],
    ['a%0D%0AX-Evil: 1.wav', 'aX-Evil: 1.wav'],
    ['a\r\n\u0000b.wav', 'ab.wav'],
    ['gpj.\u202Evaw', 'gpj.vaw'],
    ['Über uns 🎙.flac', 'Über uns 🎙.flac'],
    ['%0d%0a', ''],
    ['dir/', ''],
  ])('makes %j into %j', (raw, safe) => {
    expect(safeFileName(raw)).toBe(safe)
  })

  it('cuts a long name to 200 characters and keeps its extension', () => {
    expect(safeFileName(`${'é'.repeat(5000)}.flac`)).toBe(`${'é'.repeat(195)}.flac`)
    expect(safeFileName('🎙'.repeat(5000))).toBe('🎙'.repeat(200))
  })
})

describe('faultOfFieldName', () => {
  it.each(['include[]', 'chunking_strategy[type]', 'model', 'known_speaker_names[0]', 'modelling[x]', 'x'.repeat(100)])(
    'accepts %s',
    (name) => {
      expect(faultOfFieldName(name, NONE)).toBeUndefined()
    },
  )

  it.each([
    'file',
    'file[]',
    'model[]',
    'model[0]',
    '__proto__',
    'a[__proto__]',
    'a[b][constructor]',
    'prototype[x]',
    'é'.repeat(51),
  ])('refuses %s and names it', (name) => {
    expect(faultOfFieldName(name, NONE)).toMatchObject({ kind: 'invalid_request', details: { param: name } })
  })

  it('lets only names ending in [] come again', () => {
    expect(faultOfFieldName('include[]', new Set(['include[]']))).toBeUndefined()
    expect(faultOfFieldName('model', new Set(['model']))?.details.param).toBe('model')
    expect(faultOfFieldName('a[b]', new Set(['a[b]']))?.details.param).toBe('a[b]')
  })
})

describe('A body that is received as a file', () => {
  let close: () => Promise<void>
  let port: number
  let outcomes: Promise<SpooledFile>[]
  let requests: IncomingMessage[]
  let sockets: Socket[]
  let limits: { maximumBytes: number; timeoutMs: number }

  beforeEach(async () => {
    outcomes = []
    requests = []
    sockets = []
    limits = { maximumBytes: 3 * MEBIBYTE, timeoutMs: 20_000 }
    const server = createServer((request, response) => {
      requests.push(request)
      const outcome = spoolBody(request, limits)
      outcomes.push(outcome)
      outcome.catch(() => undefined).finally(() => response.end())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
    close = async () => {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  })
  afterEach(async () => {
    await close()
    expect(spoolsLeft()).toEqual([])
  })

  /** Sends a head and these pieces; the socket stays open. */
  async function send(framing: string, ...pieces: readonly (Buffer | string)[]): Promise<Socket> {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    sockets.push(socket.resume())
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${framing}\r\n\r\n`)
    for (const piece of pieces) socket.write(piece)
    await eventually(() => outcomes.length > 0)
    return socket
  }

  async function contentOf(spool: SpooledFile): Promise<Buffer> {
    const chunks: Buffer[] = []
    for await (const chunk of spool.createReadStream() as AsyncIterable<Buffer>) chunks.push(chunk)
    await spool.remove()
    return Buffer.concat(chunks)
  }

  const bytes = (length: number): Buffer => Buffer.from(Uint8Array.from({ length }, (_, at) => at % 251))

  it.each([0, 1, 65_536, MEBIBYTE, 3 * MEBIBYTE])('arrives as it was sent: %i bytes', async (length) => {
    const body = bytes(length)
    await send(`content-length: ${length}`, body)
    expect((await contentOf(await (outcomes[0] as Promise<SpooledFile>))).equals(body)).toBe(true)
  })

  it('arrives in pieces as well', async () => {
    await send('transfer-encoding: chunked', '3\r\nabc\r\n', '2\r\nde\r\n', '0\r\n\r\n')
    expect((await contentOf(await (outcomes[0] as Promise<SpooledFile>))).toString()).toBe('abcde')
  })

  it('is refused as soon as it is too large, and nothing of it stays', async () => {
    await send('transfer-encoding: chunked', '300001\r\n', bytes(3 * MEBIBYTE + 1))
    await expect(outcomes[0]).rejects.toMatchObject({ kind: 'payload_too_large' })
    expect(requests[0]?.destroyed).toBe(false)
  })

  it('is refused when it takes too long, and nothing of it stays', async () => {
    limits = { ...limits, timeoutMs: 50 }
    await send(`content-length: ${2 * MEBIBYTE}`, bytes(2 * MEBIBYTE - 1))
    await expect(outcomes[0]).rejects.toMatchObject({ kind: 'request_timeout' })
  })

  it('ends with a caller who leaves, and nothing of it stays', async () => {
    const socket = await send(`content-length: ${3 * MEBIBYTE}`, bytes(2 * MEBIBYTE))
    if (process.platform === 'linux') await eventually(() => spoolsLeft().length === 1)
    socket.destroy()
    await expect(outcomes[0]).rejects.toMatchObject({ kind: 'caller_left' })
  })
})
