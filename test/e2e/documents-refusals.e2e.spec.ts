import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../support/audio-uploads.js'
import { type DocumentLab, documentPart, PARSE_PATH, startDocumentLab } from '../support/document-lab.js'
import { answerOf, PAGE } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'
import { sendRaw } from '../support/raw-http.js'
import { openUpload } from '../support/slow-uploads.js'
import { fieldPart, MULTIPART, multipartBytes } from '../support/upload-server.js'

const DOCUMENT_BYTES = 100_000
const FORM_OVERHEAD_BYTES = 2 * 1024 * 1024
const FILE = documentPart(PAGE, 'a.html', 'text/html')

let lab: DocumentLab

beforeAll(async () => {
  lab = await startDocumentLab({ sections: { limits: { documentBytes: DOCUMENT_BYTES } }, exempt: false })
})
beforeEach(() => {
  lab.target.answers.set('/', answerOf(PAGE))
})
afterEach(async () => {
  expect(lab.target.accepted).toBe(0)
  await eventually(() => spoolsLeft().length === 0)
})
afterAll(() => lab.close())

const json = (body: unknown) => lab.send({ body: JSON.stringify(body) })
const URL_GIVEN = { url: 'http://93.184.216.34/a' }

/** A request of the caller's fault: what the answer's message must say besides that. */
const bad = (body: { code: number; message: string; request_id?: string }, field: RegExp): void => {
  expect(body).toEqual({
    code: 1201,
    message: expect.stringMatching(field),
    request_id: expect.stringMatching(/^req_/),
  })
}

describe('a JSON request is refused, naming the field,', () => {
  it.each<readonly [string, unknown, RegExp]>([
    ['without a URL', {}, /'url'/],
    ['with null for a URL', { url: null, timeout: 1 }, /'url'/],
    ['with an empty URL', { url: '' }, /'url'/],
    ['with a blank URL', { url: ' \t' }, /'url'/],
    ['with a number for a URL', { url: 1 }, /'url'.*a number/],
    ['with a list for a URL', { url: ['http://93.184.216.34/'] }, /'url'/],
    ['with an object for a URL', { url: {} }, /'url'/],
    ['with a relative URL', { url: '/a' }, /'url'/],
    ['with a URL without a scheme', { url: 'example.org/a' }, /'url'/],
    ['with a URL without a host', { url: 'http://' }, /'url'/],
    ['with another scheme', { url: 'ftp://93.184.216.34/a' }, /'url'/],
    ['with a file for a URL', { url: 'file:///etc/passwd' }, /'url'/],
    ['with data for a URL', { url: 'data:text/html,a' }, /'url'/],
    ['with a user in the URL', { url: 'http://user@93.184.216.34/' }, /'url'/],
    ['with a password in the URL', { url: 'http://:canary@93.184.216.34/' }, /'url'/],
    ['with a line end in the URL', { url: 'http://93.184.216.34/a\nb' }, /'url'/],
    ['with a NUL in the URL', { url: 'http://93.184.216.34/\0' }, /'url'/],
    ['with a port that is none', { url: 'http://93.184.216.34:99999/' }, /'url'/],
    ['with the port of another protocol', { url: 'http://93.184.216.34:25/' }, /'url'/],
    ['with 8,193 characters', { url: `http://93.184.216.34/${'a'.repeat(8193 - 21)}` }, /'url'.*8192/],
    ['with a timeout of 0', { ...URL_GIVEN, timeout: 0 }, /'timeout'/],
    ['with a negative timeout', { ...URL_GIVEN, timeout: -1 }, /'timeout'/],
    ['with a text for a timeout', { ...URL_GIVEN, timeout: '20' }, /'timeout'/],
    ['with true for a timeout', { ...URL_GIVEN, timeout: true }, /'timeout'/],
    ['with a text for no_cache', { ...URL_GIVEN, no_cache: 'true' }, /'no_cache'/],
    ['with 1 for no_cache', { ...URL_GIVEN, no_cache: 1 }, /'no_cache'/],
    ['with a file as well', { ...URL_GIVEN, file: 'AAAA' }, /'url'.*'file'/],
  ])('%s', async (_name, body, field) => {
    const answer = await json(body)
    expect([answer.status, answer.headers['x-should-retry']]).toEqual([400, 'false'])
    bad(answer.body, field)
    expect(answer.text).not.toContain('canary')
  })

  it.each([
    ['1e999', /'timeout'/],
    ['1e-999', /'timeout'/],
  ])('with a timeout of %s', async (timeout, field) => {
    bad((await lab.send({ body: `{"url":"http://93.184.216.34/","timeout":${timeout}}` })).body, field)
  })

  it('that is not JSON, or no object', async () => {
    for (const body of ['', '{', '[]', '"http://93.184.216.34/"', 'null']) {
      expect((await lab.send({ body })).status).toBe(400)
    }
  })
})

describe('a form is refused', () => {
  it.each([
    ['with neither a file nor a URL', [fieldPart('timeout', '1')], /'file' or 'url'/],
    ['with both a file and a URL', [FILE, fieldPart('url', 'http://93.184.216.34/')], /'url'.*'file'/],
    ['with an empty file', [documentPart('', 'a.html', 'text/html')], /empty/],
    ['with a text for a file', [fieldPart('file', PAGE)], /"file"/],
    ['with a file under another name', [{ ...FILE, head: FILE.head.replace('"file"', '"document"') }], /file/],
    ['with two files', [FILE, FILE], /"file"/],
    ['with the same field twice', [FILE, fieldPart('timeout', '1'), fieldPart('timeout', '2')], /"timeout"/],
    ['with an empty timeout', [FILE, fieldPart('timeout', '')], /'timeout'/],
    ['with words for a timeout', [FILE, fieldPart('timeout', 'soon')], /'timeout'/],
    ['with a hexadecimal timeout', [FILE, fieldPart('timeout', '0x10')], /'timeout'/],
    ['with an infinite timeout', [FILE, fieldPart('timeout', 'Infinity')], /'timeout'/],
    ['with a timeout of 0', [FILE, fieldPart('timeout', '0.0')], /'timeout'/],
    ['with a negative timeout', [FILE, fieldPart('timeout', '-1')], /'timeout'/],
    ['with yes for no_cache', [FILE, fieldPart('no_cache', 'yes')], /'no_cache'/],
    ['with a URL that is none', [fieldPart('url', 'nothing')], /'url'/],
    ['with a URL to a private address', [fieldPart('url', 'http://10.0.0.1/')], /'url'/],
  ])('%s', async (_name, parts, words) => {
    const { status, body } = await lab.upload(parts)
    expect(status).toBe(400)
    bad(body, words)
  })

  it('that ends in the middle, or has no boundary', async () => {
    const whole = multipartBytes([FILE])
    const cut = await lab.send({ body: whole.subarray(0, whole.length - 20), headers: MULTIPART })
    bad(cut.body, /malformed/)
    bad((await lab.send({ body: whole, headers: { 'content-type': 'multipart/form-data' } })).body, /boundary/)
  })
})

describe('a document as the body is refused', () => {
  it.each([
    ['?timeout=0', /'timeout'/],
    ['?timeout=', /'timeout'/],
    ['?timeout=1&timeout=2', /'timeout'/],
    ['?no_cache=maybe', /'no_cache'/],
  ])('with %s', async (query, field) => {
    const { status, body } = await lab.send({
      path: PARSE_PATH + query,
      body: PAGE,
      headers: { 'content-type': 'text/html' },
    })
    expect(status).toBe(400)
    bad(body, field)
  })

  it('without a byte', async () => {
    bad((await lab.send({ body: '', headers: { 'content-type': 'application/pdf' } })).body, /empty/)
  })

  it('when it is compressed', async () => {
    const headers = { 'content-type': 'text/html', 'content-encoding': 'gzip' }
    expect((await lab.send({ body: PAGE, headers })).status).toBe(415)
  })

  it('when it is of no format that is read', async () => {
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
    const { status, body } = await lab.send({ body: png, headers: { 'content-type': 'application/octet-stream' } })
    expect([status, body.code]).toEqual([415, 1200])
  })
})

describe('a request of another type is refused', () => {
  it.each([
    undefined,
    '',
    'image/png',
    'application/x-www-form-urlencoded',
    'text/xml',
    'multipart/mixed; boundary=a',
    'application/json; charset=utf-16',
    'application/jsonp',
    'nonsense',
  ])('%s', async (type) => {
    const { status, body } = await lab.send({ body: PAGE, headers: { 'content-type': type } })
    expect([status, body.code]).toEqual([415, 1200])
  })
})

describe('a document over the limit is refused', () => {
  const html = (bytes: number): string => PAGE.padEnd(bytes, ' ')

  it('as the body, by its length, before it is sent', async () => {
    const headers = { 'content-type': 'text/html', expect: '100-continue' }
    const target = await openUpload(lab.gateway.url, DOCUMENT_BYTES + 1, headers, PARSE_PATH)
    await once(target.socket, 'data')
    expect(target.answer()).toMatch(/^HTTP\/1\.1 413 [^]*"code":1200/)
    target.socket.destroy()
  })

  it('in a form, by its length, before it is sent', async () => {
    const bytes = DOCUMENT_BYTES + FORM_OVERHEAD_BYTES + 1
    const target = await openUpload(lab.gateway.url, bytes, { expect: '100-continue' }, PARSE_PATH)
    await once(target.socket, 'data')
    expect(target.answer()).toMatch(/^HTTP\/1\.1 413 /)
    target.socket.destroy()
  })

  it.each([
    ['at the limit', DOCUMENT_BYTES, 200],
    ['one byte over it', DOCUMENT_BYTES + 1, 413],
  ])('as it is counted: %s', async (_name, bytes, expected) => {
    const chunked = { 'transfer-encoding': 'chunked' }
    const type = { 'content-type': 'text/html' }
    expect((await lab.send({ body: html(bytes), headers: { ...type, ...chunked } })).status).toBe(expected)
    expect((await lab.send({ body: html(bytes), headers: type })).status).toBe(expected)
    expect((await lab.upload([documentPart(html(bytes), 'a.html')])).status).toBe(expected)
    expect((await lab.upload([documentPart(html(bytes), 'a.html')], chunked)).status).toBe(expected)
  })
})

describe('the route', () => {
  it('is closed to those without a key of the gateway, before their document is read', async () => {
    for (const [authorization, code] of [
      [undefined, 1001],
      ['Bearer other', 1000],
      ['Basic a', 1002],
    ] as const) {
      const { status, body } = await lab.upload([FILE], { authorization })
      expect([status, body.code, body.request_id]).toEqual([401, code, expect.any(String)])
    }
  })

  it('knows no other method and no other path', async () => {
    const got = await sendRaw(lab.gateway.url, { method: 'GET', path: PARSE_PATH })
    expect([got.status, got.headers['allow'], JSON.parse(got.text)]).toEqual([
      405,
      'POST',
      expect.objectContaining({ code: 1202 }),
    ])
    const other = await sendRaw(lab.gateway.url, { path: '/v1/document/parses' })
    expect([other.status, JSON.parse(other.text)]).toEqual([404, expect.objectContaining({ code: 1203 })])
  })
})
