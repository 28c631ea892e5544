import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import { spoolsLeft } from '../support/audio-uploads.js'
import { type DocumentLab, startDocumentLab } from '../support/document-lab.js'
import { answerOf, PAGE, redirectTo } from '../support/document-target.js'
import { eventually } from '../support/eventually.js'

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
  it('has exactly the members of the specification, in its order', async () => {
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
    lab.target.answers.set('/picture', answerOf(png, { status: '404 Gone', headers: { 'content-type': 'image/png' } }))
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
