import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals'
import type { OpenApiDocument } from '../../src/app/openapi.js'
import {
  type DocumentLab,
  documentPart,
  NEWER,
  OTHER_CALLER,
  PARSE_PATH,
  seenOf,
  startDocumentCacheLab,
  startDocumentLab,
} from '../support/document-lab.js'
import {
  type AnswerFacts,
  answerOf,
  encodedAs,
  GZIPPED_PAGE,
  PAGE,
  PAGE_HEAD,
  pageOf,
  redirectTo,
  type TargetAnswer,
} from '../support/document-stand-ins.js'
import { ABORT_LIMIT_MS, eventually, promised } from '../support/eventually.js'
import { sendRaw } from '../support/gateway.js'
import { startTlsProxy, type TlsProxy } from '../support/proxies.js'
import {
  FORBIDDEN_URLS,
  type PublicEdge,
  startPublicEdge,
  startUntouchedServer,
  type UntouchedServer,
  unusedPort,
} from '../support/raw-upstream.js'
import { openUpload } from '../support/slow-uploads.js'
import { fieldPart, MULTIPART, multipartBytes, spoolsLeft } from '../support/upload-server.js'

describe('documents', () => {
  const HTML = 'text/html; charset=utf-8'

  let lab: DocumentLab

  beforeAll(async () => {
    lab = await startDocumentLab()
  })
  afterEach(async () => {
    lab.target.reset()
    await eventually(() => spoolsLeft().length === 0)
  })
  afterAll(() => lab.close())

  describe('the result of a URL', () => {
    it('has the members of the specification in its order, and behind them the language and warnings, and no others', async () => {
      lab.target.answers.set('/post?a=b', answerOf(PAGE, { headers: { 'content-type': 'text/html;charset=UTF-8' } }))
      const { status, headers, text, body } = await lab.parse('/post?a=b', { timeout: 20 })
      expect([status, headers['content-type']]).toEqual([200, 'application/json'])
      expect(headers['x-request-id']).toMatch(/^req_/)
      expect(body).toEqual({
        code: 0,
        message: 'success',
        data: {
          metadata: {
            url: lab.target.url('/post?a=b'),
            title: 'Kettles',
            description: '',
            keywords: '',
            siteName: '',
            favicon: lab.target.url('/favicon.ico'),
            statusCode: 200,
            contentType: 'text/html;charset=UTF-8',
            cached: 0,
            language: '',
            warnings: [],
          },
          html: expect.stringContaining('A kettle is a vessel'),
          markdown: expect.stringMatching(/^# Kettles\n\nA kettle is a vessel/),
        },
      })
      expect(
        [...text.matchAll(/"(code|message|data|metadata|url|cached|html|markdown)":/g)].map(([, key]) => key),
      ).toEqual(['code', 'message', 'data', 'metadata', 'url', 'cached', 'html', 'markdown'])
    })

    it('was asked for under our own name, and with nothing of the caller’s', async () => {
      lab.target.answers.set('/headers', answerOf(PAGE))
      await lab.parse('/headers', {}, { cookie: 'a=canary', referer: 'http://canary.test/', 'accept-language': 'xx' })
      const [line, ...headers] = lab.target.heads[0]?.split('\r\n') ?? []
      expect(line).toBe('GET /headers HTTP/1.1')
      expect(headers.map((header) => header.split(':', 1)[0]).sort()).toEqual(
        ['accept', 'accept-encoding', 'connection', 'host', 'user-agent'].sort(),
      )
      expect(headers).toContain('accept-encoding: gzip, br')
      expect(headers.join()).toMatch(/user-agent: MultiModelGateway\/\d+\.\d+\.\d+/)
    })

    it('names the URL after all redirects, and reads links against it', async () => {
      lab.target.answers.set('/1', redirectTo('/2', '301 Moved'))
      lab.target.answers.set('/2', redirectTo('3?x=y#part', '303 See Other'))
      lab.target.answers.set('/3?x=y', answerOf(PAGE.replace('water', '<a href="x">water</a>')))
      const { data } = (await lab.parse('/1')).body
      expect(data.metadata).toMatchObject({ url: lab.target.url('/3?x=y#part'), statusCode: 200 })
      expect(data.html).toContain(`<a href="${lab.target.url('/x')}">water</a>`)
      expect(data.markdown).toContain(`[water](${lab.target.url('/x')})`)
    })

    it('is the same after five redirects, and a failure of its server after six', async () => {
      for (let hop = 1; hop <= 6; hop++) lab.target.answers.set(`/hop${hop}`, redirectTo(`/hop${hop + 1}`))
      lab.target.answers.set('/hop7', answerOf(PAGE))
      expect((await lab.parse('/hop2')).body.data.metadata.statusCode).toBe(200)
      const { status, body } = await lab.parse('/hop1')
      expect([status, body.code, body.message]).toEqual([502, 5000, 'The URL of the document redirects too often.'])
    })

    it.each([404, 410, 403, 500, 503, 200, 203])('of status %i is a success that says so', async (code) => {
      lab.target.answers.set('/status', answerOf(PAGE, { status: `${code} Whatever` }))
      const { status, body } = await lab.parse('/status', { no_cache: true })
      expect([status, body.code, body.data.metadata.statusCode]).toEqual([200, 0, code])
      expect(body.data.markdown).toContain('A kettle')
    })

    it.each(['204 No Content', '404 Not Found', '200 OK', '500 Oops'])(
      'without a body is a success without content: %s',
      async (line) => {
        const length = line.startsWith('204') ? { 'content-length': undefined } : {}
        lab.target.answers.set(
          '/empty',
          answerOf('', { status: line, headers: { 'content-type': undefined, ...length } }),
        )
        const { status, body } = await lab.parse('/empty', { no_cache: true })
        expect([status, body.code]).toEqual([200, 0])
        expect(body.data).toMatchObject({
          metadata: { statusCode: Number.parseInt(line, 10), contentType: '', title: '' },
          html: '',
          markdown: '',
        })
      },
    )

    it('of an error in a format of no document is a success without content', async () => {
      const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
      lab.target.answers.set(
        '/picture',
        answerOf(png, { status: '404 Gone', headers: { 'content-type': 'image/png' } }),
      )
      const { body } = await lab.parse('/picture')
      expect(body.data).toMatchObject({ metadata: { statusCode: 404, contentType: 'image/png' }, markdown: '' })
    })

    it('of no format that is read is refused, when its server thinks it is fine', async () => {
      const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
      lab.target.answers.set('/picture', answerOf(png, { headers: { 'content-type': 'text/html' } }))
      const { status, body } = await lab.parse('/picture')
      expect([status, body.code, body.request_id]).toEqual([415, 1200, expect.any(String)])
    })

    it('says what was found where the server does not say what it sends', async () => {
      lab.target.answers.set('/untyped', answerOf(PAGE, { headers: { 'content-type': undefined } }))
      expect((await lab.parse('/untyped')).body.data.metadata.contentType).toBe('text/html')
    })

    it.each<readonly [string, (body: string) => Buffer]>([
      ['gzip', gzipSync],
      ['x-gzip', gzipSync],
      ['GZip', gzipSync],
      ['br', brotliCompressSync],
      ['deflate', deflateSync],
      ['deflate', deflateRawSync],
      ['identity', (body) => Buffer.from(body)],
      ['', (body) => Buffer.from(body)],
    ])('is read through the content encoding %j', async (encoding, encode) => {
      lab.target.answers.set('/encoded', answerOf(encode(PAGE), { headers: { 'content-encoding': encoding } }))
      const { status, body } = await lab.parse('/encoded', { no_cache: true })
      expect([status, body.data.metadata.contentType]).toEqual([200, HTML])
      expect(body.data.markdown).toContain('A kettle is a vessel')
    })

    it('arrives in pieces of any size', async () => {
      lab.target.answers.set('/pieces', (socket) => {
        socket.setNoDelay()
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: chunked\r\n\r\n')
        for (const letter of PAGE) socket.write(`1\r\n${letter}\r\n`)
        socket.write('0\r\n\r\n')
      })
      expect((await lab.parse('/pieces')).body.data.markdown).toContain('A kettle is a vessel')
    })

    it('is one line in the log, with what was read', async () => {
      lab.target.answers.set('/logged', answerOf(PAGE))
      const { headers } = await lab.parse('/logged', {}, { 'x-request-id': 'documents-log-line' })
      expect(headers['x-request-id']).toBe('documents-log-line')
      const line = await lab.gateway.logLine('documents-log-line')
      expect(line).toMatchObject({
        route: '/v1/document/parse',
        keyId: 'test',
        status: 200,
        upstreamStatus: 200,
        usage: { units: { documents: 1, pages: 1 }, estimated: false },
      })
      expect(line['upstreamMs']).toBeGreaterThan(0)
      expect(JSON.stringify(line)).not.toContain('127.0.0.1')
    })
  })
})

describe('documents files', () => {
  let lab: DocumentLab

  beforeAll(async () => {
    lab = await startDocumentLab()
  })
  afterEach(async () => {
    lab.target.reset()
    await eventually(() => spoolsLeft().length === 0)
  })
  afterAll(() => lab.close())

  describe('the result of a file', () => {
    const expected = (contentType: string) => ({
      metadata: { url: '', title: 'Kettles', statusCode: 200, contentType, cached: 0 },
      markdown: expect.stringMatching(/^# Kettles\n\nA kettle is a vessel/),
    })

    it.each([
      ['text/html; charset=utf-8', 'text/html; charset=utf-8'],
      ['application/octet-stream', 'application/octet-stream'],
      [undefined, 'text/html'],
    ])('in a form shows the type of its part as it was written: %s', async (type, shown) => {
      const { status, body } = await lab.upload([documentPart(PAGE, 'a.html', type), fieldPart('no_cache', 'true')])
      expect([status, body.code]).toEqual([200, 0])
      expect(body.data).toMatchObject(expected(shown))
    })

    it('may come behind the fields of its form', async () => {
      const parts = [fieldPart('timeout', '20'), fieldPart('no_cache', '1'), documentPart(PAGE, 'a.html', 'text/html')]
      expect((await lab.upload(parts)).body.data).toMatchObject(expected('text/html'))
    })

    it.each([
      'text/html',
      'application/xhtml+xml',
      'text/html; charset=utf-8',
      'application/octet-stream',
      'Text/HTML',
    ])('that is the body itself is read as what it is: %s', async (type) => {
      const path = '/v1/document/parse?timeout=20&no_cache=true'
      const { status, body } = await lab.send({ path, body: PAGE, headers: { 'content-type': type } })
      expect(status).toBe(200)
      expect(body.data).toMatchObject(expected(type))
    })

    it('is what its bytes say, whatever is claimed about it', async () => {
      const { body } = await lab.send({ body: PAGE, headers: { 'content-type': 'application/pdf' } })
      expect(body.data.markdown).toContain('# Kettles')
    })

    it('may come without a length, and after asking whether it may', async () => {
      const headers = { 'content-type': 'text/html', 'transfer-encoding': 'chunked', expect: '100-continue' }
      const { body } = await lab.send({ path: '/v1/document/parse?no_cache=1', body: PAGE, headers })
      expect(body.data.markdown).toContain('# Kettles')
    })
  })

  describe('a URL in a form', () => {
    it('means the same as one in JSON', async () => {
      lab.target.answers.set('/form', answerOf(PAGE))
      const { body } = await lab.upload([fieldPart('url', lab.target.url('/form'))])
      expect(body.data.metadata).toMatchObject({ url: lab.target.url('/form'), title: 'Kettles' })
    })
  })
})

describe('documents uploads', () => {
  const MEGABYTE = 1_000_000
  const PIECE_BYTES = 65_536

  let lab: DocumentLab

  beforeAll(async () => {
    lab = await startDocumentLab()
  })
  afterEach(() => eventually(() => spoolsLeft().length === 0))
  afterAll(() => lab.close())

  const FORM = multipartBytes([documentPart(PAGE.padEnd(8 * MEGABYTE, ' '), 'a.html'), fieldPart('timeout', '20')])
  const BODY = Buffer.from(PAGE.padEnd(8 * MEGABYTE, ' '))
  const HTML = { 'content-type': 'text/html' }

  describe.each([
    ['in a form', FORM, {}],
    ['as the body', BODY, HTML],
  ] as const)('a file %s', (_name, bytes, headers) => {
    it.each([20_000, 4 * MEGABYTE])('whose caller leaves after %i bytes leaves nothing behind', async (sentBytes) => {
      const requestId = `documents-upload-${sentBytes}-${bytes.length}`
      const target = await openUpload(
        lab.gateway.url,
        bytes.length,
        { ...headers, 'x-request-id': requestId },
        PARSE_PATH,
      )
      for (let at = 0; at < sentBytes; at += PIECE_BYTES) await target.send(bytes.subarray(at, at + PIECE_BYTES))
      if (sentBytes > MEGABYTE && process.platform === 'linux') await eventually(() => spoolsLeft().length === 1)
      target.socket.destroy()
      expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499, attempts: 0 })
    })

    it('that arrives in pieces of a few bytes arrives whole', async () => {
      const small = bytes === FORM ? multipartBytes([documentPart(PAGE, 'a.html')]) : Buffer.from(PAGE)
      const target = await openUpload(lab.gateway.url, small.length, { ...headers, connection: 'close' }, PARSE_PATH)
      target.socket.setNoDelay()
      for (let at = 0; at < small.length; at += 13) await target.send(small.subarray(at, at + 13))
      await target.closed
      expect(target.answer()).toMatch(/^HTTP\/1\.1 200 [^]*"markdown":"# Kettles/)
    })

    it('that is asked for permission first is sent when it gets that', async () => {
      const asking = { ...headers, expect: '100-continue', connection: 'close' }
      const target = await openUpload(lab.gateway.url, bytes.length, asking, PARSE_PATH)
      await once(target.socket, 'data')
      expect(target.answer()).toMatch(/^HTTP\/1\.1 100 /)
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) await target.send(bytes.subarray(at, at + PIECE_BYTES))
      await target.closed
      expect(target.answer()).toMatch(/HTTP\/1\.1 200 [^]*"markdown":"# Kettles/)
    })

    it('that needs not be read, because that was done before, leaves nothing behind either', async () => {
      const type = bytes === FORM ? MULTIPART : HTML
      await lab.send({ body: bytes, headers: type })
      expect((await lab.send({ body: bytes, headers: type })).body.data.metadata.cached).toBe(1)
    })
  })

  describe('the documentation', () => {
    it('shows the three forms of the request, and the result of the specification', async () => {
      const document = (await (await fetch(`${lab.gateway.url}/docs/openapi.json`)).json()) as OpenApiDocument
      const operation = document.paths[PARSE_PATH]?.['post']
      const { requestBody } = operation as unknown as { requestBody: { content: Record<string, { schema: object }> } }
      const { content } = requestBody
      expect(content['application/json']?.schema).toEqual({ $ref: '#/components/schemas/DocumentUrl' })
      expect(content['multipart/form-data']?.schema).toEqual({
        $ref: '#/components/schemas/DocumentForm',
      })
      expect(content['application/pdf']?.schema).toMatchObject({ type: 'string', format: 'binary' })
      expect(Object.keys(operation?.responses ?? {})).toEqual([
        '200',
        '400',
        '401',
        '405',
        '408',
        '413',
        '415',
        '422',
        '429',
        '431',
        '500',
        '502',
        '503',
        '504',
      ])
      expect(document.components.schemas['DocumentUrl']).toMatchObject({ required: ['url'] })
    })
  })
})

describe('documents refusals', () => {
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
      ['1e-242', /'timeout'/],
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
      ['with a timeout of next to nothing', [FILE, fieldPart('timeout', '1e-242')], /'timeout'/],
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
})

describe('documents cache', () => {
  let lab: DocumentLab

  beforeAll(async () => {
    lab = await startDocumentCacheLab()
  })
  afterEach(async () => {
    lab.target.reset()
    await eventually(() => spoolsLeft().length === 0)
  })
  afterAll(() => lab.close())

  let pages = 0
  /** A page that was not requested before. */
  function newPage(body = PAGE, facts: AnswerFacts = {}): string {
    const path = `/page-${++pages}`
    lab.target.answers.set(path, answerOf(body, facts))
    return path
  }

  describe('a page that was read before', () => {
    it('is served again, to every caller, without a request to its server', async () => {
      const path = newPage()
      const first = await lab.parse(path)
      const second = await lab.parse(path)
      expect(first.body.data.metadata.cached).toBe(0)
      expect(second.body.data.metadata.cached).toBe(1)
      expect(second.text).toBe(first.text.replace('"cached":0', '"cached":1'))
      expect(await seenOf(lab.parse(path, {}, OTHER_CALLER))).toEqual([1, 'Kettles'])
      expect(lab.target.heads).toHaveLength(1)
    })

    it('is the same page under any spelling of its URL, and whatever place on it is meant', async () => {
      const path = newPage()
      const url = lab.target.url(path)
      await lab.parse(path)
      for (const same of [
        `${url}#part`,
        url.replace('http', 'HTTP'),
        ` ${url}`,
        `${url}#`,
        url.replace('127.0.0.1', '127.1'),
      ]) {
        expect(await seenOf(lab.parse(same))).toEqual([1, 'Kettles'])
      }
      for (const other of [`${url}#/route`, `${url}#!route`]) {
        expect(await seenOf(lab.parse(other))).toEqual([0, 'Kettles'])
        expect(await seenOf(lab.parse(other))).toEqual([1, 'Kettles'])
      }
      expect(lab.target.heads).toHaveLength(3)
    })

    it.each([{ no_cache: true }, { 'cache-control': 'no-cache' }, { 'cache-control': 'max-age=0, No-Cache' }])(
      'is parsed again for a request with no_cache, and then served to the others: %j',
      async (wish) => {
        const path = newPage()
        await lab.parse(path)
        lab.target.answers.set(path, answerOf(NEWER))
        expect(await seenOf(lab.parse(path))).toEqual([1, 'Kettles'])
        const anew = 'no_cache' in wish ? lab.parse(path, wish) : lab.parse(path, {}, wish)
        expect(await seenOf(anew)).toEqual([0, 'Teapots'])
        expect(await seenOf(lab.parse(path))).toEqual([1, 'Teapots'])
      },
    )

    it('is not given again once its server said that it must not be', async () => {
      const path = newPage()
      await lab.parse(path)
      lab.target.answers.set(path, answerOf(NEWER, { headers: { 'cache-control': 'no-store' } }))
      expect(await seenOf(lab.parse(path, { no_cache: true }))).toEqual([0, 'Teapots'])
      expect(await seenOf(lab.parse(path))).toEqual([0, 'Teapots'])
    })

    it('is served to no other caller if its server calls it private', async () => {
      const path = newPage(PAGE, { headers: { 'cache-control': 'Private="x", max-age=60' } })
      expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
      expect(await seenOf(lab.parse(path))).toEqual([1, 'Kettles'])
      expect(await seenOf(lab.parse(path, {}, OTHER_CALLER))).toEqual([0, 'Kettles'])
      expect(await seenOf(lab.parse(path, {}, OTHER_CALLER))).toEqual([1, 'Kettles'])
    })

    it.each<readonly [string, AnswerFacts]>([
      ['of status 404', { status: '404 Not Found' }],
      ['of status 500', { status: '500 Oops' }],
      ['of status 203', { status: '203 Other' }],
      ['that must not be stored', { headers: { 'cache-control': 'max-age=60,  NO-STORE' } }],
      ['that must be checked each time', { headers: { 'cache-control': 'No-Cache, max-age=60' } }],
      ['that is stale at once', { headers: { 'cache-control': 'public, max-age=0' } }],
      ['that is stale at once for caches of many', { headers: { 'cache-control': 'max-age=60, s-maxage="0"' } }],
    ])('is read anew when it was one %s', async (_name, facts) => {
      const path = newPage(PAGE, facts)
      await lab.parse(path)
      expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
      expect(lab.target.heads).toHaveLength(2)
    })

    it.each(['max-age=60', 'max-age=0, s-maxage=60', 'max-age=09', 'max-age', 'no-transform'])(
      'is given again where its server says %s',
      async (cacheControl) => {
        const path = newPage(PAGE, { headers: { 'cache-control': cacheControl } })
        await lab.parse(path)
        expect(await seenOf(lab.parse(path))).toEqual([1, 'Kettles'])
      },
    )

    it('is read anew when that failed', async () => {
      const path = newPage(PAGE, { headers: { 'content-encoding': 'gzip' } })
      expect((await lab.parse(path)).status).toBe(502)
      lab.target.answers.set(path, answerOf(PAGE))
      expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
    })
  })

  describe('a file that was read before', () => {
    it('is recognised by its bytes, for the same caller', async () => {
      const send = (content: string, name = 'a.html', type = 'text/html', headers = {}) =>
        lab.upload([documentPart(content, name, type)], headers)
      expect(await seenOf(send(PAGE))).toEqual([0, 'Kettles'])
      expect(await seenOf(send(PAGE))).toEqual([1, 'Kettles'])
      expect(await seenOf(send(`${PAGE} `))).toEqual([0, 'Kettles'])
      expect(await seenOf(send(PAGE, 'b.html'))).toEqual([0, 'Kettles'])
      expect(await seenOf(send(PAGE, 'a.html', 'text/html; charset=utf-8'))).toEqual([0, 'Kettles'])
      expect(await seenOf(send(PAGE, 'a.html', 'text/html', OTHER_CALLER))).toEqual([0, 'Kettles'])
      expect(await seenOf(send(PAGE))).toEqual([1, 'Kettles'])
    })
  })

  describe('with a cache of no time', () => {
    it('every request asks again', async () => {
      const other = await startDocumentLab({ sections: { documents: { cacheMs: 0 } } })
      try {
        other.target.answers.set('/', answerOf(PAGE))
        for (let asked = 1; asked <= 2; asked++) {
          expect(await seenOf(other.parse('/'))).toEqual([0, 'Kettles'])
          expect(other.target.heads).toHaveLength(asked)
        }
        for (let sent = 1; sent <= 2; sent++) {
          expect(await seenOf(other.upload([documentPart(PAGE, 'a.html')]))).toEqual([0, 'Kettles'])
        }
      } finally {
        await other.close()
      }
    })
  })
})

describe('documents shared', () => {
  let lab: DocumentLab

  beforeAll(async () => {
    lab = await startDocumentCacheLab()
  })
  afterEach(async () => {
    lab.target.reset()
    await eventually(() => spoolsLeft().length === 0)
  })
  afterAll(() => lab.close())

  let pages = 0

  describe('the same page asked for several times at once', () => {
    /** A page that is sent when the test says so. */
    function heldPage(): { readonly path: string; readonly asked: Promise<Socket> } {
      const path = `/held-${++pages}`
      const asked = new Promise<Socket>((resolve) => {
        lab.target.answers.set(path, resolve)
      })
      return { path, asked }
    }

    /** What was sent before is taken before what is sent later. */
    const allHeard = () => sendRaw(lab.gateway.url, { method: 'GET', path: '/health/live' })

    it('is fetched once for all of them', async () => {
      const { path, asked } = heldPage()
      const replies = Array.from({ length: 8 }, () => lab.parse(path))
      const socket = await asked
      // A later request still joins: there is no response yet.
      replies.push(lab.parse(path))
      await allHeard()
      socket.write(answerOf(PAGE))
      expect(await Promise.all(replies.map(seenOf))).toEqual(replies.map(() => [0, 'Kettles']))
      expect(lab.target.heads).toHaveLength(1)
    })

    it('fails for all that wait for it, and for none afterwards', async () => {
      const { path, asked } = heldPage()
      const replies = [lab.parse(path), lab.parse(path)]
      const socket = await asked
      await allHeard()
      socket.destroy()
      const statuses = (await Promise.all(replies)).map(({ status }) => status)
      expect(statuses).toEqual([502, 502])
      lab.target.answers.set(path, answerOf(PAGE))
      expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
    })

    it('goes on for those who stay, and ends with the last one who leaves', async () => {
      const { path, asked } = heldPage()
      const first = await lab.ask(path, 'documents-shared-1')
      const socket = await asked
      const second = await lab.ask(path, 'documents-shared-2')
      const third = await lab.ask(path, 'documents-shared-3')
      await allHeard()
      first.socket.destroy()
      expect(await lab.gateway.logLine('documents-shared-1')).toMatchObject({ status: 499 })
      expect(socket.destroyed).toBe(false)
      second.socket.destroy()
      await lab.gateway.logLine('documents-shared-2')
      expect(socket.destroyed).toBe(false)
      const leftAtMs = performance.now()
      const closed = once(socket, 'close')
      third.socket.destroy()
      await closed
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
    })

    it('comes in time for one whose patience is longer than another’s', async () => {
      const { path, asked } = heldPage()
      const hasty = lab.parse(path, { timeout: 0.3 })
      const patient = lab.parse(path, { timeout: 20 })
      const socket = await asked
      expect((await hasty).body).toMatchObject({ code: 5002, message: expect.stringContaining('300 ms') })
      socket.write(answerOf(PAGE))
      expect(await seenOf(patient)).toEqual([0, 'Kettles'])
      expect(lab.target.heads).toHaveLength(1)
    })

    it('is fetched for each caller by itself, who may not see the same', async () => {
      const { path, asked } = heldPage()
      const mine = lab.parse(path)
      const socket = await asked
      lab.target.answers.set(path, answerOf(NEWER))
      expect(await seenOf(lab.parse(path, {}, OTHER_CALLER))).toEqual([0, 'Teapots'])
      socket.write(answerOf(PAGE))
      expect(await seenOf(mine)).toEqual([0, 'Kettles'])
    })

    it('is not fetched once more for those who left before', async () => {
      const { path, asked } = heldPage()
      const left = await lab.ask(path, 'documents-left-early')
      const socket = await asked
      left.socket.destroy()
      await once(socket, 'close')
      lab.target.answers.set(path, answerOf(PAGE))
      expect(await seenOf(lab.parse(path))).toEqual([0, 'Kettles'])
    })
  })
})

describe('documents addresses', () => {
  let lab: DocumentLab
  let edge: PublicEdge
  let untouched: UntouchedServer

  beforeAll(async () => {
    edge = await startPublicEdge()
    untouched = await startUntouchedServer()
    lab = await startDocumentLab({
      sections: { server: { publicUrl: edge.url } },
      alsoExempt: [new URL(edge.url).host],
    })
    edge.leadTo(lab.gateway.url)
  })
  beforeEach(() => {
    lab.target.reset()
  })
  afterAll(async () => {
    expect(untouched.accepted).toBe(0)
    await lab.close()
    await untouched.close()
    await edge.close()
  })

  const expectRefused = ({ status, text, body }: Awaited<ReturnType<DocumentLab['parse']>>): void => {
    expect([status, body.code]).toEqual([400, 1201])
    expect(body.message).toContain("'url'")
    expect(text).not.toMatch(/127\.|::1|10\.0|169\.254/)
  }

  describe.each(FORBIDDEN_URLS)('%s', (_name, urlFor) => {
    it('is not fetched, in whichever form it is asked for', async () => {
      const url = urlFor(untouched.port)
      expectRefused(await lab.parse(url))
      expectRefused(await lab.upload([fieldPart('url', url)]))
    })

    it.each(['301 Moved', '302 Found', '303 See Other', '307 Temporary', '308 Permanent'])(
      'is not fetched by a redirect: %s',
      async (status) => {
        // Headers are Latin-1: other letters arrive escaped.
        const location = urlFor(untouched.port).replaceAll(/[^\x21-\x7e]/g, encodeURIComponent)
        lab.target.answers.set('/start', redirectTo('/next'))
        lab.target.answers.set('/next', redirectTo(location, status))
        expectRefused(await lab.parse('/start'))
        expect(lab.target.heads).toHaveLength(2)
      },
    )
  })

  describe('a redirect', () => {
    it.each([
      'file:///etc/passwd',
      'ftp://127.0.0.1/',
      'data:text/html,a',
      'http://user:canary@93.184.216.34/',
      'javascript:1',
    ])('to what is no page is not followed: %s', async (location) => {
      lab.target.answers.set('/start', redirectTo(location))
      const reply = await lab.parse('/start')
      expectRefused(reply)
      expect(reply.text).not.toContain('canary')
    })

    it('in a circle ends as a failure of its server', async () => {
      lab.target.answers.set('/circle', redirectTo('/circle'))
      const { status, body } = await lab.parse('/circle')
      expect([status, body.code]).toEqual([502, 5000])
      expect(lab.target.heads).toHaveLength(6)
    })
  })

  describe('the gateway itself', () => {
    it('is not read, under the name it has in public, nor behind a redirect', async () => {
      expectRefused(await lab.parse(`${edge.url}/health/live`))
      expectRefused(await lab.parse(edge.url))
      lab.target.answers.set('/start', redirectTo(`${edge.url}/health/live`))
      expectRefused(await lab.parse('/start'))
      // A read of its own pages could set something off there: it is not even asked.
      expect(edge.requests).toBe(0)
    })

    it('may share its host with others', async () => {
      // The edge hands on whatever stands behind five characters.
      const { status } = await lab.parse(new URL('/else/health/live', edge.url).href)
      expect(status).not.toBe(400)
    })
  })

  describe('a server that the operator exempts', () => {
    it('is exempt as it stands in the configuration, and by no other spelling', async () => {
      const { port } = lab.target
      lab.target.answers.set('/', answerOf(pageOf('Inside', 'A page of the operator’s own network.')))
      expect((await lab.parse('/')).status).toBe(200)
      expect((await lab.parse(`http://2130706433:${port}/`)).status).toBe(200)
      for (const host of ['localhost', '[::ffff:127.0.0.1]', '127.0.0.2']) {
        expectRefused(await lab.parse(`http://${host}:${port}/`))
      }
    })
  })
})

describe('documents deadlines', () => {
  const IDLE_MS = 400

  let lab: DocumentLab

  beforeAll(async () => {
    lab = await startDocumentLab({
      sections: {
        timeouts: { firstByteMs: IDLE_MS, idleMs: IDLE_MS },
        documents: { maximumTimeoutMs: 3000, defaultTimeoutMs: 3000 },
      },
    })
  })
  afterEach(async () => {
    await eventually(() => lab.target.sockets.size === 0)
    lab.target.reset()
    await eventually(() => spoolsLeft().length === 0)
  })
  afterAll(() => lab.close())

  describe('a deadline', () => {
    it.each<readonly [string, TargetAnswer]>([
      ['before the head', () => undefined],
      ['in the middle of the head', (socket) => void socket.write('HTTP/1.1 200 OK\r\n')],
      ['in the middle of the body', (socket) => void socket.write(`${PAGE_HEAD}content-length: 99\r\n\r\n<html>`)],
      ['in the middle of a gzip', (socket) => void socket.write(encodedAs('gzip', GZIPPED_PAGE).subarray(0, -9))],
    ])('for a silence of the server ends a fetch: %s', async (_name, answer) => {
      lab.target.answers.set('/silent', answer)
      const { status, body } = await lab.parse('/silent')
      expect([status, body.code]).toEqual([504, 5002])
      expect(body.message).toBe('The server of the document did not send it in time.')
    })

    it.each([0.7, 1000])('of the caller holds for all of it, however steadily it drips: %s', async (timeout) => {
      const drips: NodeJS.Timeout[] = []
      lab.target.answers.set('/drip', (socket) => {
        socket.write(`${PAGE_HEAD}\r\n<html>`)
        drips.push(setInterval(() => socket.write('.'), 50))
      })
      const beganAtMs = performance.now()
      const reply = await lab.parse('/drip', { timeout })
      const tookMs = performance.now() - beganAtMs
      for (const drip of drips) clearInterval(drip)
      expect([reply.status, reply.body.code]).toEqual([504, 5002])
      const askedMs = timeout >= 1000 ? timeout : timeout * 1000
      expect(reply.body.message).toBe(`The document could not be read within ${askedMs} ms.`)
      expect(tookMs).toBeGreaterThanOrEqual(askedMs - 5)
      expect(tookMs).toBeLessThan(promised(askedMs + 1500))
    })

    it('holds over redirects as well', async () => {
      const hop: TargetAnswer = (socket, head) => {
        const next = Number(/\d+/.exec(head)?.[0]) + 1
        setTimeout(() => {
          socket.end(`HTTP/1.1 302 Found\r\nlocation: /slow${next}\r\ncontent-length: 0\r\n\r\n`)
        }, 200)
      }
      for (let at = 0; at < 5; at++) lab.target.answers.set(`/slow${at}`, hop)
      expect((await lab.parse('/slow0', { timeout: 0.5 })).status).toBe(504)
    })

    it('of no time at all is one as well', async () => {
      lab.target.answers.set('/', answerOf(PAGE))
      expect((await lab.parse('/', { timeout: 0.001 })).status).toBe(504)
    })

    it('longer than the operator allows is cut to that', async () => {
      const drips: NodeJS.Timeout[] = []
      lab.target.answers.set('/drip', (socket) => {
        socket.write(`${PAGE_HEAD}\r\n<html>`)
        drips.push(setInterval(() => socket.write('.'), 50))
      })
      const { status, body } = await lab.parse('/drip', { timeout: 999 })
      for (const drip of drips) clearInterval(drip)
      expect([status, body.message]).toEqual([504, 'The document could not be read within 3000 ms.'])
    })
  })

  describe('a caller who leaves', () => {
    it.each<readonly [string, TargetAnswer]>([
      ['before the server answers', () => undefined],
      ['in the middle of the body', (socket) => void socket.write(`${PAGE_HEAD}content-length: 99\r\n\r\n<html>`)],
    ])('%s ends the fetch within a second', async (name, answer) => {
      lab.target.answers.set('/left', answer)
      const requestId = `documents-left-${name.replaceAll(' ', '-')}`
      const caller = await lab.ask('/left', requestId)
      await eventually(() => lab.target.heads.length === 1)
      const [socket] = lab.target.sockets
      if (socket === undefined) throw new Error('no request')
      const closed = once(socket, 'close')
      const leftAtMs = performance.now()
      caller.socket.destroy()
      await closed
      expect(performance.now() - leftAtMs).toBeLessThan(promised(ABORT_LIMIT_MS))
      expect(await lab.gateway.logLine(requestId)).toMatchObject({ status: 499 })
    })
  })
})

describe('more fetches at once than the operator allows', () => {
  let lab: DocumentLab

  beforeAll(async () => {
    lab = await startDocumentLab({ sections: { documents: { fetchesInFlight: 2 } } })
  })
  afterAll(() => lab.close())

  it('are refused at once, with Retry-After', async () => {
    lab.target.answers.set('/1', () => undefined)
    lab.target.answers.set('/2', () => undefined)
    lab.target.answers.set('/3', answerOf(PAGE))
    const callers = [await lab.ask('/1', 'documents-fetch-1'), await lab.ask('/2', 'documents-fetch-2')]
    await eventually(() => lab.target.heads.length === 2)
    const { status, headers, body } = await lab.parse('/3')
    expect([status, body.code, headers['retry-after']]).toEqual([503, 5001, expect.stringMatching(/^\d+$/)])
    expect(lab.target.heads).toHaveLength(2)
    for (const { socket } of callers) socket.destroy()
    await eventually(() => lab.target.sockets.size === 0)
    expect((await lab.parse('/3')).status).toBe(200)
  })
})

describe('documents faults', () => {
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
      ['in an encoding that was not requested', encodedAs('zstd', GZIPPED_PAGE)],
      ['in more encodings than are in use', encodedAs('gzip, gzip, gzip, gzip', GZIPPED_PAGE)],
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
      ['the port is closed', () => `http://127.0.0.1:${closedPort}/`, /cannot be reached/],
      ['every port of a name is closed', () => `http://localhost:${closedPort}/`, /cannot be reached/],
      ['the name is unknown', () => 'http://nobody.invalid/', /host of the document is not known/],
      ['its certificate is not trusted', () => `${tls.url}/`, /cannot prove who it is/],
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
})
