import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import {
  BOUNDARY,
  fieldPart,
  filePart,
  MULTIPART,
  multipartBytes,
  type RawPart,
  requestBytes,
  startUploadServer,
  type UploadOutcome,
  type UploadServer,
} from '../../test/support/upload-server.js'

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
      [{ head: 'Content-Disposition: form-data; name="file"\r\nContent-Type: application/octet-stream', content: 'x' }],
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
      [{ head: 'Content-Disposition: form-data; name="p"\r\nContent-Type: text/plain; charset=x-none', content: 'é' }],
      'p',
    ],
  ])('%s', async (_case, parts, param) => {
    expectRefusal(await postParts(...parts), 'invalid_request', param)
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
