import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { startGateway, TEST_KEY, type TestGateway } from '../../test/support/gateway.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({
    channels: [{ id: 'a', provider: 'p1', baseUrl: 'http://127.0.0.1:1', credentials: 'secret' }],
  })
})
afterAll(() => gateway.close())

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

/** Plain HTTP: `fetch` would clean paths up and hide what HEAD answers. */
async function ask(path: string, { method = 'GET', headers = {}, body }: Asked = {}): Promise<Answer> {
  const { port } = new URL(gateway.url)
  const request = httpRequest({ port, host: '127.0.0.1', path, method, headers, agent: false })
  request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, body: text }
}

const KEY = { authorization: `Bearer ${TEST_KEY}` }
const JSON_TYPE = { ...KEY, 'content-type': 'application/json' }
const errorOf = ({ body }: Answer): unknown => (JSON.parse(body) as { error: unknown }).error

describe('A path that does not exist', () => {
  it.each(['/nowhere', '/v1/models/', '/V1/models', '/v1//models', '/v1/Chat/completions', '/v1/chat/completions/'])(
    '%s is 404 in the dialect of its prefix',
    async (path) => {
      const answer = await ask(path, { headers: KEY })
      expect(answer.status).toBe(404)
      expect(errorOf(answer)).toMatchObject({ type: 'invalid_request_error', code: 'not_found', param: null })
      expect(answer.headers['x-request-id']).toMatch(/^req_/)
    },
  )

  it.each([
    ['/v1/messages/nothing', { type: 'error', error: { type: 'not_found_error' } }],
    ['/vidgen/v1/nothing', { code: 1203 }],
    ['/imggen/nothing', { code: 1203, description: expect.stringContaining('/imggen/nothing') }],
  ])('%s speaks its dialect', async (path, body) => {
    const answer = await ask(path)
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([404, body])
  })

  it('that cannot be decoded is a bad request, not a failure of the gateway', async () => {
    expect((await ask('/v1/models/%zz', { headers: KEY })).status).toBe(400)
  })
})

describe('A method that does not exist', () => {
  it.each([
    ['DELETE', '/v1/models', 'GET, HEAD'],
    ['POST', '/v1/models/gpt-4o', 'GET, HEAD'],
    ['GET', '/v1/chat/completions', 'POST'],
    ['PUT', '/v1/audio/speech', 'POST'],
    ['PATCH', '/v1/messages', 'POST'],
    ['POST', '/health/live', 'GET, HEAD'],
  ])('%s %s is 405 and names those that do', async (method, path, allow) => {
    const answer = await ask(path, { method })
    expect([answer.status, answer.headers.allow]).toEqual([405, allow])
    expect(errorOf(answer)).toMatchObject({ type: 'invalid_request_error' })
  })
})

describe('HEAD', () => {
  it('answers like GET without a body, for good paths and bad ones', async () => {
    expect(await ask('/health/live', { method: 'HEAD' })).toMatchObject({ status: 200, body: '' })
    expect(await ask('/v1/models', { method: 'HEAD', headers: KEY })).toMatchObject({ status: 200, body: '' })
    expect(await ask('/v1/models', { method: 'HEAD' })).toMatchObject({ status: 401, body: '' })
    expect(await ask('/nowhere', { method: 'HEAD' })).toMatchObject({ status: 404, body: '' })
  })
})

describe('The key of a request', () => {
  it.each([
    ['/v1/chat/completions', {}, 'invalid_api_key'],
    ['/v1/chat/completions', { 'x-api-key': TEST_KEY }, 'invalid_api_key'],
    ['/v1/chat/completions', { authorization: 'Bearer nobody' }, 'invalid_api_key'],
  ])('on %s in %j is refused', async (path, headers, code) => {
    const answer = await ask(path, { method: 'POST', headers })
    expect([answer.status, errorOf(answer)]).toMatchObject([401, { code, type: 'authentication_error' }])
    expect(answer.headers['x-should-retry']).toBe('false')
  })

  it('is judged before a byte of the body is read, and before the client is told to send it', async () => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    const head = 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\nexpect: 100-continue\r\n'
    socket.write(`${head}authorization: Bearer nobody\r\n\r\n`)
    const [refused] = (await once(socket, 'data')) as [Buffer]
    expect(refused.toString()).toMatch(/^HTTP\/1\.1 401 /)
    socket.destroy()
    const other = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    other.write(`${head}authorization: Bearer ${TEST_KEY}\r\ncontent-type: application/json\r\n\r\n`)
    const [invited] = (await once(other, 'data')) as [Buffer]
    expect(invited.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
    other.destroy()
  })

  it('may be sent as x-api-key to the messages routes', async () => {
    const headers = { 'x-api-key': TEST_KEY, 'content-type': 'application/json' }
    expect((await ask('/v1/messages', { method: 'POST', headers, body: '{}' })).status).toBe(400)
    const wrong = await ask('/v1/messages', { method: 'POST', headers: { ...headers, 'x-api-key': 'nobody' } })
    expect([wrong.status, JSON.parse(wrong.body)]).toMatchObject([401, { error: { type: 'authentication_error' } }])
    expect(wrong.headers['request-id']).toBe(wrong.headers['x-request-id'])
  })
})

describe('A body', () => {
  const post = (headers: Readonly<Record<string, string>>, body: string | Buffer): Promise<Answer> =>
    ask('/v1/chat/completions', { method: 'POST', headers, body })

  it.each([
    [{ ...KEY, 'content-type': 'text/plain' }],
    [KEY],
    [{ ...KEY, 'content-type': 'application/x-www-form-urlencoded' }],
    [{ ...KEY, 'content-type': 'application/json; charset=latin1' }],
    [{ ...JSON_TYPE, 'content-encoding': 'gzip' }],
  ])('with %j is 415', async (headers) => {
    expect((await post(headers, '{}')).status).toBe(415)
  })

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
    'application/x+json',
  ])('as %s is read', async (type) => {
    expect((await post({ ...KEY, 'content-type': type }, '{}')).status).toBe(400)
  })

  it('that announces more than the limit is 413 before it is read, and one that does not 413 when it is there', async () => {
    expect((await post({ ...JSON_TYPE, 'content-length': '99999999' }, '')).status).toBe(413)
    const large = Buffer.alloc(10_485_761, ' ')
    expect((await post({ ...JSON_TYPE, 'transfer-encoding': 'chunked' }, large)).status).toBe(413)
  })

  it('that is not JSON is 400 without a word of it in the answer', async () => {
    const answer = await post(JSON_TYPE, '{"canary": oops}')
    expect([answer.status, errorOf(answer)]).toMatchObject([400, { code: 'invalid_json' }])
    expect(answer.body).not.toContain('canary')
  })
})

describe('The request id', () => {
  it('of a caller is kept when it is printable and short, otherwise a new one is made', async () => {
    const idFor = async (id: string): Promise<unknown> =>
      (await ask('/nowhere', { headers: { 'x-request-id': id } })).headers['x-request-id']
    expect(await idFor('my-id_1.2')).toBe('my-id_1.2')
    expect(await idFor('x'.repeat(128))).toBe('x'.repeat(128))
    for (const id of ['x'.repeat(129), 'a b', 'ä', '']) expect(await idFor(id)).toMatch(/^req_[0-9a-f]{32}$/)
  })
})
